//! The errors that a client is told, made of the errors of the layers below.
//!
//! Every error becomes one of two. A [`Failure`] has a code and a sentence for the client.
//! [`CommandError::WouldBlock`] says that the answer needs the device and the caller must not block; it
//! reaches no client.

use std::error::Error;
use std::io;
use std::sync::Arc;

use pando_catalog::{
    CatalogError, Contested, ErrorKind, GeometryFault, NameError, PartitionFault, StorageError, WriteError,
};
use pando_document::{Document, DocumentError, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_environment::{MissedRead, is_out_of_files};
use pando_query::QueryError;
use pando_query::sort::SortFault;

use crate::error_code::ErrorCode;

/// Why a command did not answer.
#[derive(Debug)]
pub enum CommandError {
    /// The client is told.
    Failed(Box<Failure>),
    /// The request has changed nothing. Handle it again where it may wait for the device, or after the missed
    /// read was made.
    WouldBlock(Option<Arc<dyn MissedRead>>),
}

/// The error that a client is told.
#[derive(Clone, Debug)]
pub struct Failure {
    /// MongoDB's code.
    pub code: ErrorCode,
    /// A sentence.
    pub message: String,
    /// The labels by which drivers decide whether to retry.
    pub labels: Vec<&'static str>,
    /// Further fields beside code and message, such as `keyPattern`.
    pub details: Document,
    /// The key of a lost conflict, where the engine could tell.
    pub contested: Option<Arc<Contested>>,
}

impl Failure {
    /// A failure without labels and details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            labels: Vec::new(),
            details: Document::new(),
            contested: None,
        }
    }

    /// Writes its fields into a reply.
    pub fn write(&self, writer: &mut DocumentWriter<'_>) {
        writer.append("ok", RawValue::Double(0.0));
        writer.append("errmsg", RawValue::String(&self.message));
        if self.code != ErrorCode::Untold {
            writer.append("code", RawValue::Int32(self.code.code()));
            writer.append("codeName", RawValue::String(&self.code.name()));
        }
        for (name, value) in self.details.iter() {
            writer.append_value(name, value);
        }
        if !self.labels.is_empty() {
            let mut labels = writer.array("errorLabels");
            for label in &self.labels {
                labels.push(RawValue::String(label));
            }
            labels.finish();
        }
    }

    /// Whether the statement has lost a conflict with another transaction, and may be run again.
    pub fn is_conflict(&self) -> bool {
        self.code == ErrorCode::WriteConflict
    }
}

impl CommandError {
    /// A failure with this code and sentence.
    pub fn failed(code: ErrorCode, message: impl Into<String>) -> CommandError {
        CommandError::Failed(Box::new(Failure::new(code, message)))
    }

    /// Whether the statement may be run again on a newer snapshot.
    pub fn is_conflict(&self) -> bool {
        matches!(self, CommandError::Failed(failure) if failure.is_conflict())
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandError::Failed(failure) => write!(f, "{} (code {})", failure.message, failure.code.code()),
            CommandError::WouldBlock(_) => f.write_str("the answer needs the device"),
        }
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> CommandError {
        CommandError::Failed(Box::new(failure))
    }
}

impl From<DocumentError> for CommandError {
    fn from(error: DocumentError) -> CommandError {
        CommandError::failed(ErrorCode::InvalidBson, error.to_string())
    }
}

