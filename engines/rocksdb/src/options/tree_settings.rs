//! Tree settings: how RocksDB stores the trees of one column family.
//!
//! Their text is the name of the column family, so a store tells by itself how each of its trees is stored.

use std::fmt;

use pando_storage::StorageError;

use super::values::{parse_choice, parse_size};
use crate::failure::invalid;

/// How blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Snappy,
    Lz4,
    Zlib,
    /// With this level.
    Zstd(i8),
}

/// How RocksDB merges sorted runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compaction {
    /// Each level is one run, ten times as long as the one above: fewest reads and least space.
    Leveled,
    /// Runs of about the same length are merged: fewest writes.
    Universal,
}

/// The settings of a column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeSettings {
    pub(crate) compression: Compression,
    /// The compression of the last level, which has most of the data.
    pub(crate) bottom_compression: Compression,
    /// Bytes of a block before compression: the unit of reading.
    pub(crate) page_bytes: u64,
    /// Bits that the Bloom filter of a table file has for each key; 0: none.
    pub(crate) filter_bits: u64,
    pub(crate) compaction: Compaction,
}

impl Default for TreeSettings {
    fn default() -> TreeSettings {
        TreeSettings {
            compression: Compression::Lz4,
            bottom_compression: Compression::Zstd(1),
            page_bytes: 16 << 10,
            filter_bits: 10,
            compaction: Compaction::Leveled,
        }
    }
}

pub(crate) const KNOWN: &str = "compression and bottomCompression (none, snappy, lz4, zlib, zstd, zstd-1 … zstd-19), \
                                pageSize (1KB … 1MB), filterBits (0 … 32), compaction (leveled, universal)";

impl TreeSettings {
    /// The names of all settings.
    pub(crate) const NAMES: [&str; 5] =
        ["compression", "bottomCompression", "pageSize", "filterBits", "compaction"];

    /// These settings with some of them changed by name, each at most once.
    pub(crate) fn with_options(mut self, entries: &[(String, String)]) -> Result<TreeSettings, StorageError> {
        for (name, value) in entries {
            match name.as_str() {
                "compression" => self.compression = parse_compression("compression", value)?,
                "bottomCompression" => {
                    self.bottom_compression = parse_compression("bottomCompression", value)?
                }
                "pageSize" => self.page_bytes = parse_size("pageSize", value, 1 << 10..=1 << 20)?,
                "filterBits" => self.filter_bits = parse_size("filterBits", value, 0..=32)?,
                "compaction" => {
                    let kinds = [("leveled", Compaction::Leveled), ("universal", Compaction::Universal)];
                    self.compaction = parse_choice("compaction", value, &kinds)?;
                }
                _ => {
                    let message =
                        format!("trees of the engine `rocksdb` have no option `{name}`: there are {KNOWN}");
                    return Err(invalid(message));
                }
            }
        }
        let is_named = |wanted: &str| entries.iter().any(|(name, _)| name == wanted);
        if is_named("compression") && !is_named("bottomCompression") {
            self.bottom_compression = self.compression;
        }
        Ok(self)
    }

    /// The settings of a column family; `None` where its name is none that this engine gives.
    pub(crate) fn of_family_name(name: &str) -> Option<TreeSettings> {
        let entry =
            |text: &str| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let entries: Vec<_> = name.split(',').map(entry).collect::<Option<_>>()?;
        let settings = TreeSettings::default().with_options(&entries).ok()?;
        (settings.family_name() == name).then_some(settings)
    }

    /// The name of the column family for trees with these settings.
    pub(crate) fn family_name(&self) -> String {
        let compaction = match self.compaction {
            Compaction::Leveled => "leveled",
            Compaction::Universal => "universal",
        };
        format!(
            "compression={},bottomCompression={},pageSize={},filterBits={},compaction={compaction}",
            self.compression, self.bottom_compression, self.page_bytes, self.filter_bits
        )
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Snappy => f.write_str("snappy"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zlib => f.write_str("zlib"),
            Compression::Zstd(level) => write!(f, "zstd-{level}"),
        }
    }
}

fn parse_compression(name: &str, value: &str) -> Result<Compression, StorageError> {
    let level = value.strip_prefix("zstd-").and_then(|level| level.parse::<i8>().ok());
    if let Some(level @ 1..=19) = level {
        return Ok(Compression::Zstd(level));
    }
    let words = [
        ("none", Compression::None),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zlib", Compression::Zlib),
        ("zstd", Compression::Zstd(1)),
    ];
    parse_choice(name, value, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Result<TreeSettings, String> {
        let entries: Vec<_> =
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TreeSettings::default().with_options(&entries).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_read_back_from_the_name_of_their_column_family() {
        let some = [
            with(&[]),
            with(&[("compression", "none"), ("compaction", "universal"), ("filterBits", "0")]),
            with(&[("compression", "zlib"), ("bottomCompression", "zstd-12"), ("pageSize", "4KB")]),
            with(&[("compression", "snappy")]),
        ];
        for settings in some {
            let settings = settings.expect("good options");
            assert_eq!(TreeSettings::of_family_name(&settings.family_name()), Some(settings));
        }
        for foreign in ["", "default", "compression=lz4", "compression=lzma,compaction=leveled", "=,="] {
            assert_eq!(TreeSettings::of_family_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_last_level_is_compressed_as_the_others_unless_asked_otherwise() {
        let settings = with(&[("compression", "snappy")]).expect("a compression");
        assert_eq!(settings.bottom_compression, Compression::Snappy);
        assert_eq!(with(&[]).map(|settings| settings.bottom_compression), Ok(Compression::Zstd(1)));
    }

    #[test]
    fn unknown_names_and_impossible_values_are_refused() {
        for (name, value) in [
            ("colour", "blue"),
            ("fanout", "16"),
            ("compression", "gzip"),
            ("compression", "zstd-99"),
            ("bottomCompression", "zstd--1"),
            ("pageSize", "512"),
            ("pageSize", "16XB"),
            ("pageSize", "99999999999999999GB"),
            ("filterBits", "33"),
            ("compaction", "fifo"),
        ] {
            let refused = with(&[(name, value)]).expect_err(value);
            assert!(refused.contains(name), "{refused}");
        }
    }
}
