//! The causes of errors that only projections have. `commands` gives each its MongoDB code; the comment names it.

use crate::error::{QueryError, QueryErrorKind};

/// Why a projection does not parse or cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProjectionFault {
    /// A path above one that the projection names already. Code 31250.
    CollisionAbove,
    /// An expression in an exclusion. Code 31252.
    ExpressionInExclusion,
    /// A literal or a path as a value in an exclusion. Code 31310.
    LiteralInExclusion,
    /// A positional path in a stage. Code 31324.
    PositionalInStage,
    /// An empty object where a sub-projection is meant. Code 51270.
    EmptySubProjection,
    /// A stage's specification without fields. Code 51272.
    EmptySpecification,
    /// A positional path whose value is false. Code 31395.
    PositionalExclusion,
    /// More than one positional path. Code 31276.
    TwoPositionals,
    /// `$` within a path. Code 31394.
    PositionalWithinPath,
    /// A positional path with a value that is no number. Code 31308.
    PositionalLiteral,
    /// A positional path behind an `$elemMatch`. Code 31256.
    ElemMatchBeforePositional,
    /// An `$elemMatch` behind a positional path. Code 31255.
    PositionalWithElemMatch,
    /// The filter matched by no element of an array. Code 51246.
    PositionalWithoutMatch,
    /// The array is shorter than the place of the match. Code 51247.
    PositionalMismatch,
    /// `$elemMatch` below the top level. Code 31275.
    ElemMatchNested,
    /// `$elemMatch` whose argument is no object. Code 31274.
    ElemMatchNotObject,
    /// `$meta` of a name that there is not. Code 17308.
    UnknownMeta,
    /// Metadata that only a text search has. Code 40218.
    MetaNotAvailable,
    /// `$addFields`: an empty object. Code 40180.
    AddFieldsEmptyObject,
    /// `$addFields`: paths that contradict each other. Code 40176.
    AddFieldsConflict,
    /// `$addFields`: an operator among fields. Code 40181.
    AddFieldsOperatorAmongFields,
    /// `$addFields`: a dotted name within an object. Code 40183.
    AddFieldsDottedName,
}

impl ProjectionFault {
    /// An error of this cause.
    pub fn error(self, message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::Projection(self), message)
    }
}
