//! The options of a capped collection in `create`, `collMod` and the commands that make capped copies.

use pando_catalog::capped_size;
use pando_document::{Document, Value};

use crate::CommandError;
use crate::arguments::Argument;

/// The largest size, in bytes: a petabyte.
pub(super) const BYTES_MAX: i64 = 1 << 50;
/// One more than the most documents.
const DOCUMENTS_END: i64 = 1 << 31;

/// A size in bytes.
pub(super) fn size(argument: &Argument<'_>) -> Result<Option<i64>, CommandError> {
    match argument.at_least(1)? {
        Some(size) if size > BYTES_MAX => Err(argument.out_of_range(format_args!("<= {BYTES_MAX}"), size)),
        size => Ok(size),
    }
}

/// A number of documents; one that is not positive means the largest.
pub(super) fn max(argument: &Argument<'_>) -> Result<Option<i64>, CommandError> {
    match argument.integer()? {
        Some(max) if max >= DOCUMENTS_END => {
            Err(argument.out_of_range(format_args!("< {DOCUMENTS_END}"), max))
        }
        Some(..1) => Ok(Some(DOCUMENTS_END - 1)),
        max => Ok(max),
    }
}

/// Adds the options of a capped collection to those that are kept.
pub(super) fn push(kept: &mut Document, size: i64, max: Option<i64>) {
    kept.push("capped", Value::Boolean(true));
    kept.push("size", shown(rounded(size)));
    if let Some(max) = max {
        kept.push("max", shown(max));
    }
}

/// The size that a collection gets where a request asks for so many bytes.
pub(super) fn rounded(size: i64) -> i64 {
    i64::try_from(capped_size(size.unsigned_abs())).unwrap_or(i64::MAX)
}

/// A number as short as it fits.
pub(super) fn shown(number: i64) -> Value {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}