impl From<StorageError> for CommandError {
    fn from(error: StorageError) -> CommandError {
        if error.is_out_of_query_memory() {
            return CommandError::failed(ErrorCode::ExceededMemoryLimit, error.to_string());
        }
        let code = match error.kind() {
            ErrorKind::WouldBlock => return CommandError::WouldBlock(error.missed_read()),
            ErrorKind::Conflict => {
                let mut failure = Failure::new(
                    ErrorCode::WriteConflict,
                    "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.",
                );
                failure.contested = error.contested_key().cloned();
                return failure.into();
            }
            ErrorKind::Busy => ErrorCode::LockTimeout,
            ErrorKind::NotFound => {
                let reason = format!("a collection or index was dropped while it was read ({error})");
                return CommandError::failed(ErrorCode::QueryPlanKilled, reason);
            }
            ErrorKind::InvalidInput => ErrorCode::BadValue,
            ErrorKind::TooLarge => ErrorCode::TransactionTooLarge,
            ErrorKind::Corrupt => ErrorCode::DataCorruptionDetected,
            ErrorKind::Io => code_of_device(&error),
            // A code after which drivers try once more, at another server if they know one.
            ErrorKind::Unavailable => ErrorCode::HostUnreachable,
            // Sent again, a write or a commit with a number finds its record, if it has happened.
            ErrorKind::Undetermined => ErrorCode::NetworkTimeout,
            ErrorKind::Closed => ErrorCode::ShutdownInProgress,
        };
        CommandError::failed(code, error.to_string())
    }
}

/// The code of an error of the device, by what the system has said. A store that says itself that it has no
/// room (a full map, no room in the log) says it without the system.
pub(crate) fn code_of_device(error: &StorageError) -> ErrorCode {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let cause = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    if cause.is_some_and(is_out_of_files) {
        return ErrorCode::TooManyFilesOpen;
    }
    match cause.map(io::Error::kind) {
        Some(
            io::ErrorKind::NotFound
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::InvalidFilename,
        ) => ErrorCode::FileNotOpen,
        None
        | Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge) => {
            ErrorCode::OutOfDiskSpace
        }
        // A device that fails.
        Some(_) => ErrorCode::FileStreamFailed,
    }
}

impl From<NameError> for CommandError {
    fn from(error: NameError) -> CommandError {
        CommandError::failed(ErrorCode::InvalidNamespace, error.to_string())
    }
}

impl From<CatalogError> for CommandError {
    fn from(error: CatalogError) -> CommandError {
        let code = match &error {
            CatalogError::Name(_) => ErrorCode::InvalidNamespace,
            CatalogError::CollectionExists { .. } => ErrorCode::NamespaceExists,
            CatalogError::DatabaseDiffersInCase { .. } => ErrorCode::DatabaseDifferCase,
            CatalogError::CollectionChanged { .. } => ErrorCode::SnapshotUnavailable,
            CatalogError::CollectionNotEmpty { .. }
            | CatalogError::LoadUncommitted { .. }
            | CatalogError::CappedInTransaction { .. } => ErrorCode::OperationNotSupportedInTransaction,
            CatalogError::CollectionNotFound { .. } => ErrorCode::NamespaceNotFound,
            CatalogError::IndexNotFound { .. } => ErrorCode::IndexNotFound,
            CatalogError::NotPartitioned { .. } => ErrorCode::IllegalOperation,
            CatalogError::Partitions { fault, .. } => partition_code(*fault),
            CatalogError::CollectionOptions { .. } => ErrorCode::InvalidOptions,
            CatalogError::IndexSpecification { .. } => ErrorCode::CannotCreateIndex,
            CatalogError::IndexBuildRunning { .. } => ErrorCode::BackgroundOperationInProgressForNamespace,
            CatalogError::IndexBuildEnded { .. } => ErrorCode::IndexBuildAborted,
            CatalogError::DamagedEntry { .. } => ErrorCode::DataCorruptionDetected,
            CatalogError::Write(_) | CatalogError::Storage(_) | CatalogError::Interrupted(_) => {
                return match error {
                    CatalogError::Storage(storage) => storage.into(),
                    CatalogError::Interrupted(interruption) => QueryError::from(interruption).into(),
                    other => CommandError::failed(ErrorCode::InternalError, other.to_string()),
                };
            }
        };
        CommandError::failed(code, error.to_string())
    }
}

/// TokuMX's code of a change of partitions that is refused, where it has one.
fn partition_code(fault: PartitionFault) -> ErrorCode {
    match fault {
        PartitionFault::Empty => ErrorCode::Location(17_248),
        PartitionFault::Only => ErrorCode::Location(17_252),
        PartitionFault::UniqueIndex => ErrorCode::Location(17_351),
        PartitionFault::Unknown | PartitionFault::Bound | PartitionFault::TooMany => ErrorCode::BadValue,
    }
}

