//! Memory: accounts of what is held, pools of expensive objects, regions for pages.

mod accounts;
mod object_pool;
pub(crate) mod page_memory;

pub(crate) use accounts::{LENT_LEAST, MemoryAccounts};
pub(crate) use object_pool::ObjectPool;
