//! Faults of projections: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a projection does not parse or cannot be applied.
    ProjectionFault {
        /// A projection names an operator that there is not.
        UnknownOperator = 31_325,
        /// Paths of a projection collide.
        PathCollision = 31_249,
        /// An exclusion in an inclusion.
        ExclusionInInclusion = 31_254,
        /// An inclusion in an exclusion.
        InclusionInExclusion = 31_253,
        /// A path above one that the projection names already.
        CollisionAbove = 31_250,
        /// An expression in an exclusion.
        ExpressionInExclusion = 31_252,
        /// A literal or a path as a value in an exclusion.
        LiteralInExclusion = 31_310,
        /// A positional path in a stage.
        PositionalInStage = 31_324,
        /// An empty object where a sub-projection is meant.
        EmptySubProjection = 51_270,
        /// A stage's specification without fields.
        EmptySpecification = 51_272,
        /// A positional path whose value is false.
        PositionalExclusion = 31_395,
        /// More than one positional path.
        TwoPositionals = 31_276,
        /// `$` within a path.
        PositionalWithinPath = 31_394,
        /// A positional path with a value that is no number.
        PositionalLiteral = 31_308,
        /// A positional path behind an `$elemMatch`.
        ElemMatchBeforePositional = 31_256,
        /// An `$elemMatch` behind a positional path.
        PositionalWithElemMatch = 31_255,
        /// The filter matched by no element of an array.
        PositionalWithoutMatch = 51_246,
        /// The array is shorter than the place of the match.
        PositionalMismatch = 51_247,
        /// `$elemMatch` below the top level.
        ElemMatchNested = 31_275,
        /// `$elemMatch` whose argument is no object.
        ElemMatchNotObject = 31_274,
        /// `$meta` of a name that there is not.
        UnknownMeta = 17_308,
        /// Metadata that only a text search has.
        MetaNotAvailable = 40_218,
        /// `$addFields`: an empty object.
        AddFieldsEmptyObject = 40_180,
        /// `$addFields`: paths that contradict each other.
        AddFieldsConflict = 40_176,
        /// `$addFields`: an operator among fields.
        AddFieldsOperatorAmongFields = 40_181,
        /// `$addFields`: a dotted name within an object.
        AddFieldsDottedName = 40_183,
    }
}
