//! The key of a document in the primary tree, by the layout of its collection.

use pando_collation::TextOrder;
use pando_document::RawDocument;
use pando_storage::{Begin, BlockingMode, Cursor, Direction, KeyRange, StorageError};

use crate::collection::Collection;
use crate::error::WriteError;
use crate::index_description::{IndexField, Sparseness};
use crate::index_keys;
use crate::layout::Layout;
use crate::primary_key::PrimaryKey;
use crate::record_ids::record_id_of;

impl Collection {
    /// The key of a document that is to be inserted. A heap gives a new one each time.
    pub(crate) fn new_key(
        &self,
        document: &RawDocument,
        blocking: BlockingMode,
    ) -> Result<PrimaryKey, WriteError> {
        match self.layout() {
            Layout::Clustered => {
                let id = document.get("_id")?.ok_or(WriteError::NoId)?;
                Ok(PrimaryKey::in_order(id, self.text_order()))
            }
            Layout::Fields(fields) => of_fields(fields, self.text_order(), document),
            Layout::Heap => {
                let record = self.record_ids().next(|| self.last_key(blocking))?;
                Ok(PrimaryKey::of_record(record))
            }
        }
    }

    /// The key to which a document moves when it becomes `new`; `None` where it stays.
    pub(crate) fn moved_key(&self, key: &[u8], new: &RawDocument) -> Result<Option<PrimaryKey>, WriteError> {
        match self.layout() {
            // A replacement has the same `_id`.
            Layout::Clustered | Layout::Heap => Ok(None),
            Layout::Fields(fields) => {
                let own = of_fields(fields, self.text_order(), new)?;
                Ok(Some(own).filter(|new| new.as_bytes() != key))
            }
        }
    }

    /// Whether a document may lie under a key.
    pub(crate) fn is_key_of(&self, key: &[u8], document: &RawDocument) -> bool {
        match (self.layout(), document.get("_id")) {
            (Layout::Clustered, Ok(Some(id))) => {
                PrimaryKey::in_order(id, self.text_order()).as_bytes() == key
            }
            (Layout::Fields(fields), Ok(Some(_))) => {
                of_fields(fields, self.text_order(), document).is_ok_and(|own| own.as_bytes() == key)
            }
            (Layout::Heap, Ok(Some(_))) => record_id_of(key).is_some(),
            (_, Ok(None) | Err(_)) => false,
        }
    }

    /// The key of the last document. It is asked for before the first insert of this process, so every
    /// snapshot has the same one.
    fn last_key(&self, blocking: BlockingMode) -> Result<Option<Vec<u8>>, StorageError> {
        let reader = self.engine().begin(Begin::READ)?;
        let mut cursor = Cursor::new(self.primary_tree(), KeyRange::all(), Direction::Backward);
        let last = cursor.next(&*reader, blocking).map(|last| last.map(|(key, _)| key.to_vec()));
        reader.rollback();
        last
    }
}

/// The key of a document by fields of the user's choice. A missing field counts as null.
fn of_fields(
    fields: &[IndexField],
    order: &TextOrder,
    document: &RawDocument,
) -> Result<PrimaryKey, WriteError> {
    let derived = index_keys::derive(fields, Sparseness::Dense, order, document)?;
    let array = derived.multikey.iter().position(|multikey| multikey.has_arrays());
    if let Some(at) = array {
        return Err(WriteError::ArrayInPrimaryKey { path: fields[at].path.clone() });
    }
    let key = derived.keys.into_iter().next().expect("a dense index has a key of every document");
    Ok(PrimaryKey::of_bytes(key.fields))
}
