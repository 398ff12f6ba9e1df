//! The queue of entries that wait to be written to `system.profile`. Beyond a size it forgets the oldest.

use std::collections::VecDeque;

use pando_document::RawDocumentBuf;
use parking_lot::Mutex;

/// Bytes of entries that wait.
const QUEUE_BYTES_MAX: usize = 4 << 20;

/// The entries that wait, with their databases.
#[derive(Debug, Default)]
pub(crate) struct ProfileQueue {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<(String, RawDocumentBuf)>,
    bytes: usize,
}

impl ProfileQueue {
    /// Appends an entry.
    pub fn push(&self, database: &str, entry: RawDocumentBuf) {
        let mut waiting = self.waiting.lock();
        waiting.bytes += entry.as_bytes().len();
        waiting.entries.push_back((database.to_owned(), entry));
        while waiting.bytes > QUEUE_BYTES_MAX
            && let Some((_, oldest)) = waiting.entries.pop_front()
        {
            waiting.bytes -= oldest.as_bytes().len();
        }
    }

    /// Forgets the entries of a database whose collection is dropped.
    pub fn forget(&self, database: &str) {
        let mut waiting = self.waiting.lock();
        waiting.entries.retain(|(of, _)| of != database);
        waiting.bytes = waiting.entries.iter().map(|(_, entry)| entry.as_bytes().len()).sum();
    }

    /// Entries that wait.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.lock().entries.len()
    }

    /// Takes all entries.
    pub fn take(&self) -> VecDeque<(String, RawDocumentBuf)> {
        std::mem::take(&mut *self.waiting.lock()).entries
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_queue_forgets_its_oldest_entries_and_those_of_a_dropped_collection() {
        let queue = ProfileQueue::default();
        let entry = doc! { "x": "y".repeat(1 << 20) }.to_raw();
        for database in ["a", "b", "b", "b", "b"] {
            queue.push(database, entry.clone());
        }
        let waiting: Vec<String> = queue.waiting.lock().entries.iter().map(|(of, _)| of.clone()).collect();
        assert_eq!(waiting, ["b", "b", "b"]);
        queue.forget("b");
        assert!(queue.take().is_empty());
        assert_eq!(queue.waiting.lock().bytes, 0);
    }
}
