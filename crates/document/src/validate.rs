//! The one deep check of a document's bytes, made where they enter the server.
//!
//! After [`validate`] has accepted bytes, walking them never gives an error, at any depth:
//! - every type is known, and every value fits its document;
//! - every nested document fills its value exactly;
//! - names and strings are UTF-8, and the byte of a boolean is 0 or 1.
//!
//! Names of array fields need not be 0, 1, …, nor is it an error if a name occurs twice: MongoDB stores both.
//!
//! The walk is a loop over the flat bytes with a stack of ends, so that hostile nesting cannot exhaust the
//! thread's stack.

use crate::raw_element::{element_at, value_length};
use crate::{DocumentError, ElementType, RawDocument};

/// Bytes a stored document may have, as in MongoDB: 16 MiB.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Levels of documents within documents that anything here follows. `validate` may accept deeper documents
/// with more generous limits. A copy into owned values refuses their deeper levels, or leaves them out where
/// it gives no error.
pub const NESTING_MAX: usize = 200;

/// The limits beyond which [`validate`] refuses sound documents.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the whole document.
    pub bytes_max: usize,
    /// Documents and arrays within one another: 0 allows none within the outermost.
    pub nesting_max: usize,
}

impl Limits {
    /// The limits of a document in a collection.
    pub const STORED: Limits = Limits { bytes_max: DOCUMENT_BYTES_MAX, nesting_max: 180 };
    /// The limits of a request or a reply: a stored document of any size and depth, with what a command wraps
    /// around it.
    pub const MESSAGE: Limits = Limits { bytes_max: 48_000_000, nesting_max: NESTING_MAX };
}

/// Checks a whole document.
///
/// # Errors
/// The first fault found, or a limit passed.
pub fn validate(bytes: &[u8], limits: &Limits) -> Result<(), DocumentError> {
    if bytes.len() > limits.bytes_max {
        return Err(DocumentError::TooLarge { bytes: bytes.len(), bytes_max: limits.bytes_max });
    }
    RawDocument::from_bytes(bytes)?;
    // Where the current document's last zero byte stands, and on the stack those of the documents around it.
    let mut end = bytes.len() - 1;
    let mut outer_ends = Vec::new();
    let mut offset = 4;
    loop {
        if offset == end {
            offset += 1;
            match outer_ends.pop() {
                Some(outer_end) => end = outer_end,
                None => return Ok(()),
            }
            continue;
        }
        let element = element_at(&bytes[..end], offset)?;
        element.decode_name()?;
        // Decoding checks the ends of the nested document and, of code with scope, that the scope fills the
        // value.
        element.decode()?;
        let value_end = element.offset + element.value.len();
        let inner = match element.kind {
            ElementType::Document | ElementType::Array => Some(element.offset),
            ElementType::JavaScriptWithScope => {
                let code = value_length(ElementType::String, &element.value[4..]);
                Some(element.offset + 4 + code.expect("decoding has read the code"))
            }
            _ => None,
        };
        offset = value_end;
        if let Some(inner) = inner {
            if outer_ends.len() >= limits.nesting_max {
                return Err(DocumentError::TooDeep { nesting_max: limits.nesting_max });
            }
            outer_ends.push(end);
            end = value_end - 1;
            offset = inner + 4;
        }
    }
}
