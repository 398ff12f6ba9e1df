//! The counts of an import, and how a reply of the store changes them.

use bson::{Bson, Document};

use super::write_mode::WriteMode;

/// The records of an import by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Documents that are in the collection now and were not before.
    pub inserted: u64,
    /// Documents that were there and have changed.
    pub modified: u64,
    /// Documents that were there and are as before.
    pub unchanged: u64,
    /// Documents that are gone.
    pub deleted: u64,
    /// Documents to delete that were not there.
    pub not_found: u64,
    /// Documents that the import before this one had brought in already.
    pub already_in: u64,
    /// Records that the user wanted to pass over.
    pub passed_over: u64,
    /// Lines that are no documents.
    pub unreadable: u64,
    /// Documents that the store refused, for example for an `_id` that is there already.
    pub refused: u64,
    /// Refused documents whose `_id` is there already.
    pub same_id: u64,
    /// Indexes that were built.
    pub indexes: u64,
    /// Indexes and collections with options that the store refused.
    pub not_created: u64,
}

/// A document that the store refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplyFault {
    /// Its place in the batch.
    pub(super) index: usize,
    /// The store takes no further documents either.
    pub(super) ends_import: bool,
    /// Its `_id` is there already.
    pub(super) same_id: bool,
    pub(super) code: i32,
    pub(super) message: String,
}

const DUPLICATE_KEY: i32 = 11000;
/// Codes that are not one document's but the store's: full disk, shutdown, interruption, no right to write.
const STORE_CODES: [i32; 9] = [14031, 91, 11600, 11601, 11602, 189, 10107, 13435, 13];

impl ImportCounts {
    /// Documents that are done.
    pub fn done(&self) -> u64 {
        self.inserted + self.modified + self.unchanged + self.deleted + self.already_in
    }

    /// Records that are not in, and should be.
    pub fn left_out(&self) -> u64 {
        self.unreadable + self.refused
    }

    /// Whether no record was left out.
    pub fn is_faultless(&self) -> bool {
        self.left_out() == 0 && self.not_created == 0
    }

    /// Adds what a reply says of a batch. Gives the refused documents.
    pub(super) fn add_reply(&mut self, mode: WriteMode, reply: &Document, sent: u64) -> Vec<ReplyFault> {
        let faults: Vec<ReplyFault> = errors(reply).filter_map(fault).collect();
        let (n, modified) = (number(reply, "n"), number(reply, "nModified"));
        match mode {
            WriteMode::Insert => self.inserted += n,
            WriteMode::Upsert | WriteMode::Merge => {
                let upserted = reply.get_array("upserted").map_or(0, |upserted| upserted.len() as u64);
                self.inserted += upserted;
                self.modified += modified;
                self.unchanged += n.saturating_sub(upserted + modified);
            }
            WriteMode::Delete => {
                self.deleted += n;
                self.not_found += sent.saturating_sub(n + faults.len() as u64);
            }
        }
        faults
    }
}

fn errors(reply: &Document) -> impl Iterator<Item = &Document> {
    let errors = reply.get_array("writeErrors").map(Vec::as_slice).unwrap_or_default();
    errors.iter().filter_map(Bson::as_document)
}

fn fault(error: &Document) -> Option<ReplyFault> {
    let code = error.get_i32("code").unwrap_or(0);
    let message = error.get_str("errmsg").unwrap_or("refused").to_owned();
    let same_id = code == DUPLICATE_KEY
        && match error.get_document("keyPattern") {
            Ok(pattern) => pattern.len() == 1 && pattern.contains_key("_id"),
            Err(_) => message.contains("index: _id_ "),
        };
    Some(ReplyFault {
        index: usize::try_from(error.get_i32("index").ok()?).ok()?,
        ends_import: STORE_CODES.contains(&code),
        same_id,
        code,
        message,
    })
}

fn number(reply: &Document, name: &str) -> u64 {
    match reply.get(name) {
        Some(Bson::Int32(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Int64(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn a_reply_of_each_mode_is_counted() {
        let mut counts = ImportCounts::default();
        assert!(counts.add_reply(WriteMode::Insert, &doc! { "n": 3 }, 3).is_empty());
        let reply = doc! { "n": 5, "nModified": 2, "upserted": [{ "index": 0, "_id": 1 }] };
        counts.add_reply(WriteMode::Upsert, &reply, 5);
        counts.add_reply(WriteMode::Delete, &doc! { "n": 2 }, 5);
        assert_eq!(
            counts,
            ImportCounts { inserted: 4, modified: 2, unchanged: 2, deleted: 2, not_found: 3, ..counts }
        );
        assert_eq!(counts.done(), 10);
    }

    #[test]
    fn a_full_disk_is_the_store_s_fault_and_a_second_id_the_document_s() {
        let error =
            |index: i32, code: i32, errmsg: &str| doc! { "index": index, "code": code, "errmsg": errmsg };
        let reply = doc! { "n": 0, "writeErrors": [
            error(0, 11000, "E11000 duplicate key error collection: a.b index: _id_ dup key: { _id: 1 }"),
            error(1, 11000, "E11000 duplicate key error collection: a.b index: name_1 dup key: { name: 1 }"),
            error(2, 14031, "no space"),
        ] };
        let faults = ImportCounts::default().add_reply(WriteMode::Insert, &reply, 3);
        let shape: Vec<_> = faults.iter().map(|fault| (fault.same_id, fault.ends_import)).collect();
        assert_eq!(shape, [(true, false), (false, false), (false, true)]);
    }
}
