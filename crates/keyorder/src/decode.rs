//! Key bytes back to values, for queries that an index answers without the document.

use pando_document::{
    Binary, DbPointer, Document, JavaScriptWithScope, NESTING_MAX, ObjectId, Regex, Timestamp, Value,
};

use crate::decode_number::{number_value, read_number};
use crate::reader::Reader;
use crate::type_bits::TypeBitsReader;
use crate::{DecodeError, Direction, lead_byte};

/// The values of a key that has exactly these parts.
///
/// # Errors
/// Bytes that [`encode`](crate::encode()) does not write, or type bits that do not go with them.
pub fn decode(key: &[u8], type_bits: &[u8], directions: &[Direction]) -> Result<Vec<Value>, DecodeError> {
    decode_texts(key, type_bits, directions, Texts::OwnBytes)
}

/// As [`decode`], of a key of [`encode_by`](crate::encode_by()): in the place of strings and symbols stand
/// the hexadecimal digits of the bytes that stand for them.
///
/// # Errors
/// As for [`decode`].
pub fn decode_sort_keys(
    key: &[u8],
    type_bits: &[u8],
    directions: &[Direction],
) -> Result<Vec<Value>, DecodeError> {
    decode_texts(key, type_bits, directions, Texts::SortKeys)
}

/// The bytes of strings in a key.
#[derive(Clone, Copy)]
enum Texts {
    OwnBytes,
    SortKeys,
}

fn decode_texts(
    key: &[u8],
    type_bits: &[u8],
    directions: &[Direction],
    texts: Texts,
) -> Result<Vec<Value>, DecodeError> {
    let mut decoder = Decoder { reader: Reader::new(key), bits: TypeBitsReader::new(type_bits), texts };
    let mut values = Vec::with_capacity(directions.len());
    for direction in directions {
        decoder.reader.set_direction(*direction);
        values.push(decoder.part(0)?);
    }
    match decoder.reader.offset() {
        offset if offset == key.len() => Ok(values),
        offset => Err(DecodeError::TrailingBytes { offset }),
    }
}

struct Decoder<'a> {
    reader: Reader<'a>,
    bits: TypeBitsReader<'a>,
    texts: Texts,
}

impl Decoder<'_> {
    fn part(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let lead = self.reader.byte()?;
        self.after_lead_byte(lead, depth)
    }

    fn after_lead_byte(&mut self, lead: u8, depth: usize) -> Result<Value, DecodeError> {
        Ok(match lead {
            lead_byte::MIN_KEY => Value::MinKey,
            lead_byte::UNDEFINED => Value::Undefined,
            lead_byte::NULL => Value::Null,
            lead if is_number(lead) => {
                let number = read_number(lead, &mut self.reader)?;
                number_value(&number, &mut self.bits, self.reader.offset())?
            }
            lead_byte::STRING if self.bits.bit() => Value::Symbol(self.compared_text()?),
            lead_byte::STRING => Value::String(self.compared_text()?),
            lead_byte::DOCUMENT => Value::Document(self.fields(depth)?),
            lead_byte::ARRAY => Value::Array(self.values(depth)?),
            lead_byte::BINARY => {
                let length = self.reader.length()?;
                let subtype = self.reader.byte()?;
                Value::Binary(Binary { subtype, bytes: self.reader.vec(length)? })
            }
            lead_byte::OBJECT_ID => Value::ObjectId(ObjectId::from_bytes(self.reader.array()?)),
            lead_byte::FALSE => Value::Boolean(false),
            lead_byte::TRUE => Value::Boolean(true),
            lead_byte::DATE_TIME => {
                let unsigned = u64::from_be_bytes(self.reader.array()?) ^ 1 << 63;
                Value::DateTime(unsigned.cast_signed())
            }
            lead_byte::TIMESTAMP => {
                Value::Timestamp(Timestamp::from_u64(u64::from_be_bytes(self.reader.array()?)))
            }
            lead_byte::REGEX => {
                let (pattern, options) = (self.reader.text()?, self.reader.text()?);
                Value::Regex(Regex { pattern, options })
            }
            lead_byte::DB_POINTER => self.db_pointer()?,
            lead_byte::JAVASCRIPT => Value::JavaScript(self.reader.text()?),
            lead_byte::JAVASCRIPT_WITH_SCOPE => {
                let (code, scope) = (self.reader.text()?, self.fields(depth)?);
                Value::JavaScriptWithScope(JavaScriptWithScope { code, scope })
            }
            lead_byte::MAX_KEY => Value::MaxKey,
            lead_byte => {
                return Err(DecodeError::UnknownLeadByte { lead_byte, offset: self.reader.offset() - 1 });
            }
        })
    }

    fn compared_text(&mut self) -> Result<String, DecodeError> {
        match self.texts {
            Texts::OwnBytes => self.reader.text(),
            Texts::SortKeys => {
                let bytes = self.reader.text_bytes()?;
                Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
            }
        }
    }

    fn db_pointer(&mut self) -> Result<Value, DecodeError> {
        let length = self.reader.length()?;
        let namespace = self.reader.vec(length)?;
        let offset = self.reader.offset();
        let namespace = String::from_utf8(namespace).map_err(|_| DecodeError::InvalidUtf8 { offset })?;
        let id = ObjectId::from_bytes(self.reader.array()?);
        Ok(Value::DbPointer(DbPointer { namespace, id }))
    }

    fn fields(&mut self, depth: usize) -> Result<Document, DecodeError> {
        check_depth(depth)?;
        let mut document = Document::new();
        loop {
            let bracket = self.reader.byte()?;
            if bracket == lead_byte::END {
                return Ok(document);
            }
            let name = self.reader.name()?;
            let lead = match bracket {
                lead_byte::NAN | lead_byte::FALSE => self.reader.byte()?,
                _ => bracket,
            };
            if !lead_is_of(lead, bracket) {
                return Err(self.reader.impossible());
            }
            let value = self.after_lead_byte(lead, depth + 1)?;
            document.push(name, value);
        }
    }

    fn values(&mut self, depth: usize) -> Result<Vec<Value>, DecodeError> {
        check_depth(depth)?;
        let mut values = Vec::new();
        loop {
            match self.reader.byte()? {
                lead_byte::END => return Ok(values),
                lead => values.push(self.after_lead_byte(lead, depth + 1)?),
            }
        }
    }
}

pub(crate) fn is_number(lead: u8) -> bool {
    (lead_byte::NAN..=lead_byte::ZERO + lead_byte::INFINITE).contains(&lead)
}

/// Whether a value within a document has the bracket that stands before its name.
pub(crate) fn lead_is_of(lead: u8, bracket: u8) -> bool {
    match bracket {
        lead_byte::NAN => is_number(lead),
        lead_byte::FALSE => matches!(lead, lead_byte::FALSE | lead_byte::TRUE),
        _ => lead == bracket && !is_number(lead) && lead != lead_byte::TRUE,
    }
}

pub(crate) fn check_depth(depth: usize) -> Result<(), DecodeError> {
    if depth > NESTING_MAX { Err(DecodeError::TooDeep { nesting_max: NESTING_MAX }) } else { Ok(()) }
}
