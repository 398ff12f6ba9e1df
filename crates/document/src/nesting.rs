//! How deeply documents and arrays stand in one another, for bytes that nobody has checked yet.
//!
//! Readers of a request follow its levels by recursion, and a hostile one may have millions of them: seven
//! bytes make a level. [`is_nested_beyond`] tells before anybody follows them. It reads types and lengths
//! alone, in a loop, and leaves all other faults to the readers: one of them ends its document here as it
//! does there.

use crate::raw_element::{RawElement, element_at, value_length};
use crate::{ElementType, RawDocument};

/// The shortest level: type, the zero byte of an empty name, length, final zero byte.
const LEVEL_BYTES_MIN: usize = 1 + 1 + 4 + 1;

/// Whether more than `levels` documents and arrays stand in one another within `document`; 0 allows none. Too
/// short a document costs one comparison.
pub fn is_nested_beyond(document: &RawDocument, levels: usize) -> bool {
    let bytes = document.as_bytes();
    if bytes.len() <= levels * LEVEL_BYTES_MIN {
        return false;
    }
    // Where the current document's last zero byte stands, and on the stack those of the documents around it.
    let mut end = bytes.len() - 1;
    let mut outer_ends = Vec::with_capacity(16);
    let mut offset = 4;
    loop {
        let element = if offset < end { element_at(&bytes[..end], offset).ok() } else { None };
        let Some(element) = element else {
            // The end of a document, or a fault in it, which ends it for its readers.
            let Some(outer_end) = outer_ends.pop() else { return false };
            offset = end + 1;
            end = outer_end;
            continue;
        };
        let value_end = element.offset + element.value.len();
        offset = value_end;
        if let Some(inner) = inner_of(&element).filter(|inner| inner + 4 < value_end) {
            if outer_ends.len() >= levels {
                return true;
            }
            outer_ends.push(end);
            end = value_end - 1;
            offset = inner + 4;
        }
    }
}

/// Where the document in a value begins.
fn inner_of(element: &RawElement<'_>) -> Option<usize> {
    match element.kind {
        ElementType::Document | ElementType::Array => Some(element.offset),
        ElementType::JavaScriptWithScope => {
            let code = value_length(ElementType::String, element.value.get(4..)?)?;
            Some(element.offset + 4 + code)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Limits, doc, validate};

    /// A document with this many levels in it, and the fields beside the innermost levels.
    fn nested(levels: usize, beside: &[u8]) -> Vec<u8> {
        let mut bytes = vec![5, 0, 0, 0, 0];
        for _ in 0..levels {
            let length = i32::try_from(bytes.len() + beside.len() + 7).unwrap();
            bytes = [&length.to_le_bytes()[..], beside, &[4, 0], &bytes, &[0]].concat();
        }
        bytes
    }

    fn is_beyond(bytes: &[u8], levels: usize) -> bool {
        is_nested_beyond(RawDocument::from_bytes(bytes).unwrap(), levels)
    }

    #[test]
    fn levels_are_counted_as_the_check_of_stored_documents_counts_them() {
        for levels in [1, 2, 50, 200] {
            let bytes = nested(levels, &[]);
            for limit in [levels - 1, levels, levels + 1] {
                let limits = Limits { nesting_max: limit, ..Limits::STORED };
                assert_eq!(is_beyond(&bytes, limit), validate(&bytes, &limits).is_err(), "{levels} {limit}");
            }
        }
        assert!(is_beyond(&nested(20_000, &[]), 200));
        let wide: Document = (0..5_000).map(|at| (at.to_string(), doc! { "a": [1, [2]] })).collect();
        assert!(!is_nested_beyond(&wide.to_raw(), 3));
        assert!(is_nested_beyond(&wide.to_raw(), 2));
    }

    #[test]
    fn a_fault_beside_deep_levels_does_not_hide_them() {
        // A document with an element of an unknown type: its readers step over it by its length.
        let faulty = [3, b'f', 0, 8, 0, 0, 0, 99, b'x', 0, 0];
        assert!(is_beyond(&nested(300, &faulty), 200));
        assert!(!is_beyond(&nested(150, &faulty), 200));
        // Code whose scope would begin beyond its value.
        let code = [15, b'c', 0, 14, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(is_beyond(&nested(300, &code), 200));
    }

    #[test]
    fn scopes_of_code_are_levels() {
        let deep = nested(250, &[]);
        let length = i32::try_from(4 + 5 + deep.len()).unwrap();
        let code = [&length.to_le_bytes()[..], &[1, 0, 0, 0, 0], &deep].concat();
        let whole = i32::try_from(4 + 3 + code.len() + 1).unwrap();
        let bytes = [&whole.to_le_bytes()[..], &[15, b'c', 0], &code, &[0]].concat();
        assert!(is_beyond(&bytes, 200));
        assert!(!is_beyond(&bytes, 251));
    }
}
