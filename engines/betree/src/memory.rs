//! Memory: accounts of what is held, an object pool, the memory of pages, and the limit on resident inner
//! nodes and filters. The buffers and nodes themselves are in `tree`.
//!
//! | module | content |
//! |---|---|
//! | `accounts` | memory that is held for a while, counted against the memory limit |
//! | `object_pool` | expensive short-lived objects, such as read buffers |
//! | [`page_memory`] | regions that hold cached pages |
//! | `resident_limit` | the limit on resident inner nodes and filters |
//!
//! Not here: the table of everything that counts against the limit (`background/memory_sharing.rs`), the page
//! cache (`cache`).

mod accounts;
mod object_pool;
pub(crate) mod page_memory;
mod resident_limit;

pub(crate) use accounts::{LENT_BYTES_MIN, MemoryAccounts};
pub(crate) use object_pool::ObjectPool;
#[cfg(test)]
pub(crate) use resident_limit::RESIDENT_PERCENT;
pub(crate) use resident_limit::{Releasable, ResidentBytes, ResidentLimit, ResidentTree};
