//! The fields that every command may have: the database, the session, read and write concern, time limits, and what replica
//! sets and routers tell one another.
//!
//! # Steps
//! 1. [`GenericArguments::read`] goes once through the body before the command is looked up: `$db` must be there, a field may
//!    not stand in the body and in a document sequence as well, and the fields that mean something here are kept.
//! 2. [`GenericArguments::check`] tells what is wrong with one of them, a field that stands twice among that, and checks them
//!    against what the command supports, which its row in the registry says.

use pando_document::{RawBinary, RawDocument, RawValue};

use crate::arguments::{unknown_field, whole, wrong_type};
use crate::error::Failure;
use crate::read_concern;
use crate::registry::{CommandRow, TimeLimit, WriteConcernSupport};
use crate::write_concern::WriteConcern;
use crate::{CommandError, ErrorCode, Request};

/// The generic fields of a request that mean something to this server.
#[derive(Debug)]
pub(crate) struct GenericArguments<'a> {
    /// The database that the request is for.
    pub database: &'a str,
    time_limit: Option<RawValue<'a>>,
    read_concern: Option<RawValue<'a>>,
    write_concern: Option<RawValue<'a>>,
    /// The first that is wrong.
    fault: Option<CommandError>,
}

/// Whether every command may have a field of this name.
pub(crate) fn is_generic(name: &str) -> bool {
    matches!(
        name,
        "$db"
            | "lsid"
            | "$clusterTime"
            | "$readPreference"
            | "readConcern"
            | "writeConcern"
            | "maxTimeMS"
            | "maxTimeMSOpOnly"
            | "comment"
            | "apiVersion"
            | "apiStrict"
            | "apiDeprecationErrors"
            | "stmtId"
            | "stmtIds"
            | "$audit"
            | "$client"
            | "$configServerState"
            | "$oplogQueryData"
            | "$queryOptions"
            | "$replData"
            | "$configTime"
            | "$topologyTime"
            | "$tenant"
            | "mayBypassWriteBlocking"
            | "databaseVersion"
            | "shardVersion"
            | "coordinator"
            | "tracking_info"
            | "clientOperationKey"
            | "usesDefaultMaxTimeMS"
            | "serialization_context"
            | "rawData"
            | "versionContext"
    )
}

impl<'a> GenericArguments<'a> {
    /// Reads them. What is wrong with one of them is told by [`GenericArguments::check`], after the command was found; only
    /// without a database there is nothing to look for.
    pub fn read(request: &Request<'a>) -> Result<GenericArguments<'a>, CommandError> {
        let mut database = None;
        let mut generic = GenericArguments {
            database: "",
            time_limit: None,
            read_concern: None,
            write_concern: None,
            fault: None,
        };
        let mut seen = SeenNames::default();
        for (at, field) in request.body.iter().enumerate() {
            let (name, value) = field?;
            if seen.is_new(request.body, at, name)? == Novelty::Repeated {
                generic.fault.get_or_insert_with(|| duplicate_field(name));
            }
            match name {
                "$db" => database = Some(value),
                "maxTimeMS" => generic.time_limit = Some(value),
                "readConcern" => generic.read_concern = Some(value),
                "writeConcern" => generic.write_concern = Some(value),
                _ => generic.note(check_other(name, value)),
            }
        }
        for sequence in request.sequences {
            if request.body.get(sequence.identifier)?.is_some() {
                return Err(sequence_and_field(sequence.identifier));
            }
        }
        generic.database = database_name(database)?;
        Ok(generic)
    }

    /// Keeps the first fault.
    fn note(&mut self, outcome: Result<(), CommandError>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert(error);
        }
    }

    /// Checks the time limit and the concerns against what the command supports; gives the write concern.
    pub fn check(self, command: &CommandRow) -> Result<WriteConcern, CommandError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if let Some(limit) = self.time_limit {
            check_time_limit(command, limit)?;
        }
        if let Some(concern) = self.read_concern {
            read_concern::check(command, concern)?;
        }
        match (self.write_concern, command.writes) {
            (None, _) => Ok(WriteConcern::DEFAULT),
            (Some(concern), WriteConcernSupport::Accepted) => WriteConcern::read(concern),
            (Some(_), WriteConcernSupport::Refused) => {
                Err(CommandError::failed(ErrorCode::InvalidOptions, "Command does not support writeConcern"))
            }
        }
    }
}

