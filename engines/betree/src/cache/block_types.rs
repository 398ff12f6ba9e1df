//! The types to which cached blocks decode, as traits that the owner of the cache implements.
//!
//! The cache is monomorphised for one [`BlockTypes`], so that a hit makes no dynamic call.

use bytes::Bytes;

use crate::base::{FormatError, Pointer};
use crate::error::BetreeError;

/// The types of one cache.
pub(crate) trait BlockTypes: 'static {
    type Page: DecodedPage;
    type Directory: DecodedDirectory;
}

/// A page that is read in place. A clone shares the bytes.
pub(crate) trait DecodedPage: Clone + Send + Sync + 'static {
    /// Decodes the uncompressed bytes of a page.
    fn from_block(raw: Bytes) -> Result<Self, FormatError>;

    /// Checks that the page may stand at `pointer`, which leads to pages of one kind.
    fn check_kind(&self, pointer: &Pointer) -> Result<(), FormatError>;

    /// Bytes of memory that the page takes, itself included.
    fn heap_bytes(&self) -> usize;
}

/// A directory of a leaf. The cache shares it by reference counts.
pub(crate) trait DecodedDirectory: Sized + Send + Sync + 'static {
    /// Decodes the uncompressed bytes of a directory.
    fn from_block(raw: &[u8]) -> Result<Self, FormatError>;

    /// Bytes of memory that the directory takes, itself included.
    fn heap_bytes(&self) -> usize;
}

/// The error for a block whose checksum is right, and whose bytes do not decode.
pub(crate) fn format_error(pointer: &Pointer, source: FormatError) -> BetreeError {
    BetreeError::Format { offset: pointer.address().byte_offset(), source }
}

pub(super) fn decode_page<P: DecodedPage>(pointer: &Pointer, raw: Bytes) -> Result<P, BetreeError> {
    let page = P::from_block(raw).map_err(|source| format_error(pointer, source))?;
    page.check_kind(pointer).map_err(|source| format_error(pointer, source))?;
    Ok(page)
}

pub(super) fn decode_directory<D: DecodedDirectory>(pointer: &Pointer, raw: &[u8]) -> Result<D, BetreeError> {
    D::from_block(raw).map_err(|source| format_error(pointer, source))
}
