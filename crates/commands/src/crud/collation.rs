//! Collations: rules of a language for comparing text. Only the simple one, which compares bytes, is carried
//! out.

use pando_document::{RawDocument, RawValue};

use crate::{CommandError, ErrorCode};

/// Refuses a collation that would change an answer.
pub(crate) fn refuse_collation(collation: Option<&RawDocument>) -> Result<(), CommandError> {
    let Some(collation) = collation else { return Ok(()) };
    if collation.is_empty() || matches!(collation.get("locale")?, Some(RawValue::String("simple"))) {
        return Ok(());
    }
    Err(CommandError::failed(
        ErrorCode::CommandNotSupported,
        "collations other than 'simple' are not supported yet",
    ))
}