/// Checks a field that means nothing to this server once it is sound.
fn check_other(name: &str, value: RawValue<'_>) -> Result<(), CommandError> {
    match name {
        "lsid" => check_session(value),
        "txnNumber" | "startTransaction" | "autocommit" => Err(no_transactions()),
        "$readPreference" => check_read_preference(value),
        "apiVersion" => check_api_version(value),
        "maxTimeMSOpOnly" => Err(internal_time_limit()),
        _ => Ok(()),
    }
}

/// Whether a name stood in the document before.
#[derive(PartialEq, Eq)]
enum Novelty {
    New,
    Repeated,
}

/// The names of a document so far, as one bit each: only where two names share a bit is the document searched.
#[derive(Default)]
struct SeenNames {
    bits: u64,
}

impl SeenNames {
    fn is_new(&mut self, body: &RawDocument, at: usize, name: &str) -> Result<Novelty, CommandError> {
        let bytes = name.as_bytes();
        let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        let place = (usize::from(first) * 7 + usize::from(last) * 13 + bytes.len()) % 64;
        let bit = 1_u64 << place;
        if self.bits & bit == 0 {
            self.bits |= bit;
            return Ok(Novelty::New);
        }
        for field in body.iter().take(at) {
            if field?.0 == name {
                return Ok(Novelty::Repeated);
            }
        }
        Ok(Novelty::New)
    }
}

fn duplicate_field(name: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::IdlDuplicateField,
        format!("BSON field 'APIParametersFromClient.{name}' is a duplicate field"),
    )
}

fn sequence_and_field(name: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::Location(40_433),
        format!("Duplicate field between body and document sequence {name}"),
    )
}

fn no_transactions() -> CommandError {
    CommandError::failed(
        ErrorCode::IllegalOperation,
        "Transaction numbers are only allowed on a replica set member or mongos",
    )
}

fn internal_time_limit() -> CommandError {
    CommandError::failed(
        ErrorCode::InvalidOptions,
        "Can not specify maxTimeMSOpOnly for non internal clients",
    )
}

fn database_name<'a>(value: Option<RawValue<'a>>) -> Result<&'a str, CommandError> {
    let name = match value {
        Some(RawValue::String(name)) => name,
        Some(other) => {
            let found = other.element_type().alias();
            return Err(CommandError::failed(
                ErrorCode::Location(13_111),
                format!("wrong type for field ($db) {found} != string"),
            ));
        }
        None => {
            return Err(CommandError::failed(
                ErrorCode::Location(40_571),
                "OP_MSG requests require a $db argument",
            ));
        }
    };
    if name.contains('\0') {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            "namespaces cannot have embedded null characters",
        ));
    }
    if name.contains('.') {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("'.' is an invalid character in the database name: {name}"),
        ));
    }
    Ok(name)
}

/// The session of a request: checked, and nothing hangs on it yet.
fn check_session(value: RawValue<'_>) -> Result<(), CommandError> {
    let RawValue::Document(session) = value else {
        return Err(wrong_type("OperationSessionInfo.lsid", value, "type 'object'"));
    };
    check_session_id("OperationSessionInfo.lsid", session)
}

/// Checks the document that identifies a session; `place` is where it stands.
pub(crate) fn check_session_id(place: &str, session: &RawDocument) -> Result<(), CommandError> {
    let mut has_id = false;
    for field in session.iter() {
        match field? {
            ("id", RawValue::Binary(RawBinary { subtype: 4, bytes })) if bytes.len() == 16 => has_id = true,
            ("id", RawValue::Binary(_)) => {
                return Err(CommandError::failed(
                    ErrorCode::InvalidUuid,
                    "uuid must be a 16-byte binary field with UUID (4) subtype",
                ));
            }
            ("id", other) => return Err(wrong_type(&format!("{place}.id"), other, "type 'binData'")),
            ("uid", RawValue::Binary(_)) => {}
            ("uid", other) => return Err(wrong_type(&format!("{place}.uid"), other, "type 'binData'")),
            ("txnNumber" | "txnUUID", _) => {}
            (name, _) => return Err(unknown_field(place, name)),
        }
    }
    if has_id {
        return Ok(());
    }
    Err(crate::arguments::missing(place, "id"))
}

fn check_read_preference(value: RawValue<'_>) -> Result<(), CommandError> {
    match value {
        RawValue::Document(_) => Ok(()),
        other => {
            let found = other.element_type().alias();
            Err(CommandError::failed(
                ErrorCode::TypeMismatch,
                format!("$readPreference has incorrect type: expected object but got {found}"),
            ))
        }
    }
}

