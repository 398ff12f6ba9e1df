//! MongoDB's error codes, the only place in the project that has them.
//!
//! The name is what `codeName` shows: known codes have names of their own, the others are `LocationNNNNN`.

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

error_codes! {
    InternalError = 1, "InternalError";
    BadValue = 2, "BadValue";
    NoSuchKey = 4, "NoSuchKey";
    FailedToParse = 9, "FailedToParse";
    Unauthorized = 13, "Unauthorized";
    TypeMismatch = 14, "TypeMismatch";
    Overflow = 15, "Overflow";
    InvalidLength = 16, "InvalidLength";
    IllegalOperation = 20, "IllegalOperation";
    InvalidBson = 22, "InvalidBSON";
    LockTimeout = 24, "LockTimeout";
    NamespaceNotFound = 26, "NamespaceNotFound";
    IndexNotFound = 27, "IndexNotFound";
    PathNotViable = 28, "PathNotViable";
    ConflictingUpdateOperators = 40, "ConflictingUpdateOperators";
    CursorNotFound = 43, "CursorNotFound";
    NamespaceExists = 48, "NamespaceExists";
    MaxTimeMsExpired = 50, "MaxTimeMSExpired";
    DollarPrefixedFieldName = 52, "DollarPrefixedFieldName";
    InvalidIdField = 53, "InvalidIdField";
    NotSingleValueField = 54, "NotSingleValueField";
    EmptyFieldName = 56, "EmptyFieldName";
    DottedFieldName = 57, "DottedFieldName";
    CommandNotFound = 59, "CommandNotFound";
    ImmutableField = 66, "ImmutableField";
    CannotCreateIndex = 67, "CannotCreateIndex";
    InvalidOptions = 72, "InvalidOptions";
    InvalidNamespace = 73, "InvalidNamespace";
    IndexOptionsConflict = 85, "IndexOptionsConflict";
    IndexKeySpecsConflict = 86, "IndexKeySpecsConflict";
    NetworkTimeout = 89, "NetworkTimeout";
    ShutdownInProgress = 91, "ShutdownInProgress";
    OperationFailed = 96, "OperationFailed";
    DocumentValidationFailure = 121, "DocumentValidationFailure";
    InvalidPipelineOperator = 168, "InvalidPipelineOperator";
    CannotIndexParallelArrays = 171, "CannotIndexParallelArrays";
    CommandFailed = 125, "CommandFailed";
    WriteConflict = 112, "WriteConflict";
    CommandNotSupportedOnView = 166, "CommandNotSupportedOnView";
    NoSuchTransaction = 251, "NoSuchTransaction";
    CommandNotSupported = 115, "CommandNotSupported";
    InvalidIndexSpecificationOption = 197, "InvalidIndexSpecificationOption";
    TransactionTooLarge = 257, "TransactionTooLarge";
    IndexBuildAborted = 276, "IndexBuildAborted";
    BackgroundOperationInProgressForNamespace = 12587, "BackgroundOperationInProgressForNamespace";
    QueryPlanKilled = 175, "QueryPlanKilled";
    NoQueryExecutionPlans = 291, "NoQueryExecutionPlans";
    QueryExceededMemoryLimitNoDiskUseAllowed = 292, "QueryExceededMemoryLimitNoDiskUseAllowed";
    DataCorruptionDetected = 300, "DataCorruptionDetected";
    OutOfDiskSpace = 14031, "OutOfDiskSpace";
    ConversionFailure = 241, "ConversionFailure";
    BsonObjectTooLarge = 10334, "BSONObjectTooLarge";
    DuplicateKey = 11000, "DuplicateKey";
    UnsupportedOpQueryCommand = 352, "UnsupportedOpQueryCommand";
    IdlFailedToParse = 40414, "IDLFailedToParse";
    IdlUnknownField = 40415, "IDLUnknownField";
    IdlDuplicateField = 40413, "IDLDuplicateField";
    ExceededMemoryLimit = 146, "ExceededMemoryLimit";
    MaxSubPipelineDepthExceeded = 232, "MaxSubPipelineDepthExceeded";
    NotImplemented = 238, "NotImplemented";
    CannotBackfillArray = 34, "CannotBackfillArray";
    NotExactValueField = 111, "NotExactValueField";
    QueryFeatureNotAllowed = 224, "QueryFeatureNotAllowed";
    NotAReplicaSet = 123, "NotAReplicaSet";
    InvalidUuid = 207, "InvalidUUID";
    ApiVersionError = 322, "APIVersionError";
    DatabaseDifferCase = 13297, "DatabaseDifferCase";
    AmbiguousIndexKeyPattern = 181, "AmbiguousIndexKeyPattern";
    IndexAlreadyExists = 68, "IndexAlreadyExists";
    NoReplicationEnabled = 76, "NoReplicationEnabled";
    InterruptedAtShutdown = 11600, "InterruptedAtShutdown";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_a_name_are_locations() {
        assert_eq!(ErrorCode::Location(51024).name(), "Location51024");
        assert_eq!(ErrorCode::DuplicateKey.code(), 11000);
        assert_eq!(ErrorCode::IdlUnknownField.name(), "IDLUnknownField");
    }
}
