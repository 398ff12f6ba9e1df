//! The cost of documents of some kilobytes under random keys, in pages or out of line: bytes written for
//! each, reads for each get, space.
//!
//! `cargo run --release -p pando-betree --example large_values -- FOLDER LARGE_VALUE_SIZE [DOCUMENTS]
//! [DOCUMENT_BYTES] [CACHE_MB]`
//!
//! 1. Each document is inserted in a transaction of its own, with an entry of an index on another field.
//! 2. As many random ones are updated. An update writes the document anew and moves its index entry.
//! 3. Random ones are read, by key and by scans of ten.
//!
//! Documents compress to about two fifths, as text with random parts does. The output has counters only, no
//! times. LARGE_VALUE_SIZE 32MB keeps all values in pages. The folder must not exist yet; it is kept.

use std::path::PathBuf;

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, StorageError, TreeId, TreeOptions,
};

const GETS: u64 = 20_000;
const SCANS: u64 = 2_000;

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let size = arguments.next().expect("the second argument is a size: 4KB, 16KB, 32MB");
    let mut number = |usual| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (documents, bytes, cache): (u64, u64, u64) = (number(20_000), number(20_000), number(32));
    let mut options = Options::default()
        .with_entries(&[("largeValueSize".to_owned(), size.clone())])
        .expect("the size is possible");
    options.cache_bytes = cache << 20;
    let engine = Betree::open(&Environment::real(), &folder, options.clone())?;
    let trees = Trees {
        documents: engine.create_tree("documents", &TreeOptions::default())?,
        index: engine.create_tree("index", &TreeOptions::default())?,
    };
    println!("{documents} documents of {bytes} bytes, cache {cache} MB, largeValueSize {size}");
    let mut before = Figures::of(&engine);
    for number in 0..documents {
        trees.write(&engine, number, bytes as usize, None, 0)?;
    }
    engine.checkpoint()?;
    before = before.report(&engine, "inserts", documents);
    let mut fields = vec![0; documents as usize];
    for round in 1..=documents {
        let number = scattered(round) % documents;
        let old = std::mem::replace(&mut fields[number as usize], round);
        trees.write(&engine, number, bytes as usize, Some(old), round)?;
    }
    engine.checkpoint()?;
    engine.checkpoint()?;
    before.report(&engine, "updates", documents);
    let disk = engine.bytes_on_disk(None)?;
    println!(
        "on disk {:.1} MB: {:.2} bytes for each byte",
        disk as f64 / 1e6,
        disk as f64 / (documents * bytes) as f64
    );
    engine.close()?;
    drop(engine);
    let engine = Betree::open(&Environment::real(), &folder, options)?;
    trees.read(&engine, documents)?;
    for (name, value) in engine.statistics().iter().filter(|(name, _)| name.starts_with("cache.")) {
        println!("  {name} {value}");
    }
    engine.close()
}

struct Trees {
    documents: TreeId,
    index: TreeId,
}

impl Trees {
    /// Writes a document and its index entry in the place of the old one.
    fn write(
        &self,
        engine: &Betree,
        number: u64,
        bytes: usize,
        old: Option<u64>,
        field: u64,
    ) -> Result<(), StorageError> {
        let mut writer = engine.begin(Begin::WRITE)?;
        writer.put(self.documents, &key(number), &document(number, field, bytes))?;
        if let Some(old) = old {
            writer.delete_blind(self.index, &index_key(old, number))?;
        }
        writer.put_blind(self.index, &index_key(field, number), &[])?;
        writer.commit(Durability::Logged)?;
        Ok(())
    }

    fn read(&self, engine: &Betree, documents: u64) -> Result<(), StorageError> {
        let reader = engine.begin(Begin::READ)?;
        let before = Figures::of(engine);
        for round in 0..GETS {
            let number = scattered(round) % documents;
            assert!(
                reader.get(self.documents, &key(number), BlockingMode::MayBlock)?.is_some(),
                "it was inserted"
            );
        }
        let before = before.report(engine, "gets", GETS);
        for round in 0..SCANS {
            let range = KeyRange {
                lower: std::ops::Bound::Included(key(scattered(round) % documents).to_vec()),
                upper: std::ops::Bound::Unbounded,
            };
            let mut cursor = Cursor::new(self.documents, range, Direction::Forward).expecting(10);
            for _ in 0..10 {
                cursor.next(&*reader, BlockingMode::MayBlock)?;
            }
        }
        before.report(engine, "scans of 10", SCANS);
        Ok(())
    }
}

/// Random, but told by its number: the finisher of splitmix64, which is a permutation.
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn key(number: u64) -> [u8; 8] {
    scattered(number).to_be_bytes()
}

fn index_key(field: u64, number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&scattered(field).to_be_bytes());
    bytes[8..].copy_from_slice(&key(number));
    bytes
}

/// A third of it is random, the rest is from a few words.
fn document(number: u64, field: u64, bytes: usize) -> Vec<u8> {
    const WORDS: [&[u8]; 4] = [b"customer", b"address of delivery", b"order", b"price in cents"];
    let random = SeededRandom::new(scattered(number) ^ field);
    let mut document = Vec::with_capacity(bytes + 32);
    while document.len() < bytes {
        document.extend_from_slice(WORDS[random.below(4) as usize]);
        document.extend_from_slice(&random.next_u64().to_le_bytes()[..5]);
    }
    document.truncate(bytes);
    document
}

/// The engine's counters of device traffic.
struct Figures {
    data: u64,
    log: u64,
    read: u64,
    reads: u64,
    by_cause: Vec<u64>,
}

const CAUSES: [&str; 4] = ["large_values", "leaves", "runs", "nodes"];

impl Figures {
    fn of(engine: &Betree) -> Figures {
        let statistics = engine.statistics();
        let figure =
            |wanted: &str| statistics.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, value)| value);
        Figures {
            data: figure("data.write_bytes"),
            log: figure("log.write_bytes"),
            read: figure("data.read_bytes"),
            reads: figure("data.reads"),
            by_cause: CAUSES.iter().map(|cause| figure(&format!("{cause}.bytes_written"))).collect(),
        }
    }

    /// Prints the traffic since, divided by `count`. Returns the figures now.
    fn report(self, engine: &Betree, what: &str, count: u64) -> Figures {
        let now = Figures::of(engine);
        let each = |new: u64, old: u64| (new - old) as f64 / count as f64;
        println!(
            "{what}, each: {:.0} bytes written to data, {:.0} to the log; {:.3} reads of {:.0} bytes in all",
            each(now.data, self.data),
            each(now.log, self.log),
            each(now.reads, self.reads),
            each(now.read, self.read),
        );
        for ((cause, new), old) in CAUSES.iter().zip(&now.by_cause).zip(&self.by_cause) {
            println!("  {cause}: {:.0} bytes written", each(*new, *old));
        }
        now
    }
}
