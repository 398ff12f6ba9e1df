//! The fields that every command may have: the database, the session, read and write concern, time limits,
//! and fields that replica sets and routers send each other.
//!
//! # Steps
//! 1. [`GenericArguments::read`] goes once through the body before the command is looked up: `$db` must be
//!    there, a field may not stand both in the body and in a document sequence. The fields that have an
//!    effect on this server are kept.
//! 2. [`GenericArguments::check`] reports a fault in one of them, or a field that stands twice, and checks
//!    them against the [`GenericSupport`] in the row of the command.

mod read_concern;
mod transaction_fields;
mod write_concern;

pub(crate) use read_concern::{
    ReadConcern, ReadLevel, Recency, level_of, unsupported as unsupported_read_concern,
};
use transaction_fields::FieldsOwner;
pub(crate) use transaction_fields::{
    Participation, Start, StatementIds, TransactionFields, TransactionSupport, check_namespace,
};
pub(crate) use write_concern::{Promise, WriteConcern, write_concern_error};

use std::collections::HashSet;
use std::time::Duration;

use pando_document::{RawBinary, RawDocument, RawValue};

use crate::arguments::{unknown_field, whole, wrong_type};
use crate::session_id::{SessionId, SessionOwner};
use crate::stable_api::ApiParameters;
use crate::{CommandError, ErrorCode, Request};

/// Which levels of read concern a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadConcernSupport {
    /// `local`.
    Local,
    /// All that its server can serve but `snapshot`.
    NoSnapshot,
    /// All that its server can serve.
    All,
}

/// Whether a command takes a write concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteConcernSupport {
    /// It does.
    Accepted,
    /// It does not.
    Refused,
}

/// The check of `maxTimeMS` that a command makes before the rule for all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// Not at all.
    Untyped,
    /// It must be a number.
    Number,
    /// It must be a number that is not negative.
    Natural,
}

impl TimeLimit {
    /// Whether it ends the work of the command. A `getMore` tells by it how long it waits for documents.
    pub fn bounds_work(self) -> bool {
        self != TimeLimit::Number
    }
}

/// The words with which a command refuses a read concern that is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadConcernWords {
    /// The words of all commands.
    Shared,
    /// The words for a field of the command's own.
    Own,
}

/// Whether the server has a cluster clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterTimes {
    /// It has.
    Known,
    /// It has not, as a standalone server.
    Unknown,
}

/// The generic fields that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GenericSupport {
    pub reads: ReadConcernSupport,
    pub read_words: ReadConcernWords,
    pub writes: WriteConcernSupport,
    pub time_limit: TimeLimit,
    pub transactions: TransactionSupport,
}

/// The generic fields of a request that have an effect on this server.
#[derive(Debug)]
pub(crate) struct GenericArguments<'a> {
    /// The database that the request is for.
    pub database: &'a str,
    /// The session, if it has one.
    pub session: Option<SessionId>,
    /// The owner that its session names, if that is not its user.
    pub named_owner: Option<SessionOwner>,
    /// Whether a read concern may name a time of the cluster clock.
    pub cluster_times: ClusterTimes,
    /// The write concern of a request that names none.
    pub default_concern: WriteConcern,
    time_limit: Option<RawValue<'a>>,
    read_concern: Option<RawValue<'a>>,
    write_concern: Option<RawValue<'a>>,
    read_preference: Option<RawValue<'a>>,
    /// Its part in a transaction of the session.
    pub transaction: TransactionFields<'a>,
    /// The API that the client wants.
    pub api: ApiParameters,
    /// The first that is wrong.
    fault: Option<CommandError>,
}

/// The generic fields of a request, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedArguments {
    pub concern: WriteConcern,
    pub participation: Participation,
    pub read: ReadConcern,
}

