//! The operators of expressions, a file for each or for a close family, and the table
//! that finds them by name.

mod abs;
mod accumulate;
mod add;
mod array_to_object;
mod bitwise;
mod boolean;
mod ceil_floor;
mod comparison;
mod concat;
mod concat_arrays;
mod cond;
mod convert;
mod date;
mod date_arithmetic;
mod date_diff;
mod date_from_parts;
mod date_from_string;
mod date_parts;
mod date_to_parts;
mod date_to_string;
mod date_trunc;
mod divide;
mod element_at;
mod filter;
mod get_field;
mod hash;
mod if_null;
mod in_array;
mod index_of_array;
mod index_of_text;
mod interval;
mod let_in;
mod letter_case;
mod logarithm;
mod map;
mod merge_objects;
mod meta;
mod modulo;
mod multiply;
mod named;
mod object_to_array;
mod percentile;
mod pow;
mod rand;
mod range;
mod reduce;
mod regex_match;
mod replace_text;
mod reverse_array;
mod round;
mod set_field;
mod sets;
mod sigmoid;
mod size;
mod slice;
mod sort_array;
mod split;
mod sqrt;
mod strcasecmp;
mod string_length;
mod substring;
mod subtract;
mod switch;
mod text;
mod timestamp_parts;
mod to_hashed_index_key;
mod trigonometry;
mod trim;
mod type_of;
mod zip;

use pando_document::RawValue;

// The names that every operator's file needs.
use super::call::{Arity, Call, Definition};
use super::evaluated::{Evaluated, array_of, check_computed_bytes, document_of};
use super::fault::ExpressionFault;
use super::frame::Frame;
use super::integer::{narrowed, truncated};
use super::scope::{ParseScope, check_user_name};
use super::{Expression, Node};
use crate::error::{ErrorCode, QueryError};

pub(crate) use self::date::Unit as TimeUnit;
pub(crate) use self::interval::interval_of;
pub(crate) use self::meta::parse as parse_meta;
pub(crate) use self::percentile::PercentileArguments;
pub(in crate::expression) use self::regex_match::with_compiled_pattern;

