//! One element of a document's bytes: type byte, name, value. The walk over elements, and decoding one value.
//!
//! An element is `type byte | name | 0 | value`; the value's length follows from its type and, for the
//! variable ones, from a length at its front. [`Elements`] therefore walks from element to element without
//! looking into values; `decode` looks into one of them. `RawDocument::get` skips with the first and decodes
//! only what it was asked for.

use crate::{
    Decimal128, DocumentError, ElementType, ObjectId, RawArray, RawBinary, RawDbPointer, RawDocument,
    RawJavaScriptWithScope, RawRegex, RawValue, Timestamp,
};

/// An element whose value has its right length and is not yet decoded.
#[derive(Clone, Copy)]
pub(crate) struct RawElement<'a> {
    pub kind: ElementType,
    /// Without its zero byte; not known to be UTF-8.
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// Of the value, in the document that is walked.
    pub offset: usize,
}

/// Walks the elements of a document's bytes. After an error it is at its end.
#[derive(Clone)]
pub(crate) struct Elements<'a> {
    /// The document up to, not including, its last zero byte.
    body: &'a [u8],
    offset: usize,
}

impl<'a> Elements<'a> {
    #[inline]
    pub fn new(document: &'a RawDocument) -> Self {
        let bytes = document.as_bytes();
        Self { body: &bytes[..bytes.len() - 1], offset: 4 }
    }

    /// The walk from the element on that starts at `offset`.
    #[inline]
    pub fn starting_at(document: &'a RawDocument, offset: usize) -> Self {
        Self { offset, ..Self::new(document) }
    }

    /// Where the next element starts.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub fn next_element(&mut self) -> Option<Result<RawElement<'a>, DocumentError>> {
        if self.offset >= self.body.len() {
            return None;
        }
        let element = element_at(self.body, self.offset);
        self.offset = match &element {
            Ok(element) => element.offset + element.value.len(),
            Err(_) => self.body.len(),
        };
        Some(element)
    }
}

/// The element that starts at `offset`, which is within `body` (bytes up to where the elements' document
/// ends).
#[inline]
pub(crate) fn element_at(body: &[u8], offset: usize) -> Result<RawElement<'_>, DocumentError> {
    let type_byte = body[offset];
    let Some(kind) = ElementType::from_byte(type_byte) else {
        return Err(match type_byte {
            0 => DocumentError::EndsEarly { offset },
            _ => DocumentError::UnknownType { type_byte, offset },
        });
    };
    let after_type = &body[offset + 1..];
    let Some(name_bytes) = find_zero(after_type) else {
        return Err(DocumentError::UnterminatedName { offset: offset + 1 });
    };
    let value_offset = offset + 1 + name_bytes + 1;
    let rest = &body[value_offset..];
    match value_length(kind, rest) {
        Some(length) => Ok(RawElement {
            kind,
            name: &after_type[..name_bytes],
            value: &rest[..length],
            offset: value_offset,
        }),
        None => Err(DocumentError::MalformedValue { kind, offset: value_offset }),
    }
}

/// The index of the first zero byte. Names are short, so eight bytes at a time beat a call of a vectorised
/// search.
#[inline]
pub(crate) fn find_zero(bytes: &[u8]) -> Option<usize> {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = first_zero(u64::from_le_bytes(*word)) {
            return Some(index * 8 + at);
        }
    }
    tail.iter().position(|byte| *byte == 0).map(|index| words.len() * 8 + index)
}

/// The first element with this name. Elements before it are stepped over: a name that ends within eight bytes
/// is compared and measured as one word, and a value is as long as a table and at most one length say.
/// Anything unusual goes the way of [`element_at`], which finds the faults.
#[inline]
pub(crate) fn find<'a>(
    document: &'a RawDocument,
    name: &[u8],
) -> Option<Result<RawElement<'a>, DocumentError>> {
    let bytes = document.as_bytes();
    let body = &bytes[..bytes.len() - 1];
    let wanted = Word::of(name);
    let mut offset = 4;
    while offset < body.len() {
        if let Some(next) = step_over(bytes, offset, &wanted) {
            offset = next;
            continue;
        }
        match element_at(body, offset) {
            Ok(element) if element.name == name => return Some(Ok(element)),
            Ok(element) => offset = element.offset + element.value.len(),
            Err(error) => return Some(Err(error)),
        }
    }
    None
}

/// A name of at most seven bytes with its zero byte, as a word.
struct Word {
    bits: u64,
    /// Ones where the name and its zero byte stand; none of a longer name, which no word equals.
    mask: u64,
}

