//! A builder of arrays: from values that stand elsewhere to bytes of their own.

use pando_document::{ArrayWriter, RawDocumentBuf, RawValue};

/// The array of `elements`; the result is the array's own document, with the names "0", "1", ….
pub(crate) fn build_array<'v>(elements: impl IntoIterator<Item = RawValue<'v>>) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(64);
    let mut writer = ArrayWriter::begin(&mut bytes);
    for element in elements {
        writer.push(element);
    }
    writer.finish();
    RawDocumentBuf::from_vec(bytes).expect("an array just written is well formed")
}
