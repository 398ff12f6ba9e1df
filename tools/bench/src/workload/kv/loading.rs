//! The load of the rows: in order of id or shuffled, from BSON or from JSON.
//!
//! From JSON, each row is made as a line `{"id":…,"value1":…,"value2":…}` and parsed again, as the original's
//! import did; the CPU time of parsing is counted apart, so that it does not pass for the server's.

use super::rows::{Row, Rows};
use crate::client::{Clients, Note, Script, Session, ThreadUsage};
use crate::error::BenchError;
use crate::target::Target;
use crate::workload::insert::{Batch, BatchSource, Inserter, OnFailure};
use crate::workload::load::{Durability, Loading, check_count, count, drop_collection};
use crate::workload::spread::Spread;
use pando_measuring::random::distribution::scattering_factor;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFormat {
    /// Straight to BSON.
    Bson,
    /// By a line of JSON.
    Json,
}

impl LoadFormat {
    fn in_words(self) -> &'static str {
        match self {
            LoadFormat::Bson => "straight to BSON",
            LoadFormat::Json => "by lines of JSON",
        }
    }
}

/// The order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOrder {
    /// By id.
    Ascending,
    /// Mixed up, the same in every load.
    Shuffled,
}

impl LoadOrder {
    fn in_words(self) -> &'static str {
        match self {
            LoadOrder::Ascending => "in order of the id",
            LoadOrder::Shuffled => "in mixed order",
        }
    }
}

/// How to load.
#[derive(Clone, Debug)]
pub struct KvLoad {
    /// Where it is.
    pub spread: Spread,
    /// The data.
    pub rows: Rows,
    /// From what.
    pub format: LoadFormat,
    /// In which order.
    pub order: LoadOrder,
    /// How many connections load.
    pub connections: u32,
    /// Documents per insert.
    pub batch: u32,
    /// When the server answers.
    pub durability: Durability,
}

impl Loading for KvLoad {
    fn databases(&self) -> Vec<String> {
        self.spread.all_databases()
    }

    fn summary(&self) -> String {
        format!(
            "{} rows of {} bytes{}, {}, {}, {} connections, batches of {}, durability {}",
            self.rows.count,
            super::rows::ROW_BYTES,
            self.spread.summary(),
            self.order.in_words(),
            self.format.in_words(),
            self.connections,
            self.batch,
            self.durability.name()
        )
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "rows": self.rows,
            "spread": self.spread,
            "order": format!("{:?}", self.order),
            "format": format!("{:?}", self.format),
            "connections": self.connections,
            "batch": self.batch,
            "durability": self.durability.name(),
        })
    }

    fn is_there(&self, target: &Target) -> Result<bool, BenchError> {
        let mut session = Session::open(target.address())?;
        for (database, collection) in self.spread.all() {
            if count(&mut session, &database, &collection)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        let mut session = Session::open(target.address())?;
        self.spread
            .all()
            .try_for_each(|(database, collection)| drop_collection(&mut session, &database, &collection))
    }

    fn connections(&self) -> u32 {
        self.connections
    }

    fn clients(&self, _target: &Target) -> Result<Clients, BenchError> {
        let (order, failed) = (RowOrder::new(self.clone()), Arc::default());
        let script = |_| -> Box<dyn Script> {
            let source = RowBatches(order.clone());
            Box::new(Inserter::new(self.durability, source, OnFailure::EndAll(Arc::clone(&failed))))
        };
        Ok(Clients::of_scripts((0..self.connections).map(script).collect()))
    }

    fn check(&self, target: &Target) -> Result<(), BenchError> {
        let mut session = Session::open(target.address())?;
        (0..self.spread.collections).try_for_each(|number| {
            let (database, collection) = self.spread.place(number);
            check_count(
                &mut session,
                &database,
                &collection,
                u64::from(self.spread.share(self.rows.count, number)),
            )
        })
    }
}

/// Which rows a connection loads, and by which format they are made.
#[derive(Clone)]
pub struct RowOrder {
    load: KvLoad,
    /// The batch to make next, for all connections.
    next: Arc<AtomicU64>,
    /// By collection: multiplying a number by it, around the number of the collection's rows, mixes them up.
    factors: Arc<[u64]>,
    parsing_us: f64,
    json_bytes: u64,
}

/// Some rows of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowBatch {
    /// The collection, from 0.
    pub collection: u32,
    /// Which of its rows, in order of insertion.
    pub rows: std::ops::Range<u32>,
}

impl RowBatch {
    /// How many rows.
    pub fn count(&self) -> u32 {
        self.rows.end - self.rows.start
    }
}

impl RowOrder {
    /// The order that all clones share.
    pub fn new(load: KvLoad) -> RowOrder {
        let rows_of = |collection| load.spread.share(load.rows.count, collection).max(1);
        let factors =
            (0..load.spread.collections).map(|collection| u64::from(scattering_factor(rows_of(collection))));
        let factors = factors.collect();
        RowOrder { load, next: Arc::default(), factors, parsing_us: 0.0, json_bytes: 0 }
    }

    /// How many rows a collection has.
    fn rows_of(&self, collection: u32) -> u32 {
        self.load.spread.share(self.load.rows.count, collection)
    }

    /// The place of the row that is inserted into its collection as the `nth`: the rows go around the
    /// collections.
    fn place(&self, collection: u32, nth: u32) -> u32 {
        let number = match self.load.order {
            LoadOrder::Ascending => nth,
            LoadOrder::Shuffled => {
                let factor = self.factors[collection as usize];
                let scattered = u64::from(nth) * factor % u64::from(self.rows_of(collection));
                u32::try_from(scattered).unwrap_or(0)
            }
        };
        number * self.load.spread.collections + collection
    }