/// How an operator's argument is read.
enum Syntax {
    /// A list of expressions, or one alone.
    Listed(&'static Definition),
    /// By a function of its own.
    Special(fn(RawValue<'_>, &ParseScope) -> Result<Expression, QueryError>),
}

/// Operators that run a program in JavaScript, which this server does not.
const OF_JAVASCRIPT: [&str; 2] = ["$function", "$accumulator"];

/// Parses `{name: argument}`.
pub(super) fn parse(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Expression, QueryError> {
    Ok(parse_unwatched(name, argument, scope)?.within(scope))
}

fn parse_unwatched(name: &str, argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    match find(name) {
        Some(Syntax::Listed(definition)) => {
            Ok(Expression::from_call(Call::listed(definition, argument, scope)?))
        }
        Some(Syntax::Special(parse)) => parse(argument, scope),
        None if date_parts::find(name).is_some() => date_parts::parse(name, argument, scope),
        None if OF_JAVASCRIPT.contains(&name) => Err(QueryError::no_javascript(name, "other operators")),
        None => Err(QueryError::new(
            ErrorCode::InvalidPipelineOperator,
            format!("Unrecognized expression '{name}'"),
        )),
    }
}

/// Whether there is an expression of this name.
pub(crate) fn is_known(name: &str) -> bool {
    find(name).is_some() || date_parts::find(name).is_some() || OF_JAVASCRIPT.contains(&name)
}

fn find(name: &str) -> Option<Syntax> {
    if name == "$literal" || name == "$const" {
        return Some(Syntax::Special(|argument, _| Ok(Expression::constant(argument))));
    }
    find_special(name).map(Syntax::Special).or_else(|| find_listed(name).map(Syntax::Listed))
}

/// Operators with named arguments or an argument of their own form.
fn find_special(name: &str) -> Option<fn(RawValue<'_>, &ParseScope) -> Result<Expression, QueryError>> {
    Some(match name {
        "$cond" => cond::parse,
        "$switch" => switch::parse,
        "$filter" => filter::parse,
        "$map" => map::parse,
        "$reduce" => reduce::parse,
        "$let" => let_in::parse,
        "$zip" => zip::parse,
        "$sortArray" => sort_array::parse,
        "$getField" => get_field::parse,
        "$setField" => set_field::parse,
        "$unsetField" => set_field::parse_unset,
        "$trim" => trim::parse_both,
        "$ltrim" => trim::parse_left,
        "$rtrim" => trim::parse_right,
        "$replaceOne" => replace_text::parse_one,
        "$replaceAll" => replace_text::parse_all,
        "$regexMatch" => regex_match::parse_match,
        "$regexFind" => regex_match::parse_find,
        "$regexFindAll" => regex_match::parse_find_all,
        "$convert" => convert::parse,
        "$dateToString" => date_to_string::parse,
        "$dateFromString" => date_from_string::parse,
        "$dateAdd" => date_arithmetic::parse_add,
        "$dateSubtract" => date_arithmetic::parse_subtract,
        "$dateDiff" => date_diff::parse,
        "$dateTrunc" => date_trunc::parse,
        "$dateFromParts" => date_from_parts::parse,
        "$dateToParts" => date_to_parts::parse,
        "$firstN" => accumulate::parse_first_n,
        "$lastN" => accumulate::parse_last_n,
        "$minN" => accumulate::parse_min_n,
        "$maxN" => accumulate::parse_max_n,
        "$median" => percentile::parse_median,
        "$percentile" => percentile::parse_percentile,
        "$rand" => rand::parse,
        "$meta" => meta::parse,
        "$toHashedIndexKey" => to_hashed_index_key::parse,
        "$hash" => hash::parse,
        "$hexHash" => hash::parse_hex,
        "$sigmoid" => sigmoid::parse,
        _ => return None,
    })
}

/// Operators whose arguments stand in a list.
fn find_listed(name: &str) -> Option<&'static Definition> {
    Some(match name {
        "$add" => &add::ADD,
        "$subtract" => &subtract::SUBTRACT,
        "$multiply" => &multiply::MULTIPLY,
        "$divide" => &divide::DIVIDE,
        "$mod" => &modulo::MOD,
        "$abs" => &abs::ABS,
        "$ceil" => &ceil_floor::CEIL,
        "$floor" => &ceil_floor::FLOOR,
        "$round" => &round::ROUND,
        "$trunc" => &round::TRUNC,
        "$sqrt" => &sqrt::SQRT,
        "$pow" => &pow::POW,
        "$exp" => &logarithm::EXP,
        "$ln" => &logarithm::LN,
        "$log" => &logarithm::LOG,
        "$log10" => &logarithm::LOG10,
        "$cmp" => &comparison::CMP,
        "$eq" => &comparison::EQ,
        "$ne" => &comparison::NE,
        "$gt" => &comparison::GT,
        "$gte" => &comparison::GTE,
        "$lt" => &comparison::LT,
        "$lte" => &comparison::LTE,
        "$and" => &boolean::AND,
        "$or" => &boolean::OR,
        "$not" => &boolean::NOT,
        "$ifNull" => &if_null::IF_NULL,
        "$arrayElemAt" => &element_at::ARRAY_ELEM_AT,
        "$first" => &element_at::FIRST,
        "$last" => &element_at::LAST,
        "$concatArrays" => &concat_arrays::CONCAT_ARRAYS,
        "$in" => &in_array::IN,
        "$indexOfArray" => &index_of_array::INDEX_OF_ARRAY,
        "$isArray" => &size::IS_ARRAY,
        "$size" => &size::SIZE,
        "$bsonSize" => &size::BSON_SIZE,
        "$binarySize" => &size::BINARY_SIZE,
        "$slice" => &slice::SLICE,
        "$reverseArray" => &reverse_array::REVERSE_ARRAY,
        "$range" => &range::RANGE,
        "$arrayToObject" => &array_to_object::ARRAY_TO_OBJECT,
        "$objectToArray" => &object_to_array::OBJECT_TO_ARRAY,
        "$mergeObjects" => &merge_objects::MERGE_OBJECTS,
        _ => return find_listed_rest(name),
    })
}

/// The second half of the table: strings, types, sets, accumulators.
fn find_listed_rest(name: &str) -> Option<&'static Definition> {
    Some(match name {
        "$concat" => &concat::CONCAT,
        "$toLower" => &letter_case::TO_LOWER,
        "$toUpper" => &letter_case::TO_UPPER,
        "$substrCP" => &substring::SUBSTR_CP,
        "$substrBytes" | "$substr" => &substring::SUBSTR_BYTES,
        "$split" => &split::SPLIT,
        "$strLenCP" => &string_length::STR_LEN_CP,
        "$strLenBytes" => &string_length::STR_LEN_BYTES,
        "$indexOfCP" => &index_of_text::INDEX_OF_CP,
        "$indexOfBytes" => &index_of_text::INDEX_OF_BYTES,
        "$strcasecmp" => &strcasecmp::STRCASECMP,
        "$type" => &type_of::TYPE,
        "$isNumber" => &type_of::IS_NUMBER,
        "$toString" => &convert::TO_STRING,
        "$toInt" => &convert::TO_INT,
        "$toLong" => &convert::TO_LONG,
        "$toDouble" => &convert::TO_DOUBLE,
        "$toDecimal" => &convert::TO_DECIMAL,
        "$toBool" => &convert::TO_BOOL,
        "$toDate" => &convert::TO_DATE,
        "$toObjectId" => &convert::TO_OBJECT_ID,
        "$toUUID" => &convert::TO_UUID,
        "$bitAnd" => &bitwise::BIT_AND,
        "$bitOr" => &bitwise::BIT_OR,
        "$bitXor" => &bitwise::BIT_XOR,
        "$bitNot" => &bitwise::BIT_NOT,
        "$setUnion" => &sets::SET_UNION,
        "$setIntersection" => &sets::SET_INTERSECTION,
        "$setDifference" => &sets::SET_DIFFERENCE,
        "$setEquals" => &sets::SET_EQUALS,
        "$setIsSubset" => &sets::SET_IS_SUBSET,
        "$anyElementTrue" => &sets::ANY_ELEMENT_TRUE,
        "$allElementsTrue" => &sets::ALL_ELEMENTS_TRUE,
        "$sum" => &accumulate::SUM,
        "$avg" => &accumulate::AVG,
        "$min" => &accumulate::MIN,
        "$max" => &accumulate::MAX,
        "$stdDevPop" => &accumulate::STD_DEV_POP,
        "$stdDevSamp" => &accumulate::STD_DEV_SAMP,
        "$tsSecond" => &timestamp_parts::TS_SECOND,
        "$tsIncrement" => &timestamp_parts::TS_INCREMENT,
        _ => return trigonometry::find(name),
    })
}

/// The one error of operators that take a single number.
fn not_numeric(call: &Call, value: &Evaluated<'_>) -> QueryError {
    ExpressionFault::NotNumeric.error(format!(
        "{} only supports numeric types, not {}",
        call.name(),
        value.type_name()
    ))
}
