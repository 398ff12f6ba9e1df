//! The options of a tree: the kind of table, its compression, its pages.

use pando_storage::StorageError;

use super::config_string::{TREE_KEYS, checked, value_of};
use super::{Bounds, bad_value, parse_size, parse_switch};
use crate::failure::refused;

/// The kind of table that a tree is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableType {
    /// A B-tree in a file of its own.
    Btree,
    /// A log-structured merge tree: chunks that are merged in the background.
    Lsm,
}

impl TableType {
    pub(super) fn parse(name: &str, value: &str) -> Result<TableType, StorageError> {
        match value {
            "btree" | "file" => Ok(TableType::Btree),
            "lsm" => Ok(TableType::Lsm),
            _ => Err(bad_value(name, value, "one of btree, lsm")),
        }
    }

    /// As WiredTiger calls it.
    const fn as_config(self) -> &'static str {
        match self {
            TableType::Btree => "file",
            TableType::Lsm => "lsm",
        }
    }
}

/// A compression that Debian's build of WiredTiger offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCompressor {
    /// Bytes as they are.
    None,
    /// Fast, about half the size.
    Snappy,
    /// Slower, smaller.
    Zlib,
}

impl BlockCompressor {
    pub(super) fn parse(name: &str, value: &str) -> Result<BlockCompressor, StorageError> {
        match value {
            "none" => Ok(BlockCompressor::None),
            "snappy" => Ok(BlockCompressor::Snappy),
            "zlib" => Ok(BlockCompressor::Zlib),
            _ => Err(bad_value(name, value, "one of none, snappy, zlib (Debian's WiredTiger has no other)")),
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            BlockCompressor::None => "none",
            BlockCompressor::Snappy => "snappy",
            BlockCompressor::Zlib => "zlib",
        }
    }
}

/// The use of a tree, which decides its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeKind {
    /// Documents, or records of the database.
    Collection,
    /// Entries of an index.
    Index,
}

impl TreeKind {
    /// By the name: the catalog calls the trees of indexes `index-NUMBER`. A name tells no more than a
    /// default, so a tree of another name works as well.
    pub(crate) fn of_name(name: &str) -> TreeKind {
        if name.starts_with("index-") { TreeKind::Index } else { TreeKind::Collection }
    }
}

/// The layout of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeSettings {
    pub(crate) table_type: TableType,
    pub(crate) compressor: BlockCompressor,
    pub(crate) prefix_compression: bool,
    /// Bytes of a leaf page before compression.
    pub(crate) leaf_page_bytes: u64,
    /// Bytes of an inner page before compression.
    pub(crate) internal_page_bytes: u64,
    /// Bytes that an LSM tree keeps in memory before it begins a new chunk; `None`: what suits the cache.
    pub(crate) chunk_bytes: Option<u64>,
    /// Further settings in WiredTiger's own words.
    pub(crate) config_string: String,
}

const KNOWN: &str = "type (btree, lsm), blockCompressor (none, snappy, zlib), prefixCompression (on, off), leafPageSize, \
                     internalPageSize, chunkSize, configString";
const PAGE: Bounds = Bounds { least: 4 << 10, most: 16 << 20, expected: "a power of two from 4KB to 16MB" };
const CHUNK: Bounds = Bounds { least: 512 << 10, most: 500 << 20, expected: "a size from 512KB to 500MB" };

/// The chunk of an LSM tree where the cache is large.
const CHUNK_BYTES_MAX: u64 = 10 << 20;

impl TreeSettings {
    /// As MongoDB has them for collections.
    pub(super) fn of_collections() -> TreeSettings {
        TreeSettings {
            table_type: TableType::Btree,
            compressor: BlockCompressor::Snappy,
            prefix_compression: false,
            leaf_page_bytes: 32 << 10,
            internal_page_bytes: 16 << 10,
            chunk_bytes: None,
            config_string: String::new(),
        }
    }

