//! Conformance of the engine `betree` to the storage contract over encrypted stores, with tiny options.

use std::sync::Arc;

use pando_betree::{Betree, Options};
use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};
use pando_environment::Environment;

pando_conformance::engine_conformance!(encrypted, |folder| {
    let entries = [("pageSize", "256B"), ("leafSize", "2KB"), ("fanout", "4")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    options.cache_bytes = 1 << 20;
    options.partition_bytes = 2 << 10;
    options.transaction_memory_bytes = 1_000;
    options.range_delete_entries = 0;
    let key = SecretKey::from_bytes(&[7; 32]).expect("a key has 32 bytes");
    options.encryption = Some(Encryption { cipher: Cipher::Aes256Gcm, source: Arc::new(HeldKey::new(key)) });
    Betree::open(&Environment::real(), folder, options).expect("the store opens")
});