    /// The next batch; nothing when all are made. Batches go around the collections, too.
    pub fn next_batch(&self) -> Option<RowBatch> {
        // The first collection has the most rows.
        let rounds = u64::from(self.rows_of(0)).div_ceil(self.load.batch.into());
        let collections = u64::from(self.load.spread.collections);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= rounds * collections {
                return None;
            }
            let collection = self.load.spread.of(number);
            let rows = self.rows_of(collection);
            let first = (number / collections * u64::from(self.load.batch)).min(rows.into());
            let first = u32::try_from(first).unwrap_or(rows);
            let end = first + self.load.batch.min(rows - first);
            // The last round may have nothing for some collections.
            if first < end {
                return Some(RowBatch { collection, rows: first..end });
            }
        }
    }

    /// Its rows.
    pub fn rows(&mut self, batch: RowBatch) -> Vec<Row> {
        let RowBatch { collection, rows } = batch;
        match self.load.format {
            LoadFormat::Bson => rows.map(|nth| self.load.rows.row(self.place(collection, nth))).collect(),
            LoadFormat::Json => {
                let before = ThreadUsage::now().ok();
                let rows = rows.map(|nth| self.row_by_json(self.place(collection, nth))).collect();
                let used = before.and_then(|before| Some(ThreadUsage::now().ok()?.since(&before).cpu_us));
                self.parsing_us += used.unwrap_or(0.0);
                rows
            }
        }
    }

    fn row_by_json(&mut self, place: u32) -> Row {
        let row = self.load.rows.row(place);
        let line = json!({ "id": row.id, "value1": row.value1, "value2": row.value2 }).to_string();
        self.json_bytes += line.len() as u64 + 1;
        let parsed: serde_json::Value = serde_json::from_str(&line).expect("it was written just now");
        let value1 = parsed["value1"].as_i64().and_then(|value| i32::try_from(value).ok());
        let id = parsed["id"].as_i64().expect("every row has one");
        Row { id, value1, value2: parsed["value2"].as_f64() }
    }

    /// The cost of making the rows.
    pub fn notes(&self) -> Vec<Note> {
        vec![
            Note { name: "microseconds of CPU for writing and parsing JSON", count: self.parsing_us as u64 },
            Note { name: "bytes of JSON", count: self.json_bytes },
        ]
    }
}

struct RowBatches(RowOrder);

impl BatchSource for RowBatches {
    fn next_batch(&mut self, out: &mut Vec<u8>) -> Option<Batch> {
        let batch = self.0.next_batch()?;
        let documents = batch.count();
        let (database, collection) = self.0.load.spread.place(batch.collection);
        self.0.rows(batch).iter().for_each(|row| row.append(out));
        Some(Batch { database, collection, documents })
    }

    fn notes(&self) -> Vec<Note> {
        self.0.notes()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pando_document::RawDocument;

    /// A load of these rows.
    pub fn load(rows: Rows) -> KvLoad {
        KvLoad {
            spread: crate::workload::spread::tests::spread(1, 1),
            rows,
            format: LoadFormat::Bson,
            order: LoadOrder::Ascending,
            connections: 2,
            batch: 7,
            durability: Durability::W1,
        }
    }

    fn ids(load: KvLoad) -> Vec<i64> {
        let mut source = RowBatches(RowOrder::new(load));
        let mut out = Vec::new();
        while source.next_batch(&mut out).is_some() {}
        let mut ids = Vec::new();
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
            let document = RawDocument::from_bytes(&rest[..length]).expect("a document");
            ids.push(document.get("_id").expect("sound").and_then(|id| id.as_i64_exact()).expect("an id"));
            rest = &rest[length..];
        }
        ids
    }

    const ROWS: Rows = Rows { count: 100, gap: 2, seed: 3, null_percent: 20 };

    #[test]
    fn every_row_is_loaded_once_in_either_order() {
        let expected: Vec<i64> = (1..=100).map(|place| place * 2).collect();
        assert_eq!(ids(load(ROWS)), expected);
        let mut shuffled = ids(KvLoad { order: LoadOrder::Shuffled, ..load(ROWS) });
        assert_ne!(shuffled, expected);
        shuffled.sort_unstable();
        assert_eq!(shuffled, expected);
    }

    #[test]
    fn rows_go_around_the_collections_and_each_is_loaded_once() {
        for (collections, order) in
            [(3, LoadOrder::Ascending), (7, LoadOrder::Shuffled), (99, LoadOrder::Shuffled)]
        {
            let spread = crate::workload::spread::tests::spread(collections, 2);
            let load = KvLoad { spread, order, ..load(ROWS) };
            let mut source = RowOrder::new(load);
            let mut ids = Vec::new();
            while let Some(batch) = source.next_batch() {
                let collection = batch.collection;
                for row in source.rows(batch) {
                    assert_eq!((row.id / 2 - 1) as u32 % collections, collection, "row {}", row.id);
                    ids.push(row.id);
                }
            }
            ids.sort_unstable();
            assert_eq!(ids, (1..=100).map(|place| place * 2).collect::<Vec<i64>>(), "{collections}");
        }
    }

    #[test]
    fn rows_by_json_are_the_same_rows() {
        let bytes = |format| {
            let load = KvLoad { format, ..load(ROWS) };
            let mut source = RowBatches(RowOrder::new(load));
            let mut out = Vec::new();
            while source.next_batch(&mut out).is_some() {}
            (out, source.0.json_bytes)
        };
        let (from_json, json_bytes) = bytes(LoadFormat::Json);
        assert!(from_json == bytes(LoadFormat::Bson).0, "bit by bit");
        assert!(json_bytes > 2000);
    }
}
