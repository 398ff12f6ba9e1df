//! Conformance of the engine `betree` to the storage contract, with the options of a server, and with tiny
//! ones. With these each test splits leaves, evicts pages and flushes buffers.

use pando_betree::{Betree, Options};
use pando_environment::Environment;

pando_conformance::engine_conformance!(usual, |folder| {
    Betree::open(&Environment::real(), folder, Options::default()).expect("the store opens")
});

pando_conformance::engine_conformance!(tiny, |folder| {
    let entries = [("pageSize", "256B"), ("leafSize", "2KB"), ("fanout", "4")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    options.cache_bytes = 64 << 10;
    options.partition_bytes = 2 << 10;
    // However few entries a range has: it is deleted by a message.
    options.range_delete_entries = 0;
    Betree::open(&Environment::real(), folder, options).expect("the store opens")
});

// Every transaction with more than a write or two goes out of memory, and is committed in parts.
pando_conformance::engine_conformance!(spilling, |folder| {
    let mut options = Options::default();
    options.cache_bytes = 1 << 20;
    options.partition_bytes = 8 << 10;
    options.transaction_memory_bytes = 1_000;
    options.range_delete_entries = 0;
    Betree::open(&Environment::real(), folder, options).expect("the store opens")
});
