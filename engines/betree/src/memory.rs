//! Memory that is neither buffers nor nodes: accounts, an object pool, the memory of pages, the limit on
//! resident nodes.
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
