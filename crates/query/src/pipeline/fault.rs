//! Faults of pipelines: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a pipeline does not parse or cannot go on.
    PipelineFault {
        /// A stage that there is not.
        UnknownStage = 40_324,
        /// A stage that is not an object with exactly one field.
        StageNotOneField = 40_323,
        /// `$match` whose argument is no object.
        MatchNotObject = 15_959,
        /// `$project` whose argument is no object.
        ProjectNotObject = 15_969,
        /// `$addFields` whose argument is no object.
        AddFieldsNotObject = 40_272,
        /// `$unset` whose argument is neither string nor array.
        UnsetNotPaths = 31_002,
        /// `$unset` of an empty array.
        UnsetEmpty = 31_119,
        /// `$unset` of an array with something that is no string.
        UnsetNotStrings = 31_120,
        /// `$group` whose argument is no object.
        GroupNotObject = 15_947,
        /// `$group` with two `_id`.
        GroupTwoIds = 15_948,
        /// `$group` without `_id`.
        GroupWithoutId = 15_955,
        /// A field of `$group` that is no object.
        GroupFieldNotObject = 40_234,
        /// A field of `$group` with a dot.
        GroupFieldDotted = 40_235,
        /// A field of `$group` that begins with `$`.
        GroupFieldIsOperator = 40_236,
        /// An accumulator with a list of arguments.
        AccumulatorNotUnary = 40_237,
        /// A field of `$group` with more than one accumulator.
        GroupFieldTwoAccumulators = 40_238,
        /// An accumulator that there is not.
        UnknownAccumulator = 15_952,
        /// The `_id` of `$group` looks like a projection.
        GroupIdInclusion = 17_390,
        /// `$sort` whose argument is no object.
        SortNotObject = 15_973,
        /// `$sort` by nothing.
        SortEmpty = 15_976,
        /// `$limit` that is no integer or negative.
        LimitNotCount = 5_107_201,
        /// `$limit` of zero.
        LimitZero = 15_958,
        /// `$skip` that is no integer or negative.
        SkipNotCount = 5_107_200,
        /// `$count` that is no string.
        CountNotString = 40_156,
        /// `$count` of an empty name.
        CountEmpty = 40_157,
        /// `$count` of a name that begins with `$`.
        CountIsPath = 40_158,
        /// `$count` of a name with a NUL.
        CountWithNul = 40_159,
        /// `$count` of a name with a dot.
        CountDotted = 40_160,
        /// `$unwind` whose argument is neither string nor object.
        UnwindNotObject = 15_981,
        /// `$unwind` without a path.
        UnwindWithoutPath = 28_812,
        /// `$unwind` of a path that does not begin with `$`.
        UnwindNotPath = 28_818,
        /// `$unwind` of a path that is no string.
        UnwindPathNotString = 28_808,
        /// `$unwind`: preserveNullAndEmptyArrays is no boolean.
        UnwindPreserveNotBoolean = 28_809,
        /// `$unwind`: includeArrayIndex is no string or empty.
        UnwindIndexNotString = 28_810,
        /// `$unwind` with an unknown option.
        UnwindUnknownOption = 28_811,
        /// `$unwind`: includeArrayIndex begins with `$`.
        UnwindIndexIsPath = 28_822,
        /// `$replaceRoot` whose argument is no object.
        ReplaceRootNotObject = 40_229,
        /// The new root is no document.
        NewRootNotObject = 40_228,
        /// `$sortByCount` of an object that is no expression.
        SortByCountNotExpression = 40_147,
        /// `$sortByCount` of a string that is no path.
        SortByCountNotPath = 40_148,
        /// `$sortByCount` of something else.
        SortByCountWrongType = 40_149,
        /// `$facet` without facets.
        FacetEmpty = 40_169,
        /// A facet that is no array.
        FacetNotArray = 40_170,
        /// A stage that may not stand in a facet.
        NotInFacet = 40_600,
        /// `$bucket`: fewer than two boundaries.
        BucketTooFewBoundaries = 40_192,
        /// `$bucket`: boundaries of different types.
        BucketMixedBoundaries = 40_193,
        /// `$bucket`: boundaries out of order.
        BucketUnsortedBoundaries = 40_194,
        /// `$bucket`: a boundary that is no constant.
        BucketBoundaryNotConstant = 40_191,
        /// `$bucket`: output is no object.
        BucketOutputNotObject = 40_196,
        /// `$bucket` with an unknown option.
        BucketUnknownOption = 40_197,
        /// `$bucket` without groupBy or boundaries.
        BucketIncomplete = 40_198,
        /// `$bucket`: default lies within the boundaries.
        BucketDefaultWithin = 40_199,
        /// `$bucket`: boundaries are no array.
        BucketBoundariesNotArray = 40_200,
        /// `$bucket` whose argument is no object.
        BucketNotObject = 40_201,
        /// `$bucket`: groupBy is neither path nor expression.
        BucketGroupByNotExpression = 40_202,
        /// The documents of one `$lookup` are too large together.
        LookupTooLarge = 4_568,
        /// `$sample` whose argument is no object.
        SampleNotObject = 28_745,
        /// `$sample` with a size that is no number.
        SampleSizeNotNumeric = 28_746,
        /// `$sample` with a negative size.
        SampleSizeNegative = 28_747,
        /// `$sample` with an unknown option.
        SampleUnknownOption = 28_748,
        /// `$sample` without a size.
        SampleWithoutSize = 28_749,
    }
}
