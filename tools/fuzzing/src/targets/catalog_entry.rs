//! Entries of the catalog tree of a damaged store: they are refused, or their parts fit together.
//!
//! The bytes are tried twice: as they are, and as a document of their length.

use pando_document::{Binary, Value, doc};

/// An input that is sound: a collection with an index.
pub fn examples() -> Vec<Vec<u8>> {
    let uuid = Binary { subtype: 4, bytes: vec![7; 16] };
    let key = doc! { "a": 1, "b.c": -1 };
    let specification = doc! { "v": 2, "key": key, "name": "a_1_b.c_-1", "unique": true, "sparse": true };
    let flags = vec![Value::Boolean(true), Value::Boolean(false)];
    let index = doc! { "spec": specification, "tree": "index-2", "multikey": flags, "truncated": false };
    let entry = doc! {
        "v": 1,
        "uuid": uuid,
        "tree": "collection-1",
        "options": doc! { "comment": "none" },
        "idTruncated": false,
        "indexes": vec![Value::from(index)],
    };
    vec![entry.to_raw().as_bytes().to_vec(), pando_catalog::catalog_entry::key_of("shop.orders")]
}

/// See the module.
pub fn run(bytes: &[u8]) {
    pando_catalog::catalog_entry::decode_for_fuzzing(bytes);
    let _namespace = pando_catalog::catalog_entry::namespace_of(bytes);
    let mut document = bytes.to_vec();
    if let (Ok(length), Some(prefix)) = (u32::try_from(document.len()), document.first_chunk_mut::<4>()) {
        *prefix = length.to_le_bytes();
        pando_catalog::catalog_entry::decode_for_fuzzing(&document);
    }
}
