//! A document of `admin.system.users`.
//!
//! ```text
//! {_id: "admin.ada", userId: UUID, user: "ada", db: "admin",
//!  credentials: {"SCRAM-SHA-256": {iterationCount, salt, storedKey, serverKey}},
//!  authenticationRestrictions: [...], customData: {...}, roles: [{role, db}]}
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_access::scram::{Credential, Mechanism};
use pando_access::{RoleName, UserName};
use pando_document::{Document, RawBinary, RawDocument, RawValue, Value, doc};

use super::restriction::Restriction;
use super::stored_names::stored_roles;
use crate::CommandError;

/// The rounds of a stored credential: more would let whoever writes documents there hold clients up.
const ROUNDS_MAX: i64 = 10_000_000;

/// The fields that the server works with.
#[derive(Clone, Debug)]
pub(crate) struct UserRecord {
    pub name: UserName,
    /// `userId`.
    pub id: Option<[u8; 16]>,
    pub credentials: Vec<Credential>,
    pub roles: Vec<RoleName>,
    pub restrictions: Vec<Restriction>,
}

impl UserRecord {
    /// The `_id` of the document of a user.
    pub fn key(name: &UserName) -> String {
        format!("{}.{}", name.database, name.name)
    }

    /// Reads a document. `None` if it is none of a user.
    pub fn read(document: &RawDocument) -> Result<Option<UserRecord>, CommandError> {
        let (
            Some(RawValue::String(user)),
            Some(RawValue::String(database)),
            Some(RawValue::Document(stored)),
        ) = (document.get("user")?, document.get("db")?, document.get("credentials")?)
        else {
            return Ok(None);
        };
        let mut credentials = Vec::new();
        for field in stored.iter() {
            if let (name, RawValue::Document(fields)) = field?
                && let Some(mechanism) = Mechanism::of_name(name)
            {
                credentials.extend(read_credential(mechanism, fields)?);
            }
        }
        let id = match document.get("userId")? {
            Some(RawValue::Binary(RawBinary { bytes, .. })) => bytes.try_into().ok(),
            _ => None,
        };
        let Some(restrictions) = Restriction::read_stored(document)? else { return Ok(None) };
        let roles = stored_roles(document)?;
        let name = UserName::new(user, database);
        Ok(Some(UserRecord { name, id, credentials, roles, restrictions }))
    }

    /// Its credential for a mechanism.
    pub fn credential(&self, mechanism: Mechanism) -> Option<&Credential> {
        self.credentials.iter().find(|credential| credential.mechanism == mechanism)
    }
}

/// `None` for a credential that no client can log in with.
fn read_credential(mechanism: Mechanism, fields: &RawDocument) -> Result<Option<Credential>, CommandError> {
    let bytes = |name: &str| -> Result<Option<Vec<u8>>, CommandError> {
        let text = fields.get(name)?.and_then(|value| value.as_str());
        Ok(text.and_then(|text| STANDARD.decode(text).ok()))
    };
    let rounds = fields.get("iterationCount")?.and_then(|value| value.as_i64_exact());
    let rounds = rounds.filter(|rounds| (1..=ROUNDS_MAX).contains(rounds));
    let (Some(rounds), Some(salt), Some(stored_key), Some(server_key)) =
        (rounds, bytes("salt")?, bytes("storedKey")?, bytes("serverKey")?)
    else {
        return Ok(None);
    };
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    let is_whole = [&stored_key, &server_key].iter().all(|key| key.len() == mechanism.key_bytes());
    Ok(is_whole.then_some(Credential { mechanism, rounds, salt, stored_key, server_key }))
}

/// The value of `credentials`.
pub(crate) fn credentials_document(credentials: &[Credential]) -> Document {
    let mut document = Document::new();
    for credential in credentials {
        let fields = doc! {
            "iterationCount": Value::Int32(i32::try_from(credential.rounds).unwrap_or(i32::MAX)),
            "salt": STANDARD.encode(&credential.salt),
            "storedKey": STANDARD.encode(&credential.stored_key),
            "serverKey": STANDARD.encode(&credential.server_key)
        };
        document.push(credential.mechanism.name(), fields);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(credentials: Document) -> Document {
        doc! { "_id": "admin.ada", "user": "ada", "db": "admin", "credentials": credentials,
        "roles": [{ "role": "read", "db": "x" }] }
    }

    #[test]
    fn a_record_has_the_credentials_that_were_written() {
        let credential = Credential::derive(Mechanism::ScramSha256, "pencil", &[1; 28], 15_000);
        let document = stored(credentials_document(std::slice::from_ref(&credential)));
        let record = UserRecord::read(&document.to_raw()).unwrap().unwrap();
        assert!(record.credential(Mechanism::ScramSha256) == Some(&credential));
        assert!(record.credential(Mechanism::ScramSha1).is_none());
        assert_eq!(record.name, UserName::new("ada", "admin"));
        assert_eq!(record.roles, [RoleName::new("read", "x")]);
        assert_eq!(UserRecord::key(&record.name), "admin.ada");
    }

    #[test]
    fn a_document_of_strangers_is_no_user_and_a_broken_credential_none() {
        assert!(UserRecord::read(&doc! { "_id": "admin.z", "a": 1 }.to_raw()).unwrap().is_none());
        for broken in [
            doc! { "SCRAM-SHA-256": { "iterationCount": 0, "salt": "", "storedKey": "", "serverKey": "" } },
            doc! { "SCRAM-SHA-256": { "iterationCount": 15_000, "salt": "AA==", "storedKey": "AA==", "serverKey": "AA==" } },
            doc! { "SCRAM-SHA-256": { "iterationCount": 15_000, "salt": "!", "storedKey": 1, "serverKey": "AA==" } },
            doc! { "external": true },
        ] {
            let record = UserRecord::read(&stored(broken.clone()).to_raw()).unwrap().unwrap();
            assert!(record.credentials.is_empty(), "{broken:?}");
        }
    }
}
