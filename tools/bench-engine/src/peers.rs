//! The peers, one file each. All but `betree` are bare libraries, behind a cargo feature of their name.

pub mod betree;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;

#[cfg(test)]
mod tests;