    /// As MongoDB has them for indexes.
    pub(super) fn of_indexes() -> TreeSettings {
        TreeSettings {
            compressor: BlockCompressor::None,
            prefix_compression: true,
            leaf_page_bytes: 16 << 10,
            ..TreeSettings::of_collections()
        }
    }

    /// These settings with some changed by name.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub(crate) fn with_entries(mut self, entries: &[(String, String)]) -> Result<TreeSettings, StorageError> {
        for (name, value) in entries {
            let value = value.as_str();
            match name.as_str() {
                "type" => self.table_type = TableType::parse(name, value)?,
                "blockCompressor" => self.compressor = BlockCompressor::parse(name, value)?,
                "prefixCompression" => self.prefix_compression = parse_switch(name, value)?,
                "leafPageSize" => self.leaf_page_bytes = parse_page(name, value)?,
                "internalPageSize" => self.internal_page_bytes = parse_page(name, value)?,
                "chunkSize" => self.chunk_bytes = Some(parse_size(name, value, CHUNK)?),
                "configString" => self.config_string = checked(name, value, &TREE_KEYS)?.to_owned(),
                _ => {
                    return Err(refused(format!(
                        "a tree of the engine `wiredtiger` has no option `{name}`: there are {KNOWN}"
                    )));
                }
            }
        }
        if let Some(value) = value_of(&self.config_string, "type") {
            self.table_type = TableType::parse("configString: type", value)?;
        }
        Ok(self)
    }

    /// The configuration with which the table is created.
    pub(crate) fn create_config(&self, cache_bytes: u64) -> String {
        let TreeSettings { compressor, prefix_compression, leaf_page_bytes, internal_page_bytes, .. } = self;
        // The library wants room for three chunks in its cache, and a little more.
        let fitting = || (cache_bytes / 8).clamp(CHUNK.least, CHUNK_BYTES_MAX);
        let chunk_bytes = self.chunk_bytes.unwrap_or_else(fitting);
        // The last of two settings of one name counts: those on which the engine rests come last.
        format!(
            "block_compressor={},prefix_compression={prefix_compression},leaf_page_max={leaf_page_bytes},\
             internal_page_max={internal_page_bytes},memory_page_max=10MB,lsm=(chunk_size={chunk_bytes}),\
             {},type={},key_format=u,value_format=u,log=(enabled=true)",
            compressor.as_str(),
            self.config_string,
            self.table_type.as_config(),
        )
    }
}

fn parse_page(name: &str, value: &str) -> Result<u64, StorageError> {
    match parse_size(name, value, PAGE)? {
        bytes if bytes.is_power_of_two() => Ok(bytes),
        _ => Err(bad_value(name, value, PAGE.expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Result<TreeSettings, String> {
        let owned: Vec<_> =
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TreeSettings::of_collections().with_entries(&owned).map_err(|error| error.to_string())
    }

    #[test]
    fn a_configuration_in_the_words_of_mongodb_is_honoured() {
        let settings =
            with(&[("configString", "type=lsm,block_compressor=zlib,lsm=(chunk_size=1MB,merge_max=20)")]);
        let settings = settings.expect("the configuration is possible");
        assert_eq!(settings.table_type, TableType::Lsm);
        let config = settings.create_config(64 << 20);
        let at = |part: &str| config.rfind(part).unwrap_or_else(|| panic!("{part} is not in {config}"));
        assert!(at("block_compressor=zlib") > at("block_compressor=snappy"));
        assert!(at("type=lsm") > at("chunk_size=1MB"));
    }

    #[test]
    fn wrong_options_of_a_tree_are_refused() {
        for (name, value, word) in [
            ("compression", "zlib", "blockCompressor"),
            ("leafPageSize", "5000", "a power of two"),
            ("configString", "type=table", "btree, lsm"),
            ("configString", "lsm=(chunk_count_limit=3)", "chunk_count_limit"),
            ("configString", "log=(enabled=false)", "`log`"),
            ("configString", "lsm=(chunk_size=1MB", "not closed"),
        ] {
            let told = with(&[(name, value)]).expect_err("it is impossible");
            assert!(told.contains(word), "{name}={value}: {told}");
        }
    }
}
