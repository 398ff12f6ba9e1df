//! `$convert` and its short forms `$toInt`, `$toString`, …: a value as another type.
//!
//! Null and missing become null (or `onNull`). A value that cannot be converted is an error (or `onError`).
//! `to` is a type, or `{type, subtype}`. `format`, `byteOrder` and `base` say how binary data and numbers are
//! written.

mod binary;

use pando_document::{Decimal128, DoubleDigits, ElementType, Number, ObjectId, RawBinary, RawValue};

use self::binary::{ByteOrder, Format};
use super::named::Names;
use super::text::{date_text, double_text};
use super::{
    Arity, Call, Definition, ErrorCode, Evaluated, Expression, ExpressionFault, Frame, ParseScope,
    QueryError, truncated,
};
use crate::date::calendar;

/// Arguments: input, to, onError, onNull, format, byteOrder, base.
static CONVERT: Definition = Definition { name: "$convert", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$convert",
    names: &["input", "to", "onError", "onNull", "format", "byteOrder", "base"],
    required: &[("to", ErrorCode::FailedToParse), ("input", ErrorCode::FailedToParse)],
    not_object: ErrorCode::FailedToParse,
    unknown: ErrorCode::FailedToParse,
};

macro_rules! short_forms {
    ($($constant:ident $name:literal $target:ident,)+) => {
        $(
            pub(super) static $constant: Definition = Definition {
                name: $name,
                arity: Arity::Single(ExpressionFault::ConversionNotUnary),
                run: |call, frame| {
                    let value = call.argument(0, frame)?;
                    if value.is_nullish() {
                        return Ok(Evaluated::NULL);
                    }
                    convert(value, &Target::of(ElementType::$target))
                },
            };
        )+
    };
}

short_forms! {
    TO_STRING "$toString" String,
    TO_INT "$toInt" Int32,
    TO_LONG "$toLong" Int64,
    TO_DOUBLE "$toDouble" Double,
    TO_DECIMAL "$toDecimal" Decimal128,
    TO_BOOL "$toBool" Boolean,
    TO_DATE "$toDate" DateTime,
    TO_OBJECT_ID "$toObjectId" ObjectId,
}

pub(super) static TO_UUID: Definition = Definition {
    name: "$toUUID",
    arity: Arity::Single(ExpressionFault::ConversionNotUnary),
    run: run_to_uuid,
};

/// The binary subtype of UUIDs.
const UUID_SUBTYPE: u8 = 4;

fn run_to_uuid<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    match value.raw() {
        _ if value.is_nullish() => Ok(Evaluated::NULL),
        Some(RawValue::Binary(binary)) if binary.subtype == UUID_SUBTYPE => Ok(value),
        Some(RawValue::String(text)) => {
            let Some(bytes) = uuid_bytes(text) else {
                return Err(failure(format!("Input string is not a valid UUID: {text}")));
            };
            Ok(Evaluated::owned(RawValue::Binary(RawBinary { subtype: UUID_SUBTYPE, bytes: &bytes })))
        }
        _ => Err(unsupported(value.raw_or_null(), ElementType::Binary)),
    }
}

/// The bytes of a UUID written as 8-4-4-4-12 hexadecimal digits.
fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != 36 {
        return None;
    }
    let (mut bytes, mut digits) = ([0; 16], 0);
    for (at, byte) in text.bytes().enumerate() {
        if HYPHENS.contains(&at) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = u8::try_from(char::from(byte).to_digit(16)?).ok()?;
        bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
        digits += 1;
    }
    Some(bytes)
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&CONVERT, argument, scope)
}

/// The type to convert to, and how.
struct Target {
    element_type: ElementType,
    /// Of binary data.
    subtype: u8,
    format: Option<Format>,
    /// Of a number's bytes. Without it numbers and binary data are not converted, as before MongoDB 8.1.
    order: Option<ByteOrder>,
    /// Of numbers as text; `None` for ten, fractions included.
    base: Option<u32>,
}

