//! The subject of a certificate as text in the form of RFC 2253, by which MongoDB knows users of `$external`.
//!
//! The last part of the name stands first. A part whose type has no short name there is written with the
//! number of its type. `,`, `+`, `"`, `\`, `<`, `>` and `;` have a backslash in front, and so have a space or
//! `#` at the beginning and a space at the end. Bytes that are not printable ASCII are a backslash and two
//! digits.

use std::fmt::Write;

use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{Any, BmpString};
use x509_cert::der::{Decode, Encode, Tag, Tagged};
use x509_cert::name::Name;

/// The short names of types, as OpenSSL and MongoDB write them.
const SHORT_NAMES: [(&str, &str); 21] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// A name as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameText {
    /// The text.
    pub text: String,
    /// The number of its attributes, each of which is a part of the text.
    pub attributes: usize,
}

/// Reads a name in DER; `None` if it is none.
pub fn name_of_der(name: &[u8]) -> Option<NameText> {
    let name = Name::from_der(name).ok()?;
    Some(NameText { text: text(&name), attributes: name.iter_rdn().map(|part| part.iter().count()).sum() })
}

/// The text of a name.
pub(crate) fn text(name: &Name) -> String {
    let parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+")).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue) -> String {
    let number = attribute.oid.to_string();
    let short = SHORT_NAMES.iter().find(|(known, _)| *known == number).map(|(_, short)| *short);
    match value(&attribute.value) {
        Some(value) => format!("{}={}", short.unwrap_or(&number), escaped(&value)),
        None => {
            let mut text = format!("{}=#", short.unwrap_or(&number));
            for byte in attribute.value.to_der().unwrap_or_default() {
                // Writing to a text cannot fail.
                let _ = write!(text, "{byte:02X}");
            }
            text
        }
    }
}

/// The text of a value; `None` if its type is none of texts.
fn value(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::PrintableString | Tag::Utf8String | Tag::Ia5String => {
            String::from_utf8(value.value().to_vec()).ok()
        }
        // Latin-1 in practice, whose bytes are the first characters of Unicode.
        Tag::TeletexString => Some(value.value().iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => value.decode_as::<BmpString>().ok().map(|text| text.to_string()),
        _ => None,
    }
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (place, character) in value.chars().enumerate() {
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => text.extend(['\\', character]),
            '#' if place == 0 => text.push_str("\\#"),
            ' ' if place == 0 || place == last => text.push_str("\\ "),
            ' '..='~' => text.push(character),
            _ => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    // Writing to a text cannot fail.
                    let _ = write!(text, "\\{byte:02X}");
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_separate_parts_are_escaped() {
        assert_eq!(escaped("a,b+c"), "a\\,b\\+c");
        assert_eq!(escaped("#a#"), "\\#a#");
        assert_eq!(escaped(" a b "), "\\ a b\\ ");
        assert_eq!(escaped("\u{1}\u{fc}"), "\\01\\C3\\BC");
        assert_eq!(escaped(""), "");
    }
}
