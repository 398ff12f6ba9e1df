//! The changes that writers made during a build, applied to the index.

use pando_storage::{BlockingMode, Transaction};

use crate::building::{Change, UniqueParts};
use crate::documents::{damaged, duplicate_key};
use crate::{Index, WriteError, index_keys};

/// Changes on their way into an index.
pub(super) struct Changes<'w> {
    index: &'w Index,
    /// The changes of one unique key, until another follows.
    group: Option<Group>,
}

/// The changes of all documents at one unique key.
struct Group {
    fields: Vec<u8>,
    /// Documents that do not have the key any more.
    removed: Vec<Vec<u8>>,
    /// Documents that have it now.
    put: Vec<Put>,
}

/// The new entry of a document at a unique key.
struct Put {
    primary_key: Vec<u8>,
    type_bits: Vec<u8>,
    /// In a clustering index.
    document: Option<Vec<u8>>,
}

impl<'w> Changes<'w> {
    pub(super) fn new(index: &'w Index) -> Changes<'w> {
        Changes { index, group: None }
    }

    /// Takes the next change, in the order of keys.
    pub(super) fn take(
        &mut self,
        transaction: &mut dyn Transaction,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), WriteError> {
        let change = Change::of(self.index, value)?;
        if self.index.uniqueness().has_primary_key_in_key() {
            let tree = self.index.tree();
            match change.is_put {
                true => transaction.put_blind(tree, key, change.value)?,
                false => transaction.delete_blind(tree, key)?,
            }
            return Ok(());
        }
        let parts = UniqueParts::of(self.index.contents(), key, change.value)
            .map_err(|reason| damaged(self.index, reason))?;
        if self.group.as_ref().is_some_and(|group| group.fields != parts.fields) {
            self.end_group(transaction)?;
        }
        let group = self.group.get_or_insert_with(|| Group {
            fields: parts.fields.to_vec(),
            removed: Vec::new(),
            put: Vec::new(),
        });
        match change.is_put {
            true => group.put.push(Put {
                primary_key: parts.primary_key.to_vec(),
                type_bits: parts.type_bits.to_vec(),
                document: parts.document.map(<[u8]>::to_vec),
            }),
            false => group.removed.push(parts.primary_key.to_vec()),
        }
        Ok(())
    }

    /// Applies the changes of one unique key to the index. Removals go first; at most one document may have
    /// the key afterwards.
    pub(super) fn end_group(&mut self, transaction: &mut dyn Transaction) -> Result<(), WriteError> {
        let Some(Group { fields, removed, put }) = self.group.take() else { return Ok(()) };
        let tree = self.index.tree();
        let have = transaction.get(tree, &fields, BlockingMode::MayBlock)?;
        let owner = match &have {
            None => None,
            Some(value) => {
                let entry = self.index.decode_entry(&fields, value);
                let entry = entry.map_err(|reason| damaged(self.index, reason))?;
                Some(entry.primary_key)
            }
        };
        let stays = owner.filter(|owner| !removed.iter().any(|gone| gone == owner));
        let others = put.iter().filter(|put| Some(put.primary_key.as_slice()) != stays);
        if others.count() + usize::from(stays.is_some()) > 1 {
            let type_bits = put.last().map(|put| put.type_bits.clone()).unwrap_or_default();
            return Err(duplicate_key(self.index, &index_keys::IndexKey { fields, type_bits }));
        }
        match put.last() {
            Some(Put { primary_key, type_bits, document }) => {
                let mut value = Vec::new();
                let document = document.as_deref();
                UniqueParts { fields: &fields, primary_key, type_bits, document }.value_into(&mut value);
                transaction.put_blind(tree, &fields, &value)?;
            }
            None if owner.is_some() && stays.is_none() => transaction.delete_blind(tree, &fields)?,
            None => {}
        }
        Ok(())
    }
}