impl Target {
    fn of(element_type: ElementType) -> Target {
        Target { element_type, subtype: 0, format: None, order: None, base: None }
    }
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let to = call.argument(1, frame)?;
    let target = if to.is_nullish() { None } else { Some(parse_target(&to)?) };
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return if call.has(3) { call.argument(3, frame) } else { Ok(Evaluated::NULL) };
    }
    let Some(mut target) = target else { return Ok(Evaluated::NULL) };
    if call.has(4) || call.has(5) || call.has(6) {
        let Some(written) = with_writing(call, target, frame)? else { return Ok(Evaluated::NULL) };
        target = written;
    }
    match convert(value, &target) {
        Err(error) if error.code() == Some(ErrorCode::ConversionFailure) && call.has(2) => {
            call.argument(2, frame)
        }
        converted => converted,
    }
}

/// The target with the arguments that say how values are written; `None` where one of them is null.
fn with_writing<'a>(
    call: &'a Call,
    mut target: Target,
    frame: &mut Frame<'a>,
) -> Result<Option<Target>, QueryError> {
    let wrong = |name: &str, value: &Evaluated<'_>| {
        let found = value.shell_text();
        QueryError::bad_value(format!("$convert got an invalid '{name}': {found}"))
    };
    if call.has(4) {
        let format = call.argument(4, frame)?;
        if format.is_nullish() {
            return Ok(None);
        }
        let known = format.as_str().and_then(Format::of);
        target.format = Some(known.ok_or_else(|| wrong("format", &format))?);
    }
    if call.has(5) {
        let order = call.argument(5, frame)?;
        if !order.is_nullish() {
            let known = order.as_str().and_then(ByteOrder::of);
            target.order = Some(known.ok_or_else(|| wrong("byteOrder", &order))?);
        }
    }
    if call.has(6) {
        let base = call.argument(6, frame)?;
        if !base.is_nullish() {
            let whole = base.as_number().and_then(|number| number.to_i64_exact());
            target.base = match whole {
                Some(whole @ (2 | 8 | 10 | 16)) => u32::try_from(whole).ok(),
                _ => return Err(wrong("base", &base)),
            };
        }
    }
    Ok(Some(target))
}

fn parse_target(to: &Evaluated<'_>) -> Result<Target, QueryError> {
    let Some(document) = to.as_document() else { return Ok(Target::of(parse_type(to)?)) };
    let (mut target, mut has_type) = (Target::of(ElementType::Null), false);
    for field in document.iter() {
        match field? {
            ("type", value) => {
                (target.element_type, has_type) = (parse_type(&Evaluated::Raw(value))?, true);
            }
            ("subtype", value) => {
                let subtype = value.as_i64_exact().and_then(|subtype| u8::try_from(subtype).ok());
                target.subtype = subtype.ok_or_else(|| {
                    QueryError::bad_value("In $convert, the 'subtype' of 'to' must be a byte")
                })?;
            }
            (name, _) => {
                return Err(QueryError::failed_to_parse(format!(
                    "In $convert, 'to' has an unknown field: {name}"
                )));
            }
        }
    }
    if !has_type {
        return Err(QueryError::failed_to_parse("In $convert, an object as 'to' needs a 'type'"));
    }
    Ok(target)
}

fn parse_type(to: &Evaluated<'_>) -> Result<ElementType, QueryError> {
    // The number of no type, to which nothing is converted: as nothing is to undefined.
    if to.as_str() == Some("missing") || to.as_number().is_some_and(|number| number.is_zero()) {
        return Ok(ElementType::Undefined);
    }
    if let Some(name) = to.as_str() {
        return ElementType::from_alias(name)
            .ok_or_else(|| QueryError::bad_value(format!("Unknown type name: {name}")));
    }
    let Some(number) = to.as_number() else {
        return Err(QueryError::failed_to_parse(format!(
            "$convert's 'to' argument must be a string or number, but is {}",
            to.type_name()
        )));
    };
    let Some(whole) = number.to_i64_exact() else {
        return Err(QueryError::failed_to_parse("In $convert, numeric 'to' argument is not an integer"));
    };
    let byte = match whole {
        -1 => Some(ElementType::MinKey.as_byte()),
        whole => u8::try_from(whole).ok().filter(|byte| *byte <= 0x7F),
    };
    byte.and_then(ElementType::from_byte).ok_or_else(|| {
        QueryError::failed_to_parse(format!(
            "In $convert, numeric value for 'to' does not correspond to a BSON type: {whole}"
        ))
    })
}

