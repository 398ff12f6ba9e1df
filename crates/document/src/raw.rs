//! Documents as they are on the wire and on disk: views over BSON bytes, without copies.
//!
//! A document is `length (i32) | elements | 0`. [`RawDocument`] is to [`RawDocumentBuf`] as `str` is to
//! `String`.
//!
//! # Invariants
//! - The length prefix is the number of bytes, and the last byte is zero: made sure in O(1) by
//!   [`RawDocument::from_bytes`].
//! - The bytes between are not known to be sound: walking them gives `Result`s. After
//!   [`validate`](crate::validate()) has accepted the bytes, those never are errors.
//!
//! # Cost
//! [`RawDocument::get`] and [`RawDocument::iter`] allocate nothing. `get` compares name bytes and skips
//! values unseen; UTF-8 is checked only of what is given out.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use crate::raw_element::{self, Elements};
use crate::{DocumentError, RawValue};

/// Bytes of the empty document.
const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

/// A document's bytes.
#[repr(transparent)]
#[derive(PartialEq, Eq, Hash)]
pub struct RawDocument {
    bytes: [u8],
}

impl RawDocument {
    /// The document that fills `bytes`. Looks at both ends only.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<&RawDocument, DocumentError> {
        let Some(prefix) = bytes.first_chunk().filter(|_| bytes.len() >= EMPTY.len()) else {
            return Err(DocumentError::TooShort { bytes: bytes.len() });
        };
        let declared = i32::from_le_bytes(*prefix);
        if usize::try_from(declared) != Ok(bytes.len()) {
            return Err(DocumentError::LengthMismatch { declared, bytes: bytes.len() });
        }
        if bytes.last() != Some(&0) {
            return Err(DocumentError::NotTerminated);
        }
        Ok(Self::from_checked(bytes))
    }

    /// The view of bytes whose ends are known to be right.
    #[inline]
    fn from_checked(bytes: &[u8]) -> &RawDocument {
        // SAFETY: RawDocument is a transparent wrapper of [u8], so the pointers have the same layout, and the
        // lifetime is that of the argument.
        unsafe { &*(std::ptr::from_ref(bytes) as *const RawDocument) }
    }

    /// The document without fields.
    pub fn empty() -> &'static RawDocument {
        Self::from_checked(&EMPTY)
    }

    /// All bytes, the length prefix included.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The fields in their order. An error ends the walk.
    #[inline]
    pub fn iter(&self) -> RawIter<'_> {
        RawIter { elements: Elements::new(self) }
    }

    /// The fields from one on, which starts at `offset` in the document's bytes, as [`RawIter::offset`] said.
    #[inline]
    pub fn iter_from(&self, offset: usize) -> RawIter<'_> {
        RawIter { elements: Elements::starting_at(self, offset) }
    }

    /// The value of the first field with this name.
    ///
    /// # Errors
    /// Malformed bytes up to that field; behind it nothing is looked at.
    #[inline]
    pub fn get(&self, name: &str) -> Result<Option<RawValue<'_>>, DocumentError> {
        match raw_element::find(self, name.as_bytes()) {
            Some(element) => element?.decode().map(Some),
            None => Ok(None),
        }
    }

    /// Whether there are no fields.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == EMPTY.len()
    }
}

/// The fields of a [`RawDocument`].
#[derive(Clone)]
pub struct RawIter<'a> {
    elements: Elements<'a>,
}

impl<'a> RawIter<'a> {
    /// Steps over the next field and gives the bytes of its name. It costs less than [`Iterator::next`] where
    /// few of the fields are looked into: neither the name nor the value is decoded.
    #[inline]
    pub fn step(&mut self) -> Option<Result<&'a [u8], DocumentError>> {
        Some(self.elements.next_element()?.map(|element| element.name))
    }

    /// Where the next field's first byte stands in the document's bytes: with the offsets before and after
    /// [`Iterator::next`], the bytes of one whole field can be copied as they are.
    #[inline]
    pub fn offset(&self) -> usize {
        self.elements.offset()
    }
}

