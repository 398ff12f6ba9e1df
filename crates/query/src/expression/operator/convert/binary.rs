//! Conversions from and to binary data, and numbers written to another base than ten.
//!
//! A string becomes binary data, and binary data a string, in a *format*: `base64`, `base64url`, `hex`,
//! `utf8`, `uuid`, or, for a string, `auto`, which is `uuid` for binary data of subtype 4 and else `base64`.
//! A number becomes its bytes in the order `little` or `big`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pando_document::{ElementType, RawBinary, RawValue};

use super::{UUID_SUBTYPE, failure, unsupported, uuid_bytes};
use crate::error::QueryError;
use crate::expression::Evaluated;

/// A format of binary data as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
    Auto,
}

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl Format {
    /// The format of a name.
    pub fn of(name: &str) -> Option<Format> {
        Some(match name {
            "base64" => Format::Base64,
            "base64url" => Format::Base64Url,
            "hex" => Format::Hex,
            "utf8" => Format::Utf8,
            "uuid" => Format::Uuid,
            "auto" => Format::Auto,
            _ => return None,
        })
    }
}

impl ByteOrder {
    /// The order of a name.
    pub fn of(name: &str) -> Option<ByteOrder> {
        Some(match name {
            "little" => ByteOrder::Little,
            "big" => ByteOrder::Big,
            _ => return None,
        })
    }
}

/// A value as binary data of a subtype.
pub(super) fn to_binary(
    value: RawValue<'_>,
    subtype: u8,
    format: Option<Format>,
    order: Option<ByteOrder>,
) -> Result<Evaluated<'static>, QueryError> {
    let bytes = match (value, order) {
        (RawValue::String(text), _) => {
            let Some(format) = format else {
                return Err(failure(
                    "Format must be specified when converting from 'string' to 'binData'".to_owned(),
                ));
            };
            bytes_of_text(text, format, subtype)?
        }
        (RawValue::Int32(number), Some(order)) => in_order(number.to_le_bytes().to_vec(), order),
        (RawValue::Int64(number), Some(order)) => in_order(number.to_le_bytes().to_vec(), order),
        (RawValue::Double(number), Some(order)) => in_order(number.to_le_bytes().to_vec(), order),
        (RawValue::Binary(binary), _) if binary.subtype == subtype => binary.bytes.to_vec(),
        (RawValue::Binary(binary), _) => {
            return Err(failure(format!(
                "Conversions between different binData subtypes are not supported: from {} to {subtype}",
                binary.subtype
            )));
        }
        (other, _) => return Err(unsupported(other, ElementType::Binary)),
    };
    Ok(Evaluated::owned(RawValue::Binary(RawBinary { subtype, bytes: &bytes })))
}

fn in_order(mut bytes: Vec<u8>, order: ByteOrder) -> Vec<u8> {
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

fn bytes_of_text(text: &str, format: Format, subtype: u8) -> Result<Vec<u8>, QueryError> {
    let bytes = match format {
        Format::Base64 => STANDARD.decode(text).ok(),
        Format::Base64Url => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok(),
        Format::Hex => of_hex(text),
        Format::Utf8 => Some(text.as_bytes().to_vec()),
        Format::Uuid if subtype != UUID_SUBTYPE => {
            return Err(failure(format!("The format 'uuid' needs subtype {UUID_SUBTYPE}, not {subtype}")));
        }
        Format::Uuid => uuid_bytes(text).map(|bytes| bytes.to_vec()),
        Format::Auto => {
            return Err(failure("The format 'auto' is only for conversions to a string".to_owned()));
        }
    };
    bytes.ok_or_else(|| failure(format!("Input string is not in the format of $convert: {text}")))
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| if let [high, low] = pair { Some(digit(high)? << 4 | digit(low)?) } else { None })
        .collect()
}

/// Binary data as text.
pub(super) fn to_text(binary: RawBinary<'_>, format: Format) -> Result<String, QueryError> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    match format {
        Format::Base64 => Ok(STANDARD.encode(binary.bytes)),
        Format::Base64Url => Ok(URL_SAFE_NO_PAD.encode(binary.bytes)),
        Format::Hex => Ok(hex(binary.bytes)),
        Format::Utf8 => String::from_utf8(binary.bytes.to_vec())
            .map_err(|_| failure("The binary data are not valid UTF-8".to_owned())),
        Format::Auto if binary.subtype == UUID_SUBTYPE => to_text(binary, Format::Uuid),
        Format::Auto => to_text(binary, Format::Base64),
        Format::Uuid => match <[u8; 16]>::try_from(binary.bytes) {
            Ok(bytes) if binary.subtype == UUID_SUBTYPE => {
                let hex = hex(&bytes).to_lowercase();
                Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
            }
            _ => Err(failure("The binary data are no UUID".to_owned())),
        },
    }
}

