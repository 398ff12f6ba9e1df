//! Write amplification of filling an index: by commits of sorted chunks (documents read in the order of other
//! keys), and by one bulk load.
//!
//! `cargo run --release -p pando-betree --example bulk_load -- FOLDER [ENTRIES] [CACHE_MB]`
//!
//! Entries have random keys of 22 bytes (8 random, 14 of a counter) and no value. The result counts the bytes
//! that are written to the log and to the data file until the tree is on the device.

use std::path::{Path, PathBuf};

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{
    Begin, Durability, Engine, IteratorEntries, LoadDurability, StorageError, TreeId, TreeOptions,
};

const CHUNK_ENTRIES: usize = 50_000;

type Key = [u8; 22];

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let number = |text: Option<String>, usual| text.map_or(usual, |text| text.parse().expect("a number"));
    let entries = number(arguments.next(), 3_000_000);
    let cache = number(arguments.next(), 32);
    let chance = SeededRandom::new(1);
    let mut keys: Vec<Key> = (0..entries).map(|counter| key_of(&chance, counter)).collect();
    measure(&folder.join("chunks"), cache, "chunks of commits", entries, |engine, tree| {
        for chunk in keys.chunks_mut(CHUNK_ENTRIES) {
            chunk.sort_unstable();
            let mut writer = engine.begin(Begin::WRITE)?;
            for key in chunk {
                writer.put_blind(tree, key, &[])?;
            }
            writer.commit(Durability::None)?;
        }
        engine.checkpoint()
    })?;
    keys.sort_unstable();
    measure(&folder.join("load"), cache, "one load", entries, |engine, tree| {
        let mut sorted = IteratorEntries::new(keys.iter().map(|key| (key.as_slice(), &[][..])));
        engine.load(tree, &mut sorted, LoadDurability::Durable).map(|_| ())
    })
}

fn key_of(chance: &SeededRandom, counter: u64) -> Key {
    let mut key = [0; 22];
    key[..8].copy_from_slice(&chance.next_u64().to_be_bytes());
    key[14..].copy_from_slice(&counter.to_be_bytes());
    key
}

fn measure(
    folder: &Path,
    cache_mb: u64,
    name: &str,
    entries: u64,
    fill: impl FnOnce(&Betree, TreeId) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let mut options = Options::default();
    options.cache_bytes = cache_mb << 20;
    let engine = Betree::open(&Environment::real(), folder, options)?;
    let tree = engine.create_tree("index", &TreeOptions::default())?;
    fill(&engine, tree)?;
    let statistics = engine.statistics();
    let figure = |wanted: &str| {
        let found = statistics.iter().find(|(name, _)| *name == wanted);
        found.map_or(0, |(_, value)| value) as f64 / entries as f64
    };
    println!(
        "{name}: log {:.1}, data written {:.1}, read {:.1}, size {:.1} bytes an entry",
        figure("log.write_bytes"),
        figure("data.write_bytes"),
        figure("data.read_bytes"),
        engine.bytes_on_disk(Some(tree))? as f64 / entries as f64,
    );
    engine.close()
}