impl<'a> GenericArguments<'a> {
    /// Reads them; sessions belong to `owner`. A fault in one of them is reported by
    /// [`GenericArguments::check`], after the command was found. A missing database is reported at once.
    pub fn read(request: &Request<'a>, owner: SessionOwner) -> Result<GenericArguments<'a>, CommandError> {
        let mut database = None;
        let mut generic = GenericArguments {
            database: "",
            session: None,
            named_owner: None,
            cluster_times: ClusterTimes::Unknown,
            default_concern: WriteConcern::DEFAULT,
            time_limit: None,
            read_concern: None,
            write_concern: None,
            read_preference: None,
            transaction: TransactionFields::default(),
            api: ApiParameters::default(),
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
                // Each statement reads at a new moment, or at the one that its read concern names.
                "$clusterTime" => {}
                "readConcern" => generic.read_concern = Some(value),
                "writeConcern" => generic.write_concern = Some(value),
                "$readPreference" => {
                    generic.note(check_read_preference(value));
                    generic.read_preference = Some(value);
                }
                "lsid" => {
                    generic.note(check_session(value));
                    let session = value.as_document();
                    generic.session = session.and_then(|session| SessionId::of(session, owner));
                    generic.named_owner =
                        session.and_then(SessionOwner::named).filter(|named| *named != owner);
                }
                "txnNumber" | "autocommit" | "startTransaction" | "stmtId" | "stmtIds" => {
                    let taken = generic.transaction.take(name, value);
                    generic.note(taken);
                }
                "apiVersion" | "apiStrict" | "apiDeprecationErrors" => {
                    let taken = generic.api.take(name, value);
                    generic.note(taken);
                }
                "maxTimeMSOpOnly" => generic.note(Err(internal_time_limit())),
                _ => {}
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

    /// The time that the request may take, if it has a limit that [`check`](GenericArguments::check) passes.
    pub fn time_limit(&self) -> Option<Duration> {
        let milliseconds = u64::try_from(self.time_limit?.as_i64_exact()?).ok()?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Keeps the first fault.
    fn note(&mut self, outcome: Result<(), CommandError>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert(error);
        }
    }

    /// Checks the time limit, the concerns and the part in a transaction against what the command supports.
    pub fn check(
        self,
        command: &'static str,
        collection: &str,
        support: &GenericSupport,
    ) -> Result<CheckedArguments, CommandError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let participation = self.transaction.participation(&FieldsOwner {
            command,
            support: support.transactions,
            database: self.database,
            collection,
            has_session: self.session.is_some(),
        })?;
        if let Some(limit) = self.time_limit {
            check_time_limit(command, support.time_limit, limit)?;
        }
        let mut read = match (self.read_concern, participation) {
            (None, _) => ReadConcern::DEFAULT,
            (Some(concern), Participation::Transaction(_, start)) => {
                read_concern::check_in_transaction(concern, start)?
            }
            (Some(concern), _) => read_concern::check(command, support, concern, self.cluster_times)?,
        };
        if !matches!(participation, Participation::Transaction(..)) {
            read.recency = Recency::of(&read, self.read_preference.and_then(|given| given.as_document()));
        }
        let concern = self.checked_write_concern(support, participation)?;
        Ok(CheckedArguments { concern, participation, read })
    }

    fn checked_write_concern(
        &self,
        support: &GenericSupport,
        participation: Participation,
    ) -> Result<WriteConcern, CommandError> {
        let is_statement = matches!(participation, Participation::Transaction(..))
            && support.transactions != TransactionSupport::End;
        match (self.write_concern, support.writes) {
            (None, WriteConcernSupport::Accepted) if !is_statement => Ok(self.default_concern),
            (None, _) => Ok(WriteConcern::DEFAULT),
            (Some(_), WriteConcernSupport::Accepted) if is_statement => Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "writeConcern is not allowed within a multi-statement transaction",
            )),
            (Some(concern), WriteConcernSupport::Accepted) => WriteConcern::read(concern, self.cluster_times),
            (Some(_), WriteConcernSupport::Refused) => {
                Err(CommandError::failed(ErrorCode::InvalidOptions, "Command does not support writeConcern"))
            }
        }
    }
}

/// Whether a name stood in the document before.
#[derive(PartialEq, Eq)]
enum Novelty {
    New,
    Repeated,
}

/// The names of a document so far, as one bit each: only where two names share a bit is the document
/// searched. The names of a long document are in a set, because a search for each of millions of them would
/// hold the thread for hours.
#[derive(Default)]
struct SeenNames<'a> {
    bits: u64,
    many: HashSet<&'a str>,
}

/// Fields from which on the names are in a set. Real requests have fewer.
const SEARCHED_FIELDS_MAX: usize = 100;

impl<'a> SeenNames<'a> {
    fn is_new(&mut self, body: &'a RawDocument, at: usize, name: &'a str) -> Result<Novelty, CommandError> {
        if at >= SEARCHED_FIELDS_MAX {
            if self.many.is_empty() {
                self.many =
                    body.iter().take(at).map(|field| Ok(field?.0)).collect::<Result<_, CommandError>>()?;
            }
            return Ok(if self.many.insert(name) { Novelty::New } else { Novelty::Repeated });
        }
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

/// Checks the session of a request.
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

fn check_time_limit(command: &str, support: TimeLimit, value: RawValue<'_>) -> Result<(), CommandError> {
    let is_absent = matches!(value, RawValue::Null | RawValue::Undefined);
    if support != TimeLimit::Untyped && !is_absent {
        if !value.is_number() {
            let place = format!("{command}.maxTimeMS");
            return Err(wrong_type(&place, value, "types '[long, int, decimal, double']"));
        }
        if support == TimeLimit::Natural && whole(value) < 0 {
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
