//! A store in a TiKV cluster, named by its address.
//!
//! `tikv://HOST:PORT[,HOST:PORT…]/KEYSPACE[?OPTION=VALUE&…]`
//!
//! The addresses are those of the placement drivers, and the options those of the engine `tikv`, such as
//! `servers=several` and `ca=/etc/ca.pem`. Values are percent-encoded. A copy opens such a store as one more
//! server, with a folder that goes with it.

use std::fmt;

use pandodb::EngineName;

use super::address::unescape;
use super::error::TransferError;

/// The beginning of such an address.
pub const SCHEME: &str = "tikv://";

/// The engine of such stores.
pub const ENGINE: &str = "tikv";

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStore {
    drivers: String,
    keyspace: String,
    options: Vec<(String, String)>,
}

impl ClusterStore {
    /// Reads the address.
    ///
    /// # Errors
    /// The text says what is wrong, and how such an address is written.
    pub fn parse(uri: &str) -> Result<ClusterStore, String> {
        let refused = |reason: &str| {
            format!("{uri} {reason}: write {SCHEME}HOST:PORT/KEYSPACE, with the placement driver's address")
        };
        let rest = uri.strip_prefix(SCHEME).ok_or_else(|| refused("begins otherwise"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (drivers, keyspace) = place.split_once('/').unwrap_or((place, ""));
        if drivers.is_empty() {
            return Err(refused("names no placement driver"));
        }
        if keyspace.is_empty() {
            return Err(refused("names no keyspace"));
        }
        let mut options = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| refused("has an option without a value"))?;
            let value = unescape(value).ok_or_else(|| refused("has a value that is not percent-encoded"))?;
            if ["pd", "keyspace"].contains(&name) {
                return Err(refused("names its place twice"));
            }
            options.push((name.to_owned(), value));
        }
        Ok(ClusterStore { drivers: drivers.to_owned(), keyspace: keyspace.to_owned(), options })
    }

    /// The options of the engine that say which store it is and how it is opened.
    pub(super) fn engine_options(&self) -> Vec<(String, String)> {
        let place = [("pd", &self.drivers), ("keyspace", &self.keyspace)];
        let place = place.map(|(name, value)| (name.to_owned(), value.clone()));
        place.into_iter().chain(self.options.iter().cloned()).collect()
    }

    /// The engine of such stores.
    ///
    /// # Errors
    /// This build has not that engine.
    pub(super) fn engine() -> Result<EngineName, TransferError> {
        ENGINE.parse().map_err(|known| TransferError::NoEngine { known })
    }

    /// Whether both are one store, however its placement drivers are named.
    pub(super) fn is_same_keyspace(&self, other: &ClusterStore) -> bool {
        let mut drivers = self.drivers.split(',');
        self.keyspace == other.keyspace
            && drivers.any(|driver| other.drivers.split(',').any(|other| other == driver))
    }
}

impl fmt::Display for ClusterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.drivers, self.keyspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_placement_drivers_a_keyspace_and_options() {
        let store =
            ClusterStore::parse("tikv://10.0.0.1:2379,10.0.0.2:2379/shop?servers=several&ca=%2Fetc%2Fca");
        let store = store.expect("it is one");
        let options = store.engine_options();
        let options: Vec<(&str, &str)> =
            options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let pd = "10.0.0.1:2379,10.0.0.2:2379";
        assert_eq!(options, [("pd", pd), ("keyspace", "shop"), ("servers", "several"), ("ca", "/etc/ca")]);
        assert_eq!(store.to_string(), format!("tikv://{pd}/shop"));
    }

    #[test]
    fn a_faulty_address_is_refused_with_its_fault() {
        for (address, fault) in [
            ("tikv://", "no placement driver"),
            ("tikv:///shop", "no placement driver"),
            ("tikv://a:1", "no keyspace"),
            ("tikv://a:1/", "no keyspace"),
            ("tikv://a:1/shop?servers", "without a value"),
            ("tikv://a:1/shop?ca=%2", "percent-encoded"),
            ("tikv://a:1/shop?pd=b:1", "twice"),
        ] {
            let refused = ClusterStore::parse(address).expect_err(address);
            assert!(refused.contains(fault) && refused.contains("HOST:PORT/KEYSPACE"), "{refused}");
        }
    }

    #[test]
    fn two_addresses_with_a_common_placement_driver_and_one_keyspace_are_one_store() {
        let store = |address| ClusterStore::parse(address).expect("it is one");
        let one = store("tikv://a:1,b:1/shop");
        assert!(one.is_same_keyspace(&store("tikv://b:1/shop?servers=several")));
        assert!(!one.is_same_keyspace(&store("tikv://b:1/bank")));
        assert!(!one.is_same_keyspace(&store("tikv://c:1/shop")));
    }
}