impl<'a> Iterator for RawIter<'a> {
    type Item = Result<(&'a str, RawValue<'a>), DocumentError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let element = match self.elements.next_element()? {
            Ok(element) => element,
            Err(error) => return Some(Err(error)),
        };
        Some(element.decode_name().and_then(|name| Ok((name, element.decode()?))))
    }
}

impl<'a> IntoIterator for &'a RawDocument {
    type Item = Result<(&'a str, RawValue<'a>), DocumentError>;
    type IntoIter = RawIter<'a>;

    fn into_iter(self) -> RawIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for RawDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for field in self {
            match field {
                Ok((name, value)) => map.entry(&name, &value),
                Err(error) => map.entry(&"(malformed)", &error),
            };
        }
        map.finish()
    }
}

/// An array's bytes: a document whose fields are named "0", "1", … The names are not looked at.
#[repr(transparent)]
#[derive(PartialEq, Eq, Hash)]
pub struct RawArray {
    document: RawDocument,
}

impl RawArray {
    /// The array that fills `bytes`; see [`RawDocument::from_bytes`].
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<&RawArray, DocumentError> {
        RawDocument::from_bytes(bytes).map(Self::from_document)
    }

    /// The document's values as an array; its field names do not matter.
    #[inline]
    pub fn from_document(document: &RawDocument) -> &RawArray {
        // SAFETY: RawArray is a transparent wrapper of RawDocument, and the lifetime is that of the argument.
        unsafe { &*(std::ptr::from_ref(document) as *const RawArray) }
    }

    /// The same bytes as a document with fields "0", "1", …
    #[inline]
    pub fn as_document(&self) -> &RawDocument {
        &self.document
    }

    /// All bytes, the length prefix included.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.document.bytes
    }

    /// The values in their order. An error ends the walk.
    #[inline]
    pub fn iter(&self) -> RawArrayIter<'_> {
        RawArrayIter { elements: Elements::new(&self.document) }
    }

    /// Whether there are no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.document.is_empty()
    }
}

/// The values of a [`RawArray`].
#[derive(Clone)]
pub struct RawArrayIter<'a> {
    elements: Elements<'a>,
}

impl<'a> Iterator for RawArrayIter<'a> {
    type Item = Result<RawValue<'a>, DocumentError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.elements.next_element()?.and_then(|element| element.decode()))
    }
}

impl<'a> IntoIterator for &'a RawArray {
    type Item = Result<RawValue<'a>, DocumentError>;
    type IntoIter = RawArrayIter<'a>;

    fn into_iter(self) -> RawArrayIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for RawArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// A document that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawDocumentBuf {
    bytes: Vec<u8>,
}

impl RawDocumentBuf {
    /// The empty document.
    pub fn new() -> Self {
        Self { bytes: EMPTY.to_vec() }
    }

    /// The document that fills `bytes`; see [`RawDocument::from_bytes`].
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self, DocumentError> {
        RawDocument::from_bytes(&bytes)?;
        Ok(Self { bytes })
    }

    /// All bytes, the length prefix included.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }
}

impl Default for RawDocumentBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for RawDocumentBuf {
    type Target = RawDocument;

    #[inline]
    fn deref(&self) -> &RawDocument {
        RawDocument::from_checked(&self.bytes)
    }
}

impl Borrow<RawDocument> for RawDocumentBuf {
    fn borrow(&self) -> &RawDocument {
        self
    }
}

impl AsRef<RawDocument> for RawDocumentBuf {
    fn as_ref(&self) -> &RawDocument {
        self
    }
}

impl ToOwned for RawDocument {
    type Owned = RawDocumentBuf;

    fn to_owned(&self) -> RawDocumentBuf {
        RawDocumentBuf { bytes: self.bytes.to_vec() }
    }
}

impl From<&RawDocument> for RawDocumentBuf {
    fn from(document: &RawDocument) -> Self {
        document.to_owned()
    }
}

impl<'a> From<&'a RawDocument> for Cow<'a, RawDocument> {
    fn from(document: &'a RawDocument) -> Self {
        Cow::Borrowed(document)
    }
}

impl fmt::Debug for RawDocumentBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
