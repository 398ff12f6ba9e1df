//! Names of the collections of GridFS, in which drivers keep files.

use pando_document::RawValue;

/// The bucket of a request that names none.
const DEFAULT_ROOT: &str = "fs";

/// The collection with the chunks of the bucket that the field `root` of a request names.
pub(crate) fn chunks_of(root: Option<RawValue<'_>>) -> String {
    let root = root.and_then(|root| root.as_str()).filter(|root| !root.is_empty());
    format!("{}.chunks", root.unwrap_or(DEFAULT_ROOT))
}