/// The value is neither missing nor null.
fn convert<'a>(value: Evaluated<'a>, to: &Target) -> Result<Evaluated<'a>, QueryError> {
    let target = to.element_type;
    if value.element_type() == Some(target) && is_target(target) {
        return Ok(value);
    }
    let raw = value.raw_or_null();
    if let (
        ElementType::Int32 | ElementType::Int64 | ElementType::Double,
        RawValue::Binary(bytes),
        Some(order),
    ) = (target, raw, to.order)
    {
        return binary::to_number(bytes, target, order).map(Evaluated::owned);
    }
    let converted = match target {
        ElementType::Binary => return binary::to_binary(raw, to.subtype, to.format, to.order),
        ElementType::String => {
            if let (RawValue::Binary(binary), Some(format)) = (raw, to.format) {
                return binary::to_text(binary, format).map(Evaluated::Text);
            }
            if let (Some(base), Some(whole)) = (to.base, raw.as_i64_exact()) {
                return Ok(Evaluated::Text(binary::text_of_whole(whole, base)));
            }
            if let RawValue::DateTime(millis) = raw {
                return date_text(millis).map(Evaluated::Text);
            }
            return to_text(raw).map(Evaluated::Text).ok_or_else(|| unsupported(raw, target));
        }
        ElementType::Boolean => RawValue::Boolean(raw.to_bool()),
        ElementType::Int32 => {
            let whole = to_whole(raw, to)?;
            RawValue::Int32(i32::try_from(whole).map_err(|_| overflow(raw))?)
        }
        ElementType::Int64 => match raw {
            RawValue::DateTime(millis) => RawValue::Int64(millis),
            other => RawValue::Int64(to_whole(other, to)?),
        },
        ElementType::Double => RawValue::Double(to_double(raw)?),
        ElementType::Decimal128 => RawValue::Decimal128(to_decimal(raw)?),
        ElementType::DateTime => RawValue::DateTime(to_date(raw)?),
        ElementType::ObjectId => RawValue::ObjectId(to_object_id(raw)?),
        _ => return Err(unsupported(raw, target)),
    };
    Ok(Evaluated::owned(converted))
}

/// Whether values of a type can be asked for at all.
fn is_target(target: ElementType) -> bool {
    use ElementType as T;
    matches!(
        target,
        T::String | T::Boolean | T::Int32 | T::Int64 | T::Double | T::Decimal128 | T::DateTime | T::ObjectId
    )
}

fn failure(message: String) -> QueryError {
    QueryError::new(ErrorCode::ConversionFailure, message)
}

fn unsupported(value: RawValue<'_>, target: ElementType) -> QueryError {
    failure(format!(
        "Unsupported conversion from {} to {} in $convert with no onError value",
        value.element_type().alias(),
        target.alias()
    ))
}

fn overflow(value: RawValue<'_>) -> QueryError {
    failure(format!(
        "Conversion would overflow target type in $convert with no onError value: {}",
        to_text(value).unwrap_or_default()
    ))
}

fn malformed(text: &str, why: &str) -> QueryError {
    failure(format!("Failed to parse number '{text}' in $convert with no onError value: {why}"))
}

fn to_text(value: RawValue<'_>) -> Option<String> {
    Some(match value {
        RawValue::Int32(number) => number.to_string(),
        RawValue::Int64(number) => number.to_string(),
        RawValue::Double(number) => double_text(number),
        RawValue::Decimal128(number) => number.to_string(),
        RawValue::Boolean(flag) => flag.to_string(),
        RawValue::DateTime(millis) => calendar::iso_text(millis),
        RawValue::ObjectId(id) => id.to_hex(),
        RawValue::String(text) => text.to_owned(),
        _ => return None,
    })
}

fn to_whole(value: RawValue<'_>, to: &Target) -> Result<i64, QueryError> {
    let target = to.element_type;
    match (value, to.base) {
        (RawValue::Boolean(flag), _) => Ok(i64::from(flag)),
        (RawValue::String(text), Some(base)) => binary::whole_of_text(text, base),
        (RawValue::String(text), None) => parse_whole(text),
        (other, _) => {
            let number = Number::from_value(other).ok_or_else(|| unsupported(other, target))?;
            if number.is_nan() {
                return Err(failure(
                    "Attempt to convert NaN value to integer type in $convert with no onError value"
                        .to_owned(),
                ));
            }
            if number.to_f64().is_infinite() {
                return Err(failure(
                    "Attempt to convert infinity value to integer type in $convert with no onError value"
                        .to_owned(),
                ));
            }
            truncated(number).ok_or_else(|| overflow(other))
        }
    }
}

