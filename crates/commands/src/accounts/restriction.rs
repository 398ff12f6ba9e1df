//! The addresses between which a user may log in: `authenticationRestrictions`.
//!
//! A list of them allows a connection if one of its elements does. An element allows it if the client's
//! address is in one of the ranges of `clientSource` and the server's in one of `serverAddress`; a list that
//! it does not have allows all. An empty list of elements allows every connection, and one of ranges none.

use std::net::IpAddr;

use pando_document::{Document, RawArray, RawDocument, RawValue, Value};

use crate::arguments::{unknown_field, wrong_type};
use crate::{CommandError, ErrorCode};

/// The addresses at both ends of a connection; `None` through a unix socket and in the same process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub client: Option<IpAddr>,
    pub server: Option<IpAddr>,
}

impl Ends {
    /// Whether the client is on this machine.
    pub fn is_this_machine(self) -> bool {
        self.client.is_none_or(|client| client.to_canonical().is_loopback())
    }

    /// Whether the client is on this machine, by whatever address: one that comes from the address that it
    /// connects to is there, too.
    pub fn share_a_machine(self) -> bool {
        let canonical = |address: Option<IpAddr>| address.map(|address| address.to_canonical());
        self.is_this_machine() || canonical(self.client) == canonical(self.server)
    }
}

/// One element of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restriction {
    client_source: Option<Vec<Range>>,
    server_address: Option<Vec<Range>>,
}

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: IpAddr,
    bits: u32,
}

impl Restriction {
    /// Whether a list of restrictions allows a connection.
    pub fn allow(list: &[Restriction], ends: Ends) -> bool {
        list.is_empty() || list.iter().any(|restriction| restriction.allows(ends))
    }

