//! Faults of expressions: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why an expression does not parse or cannot be evaluated.
    ExpressionFault {
        /// An operator got the wrong number of arguments.
        WrongArgumentCount = 16_020,
        /// An object with an operator and other fields.
        OperatorAmongFields = 15_983,
        /// A variable that is not defined.
        UndefinedVariable = 17_276,
        /// A field path that is only `$`.
        EmptyFieldPath = 16_872,
        /// A field path with an empty part.
        EmptyPathPart = 15_998,
        /// A field path that ends with a dot.
        PathEndsWithDot = 40_353,
        /// A part of a field path begins with `$`.
        DollarInPath = 16_410,
        /// A part of a field path has a NUL.
        NulInPath = 16_411,
        /// A field path of no characters.
        EmptyPath = 40_352,
        /// A member of an object literal with a dot in its name.
        DottedMember = 16_412,
        /// A number of arguments outside an operator's range.
        ArgumentCountOutOfRange = 28_667,
        /// `$add` met two dates.
        TwoDatesInAdd = 16_612,
        /// `$mod` by zero.
        ModByZero = 16_610,
        /// `$mod` of decimals by zero.
        DecimalModByZero = 5_733_415,
        /// `$mod` of something that is no number.
        ModNotNumeric = 16_611,
        /// `$abs` of the least int64.
        AbsOfLeastInt64 = 28_680,
        /// An operator of one number met something else.
        NotNumeric = 28_765,
        /// `$round` or `$trunc` of something that is no number.
        RoundNotNumeric = 51_081,
        /// A precision that is no integer.
        PrecisionNotInteger = 51_082,
        /// A precision outside -20 to 100.
        PrecisionOutOfRange = 51_083,
        /// A double that is no int64 even without its fraction.
        BeyondLong = 31_109,
        /// A number outside of a trigonometric function's domain.
        OutsideOfDomain = 50_989,
        /// `$atan2` of a first number that is none.
        Atan2FirstNotNumeric = 51_044,
        /// `$atan2` of a second number that is none.
        Atan2SecondNotNumeric = 51_045,
        /// `$round` leaves the range of int64.
        RoundOverflow = 51_080,
        /// A value that cannot become an int32 or int64 where one is needed.
        NotConvertibleToLong = 16_004,
        /// The root of a negative number.
        NegativeRoot = 28_714,
        /// `$pow` of a base that is no number.
        PowBaseNotNumeric = 28_762,
        /// `$pow` to an exponent that is no number.
        PowExponentNotNumeric = 28_763,
        /// 0 to a negative power.
        ZeroToNegativePower = 28_764,
        /// `$ln` of a number that is not positive.
        LnNotPositive = 28_766,
        /// `$log10` of a number that is not positive.
        Log10NotPositive = 28_761,
        /// `$log` of something that is no number.
        LogNotNumeric = 28_756,
        /// `$log` to a base that is no number.
        LogBaseNotNumeric = 28_757,
        /// `$log` of a number that is not positive.
        LogNotPositive = 28_758,
        /// `$log` to a base that is 1 or not positive.
        LogBadBase = 28_759,
        /// `$cond` with an unknown argument.
        CondUnknownArgument = 17_083,
        /// `$cond` without `if`.
        CondWithoutIf = 17_080,
        /// `$cond` without `then`.
        CondWithoutThen = 17_081,
        /// `$cond` without `else`.
        CondWithoutElse = 17_082,
        /// `$ifNull` with fewer than two arguments.
        IfNullTooFew = 1_257_300,
        /// `$switch` whose argument is no object.
        SwitchNotObject = 40_060,
        /// `$switch` whose branches are no array.
        SwitchBranchesNotArray = 40_061,
        /// A branch that is no object.
        SwitchBranchNotObject = 40_062,
        /// A branch with an unknown field.
        SwitchBranchUnknownField = 40_063,
        /// A branch without `case`.
        SwitchBranchWithoutCase = 40_064,
        /// A branch without `then`.
        SwitchBranchWithoutThen = 40_065,
        /// No branch applies and there is no default: of `$switch`, or of `$bucket`, which is one.
        SwitchNoMatch = 40_066,
        /// All branches are false whatever the document, and there is no default.
        SwitchNeverMatches = 40_069,
        /// `$switch` with an unknown argument.
        SwitchUnknownArgument = 40_067,
        /// `$switch` without a branch.
        SwitchNoBranches = 40_068,
        /// `$arrayElemAt` of something that is no array.
        ElementOfNonArray = 28_689,
        /// An index that is no number.
        IndexNotNumeric = 28_690,
        /// An index that is no int32.
        IndexNotInt32 = 28_691,
        /// `$concatArrays` of something that is no array.
        ConcatArraysNotArray = 28_664,
        /// `$filter` whose argument is no object.
        FilterNotObject = 28_646,
        /// `$filter` with an unknown argument.
        FilterUnknownArgument = 28_647,
        /// `$filter` without input.
        FilterWithoutInput = 28_648,
        /// `$filter` without cond.
        FilterWithoutCond = 28_650,
        /// `$filter` over something that is no array.
        FilterInputNotArray = 28_651,
        /// `$filter` with a limit that is no int32.
        FilterLimitNotInt32 = 327_391,
        /// `$filter` with a limit below 1.
        FilterLimitNotPositive = 327_392,
        /// `$map` whose argument is no object.
        MapNotObject = 16_878,
        /// `$map` with an unknown argument.
        MapUnknownArgument = 16_879,
        /// `$map` without input.
        MapWithoutInput = 16_880,
        /// `$map` without in.
        MapWithoutIn = 16_882,
        /// `$map` over something that is no array.
        MapInputNotArray = 16_883,
        /// `$reduce` whose argument is no object.
        ReduceNotObject = 40_075,
        /// `$reduce` with an unknown argument.
        ReduceUnknownArgument = 40_076,
        /// `$reduce` without input.
        ReduceWithoutInput = 40_077,
        /// `$reduce` without initialValue.
        ReduceWithoutInitialValue = 40_078,
        /// `$reduce` without in.
        ReduceWithoutIn = 40_079,
        /// `$reduce` over something that is no array.
        ReduceInputNotArray = 40_080,
        /// `$in` with a second argument that is no array.
        InNotArray = 40_081,
        /// `$indexOfArray` of something that is no array.
        IndexOfArrayNotArray = 40_090,
        /// A start or end index that is no integer.
        SearchIndexNotInteger = 40_096,
        /// A start or end index below zero.
        SearchIndexNegative = 40_097,
        /// `$indexOfBytes` in something that is no string.
        IndexOfBytesNotString = 40_091,
        /// The text sought by `$indexOfBytes` is no string.
        IndexOfBytesSoughtNotString = 40_092,
        /// `$indexOfCP` in something that is no string.
        IndexOfCpNotString = 40_093,
        /// The text sought by `$indexOfCP` is no string.
        IndexOfCpSoughtNotString = 40_094,
        /// `$size` of something that is no array.
        SizeNotArray = 17_124,
        /// `$slice` of something that is no array.
        SliceNotArray = 28_724,
        /// `$slice` with a second argument that is no number.
        SliceSecondNotNumeric = 28_725,
        /// `$slice` with a second argument that is no int32.
        SliceSecondNotInt32 = 28_726,
        /// `$slice` with a third argument that is no number.
        SliceThirdNotNumeric = 28_727,
        /// `$slice` with a third argument that is no int32.
        SliceThirdNotInt32 = 28_728,
        /// `$slice` with a third argument that is not positive.
        SliceThirdNotPositive = 28_729,
        /// `$reverseArray` of something that is no array.
        ReverseNotArray = 34_435,
        /// `$range` with a start that is no number.
        RangeStartNotNumeric = 34_443,
        /// `$range` with a start that is no int32.
        RangeStartNotInt32 = 34_444,
        /// `$range` with an end that is no number.
        RangeEndNotNumeric = 34_445,
        /// `$range` with an end that is no int32.
        RangeEndNotInt32 = 34_446,
        /// `$range` with a step that is no number.
        RangeStepNotNumeric = 34_447,
        /// `$range` with a step that is no int32.
        RangeStepNotInt32 = 34_448,
        /// `$range` with a step of zero.
        RangeStepZero = 34_449,
        /// `$arrayToObject` of something that is no array.
        ToObjectNotArray = 40_386,
        /// A pair that has not two elements.
        ToObjectPairLength = 40_397,
        /// A pair whose key is no string.
        ToObjectPairKeyNotString = 40_395,
        /// An element that is neither pair nor object, first form.
        ToObjectBadFirstElement = 40_398,
        /// An element that is no object.
        ToObjectElementNotObject = 40_391,
        /// An object that has not two fields.
        ToObjectFieldCount = 40_392,
        /// An object without `k` and `v`.
        ToObjectWithoutKeyValue = 40_393,
        /// `k` is no string.
        ToObjectKeyNotString = 40_394,
        /// An element that is no pair.
        ToObjectElementNotPair = 40_396,
        /// The key of a pair has a NUL.
        ToObjectPairKeyWithNul = 4_940_400,
        /// `k` has a NUL.
        ToObjectKeyWithNul = 4_940_401,
        /// `$objectToArray` of something that is no object.
        ToArrayNotObject = 40_390,
        /// `$zip` whose argument is no object.
        ZipNotObject = 34_460,
        /// `$zip` whose inputs are no array.
        ZipInputsNotArray = 34_461,
        /// `$zip` whose defaults are no array.
        ZipDefaultsNotArray = 34_462,
        /// `$zip` whose useLongestLength is no boolean.
        ZipLongestNotBoolean = 34_463,
        /// `$zip` with an unknown argument.
        ZipUnknownArgument = 34_464,
        /// `$zip` without inputs.
        ZipWithoutInputs = 34_465,
        /// `$zip` with defaults and without useLongestLength.
        ZipDefaultsWithoutLongest = 34_466,
        /// `$zip` whose defaults are not as many as its inputs.
        ZipDefaultsCount = 34_467,
        /// `$zip` of something that is no array.
        ZipInputNotArray = 34_468,
        /// `$sortArray` whose argument is wrong.
        SortArrayNotObject = 2_942_500,
        /// `$sortArray` with an unknown argument.
        SortArrayUnknownArgument = 2_942_501,
        /// `$sortArray` without input.
        SortArrayWithoutInput = 2_942_502,
        /// `$sortArray` without sortBy.
        SortArrayWithoutSortBy = 2_942_503,
        /// `$sortArray` by a malformed pattern.
        SortArrayBadPattern = 2_942_505,
        /// `$sortArray` by a number that is neither 1 nor -1.
        SortArrayBadDirection = 2_942_506,
        /// `$sortArray` by something that is neither number nor object.
        SortArrayBadSortBy = 2_942_507,
        /// `$sortArray` over something that is no array.
        SortArrayInputNotArray = 2_942_504,
        /// `$concat` of something that is no string.
        ConcatNotString = 16_702,
        /// A value that cannot be a string where one is needed.
        NotConvertibleToString = 16_007,
        /// `$substrBytes` with a start that is no number.
        SubstrStartNotNumeric = 16_034,
        /// `$substrBytes` with a length that is no number.
        SubstrLengthNotNumeric = 16_035,
        /// `$substrBytes` starts within a character.
        SubstrStartsInCharacter = 28_656,
        /// `$substrBytes` ends within a character.
        SubstrEndsInCharacter = 28_657,
        /// `$substrBytes` with a negative start.
        SubstrNegativeStart = 50_752,
        /// `$substrCP` with a start that is no number.
        SubstrCpStartNotNumeric = 34_450,
        /// `$substrCP` with a start that is no int32.
        SubstrCpStartNotInt32 = 34_451,
        /// `$substrCP` with a length that is no number.
        SubstrCpLengthNotNumeric = 34_452,
        /// `$substrCP` with a length that is no int32.
        SubstrCpLengthNotInt32 = 34_453,
        /// `$substrCP` with a negative length.
        SubstrCpNegativeLength = 34_454,
        /// `$substrCP` with a negative start.
        SubstrCpNegativeStart = 34_455,
        /// `$split` of something that is no string.
        SplitNotString = 40_085,
        /// `$split` at something that is no string.
        SplitSeparatorNotString = 40_086,
        /// `$split` at an empty string.
        SplitSeparatorEmpty = 40_087,
        /// `$strLenBytes` of something that is no string.
        StrLenBytesNotString = 34_473,
        /// `$strLenCP` of something that is no string.
        StrLenCpNotString = 34_471,
        /// `$trim` with an unknown argument.
        TrimUnknownArgument = 50_694,
        /// `$trim` without input.
        TrimWithoutInput = 50_695,
        /// `$trim` whose argument is no object.
        TrimNotObject = 50_696,
        /// `$trim` of something that is no string.
        TrimInputNotString = 50_699,
        /// `$trim` with chars that are no string.
        TrimCharsNotString = 50_700,
        /// `$replaceOne`/`$replaceAll` whose argument is no object.
        ReplaceNotObject = 51_751,
        /// `$replaceOne`/`$replaceAll` with an unknown argument.
        ReplaceUnknownArgument = 51_750,
        /// `$replaceOne`/`$replaceAll` without input.
        ReplaceWithoutInput = 51_749,
        /// `$replaceOne`/`$replaceAll` without find.
        ReplaceWithoutFind = 51_748,
        /// `$replaceOne`/`$replaceAll` without replacement.
        ReplaceWithoutReplacement = 51_747,
        /// An input that is no string.
        ReplaceInputNotString = 51_746,
        /// A find that is no string.
        ReplaceFindNotString = 51_745,
        /// A replacement that is no string.
        ReplaceReplacementNotString = 51_744,
        /// A regular expression operator whose argument is no object.
        RegexNotObject = 51_103,
        /// A regular expression operator with an unknown argument.
        RegexUnknownArgument = 31_024,
        /// A regular expression operator without input.
        RegexWithoutInput = 31_022,
        /// A regular expression operator without regex.
        RegexWithoutRegex = 31_023,
        /// An input that is no string.
        RegexInputNotString = 51_104,
        /// A regex that is neither string nor regular expression.
        RegexNotRegex = 51_105,
        /// Options that are no string.
        RegexOptionsNotString = 51_106,
        /// Options both in the regular expression and beside it.
        RegexOptionsTwice = 51_107,
        /// A pattern with a NUL.
        RegexWithNul = 51_109,
        /// Options with a NUL.
        RegexOptionsWithNul = 51_110,
        /// A pattern that does not compile.
        RegexDoesNotCompile = 51_111,
        /// The matches of `$regexFindAll` take too many bytes.
        RegexOutputTooLarge = 51_151,
        /// `$mergeObjects` of something that is no object.
        MergeNotObject = 40_400,
        /// `$getField` without field.
        GetFieldWithoutField = 3_041_702,
        /// `$getField` without input.
        GetFieldWithoutInput = 3_041_703,
        /// `$getField` with an unknown argument.
        GetFieldUnknownArgument = 3_041_701,
        /// `$getField` with a field that looks like a path.
        GetFieldIsPath = 5_654_600,
        /// `$getField` with a field that is no constant.
        GetFieldNotConstant = 5_654_601,
        /// `$getField` with a field that is no string.
        GetFieldNotString = 5_654_602,
        /// `$setField` whose argument is no object.
        SetFieldNotObject = 4_161_100,
        /// `$setField` with an unknown argument.
        SetFieldUnknownArgument = 4_161_101,
        /// `$setField` without field.
        SetFieldWithoutField = 4_161_102,
        /// `$setField` without value.
        SetFieldWithoutValue = 4_161_103,
        /// `$setField` whose field is no constant.
        SetFieldNotConstant = 4_161_106,
        /// `$setField` whose field is no string.
        SetFieldNotString = 4_161_107,
        /// `$setField` whose field looks like a path.
        SetFieldIsPath = 4_161_108,
        /// `$setField` without input.
        SetFieldWithoutInput = 4_161_109,
        /// `$setField` into something that is no object.
        SetFieldInputNotObject = 4_161_105,
        /// A variable of a command's `let` reads a field.
        FieldInCommandLet = 4_890_500,
        /// A constant of an update has the name of a variable of the system.
        SystemVariableRedefined = 17_275,
        /// `$let` whose argument is no object.
        LetNotObject = 16_874,
        /// `$let` with an unknown argument.
        LetUnknownArgument = 16_875,
        /// `$let` without vars.
        LetWithoutVars = 16_876,
        /// `$let` without in.
        LetWithoutIn = 16_877,
        /// `$setEquals` of something that is no array.
        SetEqualsNotArray = 17_044,
        /// A constant argument of `$setEquals` that is no array.
        SetEqualsConstantNotArray = 5_887_502,
        /// `$setEquals` with fewer than two arguments.
        SetEqualsTooFew = 17_045,
        /// `$setIntersection` of something that is no array.
        SetIntersectionNotArray = 17_047,
        /// `$setUnion` of something that is no array.
        SetUnionNotArray = 17_043,
        /// `$setDifference` from something that is no array.
        SetDifferenceFirstNotArray = 17_048,
        /// `$setDifference` of something that is no array.
        SetDifferenceSecondNotArray = 17_049,
        /// `$setIsSubset` of something that is no array.
        SetIsSubsetFirstNotArray = 17_046,
        /// The same where the second argument is constant.
        SetIsSubsetOfConstantNotArray = 17_310,
        /// A constant second argument of `$setIsSubset` that is no array.
        SetIsSubsetConstantNotArray = 17_311,
        /// `$setIsSubset` in something that is no array.
        SetIsSubsetSecondNotArray = 17_042,
        /// `$anyElementTrue` of something that is no array.
        AnyElementNotArray = 17_041,
        /// `$allElementsTrue` of something that is no array.
        AllElementsNotArray = 17_040,
        /// A value where a date is needed.
        NotConvertibleToDate = 16_006,
        /// A part of a date without `date`.
        DateArgumentMissing = 40_539,
        /// A part of a date with an unknown argument.
        DateUnknownArgument = 40_535,
        /// A part of a date of an array that has not one element.
        DateArgumentCount = 40_536,
        /// A time zone that is no string, for a part of a date.
        TimeZoneNotString = 40_533,
        /// A time zone that is no string, elsewhere.
        TimeZoneIsNoString = 40_517,
        /// A time zone that there is not.
        UnknownTimeZone = 40_485,
        /// `$dateToString` whose argument is no object.
        DateToStringNotObject = 18_629,
        /// `$dateToString` with an unknown argument.
        DateToStringUnknownArgument = 18_534,
        /// `$dateToString` without date.
        DateToStringWithoutDate = 18_628,
        /// `$dateToString` with a format that is no string.
        FormatNotString = 18_533,
        /// A format that ends within a specifier.
        FormatEndsEarly = 18_535,
        /// `$toInt` and its kin with another number of arguments than one.
        ConversionNotUnary = 50_723,
        /// A year that has not four digits.
        DateOutOfRange = 18_537,
        /// A specifier that there is not.
        UnknownFormatSpecifier = 18_536,
        /// `$dateFromString` whose argument is no object.
        DateFromStringNotObject = 40_540,
        /// `$dateFromString` with an unknown argument.
        DateFromStringUnknownArgument = 40_541,
        /// `$dateFromString` without dateString.
        DateFromStringWithoutText = 40_542,
        /// `$dateFromString` with a format that is no string.
        DateFromStringFormatNotString = 40_684,
        /// `$dateAdd` and its kin: the argument is no object.
        DateArithmeticNotObject = 5_166_400,
        /// `$dateAdd` and its kin: unknown argument.
        DateArithmeticUnknownArgument = 5_166_401,
        /// `$dateAdd` and its kin: an argument is missing.
        DateArithmeticArgumentMissing = 5_166_402,
        /// `$dateAdd` and its kin: the date is none.
        DateArithmeticNotDate = 5_166_403,
        /// `$dateAdd` and its kin: the unit is no string.
        DateArithmeticUnitNotString = 5_166_404,
        /// `$dateAdd` and its kin: the amount is no integer.
        DateArithmeticAmountNotInteger = 5_166_405,
        /// `$dateAdd` and its kin: the result is out of range.
        DateArithmeticOverflow = 5_166_406,
        /// `$dateSubtract`: the least amount, which has no opposite.
        DateArithmeticAmountWithoutOpposite = 6_045_000,
        /// `$dateAdd` and its kin: an amount beyond all dates.
        DateArithmeticAmountTooLarge = 5_976_500,
        /// `$dateDiff`: the argument is no object.
        DateDiffNotObject = 5_166_301,
        /// `$dateDiff`: unknown argument.
        DateDiffUnknownArgument = 5_166_302,
        /// `$dateDiff`: startDate is missing.
        DateDiffWithoutStart = 5_166_303,
        /// `$dateDiff`: endDate is missing.
        DateDiffWithoutEnd = 5_166_304,
        /// `$dateDiff`: unit is missing.
        DateDiffWithoutUnit = 5_166_305,
        /// `$dateDiff`: a date is none.
        DateDiffNotDate = 5_166_307,
        /// A unit that is no string.
        UnitNotString = 5_439_013,
        /// A unit that there is not.
        UnknownUnit = 5_439_014,
        /// A start of the week that is no string.
        WeekStartNotString = 5_439_015,
        /// A start of the week that is no day.
        UnknownWeekStart = 5_439_016,
        /// `$dateTrunc`: the argument is no object.
        DateTruncNotObject = 5_439_007,
        /// `$dateTrunc`: unknown argument.
        DateTruncUnknownArgument = 5_439_008,
        /// `$dateTrunc`: date is missing.
        DateTruncWithoutDate = 5_439_009,
        /// `$dateTrunc`: unit is missing.
        DateTruncWithoutUnit = 5_439_010,
        /// `$dateTrunc`: the date is none.
        DateTruncNotDate = 5_439_012,
        /// `$dateTrunc`: the date is too far from 2000-01-01 for a count of milliseconds.
        DateTruncDistanceOverflow = 5_439_000,
        /// `$dateTrunc`: the bin has too many milliseconds.
        DateTruncBinOverflow = 5_439_002,
        /// `$dateTrunc`: a bin of days or longer units is longer than MongoDB's longest.
        DateTruncBinTooLong = 5_439_006,
        /// `$dateTrunc`: bin size is no integer.
        DateTruncBinNotInteger = 5_439_017,
        /// `$dateTrunc`: bin size is not positive.
        DateTruncBinNotPositive = 5_439_018,
        /// `$dateFromParts`: the argument is no object.
        DateFromPartsNotObject = 40_519,
        /// `$dateFromParts`: unknown argument.
        DateFromPartsUnknownArgument = 40_518,
        /// `$dateFromParts`: neither year nor isoWeekYear.
        DateFromPartsWithoutYear = 40_516,
        /// `$dateFromParts`: calendar and ISO parts mixed.
        DateFromPartsMixed = 40_489,
        /// `$dateFromParts`: a part that is no integer.
        DatePartNotInteger = 40_515,
        /// `$dateFromParts`: a year outside 1 to 9999.
        DatePartYearOutOfRange = 40_523,
        /// `$dateFromParts`: another part out of range.
        DatePartOutOfRange = 31_034,
        /// `$dateToParts`: the argument is no object.
        DateToPartsNotObject = 40_524,
        /// `$dateToParts`: unknown argument.
        DateToPartsUnknownArgument = 40_520,
        /// `$dateToParts`: date is missing.
        DateToPartsWithoutDate = 40_522,
        /// `$dateToParts`: iso8601 is no boolean.
        DateToPartsIsoNotBoolean = 40_521,
        /// `$meta` of something that is no string.
        MetaNotString = 17_307,
        /// `$meta` of a name that there is not.
        UnknownMeta = 17_308,
        /// `$meta` of a figure that no stage has made.
        MetaNotAvailable = 40_218,
        /// `$$SEARCH_META` without a search.
        SearchMetaNotAvailable = 6_347_903,
        /// `$bsonSize` of something that is no object.
        BsonSizeNotObject = 31_393,
        /// `$binarySize` of something that is neither string nor binary.
        BinarySizeNotBinary = 51_276,
        /// `$firstN` and its kin: its argument is no object.
        NNotObject = 5_787_801,
        /// `$firstN` and its kin: n is missing.
        NWithoutN = 5_787_906,
        /// `$firstN` and its kin: input is missing.
        NWithoutInput = 5_787_907,
        /// `$firstN` and its kin: n is no integer.
        NNotInteger = 5_787_903,
        /// `$firstN` and its kin: n is not positive.
        NNotPositive = 5_787_908,
        /// `$firstN` and its kin: an unknown argument.
        NUnknownArgument = 5_787_901,
        /// `$firstN` and its kin over something that is no array.
        NInputNotArray = 5_788_200,
        /// `$firstN` and its kin: n is no number.
        NNotNumber = 5_787_902,
        /// `$top` and its kin: its argument is no object.
        TopNotObject = 5_788_001,
        /// `$top` and its kin: an unknown argument.
        TopUnknownArgument = 5_788_002,
        /// `$top` and its kin: n is missing.
        TopWithoutN = 5_788_003,
        /// `$top` and its kin: output is missing.
        TopWithoutOutput = 5_788_004,
        /// `$top` and its kin: sortBy is missing.
        TopWithoutSortBy = 5_788_005,
        /// An argument that has to be an object.
        ExpectedObject = 10_065,
        /// `$rand` with an argument.
        RandArguments = 3_040_501,
        /// `$median` whose argument is no object.
        MedianNotObject = 7_436_100,
        /// `$percentile` whose argument is no object.
        PercentileNotObject = 7_429_703,
        /// `$percentile`: p is not constant.
        PercentileRanksNotConstant = 7_750_300,
        /// `$percentile`: p is no array, or an empty one.
        PercentileRanksNotArray = 7_750_301,
        /// `$percentile`: an element of p is no number.
        PercentileRankNotNumber = 7_750_302,
        /// `$percentile`: an element of p is outside 0 to 1.
        PercentileRankOutOfRange = 7_750_303,
        /// `$integral` of something that is no point.
        IntegralBadInput = 5_423_900,
        /// `$integral` with a unit along something that is no date.
        IntegralWantsDates = 5_423_901,
        /// `$integral` without a unit along dates.
        IntegralWantsNumbers = 5_423_902,
        /// A variable of the system that has no value here.
        VariableNotAvailable = 51_144,
        /// A computed string as long as a document may be.
        TextTooLong = 16_493,
        /// `$tsSecond` of something that is no timestamp.
        TsSecondNotTimestamp = 5_687_301,
        /// `$tsIncrement` of something that is no timestamp.
        TsIncrementNotTimestamp = 5_687_302,
        /// `$hash` of something that is neither string nor binary data.
        HashBadInput = 10_754_000,
        /// `$hash` by an algorithm that is no string.
        HashAlgorithmNotString = 10_754_001,
        /// `$hash` by an algorithm that there is not.
        HashUnknownAlgorithm = 10_754_002,
    }
}
