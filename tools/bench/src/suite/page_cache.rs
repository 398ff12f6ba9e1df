//! The kernel's page cache: files are taken out of it, so that a cold run is cold.

use crate::error::{BenchError, unreadable};
use pando_measuring::page_cache;
use std::path::Path;

/// The kernel's switch that drops all clean pages; for root.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Drops what the page cache holds of a folder whose server has ended. Gives how, in words.
pub fn drop_of(folder: &Path) -> Result<&'static str, BenchError> {
    // Dirty pages are kept: everything is written first.
    rustix::fs::sync();
    if std::fs::write(DROP_CACHES, "3").is_ok() {
        return Ok("the machine's page cache dropped");
    }
    page_cache::forget(folder).map_err(unreadable(folder))?;
    Ok("the page cache of its files given back")
}
