//! The peers, one file each. All but `betree` and `rocksdb_engine` are bare libraries, behind a cargo feature
//! of their name.

pub mod betree;
pub mod contract;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "rocksdb-engine")]
pub mod rocksdb_engine;

#[cfg(test)]
mod tests;