impl Word {
    #[inline]
    fn of(name: &[u8]) -> Word {
        let mut bytes = [0; 8];
        match bytes.get_mut(..name.len()) {
            Some(start) if name.len() < 8 => {
                start.copy_from_slice(name);
                Word { bits: u64::from_le_bytes(bytes), mask: u64::MAX >> (56 - 8 * name.len()) }
            }
            _ => Word { bits: u64::MAX, mask: 0 },
        }
    }

    #[inline]
    fn is_at_the_start_of(&self, word: u64) -> bool {
        word & self.mask == self.bits
    }
}

/// The end of the element at `offset`; `None` where it may have the name, or is not a plain one.
#[inline]
fn step_over(bytes: &[u8], offset: usize, wanted: &Word) -> Option<usize> {
    let (kind, rest) = bytes.get(offset..)?.split_first()?;
    let word = u64::from_le_bytes(*rest.first_chunk()?);
    if wanted.is_at_the_start_of(word) {
        return None;
    }
    let name = match first_zero(word) {
        Some(name) => name,
        // Both names are longer than a word, and may be one.
        None if wanted.mask == 0 => return None,
        None => find_zero(rest)?,
    };
    let value = name + 1;
    let length = match *FIXED.get(usize::from(*kind))? {
        VARIABLE => match kind {
            0x02 => prefixed(rest.get(value..)?, 1, 4)?,
            0x03 | 0x04 => prefixed(rest.get(value..)?, 5, 0)?,
            _ => return None,
        },
        length => usize::from(length),
    };
    let next = offset + 1 + value + length;
    // Also refuses a value that reaches beyond the document.
    (next < bytes.len()).then_some(next)
}

/// The index of the first zero byte of a word.
#[inline]
fn first_zero(word: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The lowest set bit marks the first zero byte; carries only disturb bits above it.
    let zeros = word.wrapping_sub(ONES) & !word & HIGH;
    (zeros != 0).then(|| zeros.trailing_zeros() as usize / 8)
}

