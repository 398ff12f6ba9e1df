//! Faults of pipelines: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a pipeline does not parse or cannot go on.
    PipelineFault {
        /// A search stands behind other stages.
        SearchNotFirst = 17_313,
        /// A stage of the search of MongoDB Atlas.
        OnlyOnAtlas = 6_047_401,
        /// A stage that there is not.
        UnknownStage = 40_324,
        /// `$geoNear` whose argument is no object.
        GeoNearNotObject = 10_065,
        /// `$geoNear` without `distanceField`.
        GeoNearDistanceField = 16_606,
        /// `includeLocs` of `$geoNear` that is no string.
        GeoNearPlaceField = 16_607,
        /// `$geoNear` behind another stage.
        GeoNearNotFirst = 40_603,
        /// `$geoNear` with `start`.
        GeoNearStart = 50_856,
        /// `$geoNear` with `num`.
        GeoNearNum = 50_857,
        /// `$geoNear` with `limit`.
        GeoNearLimit = 50_858,
        /// `$geoNear` without `near`.
        GeoNearWithoutNear = 5_860_400,
        /// `near` of `$geoNear` that is no object and no array.
        GeoNearPoint = 5_860_401,
        /// `near` of `$geoNear` that depends on documents.
        GeoNearNotConstant = 5_860_402,
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
        /// A `$facet` whose result is beyond the memory of a stage.
        FacetTooLarge = 4_031_700,
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
        /// `$bucketAuto` whose argument is no object.
        BucketAutoNotObject = 40_240,
        /// `$bucketAuto`: groupBy is neither path nor expression.
        BucketAutoGroupByNotExpression = 40_239,
        /// `$bucketAuto`: buckets is no number.
        BucketAutoCountNotNumber = 40_241,
        /// `$bucketAuto`: buckets is no int32.
        BucketAutoCountNotInt32 = 40_242,
        /// `$bucketAuto`: buckets is not positive.
        BucketAutoCountNotPositive = 40_243,
        /// `$bucketAuto`: output is no object.
        BucketAutoOutputNotObject = 40_244,
        /// `$bucketAuto` with an unknown option.
        BucketAutoUnknownOption = 40_245,
        /// `$bucketAuto` without groupBy or buckets.
        BucketAutoIncomplete = 40_246,
        /// `$bucketAuto`: granularity is no string.
        GranularityNotString = 40_261,
        /// `$bucketAuto`: a granularity that there is not.
        GranularityUnknown = 40_257,
        /// `$bucketAuto`: a granularity of values that are no numbers.
        GranularityOfOther = 40_258,
        /// `$bucketAuto`: a granularity of NaN.
        GranularityOfNan = 40_259,
        /// `$bucketAuto`: a granularity of a negative number.
        GranularityOfNegative = 40_260,
        /// `$indexStats` with an argument.
        IndexStatsNotEmpty = 28_803,
        /// `$planCacheStats` of a collection that does not exist.
        PlanCacheOfNoCollection = 50_933,
        /// The documents of one `$lookup` are too large together.
        LookupTooLarge = 4_568,
        /// A window whose lower bound lies behind the upper one.
        WindowBoundsCross = 5_339_900,
        /// A window by documents without an order.
        WindowWithoutSort = 5_339_901,
        /// A window by values without an order by one field.
        RangeWithoutSort = 5_339_902,
        /// A window by values in descending order.
        RangeDescending = 8_947_401,
        /// A window by dates over something else.
        RangeWantsDates = 5_429_513,
        /// A window by dates without a unit.
        RangeWantsUnit = 5_429_413,
        /// A window by numbers over something else.
        RangeWantsNumbers = 5_429_414,
        /// A window that does not fit into memory.
        WindowTooLarge = 5_643_011,
        /// Two output fields of `$setWindowFields` of which one lies within the other.
        WindowOutputsConflict = 6_307_900,
        /// `$rank` and its kin with another argument.
        RankOtherArgument = 5_371_601,
        /// `$rank` and its kin without an order by one field.
        RankWithoutSort = 5_371_602,
        /// `$rank` and its kin of something that is not `{}`.
        RankNotEmpty = 5_371_603,
        /// `$derivative` with a unit along something that is no date.
        DerivativeWantsDates = 5_624_900,
        /// `$derivative` without a unit along dates.
        DerivativeWantsUnit = 5_624_901,
        /// `$derivative` along something that is no number.
        DerivativeWantsNumbers = 5_624_902,
        /// `$derivative` of nothing.
        DerivativeOfNull = 5_624_903,
        /// A unit without a length in milliseconds.
        UnitTooLong = 5_490_710,
        /// `$linearFill` without an order by one field.
        LinearFillWithoutSort = 605_001,
        /// `$linearFill` with two documents at one place.
        LinearFillRepeatedSort = 6_050_106,
        /// `$minMaxScaler` of something that is no number.
        MinMaxScalerNotNumeric = 10_487_001,
        /// `$minMaxScaler` with a min that is not below max.
        MinMaxScalerBadRange = 10_487_000,
        /// `$fill`: the rule for a field is no object.
        FillNotObject = 6_050_200,
        /// `$fill`: a field with a method and a value.
        FillMethodAndValue = 6_050_201,
        /// `$fill`: a method that there is not.
        FillUnknownMethod = 6_050_202,
        /// `$fill` of no field.
        FillEmpty = 6_050_203,
        /// `$fill` with both kinds of partitions.
        FillTwoPartitions = 6_050_204,
        /// `$densify`: a step that is not positive.
        DensifyStepNotPositive = 5_733_401,
        /// `$densify`: bounds that do not ascend, or of different types.
        DensifyBoundsNotAscending = 5_733_402,
        /// `$densify`: an array of bounds without two elements.
        DensifyBoundsLength = 5_733_403,
        /// `$densify`: bounds that are neither string nor array.
        DensifyBadBounds = 5_733_404,
        /// `$densify`: bounds of the partition without partitions.
        DensifyWithoutPartition = 5_733_408,
        /// `$densify`: a unit beside bounds of numbers.
        DensifyUnitOfNumbers = 5_733_409,
        /// `$densify`: bounds of dates without a unit.
        DensifyWithoutUnit = 5_733_410,
        /// `$densify`: an unknown string of bounds.
        DensifyUnknownBounds = 5_946_802,
        /// `$densify`: bounds and step of different types.
        DensifyMixedTypes = 5_876_900,
        /// `$densify`: a step of dates that is no integer.
        DensifyStepNotWhole = 6_586_400,
        /// `$densify` of something that is neither number nor date.
        DensifyNotNumeric = 5_733_201,
        /// `$densify` of dates without a unit, or of numbers with one.
        DensifyOtherKind = 6_053_600,
        /// `$densify` of a field that is a partition field too.
        DensifyPartitionField = 5_733_306,
        /// `$densify` makes more documents than it may.
        DensifyTooMany = 5_897_900,
        /// A stage that may only stand first.
        StageNotFirst = 40_602,
        /// A stage that writes and does not stand last.
        WriteNotLast = 40_601,
        /// A stage that writes in the pipeline of a `$lookup`.
        WriteInLookup = 51_047,
        /// A stage that writes in the pipeline of a `$unionWith`.
        WriteInUnion = 31_441,
        /// `$documents` of something that is no array.
        DocumentsNotArray = 5_858_203,
        /// `$redact` by something that is no decision.
        RedactUndecided = 17_053,
        /// The documents and values of one `$graphLookup` are too large together.
        GraphLookupTooLarge = 40_099,
        /// `$graphLookup`: maxDepth is no number.
        GraphLookupDepthNotNumeric = 40_100,
        /// `$graphLookup`: maxDepth is negative.
        GraphLookupDepthNegative = 40_101,
        /// `$graphLookup`: maxDepth is no integer.
        GraphLookupDepthNotInteger = 40_102,
        /// `$graphLookup`: a name or path is no string.
        GraphLookupNotString = 40_103,
        /// `$graphLookup` with an unknown option.
        GraphLookupUnknownOption = 40_104,
        /// `$graphLookup` without one of the options that it needs.
        GraphLookupIncomplete = 40_105,
        /// `$graphLookup`: restrictSearchWithMatch is no object.
        GraphLookupMatchNotObject = 40_185,
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
