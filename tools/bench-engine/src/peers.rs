//! The peers, one file each. All but `betree` and those whose name ends with `engine` are bare libraries,
//! behind a cargo feature of their name.

pub mod betree;
pub mod contract;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "lmdb-engine")]
pub mod lmdb_engine;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "rocksdb-engine")]
pub mod rocksdb_engine;
#[cfg(feature = "wiredtiger")]
pub mod wiredtiger;
#[cfg(feature = "wiredtiger-engine")]
pub mod wiredtiger_engine;

#[cfg(test)]
mod tests;