/// The command whose execution failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    Aggregate,
    Distinct,
    Find,
    FindAndModify,
    GetMore,
}

impl Execution {
    /// The words that MongoDB puts before the error (observed on 6.0).
    fn words(self) -> &'static str {
        match self {
            Execution::Aggregate => "PlanExecutor error during aggregation",
            Execution::Distinct => "Executor error during distinct command",
            Execution::Find => "Executor error during find command",
            Execution::FindAndModify => "Plan executor error during findAndModify",
            Execution::GetMore => "Executor error during getMore",
        }
    }

    /// Whether a text begins with the words of an execution.
    fn is_named(text: &str) -> bool {
        const ALL: [Execution; 5] = [
            Execution::Aggregate,
            Execution::Distinct,
            Execution::Find,
            Execution::FindAndModify,
            Execution::GetMore,
        ];
        ALL.iter().any(|execution| text.starts_with(execution.words()))
    }

    /// An error with those words, which it has once. That of a lost place in a capped collection has its own.
    pub fn fault(self, error: impl Into<CommandError>) -> CommandError {
        match error.into() {
            CommandError::Failed(mut failure)
                if !Execution::is_named(&failure.message)
                    && failure.code != ErrorCode::CappedPositionLost =>
            {
                failure.message = format!("{} :: caused by :: {}", self.words(), failure.message);
                CommandError::Failed(failure)
            }
            other => other,
        }
    }
}

impl From<QueryError> for CommandError {
    fn from(error: QueryError) -> CommandError {
        match error {
            QueryError::Refused { code, message } => CommandError::failed(code, message),
            QueryError::Storage(error) => error.into(),
        }
    }
}

/// The error of a document that could not be written to the collection `namespace`.
pub fn write_failure(error: WriteError, namespace: &str) -> CommandError {
    match error {
        WriteError::DuplicateKey { index, key_pattern, key, collation } => match collation {
            None => duplicate_key(namespace, &index, key_pattern, key).into(),
            Some(collation) => duplicate_sort_key(namespace, &index, key_pattern, &key, &collation).into(),
        },
        WriteError::ParallelArrays { first, second } => CommandError::failed(
            ErrorCode::CannotIndexParallelArrays,
            format!("cannot index parallel arrays [{second}] [{first}]"),
        ),
        WriteError::AmbiguousField(error) => {
            CommandError::failed(SortFault::AmbiguousField.code(), error.to_string())
        }
        WriteError::ArrayInHashedIndex { .. } => {
            CommandError::failed(ErrorCode::Location(16_766), error.to_string())
        }
        WriteError::ArrayBesideWildcard { .. } => {
            CommandError::failed(ErrorCode::Location(7_246_301), error.to_string())
        }
        WriteError::TextLanguage { ref language } => {
            let code = if language.is_some() { 17_262 } else { 17_261 };
            CommandError::failed(ErrorCode::Location(code), error.to_string())
        }
        WriteError::KeysTooLarge { .. } | WriteError::ArrayBesideText { .. } => {
            CommandError::failed(ErrorCode::CannotBuildIndexKeys, error.to_string())
        }
        WriteError::Geometry { fault, reason } => CommandError::failed(geometry_code(fault), reason),
        WriteError::ArrayInPrimaryKey { .. }
        | WriteError::KeyTooLongForPartitions { .. }
        | WriteError::NoStamp { .. }
        | WriteError::PartialFilter { .. } => CommandError::failed(ErrorCode::BadValue, error.to_string()),
        WriteError::NoId => {
            CommandError::failed(ErrorCode::InternalError, "a document without _id reached the catalog")
        }
        WriteError::Document(error) => error.into(),
        WriteError::DamagedEntry { .. } => {
            CommandError::failed(ErrorCode::DataCorruptionDetected, error.to_string())
        }
        WriteError::Interrupted(interruption) => QueryError::from(interruption).into(),
        WriteError::Storage(error) => error.into(),
    }
}

