//! The limits of a capped collection: an insert removes the oldest documents in its own commit.
//!
//! # Steps behind each insert
//! 1. Documents and bytes: the counters at the transaction's snapshot, read once, and its own changes. The
//!    turn of the writer (`capped`) keeps others from changing them meanwhile.
//! 2. While they are beyond the limits, the oldest document goes, but never the one just inserted.
//!
//! # Bounds
//! An insert removes about as many bytes as it adds. After `collMod` has lowered the limits, each insert
//! removes [`SURPLUS_DOCUMENTS`] at most beyond that, until the collection is within them.
//!
//! The search for the oldest document begins at a record that is remembered (`CappedState::first_record`),
//! so that it does not step over what earlier commits have removed.

use std::ops::Bound;

use pando_document::RawDocument;
use pando_storage::{BlockingMode, Direction, ErrorKind, KeyRange, StorageError};

use crate::capped::CappedLimits;
use crate::record_ids::record_id_of;
use crate::write_transaction::WriteTransaction;
use crate::{Collection, PrimaryKey, WriteError};

/// Documents that one insert removes at most, unless they are fewer bytes than it adds.
const SURPLUS_DOCUMENTS: u64 = 10_000;

impl Collection {
    /// Removes the oldest documents until the collection is within its limits.
    pub(super) fn make_room(
        &self,
        limits: CappedLimits,
        transaction: &mut WriteTransaction,
        inserted: (&PrimaryKey, usize),
        blocking: BlockingMode,
    ) -> Result<(), WriteError> {
        let (inserted_key, inserted_bytes) = inserted;
        let (mut documents, mut bytes) = self.totals(transaction, blocking)?;
        if limits.admit(documents, bytes) {
            return Ok(());
        }
        let own_first = transaction.first_kept(self.number());
        let remembered = self.capped_state().map_or(0, |state| state.first_record());
        let from = PrimaryKey::of_record(own_first.unwrap_or(remembered));
        let range = KeyRange { lower: Bound::Included(from.as_bytes().to_vec()), upper: Bound::Unbounded };
        let mut scan = self.scan_documents(range, Direction::Forward);
        let (mut removed, mut removed_bytes) = (0, 0);
        while !limits.admit(documents, bytes) {
            if removed >= SURPLUS_DOCUMENTS && removed_bytes >= inserted_bytes {
                break;
            }
            let Some((key, document)) = scan.next(&**transaction, blocking)? else { break };
            if key >= inserted_key.as_bytes() {
                break;
            }
            let (key, document) = (key.to_vec(), document.to_vec());
            let record = record_id_of(&key).unwrap_or_default();
            if removed == 0
                && own_first.is_none()
                && let Some(state) = self.capped_state()
            {
                state.note_first(transaction.snapshot(), record);
            }
            self.remove(transaction, &key, RawDocument::from_bytes(&document)?, blocking)?;
            transaction.keep_from(self.number(), record + 1);
            documents -= 1;
            bytes -= document.len() as i64;
            removed += 1;
            removed_bytes += document.len();
        }
        Ok(())
    }

    /// Documents and bytes as the transaction sees them, with its own writes.
    fn totals(
        &self,
        transaction: &mut WriteTransaction,
        blocking: BlockingMode,
    ) -> Result<(i64, i64), StorageError> {
        if let Some(totals) = transaction.totals(self.number()) {
            return Ok(totals);
        }
        let counted = self.document_totals(&**transaction, blocking)?;
        let (documents, bytes) = counted.ok_or_else(|| {
            let sentence = format!("the counters of the capped collection {} are damaged", self.full_name());
            StorageError::new(ErrorKind::Corrupt, sentence)
        })?;
        Ok(transaction.begin_totals(self.number(), documents, bytes))
    }
}
