//! The causes of errors that only expressions have. `commands` gives each its MongoDB code; the comment names it.

use crate::error::{QueryError, QueryErrorKind};

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why an expression does not parse or cannot be evaluated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ExpressionFault {
            $($(#[doc = $doc])+ $name,)+
        }
    };
}

faults! {
    /// A field path with an empty part. Code 15998.
    EmptyPathPart,
    /// A field path that ends with a dot. Code 40353.
    PathEndsWithDot,
    /// A part of a field path begins with `$`. Code 16410.
    DollarInPath,
    /// A part of a field path has a NUL. Code 16411.
    NulInPath,
    /// A field path of no characters. Code 40352.
    EmptyPath,
    /// A member of an object literal with a dot in its name. Code 16412.
    DottedMember,
    /// A number of arguments outside an operator's range. Code 28667.
    ArgumentCountOutOfRange,
    /// `$add` met two dates. Code 16612.
    TwoDatesInAdd,
    /// `$mod` by zero. Code 16610.
    ModByZero,
    /// `$mod` of decimals by zero. Code 5733415.
    DecimalModByZero,
    /// `$mod` of something that is no number. Code 16611.
    ModNotNumeric,
    /// `$abs` of the least int64. Code 28680.
    AbsOfLeastInt64,
    /// An operator of one number met something else. Code 28765.
    NotNumeric,
    /// `$round` or `$trunc` of something that is no number. Code 51081.
    RoundNotNumeric,
    /// A precision that is no integer. Code 51082.
    PrecisionNotInteger,
    /// A precision outside -20 to 100. Code 51083.
    PrecisionOutOfRange,
    /// `$round` leaves the range of int64. Code 51080.
    RoundOverflow,
    /// A value that cannot become an int32 or int64 where one is needed. Code 16004.
    NotConvertibleToLong,
    /// The root of a negative number. Code 28714.
    NegativeRoot,
    /// `$pow` of a base that is no number. Code 28762.
    PowBaseNotNumeric,
    /// `$pow` to an exponent that is no number. Code 28763.
    PowExponentNotNumeric,
    /// 0 to a negative power. Code 28764.
    ZeroToNegativePower,
    /// `$ln` of a number that is not positive. Code 28766.
    LnNotPositive,
    /// `$log10` of a number that is not positive. Code 28761.
    Log10NotPositive,
    /// `$log` of something that is no number. Code 28756.
    LogNotNumeric,
    /// `$log` to a base that is no number. Code 28757.
    LogBaseNotNumeric,
    /// `$log` of a number that is not positive. Code 28758.
    LogNotPositive,
    /// `$log` to a base that is 1 or not positive. Code 28759.
    LogBadBase,
    /// `$cond` with an unknown argument. Code 17083.
    CondUnknownArgument,
    /// `$cond` without `if`. Code 17080.
    CondWithoutIf,
    /// `$cond` without `then`. Code 17081.
    CondWithoutThen,
    /// `$cond` without `else`. Code 17082.
    CondWithoutElse,
    /// `$ifNull` with fewer than two arguments. Code 1257300.
    IfNullTooFew,
    /// `$switch` whose argument is no object. Code 40060.
    SwitchNotObject,
    /// `$switch` whose branches are no array. Code 40061.
    SwitchBranchesNotArray,
    /// A branch that is no object. Code 40062.
    SwitchBranchNotObject,
    /// A branch with an unknown field. Code 40063.
    SwitchBranchUnknownField,
    /// A branch without `case`. Code 40064.
    SwitchBranchWithoutCase,
    /// A branch without `then`. Code 40065.
    SwitchBranchWithoutThen,
    /// No branch applies and there is no default. Code 40066.
    SwitchNoMatch,
    /// All branches are false whatever the document, and there is no default. Code 40069.
    SwitchNeverMatches,
    /// `$switch` with an unknown argument. Code 40067.
    SwitchUnknownArgument,
    /// `$switch` without a branch. Code 40068.
    SwitchNoBranches,
    /// `$arrayElemAt` of something that is no array. Code 28689.
    ElementOfNonArray,
    /// An index that is no number. Code 28690.
    IndexNotNumeric,
    /// An index that is no int32. Code 28691.
    IndexNotInt32,
    /// `$concatArrays` of something that is no array. Code 28664.
    ConcatArraysNotArray,
    /// `$filter` whose argument is no object. Code 28646.
    FilterNotObject,
    /// `$filter` with an unknown argument. Code 28647.
    FilterUnknownArgument,
    /// `$filter` without input. Code 28648.
    FilterWithoutInput,
    /// `$filter` without cond. Code 28650.
    FilterWithoutCond,
    /// `$filter` over something that is no array. Code 28651.
    FilterInputNotArray,
    /// `$filter` with a limit that is no int32. Code 327391.
    FilterLimitNotInt32,
    /// `$filter` with a limit below 1. Code 327392.
    FilterLimitNotPositive,
    /// `$map` whose argument is no object. Code 16878.
    MapNotObject,
    /// `$map` with an unknown argument. Code 16879.
    MapUnknownArgument,
    /// `$map` without input. Code 16880.
    MapWithoutInput,
    /// `$map` without in. Code 16882.
    MapWithoutIn,
    /// `$map` over something that is no array. Code 16883.
    MapInputNotArray,
    /// `$reduce` whose argument is no object. Code 40075.
    ReduceNotObject,
    /// `$reduce` with an unknown argument. Code 40076.
    ReduceUnknownArgument,
    /// `$reduce` without input. Code 40077.
    ReduceWithoutInput,
    /// `$reduce` without initialValue. Code 40078.
    ReduceWithoutInitialValue,
    /// `$reduce` without in. Code 40079.
    ReduceWithoutIn,
    /// `$reduce` over something that is no array. Code 40080.
    ReduceInputNotArray,
    /// `$in` with a second argument that is no array. Code 40081.
    InNotArray,
    /// `$indexOfArray` of something that is no array. Code 40090.
    IndexOfArrayNotArray,
    /// A start or end index that is no integer. Code 40096.
    SearchIndexNotInteger,
    /// A start or end index below zero. Code 40097.
    SearchIndexNegative,
    /// `$indexOfBytes` in something that is no string. Code 40091.
    IndexOfBytesNotString,
    /// The text sought by `$indexOfBytes` is no string. Code 40092.
    IndexOfBytesSoughtNotString,
    /// `$indexOfCP` in something that is no string. Code 40093.
    IndexOfCpNotString,
    /// The text sought by `$indexOfCP` is no string. Code 40094.
    IndexOfCpSoughtNotString,
    /// `$size` of something that is no array. Code 17124.
    SizeNotArray,
    /// `$slice` of something that is no array. Code 28724.
    SliceNotArray,
    /// `$slice` with a second argument that is no number. Code 28725.
    SliceSecondNotNumeric,
    /// `$slice` with a second argument that is no int32. Code 28726.
    SliceSecondNotInt32,
    /// `$slice` with a third argument that is no number. Code 28727.
    SliceThirdNotNumeric,
    /// `$slice` with a third argument that is no int32. Code 28728.
    SliceThirdNotInt32,
    /// `$slice` with a third argument that is not positive. Code 28729.
    SliceThirdNotPositive,
    /// `$reverseArray` of something that is no array. Code 34435.
    ReverseNotArray,
    /// `$range` with a start that is no number. Code 34443.
    RangeStartNotNumeric,
    /// `$range` with a start that is no int32. Code 34444.
    RangeStartNotInt32,
    /// `$range` with an end that is no number. Code 34445.
    RangeEndNotNumeric,
    /// `$range` with an end that is no int32. Code 34446.
    RangeEndNotInt32,
    /// `$range` with a step that is no number. Code 34447.
    RangeStepNotNumeric,
    /// `$range` with a step that is no int32. Code 34448.
    RangeStepNotInt32,
    /// `$range` with a step of zero. Code 34449.
    RangeStepZero,
    /// `$arrayToObject` of something that is no array. Code 40386.
    ToObjectNotArray,
    /// A pair that has not two elements. Code 40397.
    ToObjectPairLength,
    /// A pair whose key is no string. Code 40395.
    ToObjectPairKeyNotString,
    /// An element that is neither pair nor object, first form. Code 40398.
    ToObjectBadFirstElement,
    /// An element that is no object. Code 40391.
    ToObjectElementNotObject,
    /// An object that has not two fields. Code 40392.
    ToObjectFieldCount,
    /// An object without `k` and `v`. Code 40393.
    ToObjectWithoutKeyValue,
    /// `k` is no string. Code 40394.
    ToObjectKeyNotString,
    /// An element that is no pair. Code 40396.
    ToObjectElementNotPair,
    /// The key of a pair has a NUL. Code 4940400.
    ToObjectPairKeyWithNul,
    /// `k` has a NUL. Code 4940401.
    ToObjectKeyWithNul,
    /// `$objectToArray` of something that is no object. Code 40390.
    ToArrayNotObject,
    /// `$zip` whose argument is no object. Code 34460.
    ZipNotObject,
    /// `$zip` whose inputs are no array. Code 34461.
    ZipInputsNotArray,
    /// `$zip` whose defaults are no array. Code 34462.
    ZipDefaultsNotArray,
    /// `$zip` whose useLongestLength is no boolean. Code 34463.
    ZipLongestNotBoolean,
    /// `$zip` with an unknown argument. Code 34464.
    ZipUnknownArgument,
    /// `$zip` without inputs. Code 34465.
    ZipWithoutInputs,
    /// `$zip` with defaults and without useLongestLength. Code 34466.
    ZipDefaultsWithoutLongest,
    /// `$zip` whose defaults are not as many as its inputs. Code 34467.
    ZipDefaultsCount,
    /// `$zip` of something that is no array. Code 34468.
    ZipInputNotArray,
    /// `$sortArray` whose argument is wrong. Code 2942500.
    SortArrayNotObject,
    /// `$sortArray` with an unknown argument. Code 2942501.
    SortArrayUnknownArgument,
    /// `$sortArray` without input. Code 2942502.
    SortArrayWithoutInput,
    /// `$sortArray` without sortBy. Code 2942503.
    SortArrayWithoutSortBy,
    /// `$sortArray` by a malformed pattern. Code 2942505.
    SortArrayBadPattern,
    /// `$sortArray` by a number that is neither 1 nor -1. Code 2942506.
    SortArrayBadDirection,
    /// `$sortArray` by something that is neither number nor object. Code 2942507.
    SortArrayBadSortBy,
    /// `$sortArray` over something that is no array. Code 2942504.
    SortArrayInputNotArray,
    /// `$concat` of something that is no string. Code 16702.
    ConcatNotString,
    /// A value that cannot be a string where one is needed. Code 16007.
    NotConvertibleToString,
    /// `$substrBytes` with a start that is no number. Code 16034.
    SubstrStartNotNumeric,
    /// `$substrBytes` with a length that is no number. Code 16035.
    SubstrLengthNotNumeric,
    /// `$substrBytes` starts within a character. Code 28656.
    SubstrStartsInCharacter,
    /// `$substrBytes` ends within a character. Code 28657.
    SubstrEndsInCharacter,
    /// `$substrBytes` with a negative start. Code 50752.
    SubstrNegativeStart,
    /// `$substrCP` with a start that is no number. Code 34450.
    SubstrCpStartNotNumeric,
    /// `$substrCP` with a start that is no int32. Code 34451.
    SubstrCpStartNotInt32,
    /// `$substrCP` with a length that is no number. Code 34452.
    SubstrCpLengthNotNumeric,
    /// `$substrCP` with a length that is no int32. Code 34453.
    SubstrCpLengthNotInt32,
    /// `$substrCP` with a negative length. Code 34454.
    SubstrCpNegativeLength,
    /// `$substrCP` with a negative start. Code 34455.
    SubstrCpNegativeStart,
    /// `$split` of something that is no string. Code 40085.
    SplitNotString,
    /// `$split` at something that is no string. Code 40086.
    SplitSeparatorNotString,
    /// `$split` at an empty string. Code 40087.
    SplitSeparatorEmpty,
    /// `$strLenBytes` of something that is no string. Code 34473.
    StrLenBytesNotString,
    /// `$strLenCP` of something that is no string. Code 34471.
    StrLenCpNotString,
    /// `$trim` with an unknown argument. Code 50694.
    TrimUnknownArgument,
    /// `$trim` without input. Code 50695.
    TrimWithoutInput,
    /// `$trim` whose argument is no object. Code 50696.
    TrimNotObject,
    /// `$trim` of something that is no string. Code 50699.
    TrimInputNotString,
    /// `$trim` with chars that are no string. Code 50700.
    TrimCharsNotString,
    /// `$replaceOne`/`$replaceAll` whose argument is no object. Code 51751.
    ReplaceNotObject,
    /// `$replaceOne`/`$replaceAll` with an unknown argument. Code 51750.
    ReplaceUnknownArgument,
    /// `$replaceOne`/`$replaceAll` without input. Code 51749.
    ReplaceWithoutInput,
    /// `$replaceOne`/`$replaceAll` without find. Code 51748.
    ReplaceWithoutFind,
    /// `$replaceOne`/`$replaceAll` without replacement. Code 51747.
    ReplaceWithoutReplacement,
    /// An input that is no string. Code 51746.
    ReplaceInputNotString,
    /// A find that is no string. Code 51745.
    ReplaceFindNotString,
    /// A replacement that is no string. Code 51744.
    ReplaceReplacementNotString,
    /// A regular expression operator whose argument is no object. Code 51103.
    RegexNotObject,
    /// A regular expression operator with an unknown argument. Code 31024.
    RegexUnknownArgument,
    /// A regular expression operator without input. Code 31022.
    RegexWithoutInput,
    /// A regular expression operator without regex. Code 31023.
    RegexWithoutRegex,
    /// An input that is no string. Code 51104.
    RegexInputNotString,
    /// A regex that is neither string nor regular expression. Code 51105.
    RegexNotRegex,
    /// Options that are no string. Code 51106.
    RegexOptionsNotString,
    /// Options both in the regular expression and beside it. Code 51107.
    RegexOptionsTwice,
    /// A flag that regular expressions do not have. Code 51108.
    RegexBadFlag,
    /// A pattern with a NUL. Code 51109.
    RegexWithNul,
    /// Options with a NUL. Code 51110.
    RegexOptionsWithNul,
    /// A pattern that does not compile. Code 51111.
    RegexDoesNotCompile,
    /// `$mergeObjects` of something that is no object. Code 40400.
    MergeNotObject,
    /// `$getField` without field. Code 3041702.
    GetFieldWithoutField,
    /// `$getField` without input. Code 3041703.
    GetFieldWithoutInput,
    /// `$getField` with an unknown argument. Code 3041701.
    GetFieldUnknownArgument,
    /// `$getField` with a field that looks like a path. Code 5654600.
    GetFieldIsPath,
    /// `$getField` with a field that is no constant. Code 5654601.
    GetFieldNotConstant,
    /// `$getField` with a field that is no string. Code 5654602.
    GetFieldNotString,
    /// `$setField` whose argument is no object. Code 4161100.
    SetFieldNotObject,
    /// `$setField` with an unknown argument. Code 4161101.
    SetFieldUnknownArgument,
    /// `$setField` without field. Code 4161102.
    SetFieldWithoutField,
    /// `$setField` without value. Code 4161103.
    SetFieldWithoutValue,
    /// `$setField` whose field is no constant. Code 4161106.
    SetFieldNotConstant,
    /// `$setField` whose field is no string. Code 4161107.
    SetFieldNotString,
    /// `$setField` whose field looks like a path. Code 4161108.
    SetFieldIsPath,
    /// `$setField` without input. Code 4161109.
    SetFieldWithoutInput,
    /// `$setField` into something that is no object. Code 4161105.
    SetFieldInputNotObject,
    /// `$let` whose argument is no object. Code 16874.
    LetNotObject,
    /// `$let` with an unknown argument. Code 16875.
    LetUnknownArgument,
    /// `$let` without vars. Code 16876.
    LetWithoutVars,
    /// `$let` without in. Code 16877.
    LetWithoutIn,
    /// `$setEquals` of something that is no array. Code 17044.
    SetEqualsNotArray,
    /// A constant argument of `$setEquals` that is no array. Code 5887502.
    SetEqualsConstantNotArray,
    /// `$setEquals` with fewer than two arguments. Code 17045.
    SetEqualsTooFew,
    /// `$setIntersection` of something that is no array. Code 17047.
    SetIntersectionNotArray,
    /// `$setUnion` of something that is no array. Code 17043.
    SetUnionNotArray,
    /// `$setDifference` from something that is no array. Code 17048.
    SetDifferenceFirstNotArray,
    /// `$setDifference` of something that is no array. Code 17049.
    SetDifferenceSecondNotArray,
    /// `$setIsSubset` of something that is no array. Code 17046.
    SetIsSubsetFirstNotArray,
    /// The same where the second argument is constant. Code 17310.
    SetIsSubsetOfConstantNotArray,
    /// A constant second argument of `$setIsSubset` that is no array. Code 17311.
    SetIsSubsetConstantNotArray,
    /// `$setIsSubset` in something that is no array. Code 17042.
    SetIsSubsetSecondNotArray,
    /// `$anyElementTrue` of something that is no array. Code 17041.
    AnyElementNotArray,
    /// `$allElementsTrue` of something that is no array. Code 17040.
    AllElementsNotArray,
    /// A value where a date is needed. Code 16006.
    NotConvertibleToDate,
    /// A part of a date without `date`. Code 40539.
    DateArgumentMissing,
    /// A part of a date with an unknown argument. Code 40535.
    DateUnknownArgument,
    /// A part of a date of an array that has not one element. Code 40536.
    DateArgumentCount,
    /// A time zone that is no string, for a part of a date. Code 40533.
    TimeZoneNotString,
    /// A time zone that is no string, elsewhere. Code 40517.
    TimeZoneIsNoString,
    /// A time zone that there is not. Code 40485.
    UnknownTimeZone,
    /// `$dateToString` whose argument is no object. Code 18629.
    DateToStringNotObject,
    /// `$dateToString` with an unknown argument. Code 18534.
    DateToStringUnknownArgument,
    /// `$dateToString` without date. Code 18628.
    DateToStringWithoutDate,
    /// `$dateToString` with a format that is no string. Code 18533.
    FormatNotString,
    /// A format that ends within a specifier. Code 18535.
    FormatEndsEarly,
    /// `$toInt` and its kin with another number of arguments than one. Code 50723.
    ConversionNotUnary,
    /// A year that has not four digits. Code 18537.
    DateOutOfRange,
    /// A specifier that there is not. Code 18536.
    UnknownFormatSpecifier,
    /// `$dateFromString` whose argument is no object. Code 40540.
    DateFromStringNotObject,
    /// `$dateFromString` with an unknown argument. Code 40541.
    DateFromStringUnknownArgument,
    /// `$dateFromString` without dateString. Code 40542.
    DateFromStringWithoutText,
    /// `$dateFromString` with a format that is no string. Code 40684.
    DateFromStringFormatNotString,
    /// `$dateAdd` and its kin: the argument is no object. Code 5166400.
    DateArithmeticNotObject,
    /// `$dateAdd` and its kin: unknown argument. Code 5166401.
    DateArithmeticUnknownArgument,
    /// `$dateAdd` and its kin: an argument is missing. Code 5166402.
    DateArithmeticArgumentMissing,
    /// `$dateAdd` and its kin: the date is none. Code 5166403.
    DateArithmeticNotDate,
    /// `$dateAdd` and its kin: the unit is no string. Code 5166404.
    DateArithmeticUnitNotString,
    /// `$dateAdd` and its kin: the amount is no integer. Code 5166405.
    DateArithmeticAmountNotInteger,
    /// `$dateAdd` and its kin: the result is out of range. Code 5166406.
    DateArithmeticOverflow,
    /// `$dateAdd` and its kin: an amount beyond all dates. Code 5976500.
    DateArithmeticAmountTooLarge,
    /// `$dateDiff`: the argument is no object. Code 5166301.
    DateDiffNotObject,
    /// `$dateDiff`: unknown argument. Code 5166302.
    DateDiffUnknownArgument,
    /// `$dateDiff`: startDate is missing. Code 5166303.
    DateDiffWithoutStart,
    /// `$dateDiff`: endDate is missing. Code 5166304.
    DateDiffWithoutEnd,
    /// `$dateDiff`: unit is missing. Code 5166305.
    DateDiffWithoutUnit,
    /// `$dateDiff`: a date is none. Code 5166307.
    DateDiffNotDate,
    /// A unit that is no string. Code 5439013.
    UnitNotString,
    /// A unit that there is not. Code 5439014.
    UnknownUnit,
    /// A start of the week that is no string. Code 5439015.
    WeekStartNotString,
    /// A start of the week that is no day. Code 5439016.
    UnknownWeekStart,
    /// `$dateTrunc`: the argument is no object. Code 5439007.
    DateTruncNotObject,
    /// `$dateTrunc`: unknown argument. Code 5439008.
    DateTruncUnknownArgument,
    /// `$dateTrunc`: date is missing. Code 5439009.
    DateTruncWithoutDate,
    /// `$dateTrunc`: unit is missing. Code 5439010.
    DateTruncWithoutUnit,
    /// `$dateTrunc`: the date is none. Code 5439012.
    DateTruncNotDate,
    /// `$dateTrunc`: bin size is no integer. Code 5439017.
    DateTruncBinNotInteger,
    /// `$dateTrunc`: bin size is not positive. Code 5439018.
    DateTruncBinNotPositive,
    /// `$dateFromParts`: the argument is no object. Code 40519.
    DateFromPartsNotObject,
    /// `$dateFromParts`: unknown argument. Code 40518.
    DateFromPartsUnknownArgument,
    /// `$dateFromParts`: neither year nor isoWeekYear. Code 40516.
    DateFromPartsWithoutYear,
    /// `$dateFromParts`: calendar and ISO parts mixed. Code 40489.
    DateFromPartsMixed,
    /// `$dateFromParts`: a part that is no integer. Code 40515.
    DatePartNotInteger,
    /// `$dateFromParts`: a year outside 1 to 9999. Code 40523.
    DatePartYearOutOfRange,
    /// `$dateFromParts`: another part out of range. Code 31034.
    DatePartOutOfRange,
    /// `$dateToParts`: the argument is no object. Code 40524.
    DateToPartsNotObject,
    /// `$dateToParts`: unknown argument. Code 40520.
    DateToPartsUnknownArgument,
    /// `$dateToParts`: date is missing. Code 40522.
    DateToPartsWithoutDate,
    /// `$dateToParts`: iso8601 is no boolean. Code 40521.
    DateToPartsIsoNotBoolean,
    /// `$bsonSize` of something that is no object. Code 31393.
    BsonSizeNotObject,
    /// `$binarySize` of something that is neither string nor binary. Code 51276.
    BinarySizeNotBinary,
    /// `$firstN` and its kin over something that is no array. Code 5788200.
    NInputNotArray,
    /// `$tsSecond` of something that is no timestamp. Code 5687301.
    TsSecondNotTimestamp,
    /// `$tsIncrement` of something that is no timestamp. Code 5687302.
    TsIncrementNotTimestamp,
}

impl ExpressionFault {
    /// An error of this cause.
    pub fn error(self, message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::Expression(self), message)
    }
}
