//! The options of a store and of a tree: typed, each with a name. Unknown names are refused with the list of
//! known ones.
//!
//! A tree takes, in this order, the first that says something: its own options (the section `storageEngine`
//! of a collection or an index), the store's options for collections or indexes, the defaults.

mod config_string;
mod tree_options;

use std::time::Duration;

use pando_storage::{ByteSize, StorageError};

use crate::failure::refused;
use config_string::{CONNECTION_KEYS, TREE_KEYS, checked};

pub use tree_options::{BlockCompressor, TableType};
pub(crate) use tree_options::{TreeKind, TreeSettings};

/// The options of a store in WiredTiger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredTigerOptions {
    /// WiredTiger's cache, in bytes; at least 1 MiB. Default: 256 MiB.
    pub cache_bytes: u64,
    /// The time between two checkpoints. Default: 60 s.
    pub checkpoint_period: Duration,
    /// A checkpoint comes sooner when the journal has grown by this many bytes. Default: 2 GiB.
    pub checkpoint_journal_bytes: u64,
    /// The compression of the journal. Default: snappy.
    pub journal_compressor: BlockCompressor,
    /// The size of a file of the journal, in bytes. Default: 32 MiB.
    pub journal_file_bytes: u64,
    /// Transactions that may live at once; more are refused as [`Busy`](pando_storage::ErrorKind::Busy).
    /// Default: 16,384.
    pub sessions_max: u32,
    pub(crate) collections: TreeSettings,
    pub(crate) indexes: TreeSettings,
    /// Further settings in WiredTiger's own words.
    pub(crate) config_string: String,
}

impl Default for WiredTigerOptions {
    fn default() -> WiredTigerOptions {
        WiredTigerOptions {
            cache_bytes: 256 << 20,
            checkpoint_period: Duration::from_secs(60),
            checkpoint_journal_bytes: 2 << 30,
            journal_compressor: BlockCompressor::Snappy,
            journal_file_bytes: 32 << 20,
            sessions_max: 16_384,
            collections: TreeSettings::of_collections(),
            indexes: TreeSettings::of_indexes(),
            config_string: String::new(),
        }
    }
}

/// How long a transaction waits for room in the cache, in all. WiredTiger's own default is for ever: pages
/// with uncommitted changes cannot leave the cache, so that large transactions at once can fill it with them.
const CACHE_WAIT_MS_MAX: u32 = 30_000;

const KNOWN: &str = "type, collectionType, indexType (btree, lsm), blockCompressor, indexBlockCompressor, journalCompressor (none, \
                     snappy, zlib), prefixCompression (on, off), cache, checkpointPeriod (seconds), checkpointJournalSize, \
                     journalFileSize, sessionsMax, configString, collectionConfigString, indexConfigString";

impl WiredTigerOptions {
    /// These options with some changed by name: sizes as `256MB`, times in seconds.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub fn with_entries(mut self, entries: &[(String, String)]) -> Result<WiredTigerOptions, StorageError> {
        for (name, value) in entries {
            let value = value.as_str();
            match name.as_str() {
                "type" => {
                    let table_type = TableType::parse(name, value)?;
                    (self.collections.table_type, self.indexes.table_type) = (table_type, table_type);
                }
                "collectionType" => self.collections.table_type = TableType::parse(name, value)?,
                "indexType" => self.indexes.table_type = TableType::parse(name, value)?,
                "blockCompressor" => self.collections.compressor = BlockCompressor::parse(name, value)?,
                "indexBlockCompressor" => self.indexes.compressor = BlockCompressor::parse(name, value)?,
                "prefixCompression" => self.indexes.prefix_compression = parse_switch(name, value)?,
                "journalCompressor" => self.journal_compressor = BlockCompressor::parse(name, value)?,
                "cache" => self.cache_bytes = parse_size(name, value, CACHE)?,
                "checkpointPeriod" => {
                    let bounds = Bounds { least: 1, most: 86_400, expected: "seconds, from 1 to 86400" };
                    self.checkpoint_period = Duration::from_secs(parse_size(name, value, bounds)?);
                }
                "checkpointJournalSize" => {
                    let bounds = Bounds { least: 1 << 20, most: 2 << 30, expected: "a size from 1MB to 2GB" };
                    self.checkpoint_journal_bytes = parse_size(name, value, bounds)?;
                }
                "journalFileSize" => {
                    let bounds = Bounds { least: 1 << 20, most: 2 << 30, expected: "a size from 1MB to 2GB" };
                    self.journal_file_bytes = parse_size(name, value, bounds)?;
                }
                "sessionsMax" => {
                    let bounds = Bounds { least: 64, most: 100_000, expected: "a number from 64 to 100000" };
                    self.sessions_max = parse_size(name, value, bounds)? as u32;
                }
                "configString" => self.config_string = checked(name, value, &CONNECTION_KEYS)?.to_owned(),
                "collectionConfigString" => {
                    self.collections.config_string = checked(name, value, &TREE_KEYS)?.to_owned()
                }
                "indexConfigString" => {
                    self.indexes.config_string = checked(name, value, &TREE_KEYS)?.to_owned()
                }
                _ => {
                    return Err(refused(format!(
                        "the engine `wiredtiger` has no option `{name}`: there are {KNOWN}"
                    )));
                }
            }
        }
        Ok(self)
    }

    /// The configuration with which WiredTiger opens the database.
    pub(crate) fn connection_config(&self) -> String {
        let compressor = self.journal_compressor.as_str();
        // The last of two settings of one name counts: those on which the contract rests come last.
        format!(
            "cache_max_wait_ms={CACHE_WAIT_MS_MAX},{},create=true,config_base=false,use_environment=false,cache_size={},session_max={},statistics=(fast),\
             extensions=[\"libwiredtiger_snappy.so\"=(early_load=true),\"libwiredtiger_zlib.so\"=(early_load=true)],\
             log=(enabled=true,archive=true,prealloc=false,compressor={},file_max={}),\
             transaction_sync=(enabled=false,method=fsync),checkpoint=({})",
            self.config_string,
            self.cache_bytes,
            self.sessions_max + SESSIONS_OF_THE_LIBRARY,
            if compressor == "none" { "" } else { compressor },
            self.journal_file_bytes,
            self.checkpoint_config(),
        )
    }

    /// The part of the configuration that says when checkpoints are made.
    pub(crate) fn checkpoint_config(&self) -> String {
        format!("wait={},log_size={}", self.checkpoint_period.as_secs(), self.checkpoint_journal_bytes)
    }

    /// The settings for a tree, which its name and its own options decide.
    pub(crate) fn tree_settings(
        &self,
        name: &str,
        entries: &[(String, String)],
    ) -> Result<TreeSettings, StorageError> {
        let settings = match TreeKind::of_name(name) {
            TreeKind::Collection => &self.collections,
            TreeKind::Index => &self.indexes,
        };
        settings.clone().with_entries(entries)
    }
}

