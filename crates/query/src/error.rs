//! Errors of the query crate: a kind for the layer above, and MongoDB's words for people.
//!
//! `commands/error_code.rs` maps each [`QueryErrorKind`] to exactly one MongoDB error code by an exhaustive match. No code is
//! spelled in this crate; the number in a variant's comment is the fact that the match has to agree with. A new cause with a
//! code of its own gets a variant of its own, in the group that it belongs to.
//!
//! Message texts follow MongoDB's wording where drivers, ODMs or their users read them.

use std::fmt;

use pando_catalog::StorageError;
use pando_document::DocumentError;

use crate::expression::ExpressionFault;
use crate::pipeline::PipelineFault;
use crate::projection::ProjectionFault;

/// What went wrong, as finely as MongoDB's error codes tell causes apart.
#[derive(Clone, Debug)]
pub enum QueryErrorKind {
    // ---- named codes
    /// A value that makes no sense where it stands. Code 2 (BadValue).
    BadValue,
    /// An operator, option or document that does not parse. Code 9 (FailedToParse).
    FailedToParse,
    /// A value of the wrong type. Code 14 (TypeMismatch).
    TypeMismatch,
    /// A number left the range of its type. Code 15 (Overflow).
    Overflow,
    /// A length out of range. Code 16 (InvalidLength).
    InvalidLength,
    /// Bytes that are no BSON. Code 22 (InvalidBSON).
    InvalidBson,
    /// A path leads through a value that has no fields. Code 28 (PathNotViable).
    PathNotViable,
    /// Two update operators meet on one path. Code 40 (ConflictingUpdateOperators).
    ConflictingUpdateOperators,
    /// A stored field name begins with `$`. Code 52 (DollarPrefixedFieldName).
    DollarPrefixedFieldName,
    /// An `_id` of a type that may not be one. Code 53 (InvalidIdField).
    InvalidIdField,
    /// An equality matched several values where one was needed. Code 54 (NotSingleValueField).
    NotSingleValueField,
    /// A path with an empty component. Code 56 (EmptyFieldName).
    EmptyFieldName,
    /// A stored field name holds a dot. Code 57 (DottedFieldName).
    DottedFieldName,
    /// `_id` would change. Code 66 (ImmutableField).
    ImmutableField,
    /// A stage or an accumulator used more memory than it may. Code 146 (ExceededMemoryLimit).
    ExceededMemoryLimit,
    /// An expression names an operator that there is not. Code 168 (InvalidPipelineOperator).
    InvalidPipelineOperator,
    /// Options that exclude each other. Code 72 (InvalidOptions).
    InvalidOptions,
    /// Pipelines nest too deeply. Code 232 (MaxSubPipelineDepthExceeded).
    MaxSubPipelineDepthExceeded,
    /// Known to MongoDB, not to Pando yet. Code 238 (NotImplemented).
    NotImplemented,
    /// `$convert` and its kin cannot convert a value. Code 241 (ConversionFailure).
    ConversionFailure,
    /// No index can answer what needs one. Code 291 (NoQueryExecutionPlans).
    NoQueryExecutionPlans,
    /// A sort or group used more memory than it may without disk. Code 292 (QueryExceededMemoryLimitNoDiskUseAllowed).
    ExceededMemoryLimitNoDiskUse,
    /// A document would grow beyond 16 MB. Code 10334 (BSONObjectTooLarge).
    DocumentTooLarge,

    // ---- filters
    /// A regular expression does not compile. Code 51091.
    InvalidRegex,
    /// A flag that regular expressions do not have. Code 51108.
    InvalidRegexFlag,
    /// `$options` stands before a `$regex` that has options of its own. Code 51074.
    RegexOptionsBeforeRegex,
    /// `$options` stands behind a `$regex` that has options of its own. Code 51075.
    RegexOptionsAfterRegex,

    // ---- sorts, hints, min and max
    /// A sort direction that is neither 1 nor -1. Code 15975.
    BadSortDirection,
    /// A value that is neither number nor object stands for a direction. Code 15974.
    BadSortValue,
    /// An object that is no `$meta` stands for a direction. Code 17312.
    SortNotMeta,
    /// A `$meta` that there is not. Code 31138.
    UnknownSortMeta,
    /// A number in a sorted path is both an index into an array and a field of one of its documents. Code 16746.
    AmbiguousField,
    /// A sort pattern with more than 32 parts. Code 13103.
    SortTooWide,
    /// `min` and `max` without `hint`. Code 51173.
    MinMaxWithoutHint,
    /// The hint does not fit `min` or `max`. Code 51174.
    HintDoesNotFitMinMax,
    /// `min` is not below `max`. Code 51175.
    MinNotBelowMax,
    /// `min` and `max` name different fields. Code 51176.
    MinMaxDiffer,

