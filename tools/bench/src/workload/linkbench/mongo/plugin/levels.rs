//! The plugin's levels of transactions, with the effect that its code has.
//!
//! - *Mvcc* (its level 1): every operation runs between TokuMX's `beginTransaction` and `commitTransaction`.
//!   The upsert of a link comes before them. All connections share one flag, and the second connection clears
//!   it. So with more than one client the level is *None*: [`Level::of`].
//! - *Simulated* (its level 2): a document in `transaction` goes through the states of a two-phase commit,
//!   and changed documents are marked. No code reads the states. Hiding a link and removing marks look for an
//!   empty array of marks, which loaded documents do not have. The mark of a count is compared as a text. So
//!   nothing is hidden and no mark is removed. The documents in `transaction` stay for ever.

use super::{PluginStore, count_key, link_key};
use crate::error::BenchError;
use crate::workload::linkbench::mongo::documents::change;
use crate::workload::linkbench::mongo::two_phase::transaction_id;
use crate::workload::linkbench::store::{LinkKey, Transactions};
use pando_document::{Document, doc};

const COLLECTION: &str = "transaction";
/// The array of marks in links and counts.
const MARKS: &str = "pendingTransactions";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// None.
    None,
    Mvcc,
    Simulated,
}

impl Level {
    /// The effective level with so many clients.
    pub fn of(transactions: Transactions, clients: u32) -> Level {
        match transactions {
            Transactions::TokuMx if clients == 1 => Level::Mvcc,
            Transactions::TwoPhase => Level::Simulated,
            _ => Level::None,
        }
    }
}

impl PluginStore {
    /// Does an operation within a transaction of this level; writes of a link name it.
    pub(super) fn in_transaction<T>(
        &mut self,
        link: Option<LinkKey>,
        work: impl FnOnce(&mut PluginStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        match (self.level, link) {
            (Level::Mvcc, _) => {
                self.plain.command(doc! { "beginTransaction": 1, "isolation": "mvcc" })?;
                let done = work(self);
                self.plain.command(doc! { "commitTransaction": 1 })?;
                done
            }
            (Level::Simulated, Some(link)) => {
                self.begin_simulated(link)?;
                let done = work(self);
                self.end_simulated(link)?;
                done
            }
            _ => work(self),
        }
    }

    /// Saved, read back, pending.
    fn begin_simulated(&mut self, link: LinkKey) -> Result<(), BenchError> {
        let id = transaction_id(&self.plain.session_id);
        let document = doc! {
            "_id": id,
            "id1": link.id1,
            "id2": link.id2,
            "link_type": link.link_type,
            "update_count": true,
            "state": "initial",
        };
        self.plain.write_once(doc! { "insert": COLLECTION, "documents": [document] })?;
        self.plain.find_one(COLLECTION, doc! { "_id": id }, doc! {})?;
        self.marks = Some(id);
        self.state("pending")
    }

    /// Committed, marks taken away (which finds none), done.
    fn end_simulated(&mut self, link: LinkKey) -> Result<(), BenchError> {
        let Some(id) = self.marks else { return Ok(()) };
        self.state("committed")?;
        let as_text = doc! { "$pull": { (MARKS): format!("{id:?}") } };
        self.update("count", vec![change(count_key(link.id1, link.link_type), as_text)])?;
        let unmark = change(self.never_marked(link), doc! { "$pull": { (MARKS): id } });
        self.update("link", vec![unmark])?;
        self.state("done")?;
        self.marks = None;
        Ok(())
    }

    fn state(&mut self, state: &str) -> Result<(), BenchError> {
        let Some(id) = self.marks else { return Ok(()) };
        let update = change(doc! { "_id": id }, doc! { "$set": { "state": state } });
        self.update(COLLECTION, vec![update]).map(drop)
    }

    /// A filter that passes over what this transaction has changed already.
    pub(super) fn unmarked(&self, mut filter: Document) -> Document {
        if let Some(id) = self.marks {
            filter.push(MARKS, doc! { "$ne": id });
        }
        filter
    }

    /// An update that leaves this transaction's mark.
    pub(super) fn marking(&self, mut update: Document) -> Document {
        if let Some(id) = self.marks {
            update.push("$push", doc! { (MARKS): id });
        }
        update
    }

    /// The plugin's filter for links that no transaction has marked: those that never had a mark have no
    /// array, and are not found.
    pub(super) fn never_marked(&self, key: LinkKey) -> Document {
        let mut filter = link_key(key);
        if self.marks.is_some() {
            filter.push(MARKS, doc! { "$size": 0 });
        }
        filter
    }
}
