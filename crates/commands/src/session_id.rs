//! The identity of a session, which clients make up themselves (`lsid`).

use std::fmt;

use pando_document::{DocumentWriter, RawBinary, RawDocument, RawValue};

/// The digest of a user without a name, which every session has here: SHA-256 of no bytes.
const USER_DIGEST: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A session's identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId([u8; 16]);

impl SessionId {
    /// The digest of its user in base 64, as errors name sessions.
    pub const USER_DIGEST_TEXT: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

    /// The identity in an `lsid` document. `None` where there is none that could be one.
    pub fn of(session: &RawDocument) -> Option<SessionId> {
        match session.get("id") {
            Ok(Some(RawValue::Binary(RawBinary { subtype: 4, bytes }))) => {
                bytes.try_into().ok().map(SessionId)
            }
            _ => None,
        }
    }

    /// The bytes of the identity.
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// The identity of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> SessionId {
        SessionId(bytes)
    }

    /// Writes it as lists of operations show it, with the digest of its user.
    pub fn write(&self, name: &str, out: &mut DocumentWriter<'_>) {
        let mut session = out.document(name);
        session.append("id", RawValue::Binary(RawBinary { subtype: 4, bytes: &self.0 }));
        session.append("uid", RawValue::Binary(RawBinary { subtype: 0, bytes: &USER_DIGEST }));
        session.finish();
    }

    /// Whether a digest is that of its user.
    pub fn is_of_user(digest: &[u8]) -> bool {
        digest == USER_DIGEST
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{RawDocumentBuf, doc};

    use super::*;

    #[test]
    fn an_identity_is_sixteen_bytes_of_a_uuid() {
        let with = |subtype, bytes: &[u8]| {
            let mut out = Vec::new();
            let mut writer = DocumentWriter::begin(&mut out);
            writer.append("id", RawValue::Binary(RawBinary { subtype, bytes }));
            writer.finish();
            SessionId::of(&RawDocumentBuf::from_vec(out).unwrap())
        };
        assert_eq!(with(4, &[7; 16]), Some(SessionId([7; 16])));
        assert_eq!(with(4, &[7; 15]), None);
        assert_eq!(with(0, &[7; 16]), None);
        assert_eq!(SessionId::of(&doc! { "id": 1 }.to_raw()), None);
        assert_eq!(SessionId::of(&doc! {}.to_raw()), None);
    }
}