/// The number whose bytes these are.
pub(super) fn to_number(
    binary: RawBinary<'_>,
    target: ElementType,
    order: ByteOrder,
) -> Result<RawValue<'static>, QueryError> {
    let bytes = in_order(binary.bytes.to_vec(), order);
    // The last byte has the sign.
    let whole = || {
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut all = if negative { [0xFF; 8] } else { [0; 8] };
        all[..bytes.len()].copy_from_slice(&bytes);
        i64::from_le_bytes(all)
    };
    Ok(match (target, bytes.as_slice()) {
        (ElementType::Int32, [_] | [_, _] | [_, _, _, _]) => {
            RawValue::Int32(i32::try_from(whole()).unwrap_or_default())
        }
        (ElementType::Int64, [_] | [_, _] | [_, _, _, _]) => RawValue::Int64(whole()),
        (ElementType::Int64, &[a, b, c, d, e, f, g, h]) => {
            RawValue::Int64(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        (ElementType::Double, &[a, b, c, d]) => RawValue::Double(f64::from(f32::from_le_bytes([a, b, c, d]))),
        (ElementType::Double, &[a, b, c, d, e, f, g, h]) => {
            RawValue::Double(f64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        _ => {
            return Err(failure(format!(
                "Failed to convert {} bytes of binary data to {}",
                bytes.len(),
                target.alias()
            )));
        }
    })
}

/// A whole number written to a base.
pub(super) fn whole_of_text(text: &str, base: u32) -> Result<i64, QueryError> {
    let wrong = || failure(format!("Failed to parse number '{text}' to base {base} in $convert"));
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Rust would take a second sign.
    if !digits.starts_with(|first: char| first.is_digit(base)) {
        return Err(wrong());
    }
    i64::from_str_radix(text, base).map_err(|_| wrong())
}

/// A whole number, to a base of 2, 8, 10 or 16.
pub(super) fn text_of_whole(number: i64, base: u32) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let size = number.unsigned_abs();
    match base {
        2 => format!("{sign}{size:b}"),
        8 => format!("{sign}{size:o}"),
        16 => format!("{sign}{size:X}"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_every_format() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
        for (format, subtype) in
            [(Format::Base64, 0), (Format::Base64Url, 0), (Format::Hex, 5), (Format::Uuid, UUID_SUBTYPE)]
        {
            let text = to_text(RawBinary { subtype, bytes: &bytes }, format).expect("it has this format");
            assert_eq!(
                bytes_of_text(&text, format, subtype).expect("just written"),
                bytes,
                "{format:?}: {text}"
            );
        }
        for (text, format) in
            [("x", Format::Hex), ("zz", Format::Hex), ("%", Format::Base64), ("a", Format::Auto)]
        {
            assert!(bytes_of_text(text, format, 0).is_err());
        }
    }

    #[test]
    fn numbers_come_back_from_their_bytes() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for number in [RawValue::Int32(-5), RawValue::Int64(1 << 40), RawValue::Double(2.5)] {
                let binary = to_binary(number, 0, None, Some(order)).expect("numbers have bytes");
                let Some(RawValue::Binary(binary)) = binary.raw() else { panic!("no binary data") };
                let back = to_number(binary, number.element_type(), order).expect("as many bytes");
                assert_eq!(back.to_owned(), number.to_owned());
            }
        }
        let short = RawBinary { subtype: 0, bytes: &[0xFE] };
        assert_eq!(
            to_number(short, ElementType::Int64, ByteOrder::Big).expect("one byte").to_owned(),
            RawValue::Int64(-2).to_owned()
        );
        assert!(to_number(short, ElementType::Double, ByteOrder::Big).is_err());
    }

    #[test]
    fn whole_numbers_are_written_to_a_base_and_read() {
        for base in [2, 8, 10, 16] {
            for number in [0, 1, -255, i64::MAX, i64::MIN] {
                assert_eq!(whole_of_text(&text_of_whole(number, base), base).expect("just written"), number);
            }
            assert!(whole_of_text("--1", base).is_err() && whole_of_text("", base).is_err());
        }
    }
}
