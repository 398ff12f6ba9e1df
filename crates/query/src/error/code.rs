//! MongoDB's error codes: the one table of the codes that have a name, by number.
//!
//! `codeName` shows the name. A code without a name stands beside its fault (see [`faults!`](super::faults))
//! and shows as `LocationNNNNN`. The crate `commands` has its codes from this table, too; the crates below
//! `query` know none.

use std::borrow::Cow;

/// Declares the codes that have names.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal;)*) => {
        /// An error code of MongoDB.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* #[doc = concat!("`", $name, "`, ", $code, ".")] $variant,)*
            /// A code that has no name: shown as `LocationNNNNN`.
            Location(i32),
            /// No code: some old commands tell only a sentence.
            Untold,
        }

        impl ErrorCode {
            /// The number.
            pub const fn code(self) -> i32 {
                match self {
                    $(ErrorCode::$variant => $code,)*
                    ErrorCode::Location(code) => code,
                    ErrorCode::Untold => 0,
                }
            }

            /// The code of this number.
            pub const fn of(code: i32) -> ErrorCode {
                match code {
                    $($code => ErrorCode::$variant,)*
                    other => ErrorCode::Location(other),
                }
            }

            /// Whether the table has this number, so that the code has a name.
            pub const fn is_named(code: i32) -> bool {
                matches!(code, $($code)|*)
            }

            /// The text that `codeName` shows.
            pub fn name(self) -> Cow<'static, str> {
                match self {
                    $(ErrorCode::$variant => Cow::Borrowed($name),)*
                    ErrorCode::Location(code) => Cow::Owned(format!("Location{code}")),
                    ErrorCode::Untold => Cow::Borrowed(""),
                }
            }
        }
    };
}

impl ErrorCode {
    /// Whether it says that an operation was ended before it was done.
    pub const fn is_interruption(self) -> bool {
        matches!(
            self,
            ErrorCode::MaxTimeMsExpired
                | ErrorCode::Interrupted
                | ErrorCode::InterruptedAtShutdown
                | ErrorCode::ClientDisconnect
                | ErrorCode::CursorKilled
        )
    }
}