/// MongoDB's code of a document that an index of geometries cannot hold.
fn geometry_code(fault: GeometryFault) -> ErrorCode {
    match fault {
        GeometryFault::NotOnSphere => ErrorCode::Location(16_755),
        GeometryFault::NoPair => ErrorCode::Location(13_026),
        GeometryFault::OneCoordinate => ErrorCode::Location(13_068),
        GeometryFault::NoListOfPairs => ErrorCode::Location(16_804),
        GeometryFault::OutOfBounds => ErrorCode::Location(13_027),
    }
}

fn duplicate_key(namespace: &str, index: &str, pattern: RawDocumentBuf, key: RawDocumentBuf) -> Failure {
    let shown = pando_query::shell_text::document_text(&key);
    let mut failure = Failure::new(
        ErrorCode::DuplicateKey,
        format!("E11000 duplicate key error collection: {namespace} index: {index} dup key: {shown}"),
    );
    failure.details.push("keyPattern", owned(&pattern));
    failure.details.push("keyValue", owned(&key));
    failure
}

/// The same where strings are sort keys: hexadecimal digits stand for them.
fn duplicate_sort_key(
    namespace: &str,
    index: &str,
    pattern: RawDocumentBuf,
    key: &RawDocument,
    collation: &RawDocument,
) -> Failure {
    let (mut shown, mut is_hexadecimal) = (Document::new(), Vec::new());
    for (name, value) in key.iter().filter_map(|field| field.ok()) {
        is_hexadecimal.push(Value::Boolean(matches!(value, RawValue::String(_))));
        match value {
            RawValue::String(digits) => shown.push(name, format!("0x{digits}")),
            other => shown.push(name, other.to_owned()),
        }
    }
    let text = pando_query::shell_text::document_text;
    let (rules, shown) = (text(collation), text(&shown.to_raw()));
    let mut failure = Failure::new(
        ErrorCode::DuplicateKey,
        format!(
            "E11000 duplicate key error collection: {namespace} index: {index} collation: {rules} dup key: {shown}"
        ),
    );
    failure.details.push("keyPattern", owned(&pattern));
    failure.details.push("keyValue", owned(key));
    failure.details.push("hexEncoded", Value::Array(is_hexadecimal));
    failure.details.push("collation", owned(collation));
    failure
}

fn owned(document: &RawDocument) -> Value {
    RawValue::Document(document).to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_environment::{EnvironmentError, Operation};

    use super::*;

    #[test]
    fn an_error_of_the_device_is_no_lack_of_room() {
        let code_of = |kind: io::ErrorKind| {
            let source = EnvironmentError::io(Operation::Write, Path::new("data.0000"), kind);
            let error = StorageError::with_source(ErrorKind::Io, "cannot write", source);
            match CommandError::from(error) {
                CommandError::Failed(failure) => failure.code,
                CommandError::WouldBlock(_) => panic!("an error of the device is told"),
            }
        };
        assert_eq!(code_of(io::ErrorKind::StorageFull), ErrorCode::OutOfDiskSpace);
        assert_eq!(code_of(io::ErrorKind::PermissionDenied), ErrorCode::FileNotOpen);
        assert_eq!(code_of(io::ErrorKind::Other), ErrorCode::FileStreamFailed);
        let too_many =
            EnvironmentError::io(Operation::Open, Path::new("wal"), io::Error::from_raw_os_error(24));
        let error = StorageError::with_source(ErrorKind::Io, "cannot open", too_many);
        assert_eq!(code_of_device(&error), ErrorCode::TooManyFilesOpen, "files of a limit, and no damage");
        let by_itself = StorageError::new(ErrorKind::Io, "no room for a commit");
        assert_eq!(code_of_device(&by_itself), ErrorCode::OutOfDiskSpace);
    }
}
