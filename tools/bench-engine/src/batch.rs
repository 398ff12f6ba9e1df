//! A batch: the writes of one transaction, in one piece of memory that is used again.

use std::ops::Range;

use crate::data::{DOCUMENTS, INDEXES, Purchases, Tree, primary_key};

#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    entries: Vec<(Tree, Range<usize>, Range<usize>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// The documents and all indexes.
    AllTrees,
    /// The documents only.
    DocumentsOnly,
}

impl Batch {
    /// Forgets all writes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Adds a write whose key and value are appended by `write`, which gives the length of the key.
    pub fn push(&mut self, tree: Tree, key: &[u8], write_value: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        write_value(&mut self.bytes);
        self.entries.push((tree, from..middle, middle..self.bytes.len()));
    }

    /// Adds a document of version 0 with its index entries.
    pub fn push_purchase(&mut self, purchases: &Purchases, number: u64, into: Into) {
        self.push(DOCUMENTS, &primary_key(number), |out| purchases.write_document(number, 0, out));
        if into == Into::AllTrees {
            for index in INDEXES {
                let from = self.bytes.len();
                purchases.write_index_key(index, number, &mut self.bytes);
                let end = self.bytes.len();
                self.entries.push((index, from..end, end..end));
            }
        }
    }

    /// All writes, in their order: tree, key, value.
    pub fn iter(&self) -> impl Iterator<Item = (Tree, &[u8], &[u8])> {
        self.entries
            .iter()
            .map(|(tree, key, value)| (*tree, &self.bytes[key.clone()], &self.bytes[value.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purchase_is_one_document_and_three_entries_of_its_own() {
        let mut batch = Batch::default();
        batch.push_purchase(&Purchases::new(1), 9, Into::AllTrees);
        let shapes: Vec<(u32, usize, usize)> =
            batch.iter().map(|(tree, key, value)| (tree.place(), key.len(), value.len())).collect();
        assert_eq!(shapes, [(0, 13, 308), (1, 27, 0), (2, 32, 0), (3, 36, 0)]);
        assert!(batch.iter().skip(1).all(|(_, key, _)| key.ends_with(&primary_key(9))));
        batch.clear();
        assert_eq!(batch.iter().count(), 0);
    }
}