    // ---- updates
    /// An update's result is above 16 MB. Code 17419.
    UpdatedDocumentTooLarge,
    /// An array would need too many nulls before a new element. Code 34 (CannotBackfillArray).
    CannotBackfillArray,
    /// A field of `_id` where all of it is needed. Code 111 (NotExactValueField).
    NotExactValueField,
    /// An operator of filters where it may not stand. Code 224 (QueryFeatureNotAllowed).
    QueryFeatureNotAllowed,

    // ---- expressions
    /// A cause that only expressions have; see there.
    Expression(ExpressionFault),
    /// An operator got the wrong number of arguments. Code 16020.
    WrongArgumentCount,
    /// An object with an operator and other fields. Code 15983.
    OperatorAmongFields,
    /// A variable that is not defined. Code 17276.
    UndefinedVariable,
    /// A field path that is only `$`. Code 16872.
    EmptyFieldPath,

    // ---- projections
    /// A cause that only projections have; see there.
    Projection(ProjectionFault),
    /// A projection names an operator that there is not. Code 31325.
    UnknownProjectionOperator,
    /// Paths of a projection collide. Code 31249.
    ProjectionPathCollision,
    /// An exclusion in an inclusion. Code 31254.
    ExclusionInInclusion,
    /// An inclusion in an exclusion. Code 31253.
    InclusionInExclusion,

    // ---- pipelines
    /// A cause that only pipelines have; see there.
    Pipeline(PipelineFault),
    /// A stage that there is not. Code 40324.
    UnknownStage,
    /// A stage that is not an object with exactly one field. Code 40323.
    StageNotOneField,

    // ---- below
    /// The engine said no, or `WouldBlock`.
    Storage(StorageError),
}

/// An error of parsing, planning or executing.
#[derive(Clone)]
pub struct QueryError {
    /// The cause, for the error code.
    pub kind: QueryErrorKind,
    /// A sentence for people; empty for [`Storage`](QueryErrorKind::Storage), whose error brings its own.
    pub message: String,
}

impl QueryError {
    /// An error of this kind, in MongoDB's words.
    pub fn new(kind: QueryErrorKind, message: impl Into<String>) -> QueryError {
        QueryError { kind, message: message.into() }
    }

    /// [`QueryErrorKind::BadValue`], by far the commonest.
    pub fn bad_value(message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::BadValue, message)
    }

    /// [`QueryErrorKind::TypeMismatch`].
    pub fn type_mismatch(message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::TypeMismatch, message)
    }

    /// [`QueryErrorKind::FailedToParse`].
    pub fn failed_to_parse(message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::FailedToParse, message)
    }

    /// [`QueryErrorKind::NotImplemented`]: MongoDB knows `what`, Pando does not yet.
    pub fn not_implemented(what: &str) -> QueryError {
        QueryError::new(QueryErrorKind::NotImplemented, format!("{what} is not implemented yet"))
    }

    /// Whether the call may be repeated where waiting for the device is allowed.
    pub fn is_would_block(&self) -> bool {
        matches!(&self.kind, QueryErrorKind::Storage(error) if error.is_would_block())
    }

    /// The storage error, where it is one.
    pub fn storage(&self) -> Option<&StorageError> {
        match &self.kind {
            QueryErrorKind::Storage(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StorageError> for QueryError {
    fn from(error: StorageError) -> QueryError {
        // No allocation: `WouldBlock` is an answer, and comes often.
        QueryError { kind: QueryErrorKind::Storage(error), message: String::new() }
    }
}

impl From<DocumentError> for QueryError {
    fn from(error: DocumentError) -> QueryError {
        QueryError::new(QueryErrorKind::InvalidBson, error.to_string())
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            QueryErrorKind::Storage(error) => error.fmt(f),
            _ => f.write_str(&self.message),
        }
    }
}

impl fmt::Debug for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl std::error::Error for QueryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            QueryErrorKind::Storage(error) => Some(error),
            _ => None,
        }
    }
}
