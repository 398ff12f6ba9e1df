//! The settings that can be changed while the store is open.

use pando_storage::StorageError;

use crate::failure::invalid;
use crate::options::RocksdbOptions;
use crate::store::Store;

impl Store {
    /// Memory for the block cache and write buffers together, in bytes.
    pub(crate) fn cache_bytes(&self) -> u64 {
        *self.cache_bytes.lock()
    }

    /// Changes settings, all or none.
    pub(crate) fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), StorageError> {
        if let Some((name, _)) = changes.iter().find(|(name, _)| *name != "cache") {
            let message =
                format!("the engine `rocksdb` has no setting `{name}` that can be changed: there is cache");
            return Err(invalid(message));
        }
        let entries: Vec<_> =
            changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let wanted = RocksdbOptions::default().with_entries(&entries)?.cache_bytes;
        let buffers = self.options.buffers();
        if wanted < 2 * buffers {
            let least = 2 * buffers;
            return Err(invalid(format!(
                "the cache cannot be {wanted} bytes: write buffers take {buffers} of it until the store is opened \
                 again, so give at least {least}"
            )));
        }
        let mut cache_bytes = self.cache_bytes.lock();
        // The handle is shared with RocksDB.
        self.tuning.cache().clone().set_capacity((wanted - buffers) as usize);
        *cache_bytes = wanted;
        Ok(())
    }
}