/// Sessions beyond those of transactions: of commits, of this engine's tasks, and of the library's own
/// threads.
const SESSIONS_OF_THE_LIBRARY: u32 = 512;

/// The possible sizes of the cache.
const CACHE: Bounds = Bounds { least: 1 << 20, most: 10 << 40, expected: "a size from 1MB to 10240GB" };

/// The numbers that an option takes.
#[derive(Clone, Copy)]
struct Bounds {
    least: u64,
    most: u64,
    /// For the message.
    expected: &'static str,
}

/// A number, or a size such as `16KB`.
fn parse_size(name: &str, value: &str, bounds: Bounds) -> Result<u64, StorageError> {
    let size = value.parse::<ByteSize>().ok().map(ByteSize::bytes);
    size.filter(|size| (bounds.least..=bounds.most).contains(size))
        .ok_or_else(|| bad_value(name, value, bounds.expected))
}

fn parse_switch(name: &str, value: &str) -> Result<bool, StorageError> {
    match value {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err(bad_value(name, value, "on or off")),
    }
}

fn bad_value(name: &str, value: &str, expected: &str) -> StorageError {
    refused(format!(
        "the option `{name}` of the engine `wiredtiger` cannot be `{value}`: it takes {expected}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Result<WiredTigerOptions, String> {
        let owned: Vec<_> =
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        WiredTigerOptions::default().with_entries(&owned).map_err(|error| error.to_string())
    }

    #[test]
    fn each_option_has_its_effect() {
        let options = with(&[
            ("type", "lsm"),
            ("indexType", "btree"),
            ("blockCompressor", "zlib"),
            ("journalCompressor", "none"),
            ("cache", "64MB"),
            ("checkpointPeriod", "5"),
            ("journalFileSize", "4MB"),
            ("configString", "eviction=(threads_max=2)"),
            ("indexConfigString", "leaf_page_max=8KB"),
        ])
        .expect("the options are possible");
        assert_eq!(
            (options.collections.table_type, options.indexes.table_type),
            (TableType::Lsm, TableType::Btree)
        );
        assert_eq!(options.collections.compressor, BlockCompressor::Zlib);
        let config = options.connection_config();
        for part in
            ["cache_size=67108864", "compressor=,file_max=4194304", "wait=5,", "eviction=(threads_max=2),"]
        {
            assert!(config.contains(part), "{part} is not in {config}");
        }
        let index = options
            .tree_settings("index-7", &[])
            .expect("there are no options")
            .create_config(options.cache_bytes);
        assert!(index.contains("leaf_page_max=8KB") && index.contains("type=file"), "{index}");
        let collection = options
            .tree_settings("collection-8", &[])
            .expect("there are no options")
            .create_config(options.cache_bytes);
        assert!(
            collection.contains("type=lsm") && collection.contains("block_compressor=zlib"),
            "{collection}"
        );
    }

    #[test]
    fn wrong_names_and_values_are_refused_with_the_possible_ones() {
        for (name, value, words) in [
            ("nonsense", "1", ["`nonsense`", "collectionType"]),
            ("type", "hash", ["`hash`", "btree, lsm"]),
            ("blockCompressor", "zstd", ["`zstd`", "none, snappy, zlib"]),
            ("cache", "12", ["`12`", "from 1MB"]),
            ("checkpointPeriod", "0", ["`0`", "from 1 to 86400"]),
            ("prefixCompression", "maybe", ["`maybe`", "on or off"]),
            ("configString", "log=(enabled=false)", ["`log`", "eviction"]),
            ("collectionConfigString", "key_format=S", ["`key_format`", "leaf_page_max"]),
        ] {
            let told = with(&[(name, value)]).expect_err("it is impossible");
            assert!(words.iter().all(|word| told.contains(word)), "{name}: {told}");
        }
    }
}
