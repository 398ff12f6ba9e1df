//! Types of columns, for text files: each column keeps one type.
//!
//! A type is named by `--types zip=string,people=int64`, or in the header in the form `zip.string()`. A
//! column without a type has the type that each of its texts looks like, as [`ColumnType::Detected`] says; a
//! file whose column then has both text and numbers is remarked on.

use bson::oid::ObjectId;
use bson::{Binary, Bson, DateTime, Decimal128, spec::BinarySubtype};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A number where the text is one, else text.
    Detected,
    /// Text.
    Text,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A number with a fraction.
    Double,
    /// A decimal number.
    Decimal,
    /// True or false.
    Boolean,
    /// A moment.
    Date,
    /// An ObjectId.
    ObjectId,
    /// Bytes, written in base64.
    Base64,
    /// Bytes, written in hexadecimal.
    Hexadecimal,
}

/// The text is no value of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotOfType;

/// A column and its type, as the command line says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedColumn {
    /// The column.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
}

impl ColumnType {
    /// The names of types on the command line.
    pub const NAMES: &'static str = "auto, string, int32, int64, double, decimal, boolean, date, objectId, binary(base64), \
                                     binary(hex)";

    /// The type of a name, with or without the parentheses that mongoimport wants.
    ///
    /// # Errors
    /// No such type; the message names all.
    pub fn of_name(name: &str) -> Result<ColumnType, String> {
        let lower = name.to_ascii_lowercase();
        Ok(match lower.strip_suffix("()").unwrap_or(&lower) {
            "auto" => ColumnType::Detected,
            "string" | "text" => ColumnType::Text,
            "int32" | "int" => ColumnType::Int32,
            "int64" | "long" => ColumnType::Int64,
            "double" => ColumnType::Double,
            "decimal" => ColumnType::Decimal,
            "boolean" | "bool" => ColumnType::Boolean,
            "date" | "date(iso)" => ColumnType::Date,
            "objectid" => ColumnType::ObjectId,
            "binary" | "binary(base64)" => ColumnType::Base64,
            "binary(hex)" => ColumnType::Hexadecimal,
            other if other.starts_with("date") => {
                return Err(format!(
                    "'{name}': dates are read in ISO 8601 only, as 2020-01-02 or 2020-01-02T03:04:05Z; write the type \
                     as 'date'"
                ));
            }
            _ => return Err(format!("there is no type '{name}'; there are: {}", ColumnType::NAMES)),
        })
    }

    /// The name in a complaint.
    pub(super) const fn label(self) -> &'static str {
        match self {
            ColumnType::Detected | ColumnType::Text => "text",
            ColumnType::Int32 => "whole number of 32 bits",
            ColumnType::Int64 => "whole number of 64 bits",
            ColumnType::Double => "number",
            ColumnType::Decimal => "decimal number",
            ColumnType::Boolean => "true or false",
            ColumnType::Date => "date, such as 2020-01-02 or 2020-01-02T03:04:05Z",
            ColumnType::ObjectId => "ObjectId of 24 hexadecimal digits",
            ColumnType::Base64 => "base64",
            ColumnType::Hexadecimal => "hexadecimal",
        }
    }

    /// The value of a text. An empty text is no value of any type but text.
    pub(super) fn value_of(self, text: &str) -> Result<Option<Bson>, NotOfType> {
        if text.is_empty() && !matches!(self, ColumnType::Detected | ColumnType::Text) {
            return Ok(None);
        }
        let value = match self {
            ColumnType::Detected => Some(detected(text)),
            ColumnType::Text => Some(Bson::String(text.to_owned())),
            ColumnType::Int32 => text.parse().ok().map(Bson::Int32),
            ColumnType::Int64 => text.parse().ok().map(Bson::Int64),
            ColumnType::Double => text.parse().ok().map(Bson::Double),
            ColumnType::Decimal => text.parse::<Decimal128>().ok().map(Bson::Decimal128),
            ColumnType::Boolean => boolean(text).map(Bson::Boolean),
            ColumnType::Date => date(text).map(Bson::DateTime),
            ColumnType::ObjectId => ObjectId::parse_str(text).ok().map(Bson::ObjectId),
            ColumnType::Base64 => Binary::from_base64(text, BinarySubtype::Generic).ok().map(Bson::Binary),
            ColumnType::Hexadecimal => {
                hexadecimal(text).map(|bytes| Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes }))
            }
        };
        value.map(Some).ok_or(NotOfType)
    }
}