fn parse_whole(text: &str) -> Result<i64, QueryError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.starts_with("0x") || digits.starts_with("0X") {
        return Err(failure(format!("Illegal hexadecimal input in $convert with no onError value: {text}")));
    }
    if digits.is_empty() {
        return Err(malformed(text, "No digits"));
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed(text, "Did not consume whole string."));
    }
    text.parse().map_err(|_| malformed(text, "Overflow"))
}

fn to_double(value: RawValue<'_>) -> Result<f64, QueryError> {
    match value {
        RawValue::Boolean(flag) => Ok(f64::from(u8::from(flag))),
        RawValue::DateTime(millis) => Ok(millis as f64),
        RawValue::String(text) => {
            let number: f64 = text.parse().map_err(|_| malformed(text, "Did not consume any digits"))?;
            let is_named_infinite = text.to_ascii_lowercase().contains("inf");
            if number.is_infinite() && !is_named_infinite {
                return Err(malformed(text, "Out of range"));
            }
            Ok(number)
        }
        RawValue::Decimal128(decimal) => {
            let number = Number::Decimal128(decimal).to_f64();
            let is_lost = number.is_infinite() && decimal.is_finite() || number == 0.0 && !decimal.is_zero();
            if is_lost { Err(overflow(value)) } else { Ok(number) }
        }
        other => Number::from_value(other)
            .map(Number::to_f64)
            .ok_or_else(|| unsupported(other, ElementType::Double)),
    }
}

fn to_decimal(value: RawValue<'_>) -> Result<Decimal128, QueryError> {
    match value {
        RawValue::Boolean(flag) => Ok(Decimal128::from(i32::from(flag))),
        RawValue::DateTime(millis) => Ok(Decimal128::from(millis)),
        RawValue::String(text) => {
            text.parse().map_err(|_| malformed(text, "Failed to parse string to decimal"))
        }
        other => match Number::from_value(other) {
            Some(number) => Ok(number.to_decimal(DoubleDigits::Fifteen)),
            None => Err(unsupported(other, ElementType::Decimal128)),
        },
    }
}

fn to_date(value: RawValue<'_>) -> Result<i64, QueryError> {
    match value {
        RawValue::ObjectId(id) => Ok(i64::from(id.seconds()) * 1000),
        RawValue::Timestamp(stamp) => Ok(i64::from(stamp.time) * 1000),
        RawValue::String(text) => crate::date::text::parse_utc(text).ok_or_else(|| {
            failure(format!("Error parsing date string '{text}' in $convert with no onError value"))
        }),
        // An int32 is refused: as milliseconds it would reach 25 days.
        RawValue::Int32(_) => Err(unsupported(value, ElementType::DateTime)),
        other => match Number::from_value(other) {
            Some(number) => truncated(number).ok_or_else(|| overflow(other)),
            None => Err(unsupported(other, ElementType::DateTime)),
        },
    }
}

/// Hexadecimal digits of an ObjectId.
const OBJECT_ID_DIGITS: usize = 24;

fn to_object_id(value: RawValue<'_>) -> Result<ObjectId, QueryError> {
    match value {
        RawValue::String(text) => ObjectId::from_hex(text).ok_or_else(|| {
            let wrong = text.chars().find(|letter| !letter.is_ascii_hexdigit());
            let reason = match wrong {
                Some(letter) if text.len() == OBJECT_ID_DIGITS => {
                    format!("Invalid character found in hex string: {letter}")
                }
                _ => format!(
                    "Invalid string length for parsing to OID, expected {OBJECT_ID_DIGITS} but found {}",
                    text.len()
                ),
            };
            failure(format!("Failed to parse objectId '{text}' in $convert with no onError value: {reason}"))
        }),
        other => Err(unsupported(other, ElementType::ObjectId)),
    }
}
