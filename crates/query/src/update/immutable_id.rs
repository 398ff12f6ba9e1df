//! `_id` never changes: the check after an update, before its result is used.

use pando_document::{RawDocument, RawValue, compare_values};

use crate::error::{ErrorCode, QueryError};
use crate::identity::is_identical;
use crate::shell_text;

/// How strictly `_id` must stay, and what the message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateStyle {
    /// Operators: the same bytes.
    Operators,
    /// Replacement and pipeline: an equal value (1 may become 1.0).
    WholeDocument,
}

/// Compares the `_id` of both documents. An old document without one (an upsert's seed) accepts any.
///
/// `path` is the path of the update that names `_id` or a field below it, for the message.
pub(super) fn check(
    old: &RawDocument,
    new: &RawDocument,
    style: UpdateStyle,
    path: Option<&str>,
) -> Result<(), QueryError> {
    let Some(before) = old.get("_id")? else { return Ok(()) };
    let after = new.get("_id")?;
    let is_kept = after.is_some_and(|after| match style {
        UpdateStyle::Operators => is_identical(before, after),
        UpdateStyle::WholeDocument => compare_values(before, after).is_eq(),
    });
    if is_kept {
        return Ok(());
    }
    let message = match (style, after) {
        (UpdateStyle::WholeDocument, Some(after)) => format!(
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
            shell_text::value_text(after)
        ),
        (UpdateStyle::WholeDocument, None) => {
            "After applying the update, the (immutable) field '_id' was found to have been removed --"
                .to_owned()
        }
        (UpdateStyle::Operators, Some(after)) if path.is_some_and(|path| is_added(before, path)) => format!(
            "Updating the path '_id' to _id: {} would modify the immutable field '_id'",
            shell_text::value_text(after)
        ),
        (UpdateStyle::Operators, _) => format!(
            "Performing an update on the path '{}' would modify the immutable field '_id'",
            path.unwrap_or("_id")
        ),
    };
    Err(QueryError::new(ErrorCode::ImmutableField, message))
}

/// Whether a path below `_id` leads to a field that the old `_id` did not have.
fn is_added(id: RawValue<'_>, path: &str) -> bool {
    let mut here = id;
    for name in path.split('.').skip(1) {
        let RawValue::Document(document) = here else { return false };
        match document.get(name) {
            Ok(Some(value)) => here = value,
            _ => return true,
        }
    }
    false
}