/// A number where the text is one. Numbers in another notation (`007`, `+5`) stay text, because they are
/// postal codes or telephone numbers.
fn detected(text: &str) -> Bson {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let begins_as_number = digits.starts_with(|first: char| first.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if !begins_as_number || leading_zero {
        return Bson::String(text.to_owned());
    }
    if let Ok(number) = text.parse::<i32>() {
        Bson::Int32(number)
    } else if let Ok(number) = text.parse::<i64>() {
        Bson::Int64(number)
    } else {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Bson::Double(number),
            _ => Bson::String(text.to_owned()),
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// ISO 8601: a day, or a moment. A moment without a zone is of UTC.
fn date(text: &str) -> Option<DateTime> {
    let text = text.trim().replacen(' ', "T", 1);
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => text,
    };
    let parsed = DateTime::parse_rfc3339_str(&whole);
    parsed.or_else(|_| DateTime::parse_rfc3339_str(format!("{whole}Z"))).ok()
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() % 2 == 1 {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_reads_its_texts_and_refuses_others() {
        let value = |column_type: ColumnType, text: &str| column_type.value_of(text);
        assert_eq!(value(ColumnType::Text, "99"), Ok(Some(Bson::String("99".into()))));
        assert_eq!(value(ColumnType::Text, ""), Ok(Some(Bson::String(String::new()))));
        assert_eq!(value(ColumnType::Int32, "-7"), Ok(Some(Bson::Int32(-7))));
        assert_eq!(value(ColumnType::Int32, "3000000000"), Err(NotOfType));
        assert_eq!(value(ColumnType::Int64, "3000000000"), Ok(Some(Bson::Int64(3_000_000_000))));
        assert_eq!(value(ColumnType::Int64, ""), Ok(None));
        assert_eq!(value(ColumnType::Double, "7"), Ok(Some(Bson::Double(7.0))));
        assert_eq!(value(ColumnType::Boolean, "YES"), Ok(Some(Bson::Boolean(true))));
        assert_eq!(value(ColumnType::Boolean, "maybe"), Err(NotOfType));
        let day = DateTime::from_millis(1_577_923_200_000);
        for text in ["2020-01-02", "2020-01-02 00:00", "2020-01-02T00:00:00", "2020-01-02T01:00:00+01:00"] {
            assert_eq!(value(ColumnType::Date, text), Ok(Some(Bson::DateTime(day))), "{text}");
        }
        assert_eq!(value(ColumnType::Date, "02.01.2020"), Err(NotOfType));
        assert_eq!(value(ColumnType::ObjectId, "short"), Err(NotOfType));
        assert!(matches!(value(ColumnType::Hexadecimal, "00ff"), Ok(Some(Bson::Binary(_)))));
        assert_eq!(value(ColumnType::Hexadecimal, "0g"), Err(NotOfType));
    }

    #[test]
    fn names_of_types_are_those_of_mongoimport_with_and_without_parentheses() {
        assert_eq!(ColumnType::of_name("string()"), Ok(ColumnType::Text));
        assert_eq!(ColumnType::of_name("Int64"), Ok(ColumnType::Int64));
        assert!(ColumnType::of_name("date_go(2006)").unwrap_err().contains("ISO 8601"));
        assert!(ColumnType::of_name("varchar").unwrap_err().contains("int64"));
    }
}
