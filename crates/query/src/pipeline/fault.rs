//! The causes of errors that only pipelines have. `commands` gives each its MongoDB code; the comment names it.

use crate::error::{QueryError, QueryErrorKind};

/// Why a pipeline does not parse or cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PipelineFault {
    /// `$match` whose argument is no object. Code 15959.
    MatchNotObject,
    /// `$project` whose argument is no object. Code 15969.
    ProjectNotObject,
    /// `$addFields` whose argument is no object. Code 40272.
    AddFieldsNotObject,
    /// `$unset` whose argument is neither string nor array. Code 31002.
    UnsetNotPaths,
    /// `$unset` of an empty array. Code 31119.
    UnsetEmpty,
    /// `$unset` of an array with something that is no string. Code 31120.
    UnsetNotStrings,
    /// `$group` whose argument is no object. Code 15947.
    GroupNotObject,
    /// `$group` with two `_id`. Code 15948.
    GroupTwoIds,
    /// `$group` without `_id`. Code 15955.
    GroupWithoutId,
    /// A field of `$group` that is no object. Code 40234.
    GroupFieldNotObject,
    /// A field of `$group` with a dot. Code 40235.
    GroupFieldDotted,
    /// A field of `$group` that begins with `$`. Code 40236.
    GroupFieldIsOperator,
    /// An accumulator with a list of arguments. Code 40237.
    AccumulatorNotUnary,
    /// A field of `$group` with more than one accumulator. Code 40238.
    GroupFieldTwoAccumulators,
    /// An accumulator that there is not. Code 15952.
    UnknownAccumulator,
    /// The `_id` of `$group` looks like a projection. Code 17390.
    GroupIdInclusion,
    /// `$sort` whose argument is no object. Code 15973.
    SortNotObject,
    /// `$sort` by nothing. Code 15976.
    SortEmpty,
    /// `$limit` that is no integer or negative. Code 5107201.
    LimitNotCount,
    /// `$limit` of zero. Code 15958.
    LimitZero,
    /// `$skip` that is no integer or negative. Code 5107200.
    SkipNotCount,
    /// `$count` that is no string. Code 40156.
    CountNotString,
    /// `$count` of an empty name. Code 40157.
    CountEmpty,
    /// `$count` of a name that begins with `$`. Code 40158.
    CountIsPath,
    /// `$count` of a name with a NUL. Code 40159.
    CountWithNul,
    /// `$count` of a name with a dot. Code 40160.
    CountDotted,
    /// `$unwind` whose argument is neither string nor object. Code 15981.
    UnwindNotObject,
    /// `$unwind` without a path. Code 28812.
    UnwindWithoutPath,
    /// `$unwind` of a path that does not begin with `$`. Code 28818.
    UnwindNotPath,
    /// `$unwind` of a path that is no string. Code 28808.
    UnwindPathNotString,
    /// `$unwind`: preserveNullAndEmptyArrays is no boolean. Code 28809.
    UnwindPreserveNotBoolean,
    /// `$unwind`: includeArrayIndex is no string or empty. Code 28810.
    UnwindIndexNotString,
    /// `$unwind` with an unknown option. Code 28811.
    UnwindUnknownOption,
    /// `$unwind`: includeArrayIndex begins with `$`. Code 28822.
    UnwindIndexIsPath,
    /// `$replaceRoot` whose argument is no object. Code 40229.
    ReplaceRootNotObject,
    /// The new root is no document. Code 40228.
    NewRootNotObject,
    /// A required option is missing. Code 40414.
    MissingOption,
    /// An option that there is not. Code 40415.
    UnknownOption,
    /// `$sortByCount` of an object that is no expression. Code 40147.
    SortByCountNotExpression,
    /// `$sortByCount` of a string that is no path. Code 40148.
    SortByCountNotPath,
    /// `$sortByCount` of something else. Code 40149.
    SortByCountWrongType,
    /// `$facet` without facets. Code 40169.
    FacetEmpty,
    /// A facet that is no array. Code 40170.
    FacetNotArray,
    /// A stage that may not stand in a facet. Code 40600.
    NotInFacet,
    /// `$bucket`: fewer than two boundaries. Code 40192.
    BucketTooFewBoundaries,
    /// `$bucket`: boundaries of different types. Code 40193.
    BucketMixedBoundaries,
    /// `$bucket`: boundaries out of order. Code 40194.
    BucketUnsortedBoundaries,
    /// `$bucket`: a boundary that is no constant. Code 40191.
    BucketBoundaryNotConstant,
    /// `$bucket`: output is no object. Code 40196.
    BucketOutputNotObject,
    /// `$bucket` with an unknown option. Code 40197.
    BucketUnknownOption,
    /// `$bucket` without groupBy or boundaries. Code 40198.
    BucketIncomplete,
    /// `$bucket`: default lies within the boundaries. Code 40199.
    BucketDefaultWithin,
    /// `$bucket`: boundaries are no array. Code 40200.
    BucketBoundariesNotArray,
    /// `$bucket` whose argument is no object. Code 40201.
    BucketNotObject,
    /// `$bucket`: groupBy is neither path nor expression. Code 40202.
    BucketGroupByNotExpression,
    /// `$bucket`: a value in no bucket. Code 40066.
    BucketNoMatch,
    /// `$sample` whose argument is no object. Code 28745.
    SampleNotObject,
    /// `$sample` with a size that is no number. Code 28746.
    SampleSizeNotNumeric,
    /// `$sample` with a negative size. Code 28747.
    SampleSizeNegative,
    /// `$sample` with an unknown option. Code 28748.
    SampleUnknownOption,
    /// `$sample` without a size. Code 28749.
    SampleWithoutSize,
    /// An accumulator of n elements: its argument is no object. Code 5787801.
    NotObjectOfN,
    /// An accumulator of n elements: n is missing. Code 5787906.
    WithoutN,
    /// An accumulator of n elements: input is missing. Code 5787907.
    WithoutInput,
    /// An accumulator of n elements: n is no integer. Code 5787903.
    NNotInteger,
    /// An accumulator of n elements: n is not positive. Code 5787908.
    NNotPositive,
    /// An accumulator of n elements: an unknown argument. Code 5787901.
    UnknownArgumentOfN,
}

impl PipelineFault {
    /// An error of this cause.
    pub fn error(self, message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::Pipeline(self), message)
    }
}