#[inline]
fn int32(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

/// A length at the front that counts what comes after it (`extra` bytes more), at least `least`.
#[inline]
fn prefixed(bytes: &[u8], least: i32, extra: usize) -> Option<usize> {
    let length = int32(bytes).filter(|length| *length >= least)?;
    usize::try_from(length).ok()?.checked_add(extra)
}

/// Bytes of the values of each type byte that have one length; else `VARIABLE`. A table, because the branches
/// of a `match` over mixed types are mispredicted.
const FIXED: [u8; 0x14] = {
    let mut lengths = [VARIABLE; 0x14];
    let fixed = [
        (ElementType::Double, 8),
        (ElementType::DateTime, 8),
        (ElementType::Timestamp, 8),
        (ElementType::Int64, 8),
        (ElementType::Int32, 4),
        (ElementType::ObjectId, 12),
        (ElementType::Boolean, 1),
        (ElementType::Decimal128, 16),
        (ElementType::Undefined, 0),
        (ElementType::Null, 0),
    ];
    let mut index = 0;
    while index < fixed.len() {
        lengths[fixed[index].0 as usize] = fixed[index].1;
        index += 1;
    }
    lengths
};
const VARIABLE: u8 = 0xFF;

/// How many of `bytes` the value takes; `None` if it does not fit or its lengths cannot be.
#[inline]
pub(crate) fn value_length(kind: ElementType, bytes: &[u8]) -> Option<usize> {
    let length = match FIXED.get(usize::from(kind.as_byte())) {
        Some(&VARIABLE) => variable_length(kind, bytes)?,
        Some(length) => usize::from(*length),
        // MinKey and MaxKey.
        None => 0,
    };
    (length <= bytes.len()).then_some(length)
}

#[inline]
fn variable_length(kind: ElementType, bytes: &[u8]) -> Option<usize> {
    match kind {
        ElementType::String | ElementType::JavaScript | ElementType::Symbol => prefixed(bytes, 1, 4),
        ElementType::Document | ElementType::Array => prefixed(bytes, 5, 0),
        ElementType::Binary => prefixed(bytes, 0, 5),
        ElementType::DbPointer => prefixed(bytes, 1, 4 + 12),
        ElementType::JavaScriptWithScope => prefixed(bytes, 4 + 5 + 5, 0),
        ElementType::Regex => {
            let pattern = find_zero(bytes)? + 1;
            Some(pattern + find_zero(&bytes[pattern..])? + 1)
        }
        _ => unreachable!("the other types have one length"),
    }
}

#[inline]
pub(crate) fn text(bytes: &[u8], offset: usize) -> Result<&str, DocumentError> {
    std::str::from_utf8(bytes).map_err(|_| DocumentError::InvalidUtf8 { offset })
}

impl<'a> RawElement<'a> {
    #[inline]
    pub fn decode_name(&self) -> Result<&'a str, DocumentError> {
        text(self.name, self.offset - 1 - self.name.len())
    }

    /// The value. Nested documents are checked at their ends only, as [`RawDocument::from_bytes`] does.
    #[inline]
    pub fn decode(&self) -> Result<RawValue<'a>, DocumentError> {
        let malformed = || DocumentError::MalformedValue { kind: self.kind, offset: self.offset };
        let value = self.value;
        Ok(match self.kind {
            ElementType::Double => RawValue::Double(f64::from_le_bytes(self.fixed())),
            ElementType::String => RawValue::String(self.string()?),
            ElementType::Document => {
                RawValue::Document(RawDocument::from_bytes(value).map_err(|_| malformed())?)
            }
            ElementType::Array => RawValue::Array(RawArray::from_bytes(value).map_err(|_| malformed())?),
            ElementType::Binary => RawValue::Binary(RawBinary { subtype: value[4], bytes: &value[5..] }),
            ElementType::Undefined => RawValue::Undefined,
            ElementType::ObjectId => RawValue::ObjectId(ObjectId::from_bytes(self.fixed())),
            ElementType::Boolean => match value[0] {
                0 => RawValue::Boolean(false),
                1 => RawValue::Boolean(true),
                _ => return Err(malformed()),
            },
            ElementType::DateTime => RawValue::DateTime(i64::from_le_bytes(self.fixed())),
            ElementType::Null => RawValue::Null,
            ElementType::Regex => RawValue::Regex(self.regex()?),
            ElementType::DbPointer => RawValue::DbPointer(self.db_pointer()?),
            ElementType::JavaScript => RawValue::JavaScript(self.string()?),
            ElementType::Symbol => RawValue::Symbol(self.string()?),
            ElementType::JavaScriptWithScope => RawValue::JavaScriptWithScope(self.code_with_scope()?),
            ElementType::Int32 => RawValue::Int32(i32::from_le_bytes(self.fixed())),
            ElementType::Timestamp => {
                RawValue::Timestamp(Timestamp::from_u64(u64::from_le_bytes(self.fixed())))
            }
            ElementType::Int64 => RawValue::Int64(i64::from_le_bytes(self.fixed())),
            ElementType::Decimal128 => RawValue::Decimal128(Decimal128::from_le_bytes(self.fixed())),
            ElementType::MaxKey => RawValue::MaxKey,
            ElementType::MinKey => RawValue::MinKey,
        })
    }

    /// The value's bytes, for types of fixed length; `value_length` has seen to the length.
    #[inline]
    fn fixed<const N: usize>(&self) -> [u8; N] {
        *self.value.first_chunk().expect("value_length gives a type's own length")
    }

    /// `length | text | 0`, filling `bytes`, which start at `offset`.
    #[inline]
    fn string_in(&self, bytes: &'a [u8], offset: usize) -> Result<&'a str, DocumentError> {
        match bytes.get(4..).and_then(|content| content.split_last()) {
            Some((0, content)) => text(content, offset + 4),
            _ => Err(DocumentError::MalformedValue { kind: self.kind, offset }),
        }
    }

    #[inline]
    fn string(&self) -> Result<&'a str, DocumentError> {
        self.string_in(self.value, self.offset)
    }

    fn regex(&self) -> Result<RawRegex<'a>, DocumentError> {
        let end = find_zero(self.value).expect("value_length has found both zero bytes");
        let pattern = text(&self.value[..end], self.offset)?;
        let options = text(&self.value[end + 1..self.value.len() - 1], self.offset + end + 1)?;
        Ok(RawRegex { pattern, options })
    }

    fn db_pointer(&self) -> Result<RawDbPointer<'a>, DocumentError> {
        let (namespace, id) =
            self.value.split_last_chunk().expect("value_length has counted the ObjectId's bytes");
        let namespace = self.string_in(namespace, self.offset)?;
        Ok(RawDbPointer { namespace, id: ObjectId::from_bytes(*id) })
    }

    fn code_with_scope(&self) -> Result<RawJavaScriptWithScope<'a>, DocumentError> {
        let malformed = || DocumentError::MalformedValue { kind: self.kind, offset: self.offset };
        let rest = &self.value[4..];
        let code = value_length(ElementType::String, rest).ok_or_else(malformed)?;
        let (code, scope) = rest.split_at(code);
        let code = self.string_in(code, self.offset + 4)?;
        let scope = RawDocument::from_bytes(scope).map_err(|_| malformed())?;
        Ok(RawJavaScriptWithScope { code, scope })
    }
}
