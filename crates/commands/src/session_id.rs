//! The identity of a session: a number that clients make up themselves (`lsid`), and the user that it belongs
//! to. The same number of another user is another session.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_document::{DocumentWriter, RawBinary, RawDocument, RawValue};

use crate::identity::uuid_text;

/// The owner of a session: the digest of the name of a user.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionOwner([u8; 32]);

impl SessionOwner {
    /// No user: SHA-256 of no bytes. All sessions belong to it where there is no access control.
    pub const NOBODY: SessionOwner = SessionOwner([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
        0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ]);

    /// The owner of this digest.
    pub fn of_digest(digest: [u8; 32]) -> SessionOwner {
        SessionOwner(digest)
    }

    /// The owner that a `uid` names; `None` where it cannot be a digest.
    pub fn of_bytes(bytes: &[u8]) -> Option<SessionOwner> {
        bytes.try_into().ok().map(SessionOwner)
    }

    /// The owner that an `lsid` names, if it names one.
    pub fn named(session: &RawDocument) -> Option<SessionOwner> {
        match session.get("uid") {
            Ok(Some(RawValue::Binary(RawBinary { bytes, .. }))) => SessionOwner::of_bytes(bytes),
            _ => None,
        }
    }
}

impl fmt::Debug for SessionOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

/// A session's identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId {
    number: [u8; 16],
    owner: SessionOwner,
}

impl SessionId {
    /// The identity in an `lsid` document of this user. `None` where there is none that could be one.
    pub fn of(session: &RawDocument, owner: SessionOwner) -> Option<SessionId> {
        match session.get("id") {
            Ok(Some(RawValue::Binary(RawBinary { subtype: 4, bytes }))) => {
                Some(SessionId { number: bytes.try_into().ok()?, owner })
            }
            _ => None,
        }
    }

    /// The identity in a document that [`write`](SessionId::write) has written.
    pub fn recorded(session: &RawDocument) -> Option<SessionId> {
        SessionId::of(session, SessionOwner::named(session)?)
    }

    /// The identity of this number without a user.
    pub fn from_bytes(number: [u8; 16]) -> SessionId {
        SessionId { number, owner: SessionOwner::NOBODY }
    }

    /// The number that the client has made up.
    pub fn number(&self) -> [u8; 16] {
        self.number
    }

    /// The session of the same number of another user.
    pub fn of_owner(self, owner: SessionOwner) -> SessionId {
        SessionId { owner, ..self }
    }

    /// Its user.
    pub fn owner(&self) -> SessionOwner {
        self.owner
    }

    /// The identity as errors show it.
    pub fn text(&self) -> String {
        format!("{} - {:?} -  - ", uuid_text(self.number), self.owner)
    }

    /// Writes it as lists of operations show it, with the digest of its user.
    pub fn write(&self, name: &str, out: &mut DocumentWriter<'_>) {
        let mut session = out.document(name);
        session.append("id", RawValue::Binary(RawBinary { subtype: 4, bytes: &self.number }));
        session.append("uid", RawValue::Binary(RawBinary { subtype: 0, bytes: &self.owner.0 }));
        session.finish();
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{RawDocumentBuf, doc};

    use super::*;

    #[test]
    fn an_identity_is_sixteen_bytes_of_a_uuid_and_a_user() {
        let owner = SessionOwner::of_digest([9; 32]);
        let with = |subtype, bytes: &[u8]| {
            let mut out = Vec::new();
            let mut writer = DocumentWriter::begin(&mut out);
            writer.append("id", RawValue::Binary(RawBinary { subtype, bytes }));
            writer.finish();
            SessionId::of(&RawDocumentBuf::from_vec(out).unwrap(), owner)
        };
        assert_eq!(with(4, &[7; 16]), Some(SessionId { number: [7; 16], owner }));
        assert_ne!(with(4, &[7; 16]), Some(SessionId::from_bytes([7; 16])));
        assert_eq!(with(4, &[7; 15]), None);
        assert_eq!(with(0, &[7; 16]), None);
        assert_eq!(SessionId::of(&doc! { "id": 1 }.to_raw(), owner), None);
        assert_eq!(SessionId::of(&doc! {}.to_raw(), owner), None);
    }

    #[test]
    fn an_identity_is_read_as_it_is_written() {
        let id = SessionId { number: [1; 16], owner: SessionOwner::of_digest([2; 32]) };
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        id.write("lsid", &mut out);
        out.finish();
        let written = RawDocumentBuf::from_vec(bytes).unwrap();
        let session = written.get("lsid").unwrap().unwrap().as_document().unwrap();
        assert_eq!(SessionId::recorded(session), Some(id));
        let nobody = SessionId::from_bytes([0; 16]).text();
        assert!(nobody.ends_with(" - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  - "), "{nobody}");
    }
}
