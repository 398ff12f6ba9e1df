//! Memory: accounts of what is held, pools of expensive objects, regions for pages.

mod accounts;
mod object_pool;
pub(crate) mod page_memory;
mod resident_limit;

pub(crate) use accounts::{LENT_LEAST, MemoryAccounts};
pub(crate) use object_pool::ObjectPool;
#[cfg(test)]
pub(crate) use resident_limit::RESIDENT_PERCENT;
pub(crate) use resident_limit::{Releasable, ResidentBytes, ResidentLimit, ResidentTree};
