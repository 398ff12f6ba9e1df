//! Documents grown from a fuzzer's bytes. Each byte is a decision, so that a small change of the bytes is a
//! small change of the document. When the bytes run out, every decision is the first choice, which ends the
//! growth.

use arbitrary::{Result, Unstructured};
use pando_document::{
    Binary, DbPointer, Decimal128, Document, JavaScriptWithScope, ObjectId, Regex, Timestamp, Value,
};

use crate::words;

/// Levels of documents that are grown: deeper ones are a matter of `document_validate`, which takes any
/// bytes.
const DEPTH_MAX: usize = 6;
/// Most fields of a document and most values of an array.
const FIELDS_MAX: u8 = 5;

/// Whole numbers at which types end.
const INTEGERS: [i64; 10] = [
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    i32::MIN as i64,
    i32::MIN as i64 - 1,
    i64::MAX,
    i64::MIN,
    1 << 53,
    (1 << 53) + 1,
    1 << 62,
    16 * 1024 * 1024,
];
/// Doubles that are easily forgotten.
const DOUBLES: [f64; 10] = [
    0.5,
    -0.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN_POSITIVE,
    9_223_372_036_854_775_808.0,
    1e22,
    0.1,
];

/// A source of documents with certain operators.
pub struct Grower<'g, 'b> {
    bytes: &'g mut Unstructured<'b>,
    operators: &'static [&'static str],
}

impl<'g, 'b> Grower<'g, 'b> {
    /// Grows from these bytes; names and texts are chosen from `operators` as well as from [`words::FIELDS`].
    pub fn new(bytes: &'g mut Unstructured<'b>, operators: &'static [&'static str]) -> Self {
        Self { bytes, operators }
    }

    /// A document.
    pub fn document(&mut self) -> Result<Document> {
        self.fields(0)
    }

    /// A document whose own names are of `names`, and within it anything.
    pub fn document_of(&mut self, names: &[&str]) -> Result<Document> {
        let mut document = Document::new();
        for _ in 0..self.bytes.int_in_range(0..=FIELDS_MAX)? {
            let name = *self.bytes.choose(names)?;
            let value = if self.bytes.ratio(2, 3)? { self.fields(1)?.into() } else { self.value(1)? };
            document.push(name, value);
        }
        Ok(document)
    }

    fn fields(&mut self, depth: usize) -> Result<Document> {
        let mut document = Document::new();
        for _ in 0..self.count(depth)? {
            let name = self.name()?;
            document.push(name, self.value(depth + 1)?);
        }
        Ok(document)
    }

    fn values(&mut self, depth: usize) -> Result<Vec<Value>> {
        (0..self.count(depth)?).map(|_| self.value(depth + 1)).collect()
    }

    fn count(&mut self, depth: usize) -> Result<u8> {
        if depth >= DEPTH_MAX { Ok(0) } else { self.bytes.int_in_range(0..=FIELDS_MAX) }
    }

    fn name(&mut self) -> Result<String> {
        Ok(match self.bytes.int_in_range(0..=9)? {
            0..5 => (*self.bytes.choose(words::FIELDS)?).to_owned(),
            5..8 if !self.operators.is_empty() => (*self.bytes.choose(self.operators)?).to_owned(),
            5..9 => format!("{}.{}", self.bytes.choose(words::FIELDS)?, self.bytes.choose(words::FIELDS)?),
            _ => self.c_text()?,
        })
    }

    /// Text that may be anything, a reference (`$a`) more often than chance would have it.
    fn text(&mut self) -> Result<String> {
        Ok(match self.bytes.int_in_range(0..=9)? {
            0..3 => format!("${}", self.name()?),
            3..5 => (*self.bytes.choose(words::TEXTS)?).to_owned(),
            5..8 => self.name()?,
            _ => self.bytes.arbitrary::<&str>()?.chars().take(20).collect(),
        })
    }

    /// Text without NUL, as names and patterns are.
    fn c_text(&mut self) -> Result<String> {
        Ok(self.bytes.arbitrary::<&str>()?.chars().filter(|c| *c != '\0').take(12).collect())
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        Ok(match self.bytes.int_in_range(0..=31)? {
            0..4 => Value::Int32(self.bytes.arbitrary::<i8>()?.into()),
            4..10 => Value::Document(self.fields(depth)?),
            10..14 => Value::Array(self.values(depth)?),
            14..18 => Value::String(self.text()?),
            18..22 => self.number()?,
            22 => Value::Boolean(self.bytes.arbitrary()?),
            23 => Value::Null,
            _ => self.rarity(depth)?,
        })
    }

    fn number(&mut self) -> Result<Value> {
        Ok(match self.bytes.int_in_range(0..=7)? {
            0 => Value::Int64(self.bytes.arbitrary::<i8>()?.into()),
            1 => Value::Double(f64::from(self.bytes.arbitrary::<i8>()?) / 4.0),
            2 => Value::Int64(*self.bytes.choose(&INTEGERS)?),
            3 => Value::Double(*self.bytes.choose(&DOUBLES)?),
            4 => Value::Int32(*self.bytes.choose(&INTEGERS)? as i32),
            5 => Value::Double(self.bytes.arbitrary()?),
            6 => Value::Int64(self.bytes.arbitrary()?),
            _ => Value::Decimal128(Decimal128::from_le_bytes(self.bytes.arbitrary()?)),
        })
    }

    fn rarity(&mut self, depth: usize) -> Result<Value> {
        Ok(match self.bytes.int_in_range(0..=12)? {
            0 => Value::Regex(Regex { pattern: self.pattern()?, options: self.c_text()? }),
            1 => Value::Binary(Binary {
                subtype: self.bytes.arbitrary::<u8>()? % 8,
                bytes: self.bytes.arbitrary::<&[u8]>()?.iter().copied().take(300).collect(),
            }),
            2 => Value::ObjectId(ObjectId::from_bytes(self.bytes.arbitrary()?)),
            3 => Value::DateTime(self.bytes.arbitrary()?),
            4 => Value::Timestamp(Timestamp::from_u64(self.bytes.arbitrary()?)),
            5 => Value::MinKey,
            6 => Value::MaxKey,
            7 => Value::Undefined,
            8 => Value::Symbol(self.text()?),
            9 => Value::JavaScript(self.text()?),
            10 => {
                let scope = self.fields(depth)?;
                Value::JavaScriptWithScope(JavaScriptWithScope { code: self.text()?, scope })
            }
            11 => Value::DbPointer(DbPointer {
                namespace: self.text()?,
                id: ObjectId::from_bytes(self.bytes.arbitrary()?),
            }),
            _ => Value::DateTime(self.bytes.arbitrary::<i16>()?.into()),
        })
    }

    fn pattern(&mut self) -> Result<String> {
        match self.bytes.int_in_range(0..=2)? {
            0 => Ok((*self.bytes.choose(words::PATTERNS)?).to_owned()),
            _ => self.c_text(),
        }
    }
}
