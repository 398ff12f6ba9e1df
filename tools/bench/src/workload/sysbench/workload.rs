//! The transaction mix as a workload.

use super::columns;
use super::documents::DataSet;
use super::loading::Load;
use super::mix::{KINDS, Mix, Transactions};
use super::mongo::{AfterFailure, MongoClient};
use super::wrapping::Wrapping;
use crate::client::{Clients, Misses, Script, Session};
use crate::error::BenchError;
use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::target::Target;
use crate::workload::linkbench::mongo::{Mapping, MongoDatabase};
use crate::workload::linkbench::store::{LinkDatabase, Transactions as TransactionLevel};
use crate::workload::load::{Durability, Loading, count};
use crate::workload::{Finding, RunNumber, Workload};
use pando_document::{Document, doc};
use pando_measuring::random::mask;
use serde_json::json;

/// The workload.
#[derive(Clone, Debug)]
pub struct Sysbench {
    /// How its data is loaded, and what the draws hang on.
    pub load: Load,
    /// The statements of a transaction.
    pub mix: Mix,
    /// When the server answers a write.
    pub durability: Durability,
    /// The reaction of a client to a statement that fails.
    pub after_failure: AfterFailure,
    /// The level of transactions.
    pub transactions: TransactionLevel,
}

impl Sysbench {
    /// When the server answers a write; nothing of a mix that only reads.
    fn durability_of_writes(&self) -> Option<Durability> {
        let Mix { index_updates, non_index_updates, delete_inserts, .. } = self.mix;
        let writes = [index_updates, non_index_updates, delete_inserts].iter().any(|count| *count > 0);
        writes.then_some(self.durability)
    }
}

impl Workload for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn summary(&self) -> String {
        let DataSet { collections, documents, databases, .. } = self.load.data;
        let Mix { range_size, .. } = self.mix;
        format!(
            "transactions of {} statements (ranges of {range_size}) on {collections} x {documents} documents in {databases} database(s), \
             {}, {} seed {}; {}",
            self.mix.statements(),
            match self.durability_of_writes() {
                Some(durability) => format!("durability {}", durability.name()),
                None => "no writes".to_owned(),
            },
            self.load.generator.name(),
            self.load.seed,
            match self.transactions {
                TransactionLevel::None => "a transaction is not wrapped: each statement stands alone",
                TransactionLevel::TokuMx => "each is a transaction of TokuMX",
                _ => "each is a transaction of a session",
            }
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "data": self.load.data,
            "index": self.load.index_in_words(),
            "mix": self.mix,
            "statements_per_transaction": self.mix.statements(),
            "keys": "uniform",
            "durability": self.durability_of_writes().map(Durability::name),
            "transactions": self.transactions.name(),
            "generator": self.load.generator.name(),
            "seed": self.load.seed,
            "clients_end_at_a_failure": self.after_failure == AfterFailure::End,
        })
    }

    fn operations(&self) -> &'static str {
        "transactions"
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.iter().map(|name| (*name).to_owned()).collect()
    }

    fn misses(&self) -> Misses {
        if self.mix.delete_inserts > 0 { Misses::AreExpected } else { Misses::AreFaults }
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(&self.load)
    }

    fn check_ability(&self, target: &Target) -> Result<(), BenchError> {
        let database = &self.load.data.database;
        MongoDatabase::new(target, database, self.transactions, self.durability, Mapping::Own).check_ability()
    }

    fn clients(&self, _target: &Target, clients: u32, run: RunNumber) -> Result<Clients, BenchError> {
        let Load { data, generator, seed, .. } = &self.load;
        let script = |client| -> Box<dyn Script> {
            let transactions = Transactions::new(self.mix, data, *generator, *seed, run.stream(client));
            let (durability, range_size) = (self.durability, self.mix.range_size);
            let wrapping = Wrapping::new(self.transactions);
            Box::new(MongoClient::new(
                data,
                durability,
                range_size,
                transactions,
                self.after_failure,
                wrapping,
            ))
        };
        Ok(Clients::of_scripts((0..clients).map(script).collect()))
    }

    fn null_reply(&self) -> Option<Document> {
        let document = doc! { "c": mask::C, "average": 1 };
        let cursor = doc! { "firstBatch": [document], "id": 0_i64, "ns": "sbtest.sbtest1" };
        let reply = doc! { "cursor": cursor, "values": [mask::C], "n": 1, "nModified": 1, "ok": 1.0 };
        Some(reply)
    }

    /// Each delete is followed by an insert of the same `_id`: when all clients are done, every document is
    /// there again.
    fn verify(&self, target: &Target) -> Result<Vec<Finding>, BenchError> {
        let mut session = Session::open(target.address())?;
        let expected = u64::from(self.load.data.documents);
        let (mut checked, mut wrong) = (0, 0);
        for (database, collection) in self.load.data.all() {
            let found = count(&mut session, &database, &collection)?;
            checked += expected;
            wrong += found.abs_diff(expected);
        }
        Ok(vec![Finding { what: "documents that must be there".into(), checked, wrong }])
    }

    fn csv(&self, figures: &Figures) -> Vec<CsvFile> {
        columns::files(figures)
    }
}
