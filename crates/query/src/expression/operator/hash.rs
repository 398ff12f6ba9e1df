//! `$hash` and `$hexHash`: a hash of a string's or binary data's bytes, as binary data or as capital
//! hexadecimal digits.
//!
//! Hashes are written with their first byte first: that of XXH64 in its canonical form, big-endian.

use std::fmt::Write;

use md5::{Digest, Md5};
use pando_document::{RawBinary, RawValue};
use ring::digest::{SHA256, digest};
use xxhash_rust::xxh64::xxh64;

use super::named::Names;
use super::{
    Arity, Call, Definition, ErrorCode, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
};

/// Arguments: input, algorithm.
static HASH: Definition = Definition { name: "$hash", arity: Arity::Any, run };
static HEX_HASH: Definition = Definition { name: "$hexHash", arity: Arity::Any, run: run_hex };

const fn names_of(operator: &'static str) -> Names {
    Names {
        operator,
        names: &["input", "algorithm"],
        required: &[("input", ErrorCode::FailedToParse), ("algorithm", ErrorCode::FailedToParse)],
        not_object: ErrorCode::FailedToParse,
        unknown: ErrorCode::FailedToParse,
    }
}

static NAMES: Names = names_of("$hash");
static HEX_NAMES: Names = names_of("$hexHash");

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&HASH, argument, scope)
}

pub(super) fn parse_hex(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    HEX_NAMES.call(&HEX_HASH, argument, scope)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let Some(bytes) = hash_of(call, frame)? else { return Ok(Evaluated::NULL) };
    Ok(Evaluated::owned(RawValue::Binary(RawBinary { subtype: 0, bytes: &bytes })))
}

fn run_hex<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let Some(bytes) = hash_of(call, frame)? else { return Ok(Evaluated::NULL) };
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in &bytes {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02X}");
    }
    Ok(Evaluated::owned(RawValue::String(&text)))
}

/// The hash; `None` of a nullish input.
fn hash_of<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Option<Vec<u8>>, QueryError> {
    let name = call.name();
    let input = call.argument(0, frame)?;
    let algorithm = call.argument(1, frame)?;
    if input.is_nullish() {
        return Ok(None);
    }
    let bytes = match input.raw_or_null() {
        RawValue::String(text) => text.as_bytes(),
        RawValue::Binary(binary) => binary.bytes,
        other => {
            return Err(ExpressionFault::HashBadInput.error(format!(
                "{name} requires that 'input' be a valid UTF-8 string or binData, found: {}",
                other.element_type().alias()
            )));
        }
    };
    let Some(algorithm) = algorithm.as_str() else {
        return Err(ExpressionFault::HashAlgorithmNotString.error(format!(
            "{name} requires that 'algorithm' be a string, found: {}",
            algorithm.type_name()
        )));
    };
    match algorithm {
        "md5" => Ok(Some(Md5::digest(bytes).to_vec())),
        "sha256" => Ok(Some(digest(&SHA256, bytes).as_ref().to_vec())),
        "xxh64" => Ok(Some(xxh64(bytes, 0).to_be_bytes().to_vec())),
        other => Err(ExpressionFault::HashUnknownAlgorithm
            .error(format!("{name} knows the algorithms md5, sha256 and xxh64, but not '{other}'"))),
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{RawDocument, Value, doc};

    use super::*;

    fn hex(input: &str, algorithm: &str) -> Result<String, QueryError> {
        let holder = doc! { "e": { "$hexHash": { "input": (input), "algorithm": (algorithm) } } }.to_raw();
        let value = holder.get("e").expect("valid").expect("there");
        let expression = Expression::parse(value, &ParseScope::default())?;
        match expression.evaluate(RawDocument::empty())?.to_value() {
            Some(Value::String(text)) => Ok(text.to_string()),
            other => panic!("{other:?} is no string"),
        }
    }

    /// The hashes that RFC 1321, FIPS 180 and the specification of XXH64 name.
    #[test]
    fn hashes_are_those_of_their_specifications() {
        assert_eq!(hex("", "md5").expect("known"), "D41D8CD98F00B204E9800998ECF8427E");
        assert_eq!(
            hex("abc", "sha256").expect("known"),
            "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"
        );
        assert_eq!(hex("", "xxh64").expect("known"), "EF46DB3751D8E999");
        assert_eq!(hex("abc", "xxh64").expect("known"), "44BC2CF5AD770999");
        assert!(hex("abc", "sha1").is_err());
    }
}