error_codes! {
    InternalError = 1, "InternalError";
    BadValue = 2, "BadValue";
    NoSuchKey = 4, "NoSuchKey";
    GraphContainsCycle = 5, "GraphContainsCycle";
    HostUnreachable = 6, "HostUnreachable";
    HostNotFound = 7, "HostNotFound";
    FailedToParse = 9, "FailedToParse";
    UserNotFound = 11, "UserNotFound";
    UnsupportedFormat = 12, "UnsupportedFormat";
    Unauthorized = 13, "Unauthorized";
    TypeMismatch = 14, "TypeMismatch";
    Overflow = 15, "Overflow";
    InvalidLength = 16, "InvalidLength";
    ProtocolError = 17, "ProtocolError";
    AuthenticationFailed = 18, "AuthenticationFailed";
    IllegalOperation = 20, "IllegalOperation";
    InvalidBson = 22, "InvalidBSON";
    AlreadyInitialized = 23, "AlreadyInitialized";
    LockTimeout = 24, "LockTimeout";
    NamespaceNotFound = 26, "NamespaceNotFound";
    IndexNotFound = 27, "IndexNotFound";
    PathNotViable = 28, "PathNotViable";
    RoleNotFound = 31, "RoleNotFound";
    CannotBackfillArray = 34, "CannotBackfillArray";
    FileRenameFailed = 37, "FileRenameFailed";
    FileNotOpen = 38, "FileNotOpen";
    FileStreamFailed = 39, "FileStreamFailed";
    ConflictingUpdateOperators = 40, "ConflictingUpdateOperators";
    CursorNotFound = 43, "CursorNotFound";
    NamespaceExists = 48, "NamespaceExists";
    InvalidRoleModification = 49, "InvalidRoleModification";
    MaxTimeMsExpired = 50, "MaxTimeMSExpired";
    DollarPrefixedFieldName = 52, "DollarPrefixedFieldName";
    InvalidIdField = 53, "InvalidIdField";
    NotSingleValueField = 54, "NotSingleValueField";
    InvalidDbRef = 55, "InvalidDBRef";
    EmptyFieldName = 56, "EmptyFieldName";
    DottedFieldName = 57, "DottedFieldName";
    CommandNotFound = 59, "CommandNotFound";
    StaleShardVersion = 63, "StaleShardVersion";
    WriteConcernFailed = 64, "WriteConcernFailed";
    ImmutableField = 66, "ImmutableField";
    CannotCreateIndex = 67, "CannotCreateIndex";
    IndexAlreadyExists = 68, "IndexAlreadyExists";
    InvalidOptions = 72, "InvalidOptions";
    InvalidNamespace = 73, "InvalidNamespace";
    NoReplicationEnabled = 76, "NoReplicationEnabled";
    UnknownReplWriteConcern = 79, "UnknownReplWriteConcern";
    IndexOptionsConflict = 85, "IndexOptionsConflict";
    IndexKeySpecsConflict = 86, "IndexKeySpecsConflict";
    NetworkTimeout = 89, "NetworkTimeout";
    ShutdownInProgress = 91, "ShutdownInProgress";
    InvalidReplicaSetConfig = 93, "InvalidReplicaSetConfig";
    OperationFailed = 96, "OperationFailed";
    UnsatisfiableWriteConcern = 100, "UnsatisfiableWriteConcern";
    NewReplicaSetConfigurationIncompatible = 103, "NewReplicaSetConfigurationIncompatible";
    NotExactValueField = 111, "NotExactValueField";
    WriteConflict = 112, "WriteConflict";
    CommandNotSupported = 115, "CommandNotSupported";
    ConflictingOperationInProgress = 117, "ConflictingOperationInProgress";
    DocumentValidationFailure = 121, "DocumentValidationFailure";
    NotAReplicaSet = 123, "NotAReplicaSet";
    CommandFailed = 125, "CommandFailed";
    FailedToSatisfyReadPreference = 133, "FailedToSatisfyReadPreference";
    ReadConcernMajorityNotAvailableYet = 134, "ReadConcernMajorityNotAvailableYet";
    CappedPositionLost = 136, "CappedPositionLost";
    InvalidSslConfiguration = 140, "InvalidSSLConfiguration";
    CursorInUse = 143, "CursorInUse";
    ExceededMemoryLimit = 146, "ExceededMemoryLimit";
    StaleEpoch = 150, "StaleEpoch";
    DurationOverflow = 159, "DurationOverflow";
    IncompatibleCollationVersion = 161, "IncompatibleCollationVersion";
    CollectionIsEmpty = 162, "CollectionIsEmpty";
    ViewDepthLimitExceeded = 165, "ViewDepthLimitExceeded";
    CommandNotSupportedOnView = 166, "CommandNotSupportedOnView";
    OptionNotSupportedOnView = 167, "OptionNotSupportedOnView";
    InvalidPipelineOperator = 168, "InvalidPipelineOperator";
    CannotIndexParallelArrays = 171, "CannotIndexParallelArrays";
    QueryPlanKilled = 175, "QueryPlanKilled";
    AmbiguousIndexKeyPattern = 181, "AmbiguousIndexKeyPattern";
    InvalidViewDefinition = 182, "InvalidViewDefinition";
    PrimarySteppedDown = 189, "PrimarySteppedDown";
    InvalidIndexSpecificationOption = 197, "InvalidIndexSpecificationOption";
    CannotBuildIndexKeys = 201, "CannotBuildIndexKeys";
    InvalidUuid = 207, "InvalidUUID";
    IncompleteTransactionHistory = 217, "IncompleteTransactionHistory";
    QueryFeatureNotAllowed = 224, "QueryFeatureNotAllowed";
    TransactionTooOld = 225, "TransactionTooOld";
    MaxSubPipelineDepthExceeded = 232, "MaxSubPipelineDepthExceeded";
    RetryChangeStream = 234, "RetryChangeStream";
    CursorKilled = 237, "CursorKilled";
    NotImplemented = 238, "NotImplemented";
    SnapshotTooOld = 239, "SnapshotTooOld";
    ConversionFailure = 241, "ConversionFailure";
    SnapshotUnavailable = 246, "SnapshotUnavailable";
    NoSuchTransaction = 251, "NoSuchTransaction";
    TransactionCommitted = 256, "TransactionCommitted";
    TransactionTooLarge = 257, "TransactionTooLarge";
    ExceededTimeLimit = 262, "ExceededTimeLimit";
    OperationNotSupportedInTransaction = 263, "OperationNotSupportedInTransaction";
    TooManyFilesOpen = 264, "TooManyFilesOpen";
    IndexBuildAborted = 276, "IndexBuildAborted";
    UnsatisfiableCommitQuorum = 278, "UnsatisfiableCommitQuorum";
    ClientDisconnect = 279, "ClientDisconnect";
    ChangeStreamFatalError = 280, "ChangeStreamFatalError";
    NoQueryExecutionPlans = 291, "NoQueryExecutionPlans";
    QueryExceededMemoryLimitNoDiskUseAllowed = 292, "QueryExceededMemoryLimitNoDiskUseAllowed";
    DataCorruptionDetected = 300, "DataCorruptionDetected";
    ApiVersionError = 322, "APIVersionError";
    ApiStrictError = 323, "APIStrictError";
    MechanismUnavailable = 334, "MechanismUnavailable";
    UnsupportedOpQueryCommand = 352, "UnsupportedOpQueryCommand";
    CannotConvertIndexToUnique = 359, "CannotConvertIndexToUnique";
    TemporarilyUnavailable = 365, "TemporarilyUnavailable";
    ReauthenticationRequired = 391, "ReauthenticationRequired";
    SocketException = 9001, "SocketException";
    NotWritablePrimary = 10107, "NotWritablePrimary";
    BsonObjectTooLarge = 10334, "BSONObjectTooLarge";
    DuplicateKey = 11000, "DuplicateKey";
    InterruptedAtShutdown = 11600, "InterruptedAtShutdown";
    Interrupted = 11601, "Interrupted";
    InterruptedDueToReplStateChange = 11602, "InterruptedDueToReplStateChange";
    BackgroundOperationInProgressForNamespace = 12587, "BackgroundOperationInProgressForNamespace";
    MergeStageNoMatchingDocument = 13113, "MergeStageNoMatchingDocument";
    DatabaseDifferCase = 13297, "DatabaseDifferCase";
    StaleConfig = 13388, "StaleConfig";
    NotPrimaryNoSecondaryOk = 13435, "NotPrimaryNoSecondaryOk";
    NotPrimaryOrSecondary = 13436, "NotPrimaryOrSecondary";
    OutOfDiskSpace = 14031, "OutOfDiskSpace";
    IdlDuplicateField = 40413, "IDLDuplicateField";
    IdlFailedToParse = 40414, "IDLFailedToParse";
    IdlUnknownField = 40415, "IDLUnknownField";
    NotARetryableWriteCommand = 50768, "NotARetryableWriteCommand";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_a_name_are_locations() {
        assert_eq!(ErrorCode::Location(51024).name(), "Location51024");
        assert_eq!(ErrorCode::DuplicateKey.code(), 11000);
        assert_eq!(ErrorCode::of(11000), ErrorCode::DuplicateKey);
        assert_eq!(ErrorCode::of(51024), ErrorCode::Location(51024));
        assert_eq!(ErrorCode::IdlUnknownField.name(), "IDLUnknownField");
    }
}