fn check_api_version(value: RawValue<'_>) -> Result<(), CommandError> {
    match value {
        RawValue::String("1") => Ok(()),
        RawValue::String(version) => {
            Err(Failure::new(ErrorCode::ApiVersionError, format!("Cannot accept API version {version}"))
                .into())
        }
        other => Err(wrong_type("APIParametersFromClient.apiVersion", other, "type 'string'")),
    }
}

fn check_time_limit(command: &CommandRow, value: RawValue<'_>) -> Result<(), CommandError> {
    let is_absent = matches!(value, RawValue::Null | RawValue::Undefined);
    if command.time_limit != TimeLimit::Untyped && !is_absent {
        if !value.is_number() {
            let place = format!("{}.maxTimeMS", command.name);
            return Err(wrong_type(&place, value, "types '[long, int, decimal, double']"));
        }
        if command.time_limit == TimeLimit::Natural && whole(value) < 0 {
            let number = whole(value);
            return Err(CommandError::failed(
                ErrorCode::Location(51_024),
                format!("BSON field 'maxTimeMS' value must be >= 0, actual value '{number}'"),
            ));
        }
    }
    let refused = |reason: String| Err(CommandError::failed(ErrorCode::BadValue, reason));
    match value {
        value if !value.is_number() => refused("maxTimeMS must be a number".to_owned()),
        value => match (value.as_i64_exact(), whole(value)) {
            (_, number) if !(0..=i64::from(i32::MAX)).contains(&number) => {
                refused(format!("{number} value for maxTimeMS is out of range"))
            }
            (None, _) => refused("maxTimeMS has non-integral value".to_owned()),
            (Some(_), _) => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, RawDocumentBuf, doc};

    use super::*;
    use crate::registry;

    fn code_of(outcome: Result<WriteConcern, CommandError>) -> i32 {
        match outcome {
            Err(CommandError::Failed(failure)) => failure.code.code(),
            other => panic!("not refused: {other:?}"),
        }
    }

    fn checked(body: &Document, command: &str) -> Result<WriteConcern, CommandError> {
        let body = body.to_raw();
        let row = registry::find(command).expect("the command is there");
        GenericArguments::read(&Request::of(&body))?.check(row)
    }

    #[test]
    fn a_field_that_stands_twice_is_refused_wherever_the_names_fall() {
        for name in ["filter", "bogus", "$db", "comment"] {
            let mut bytes = Vec::new();
            let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
            for field in ["find", "$db", name, "other", name] {
                writer.append(field, RawValue::String("x"));
            }
            writer.finish();
            let body = RawDocumentBuf::from_vec(bytes).unwrap();
            let generic = GenericArguments::read(&Request::of(&body)).unwrap();
            assert_eq!(code_of(generic.check(registry::find("find").unwrap())), 40_413, "{name}");
        }
        assert!(checked(&doc! { "find": "c", "a": 1, "aa": 1, "ba": 1, "$db": "d" }, "find").is_ok());
    }

    #[test]
    fn a_command_takes_the_concerns_that_its_row_says() {
        let with = |name: &str, value: Document| doc! { "x": 1, "$db": "d", name: value };
        assert!(checked(&with("readConcern", doc! { "level": "majority" }), "find").is_ok());
        assert_eq!(code_of(checked(&with("readConcern", doc! { "level": "majority" }), "insert")), 72);
        assert_eq!(code_of(checked(&with("readConcern", doc! { "level": "snapshot" }), "find")), 123);
        assert_eq!(code_of(checked(&with("readConcern", doc! { "level": "snapshot" }), "count")), 72);
        assert_eq!(code_of(checked(&with("readConcern", doc! { "bogus": 1 }), "find")), 72);
        assert_eq!(code_of(checked(&with("writeConcern", doc! { "w": 1 }), "find")), 72);
        assert!(checked(&with("writeConcern", doc! { "w": 1 }), "insert").is_ok());
    }

    #[test]
    fn time_limits_databases_and_sessions_are_checked() {
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "maxTimeMS": "x" }, "find")), 2);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "maxTimeMS": -1 }, "aggregate")), 51_024);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "lsid": { "id": 1 } }, "find")), 14);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": "d", "txnNumber": 1 }, "find")), 20);
        assert_eq!(code_of(checked(&doc! { "find": "c" }, "find")), 40_571);
        assert_eq!(code_of(checked(&doc! { "find": "c", "$db": 1 }, "find")), 13_111);
    }
}