    fn allows(&self, ends: Ends) -> bool {
        let is_in = |ranges: &Option<Vec<Range>>, address: Option<IpAddr>| match (ranges, address) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ranges), Some(address)) => ranges.iter().any(|range| range.has(address)),
        };
        is_in(&self.client_source, ends.client) && is_in(&self.server_address, ends.server)
    }

    /// Reads a list of a request; `place` is where it stands: `createUser.authenticationRestrictions`.
    ///
    /// # Errors
    /// MongoDB's.
    pub fn read_list(place: &str, list: &RawArray) -> Result<Vec<Restriction>, CommandError> {
        let mut restrictions = Vec::new();
        for (at, element) in list.iter().enumerate() {
            match element? {
                RawValue::Document(document) => restrictions.push(Restriction::read(place, document)?),
                other => return Err(wrong_type(&format!("{place}.{at}"), other, "type 'object'")),
            }
        }
        Ok(restrictions)
    }

    fn read(place: &str, document: &RawDocument) -> Result<Restriction, CommandError> {
        let mut restriction = Restriction { client_source: None, server_address: None };
        for field in document.iter() {
            let (name, value) = field?;
            let ranges = match name {
                "clientSource" => &mut restriction.client_source,
                "serverAddress" => &mut restriction.server_address,
                _ => return Err(unknown_field(place, name)),
            };
            *ranges = Some(read_ranges(&format!("{place}.{name}"), value)?);
        }
        Ok(restriction)
    }

    /// Refuses an element without ranges. Roles may have such, as in MongoDB; it allows every connection.
    pub fn check_filled(list: &[Restriction]) -> Result<(), CommandError> {
        let is_idle = |one: &Restriction| one.client_source.is_none() && one.server_address.is_none();
        if !list.iter().any(is_idle) {
            return Ok(());
        }
        Err(CommandError::failed(
            ErrorCode::CollectionIsEmpty,
            "At least one of 'clientSource' or 'serverAddress' must be set",
        ))
    }

    /// The list of a stored user or role. `None` if it is none, which the log tells.
    pub fn read_stored(document: &RawDocument) -> Result<Option<Vec<Restriction>>, CommandError> {
        const FIELD: &str = "authenticationRestrictions";
        let read = match document.get(FIELD)? {
            None => return Ok(Some(Vec::new())),
            Some(RawValue::Array(list)) => Restriction::read_list(FIELD, list),
            Some(other) => Err(wrong_type(FIELD, other, "type 'array'")),
        };
        match read {
            Ok(list) => Ok(Some(list)),
            Err(CommandError::Failed(failure)) => {
                let id = document.get("_id")?.map(|id| id.to_owned());
                tracing::warn!(?id, "a stored user or role is passed over: {}", failure.message);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The document of an element, each address with its number of bits.
    pub fn to_document(&self) -> Document {
        let mut document = Document::new();
        let fields = [("clientSource", &self.client_source), ("serverAddress", &self.server_address)];
        for (name, ranges) in fields {
            if let Some(ranges) = ranges {
                let shown = |range: &Range| Value::from(format!("{}/{}", range.first, range.bits).as_str());
                document.push(name, Value::Array(ranges.iter().map(shown).collect()));
            }
        }
        document
    }
}

fn read_ranges(place: &str, value: RawValue<'_>) -> Result<Vec<Range>, CommandError> {
    let RawValue::Array(list) = value else { return Err(wrong_type(place, value, "type 'array'")) };
    let mut ranges = Vec::new();
    for (at, element) in list.iter().enumerate() {
        match element? {
            RawValue::String(text) => ranges.push(Range::read(text)?),
            other => return Err(wrong_type(&format!("{place}.{at}"), other, "type 'string'")),
        }
    }
    Ok(ranges)
}

impl Range {
    /// Reads an address, or one with a number of bits behind it: `10.0.0.0/8`.
    fn read(text: &str) -> Result<Range, CommandError> {
        let refused = |sentence| Err(CommandError::failed(ErrorCode::BadValue, sentence));
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Ok(first) = address.parse::<IpAddr>() else {
            return refused("Invalid IP address in CIDR string");
        };
        let bits_max = if first.is_ipv4() { 32 } else { 128 };
        match bits.map_or(Ok(bits_max), str::parse) {
            Ok(bits) if bits <= bits_max => Ok(Range { first, bits }),
            _ => refused("Invalid length in CIDR string"),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let address = if self.first.is_ipv4() { address.to_canonical() } else { address };
        let differing = number(address) ^ number(self.first);
        address.is_ipv4() == self.first.is_ipv4() && differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn read(list: Value) -> Result<Vec<Restriction>, i32> {
        let mut holder = Document::new();
        holder.push("l", list);
        let holder = holder.to_raw();
        let Ok(Some(RawValue::Array(list))) = holder.get("l") else { panic!("it is a list") };
        Restriction::read_list("createUser.authenticationRestrictions", list).map_err(|error| match error {
            CommandError::Failed(failure) => failure.code.code(),
            CommandError::WouldBlock(_) => panic!("nothing is read"),
        })
    }

    fn ends(client: &str, server: &str) -> Ends {
        Ends { client: client.parse().ok(), server: server.parse().ok() }
    }

    fn list(elements: Vec<Document>) -> Value {
        Value::Array(elements.into_iter().map(Value::Document).collect())
    }

    #[test]
    fn one_element_has_to_allow_both_ends() {
        let restrictions = read(list(vec![
            doc! { "clientSource": ["10.0.0.0/8", "::1"], "serverAddress": ["127.0.0.1"] },
            doc! { "clientSource": ["192.168.1.7"] },
        ]))
        .unwrap();
        let allows = |client, server| Restriction::allow(&restrictions, ends(client, server));
        assert!(allows("10.255.0.1", "127.0.0.1") && allows("::1", "127.0.0.1"));
        assert!(allows("::ffff:10.1.1.1", "::ffff:127.0.0.1"));
        assert!(!allows("10.255.0.1", "127.0.0.2") && !allows("11.0.0.1", "127.0.0.1"));
        assert!(allows("192.168.1.7", "1.2.3.4") && !allows("192.168.1.8", "1.2.3.4"));
        assert!(!allows("", ""));
        assert!(Restriction::allow(&[], ends("", "")));
        let none = read(list(vec![doc! { "clientSource": [] }])).unwrap();
        assert!(!Restriction::allow(&none, ends("127.0.0.1", "127.0.0.1")));
        let all = read(list(vec![doc! { "clientSource": ["0.0.0.0/0"] }])).unwrap();
        assert!(Restriction::allow(&all, ends("9.9.9.9", "")) && !Restriction::allow(&all, ends("::1", "")));
        let network = read(list(vec![doc! { "clientSource": ["2001:db8::/32"] }])).unwrap();
        assert!(Restriction::allow(&network, ends("2001:db8:1::1", "")));
        assert!(!Restriction::allow(&network, ends("2001:db9::1", "")));
    }

    #[test]
    fn wrong_elements_are_refused_with_the_codes_of_mongodb() {
        for (element, code) in [
            (doc! { "bogus": 1 }, 40_415),
            (doc! { "clientSource": "127.0.0.1" }, 14),
            (doc! { "clientSource": [1] }, 14),
            (doc! { "clientSource": ["x"] }, 2),
            (doc! { "clientSource": ["127.0.0.1/40"] }, 2),
            (doc! { "clientSource": ["127.0.0.1/"] }, 2),
        ] {
            assert_eq!(read(list(vec![element.clone()])), Err(code), "{element:?}");
        }
        assert_eq!(read(Value::Array(vec![Value::Int32(1)])), Err(14));
        let idle = read(list(vec![doc! {}])).unwrap();
        assert!(Restriction::check_filled(&idle).is_err() && Restriction::allow(&idle, ends("", "")));
        let shown = read(list(vec![doc! { "clientSource": ["10.0.0.1", "::1/64"] }])).unwrap();
        assert_eq!(shown[0].to_document(), doc! { "clientSource": ["10.0.0.1/32", "::1/64"] });
    }
}
