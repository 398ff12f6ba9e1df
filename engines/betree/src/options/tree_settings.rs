//! Tree settings: the layout of a tree. They apply to blocks that are written from now on; a stored block
//! tells by itself how it is read.

use pando_storage::ByteSize;

use crate::error::BetreeError;
use crate::format::content::Content;
use crate::space::Compression;

/// The layout of a tree's leaves and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeSettings {
    /// Bytes of a page before compression: the unit of reading. One entry may be larger.
    pub(crate) page_bytes: usize,
    /// Bytes of a leaf's pages before compression: the unit in which leaves are rewritten.
    pub(crate) leaf_bytes: usize,
    /// Children of an inner node at most.
    pub(crate) fanout: usize,
    /// The compression of leaves.
    pub(crate) compression: Compression,
    /// The compression of runs, which are read and written more often than leaves, and take less space.
    pub(crate) run_compression: Compression,
    /// The bytes pending for a leaf in the runs above it, on average, in hundredths of the leaf's size. With
    /// 0 there are no runs: buffers are flushed into leaves directly, as in a B-tree.
    pub(crate) buffer_percent: usize,
    /// The approximate bytes of a run: those pending for an inner node when they are flushed.
    pub(crate) run_bytes: usize,
    /// Bits that the filter of a slice has for each key; 0: no filters.
    pub(crate) filter_bits: usize,
    /// Bits that the filter of a leaf has for each key; 0, the default: no filters. A filter is worth its
    /// memory if many lookups are of missing keys.
    pub(crate) leaf_filter_bits: usize,
    /// A longer value is a large one, and stands in blocks of its own.
    pub(crate) large_value_bytes: usize,
}

impl Default for TreeSettings {
    fn default() -> TreeSettings {
        TreeSettings {
            page_bytes: 16 * 1024,
            leaf_bytes: 512 * 1024,
            fanout: 32,
            compression: Compression::Zstd(1),
            run_compression: Compression::Zstd(1),
            buffer_percent: 8,
            run_bytes: 1024 * 1024,
            filter_bits: 10,
            leaf_filter_bits: 0,
            large_value_bytes: 16 * 1024,
        }
    }
}

const KNOWN: &str = "compression and runCompression (none, lz4, snappy, zlib, zlib-1 … zlib-9, zstd, zstd-1 … zstd-19), pageSize (64B … 128KB), leafSize (512B … 8MB), \
                     fanout (4 … 512), bufferPercent (0 … 50), runSize (256B … 16MB), filterBits and leafFilterBits (0 … 32), largeValueSize (16B … 32MB)";

impl TreeSettings {
    /// The names of the settings.
    pub(crate) const NAMES: [&str; 10] = [
        "bufferPercent",
        "compression",
        "fanout",
        "filterBits",
        "largeValueSize",
        "leafFilterBits",
        "leafSize",
        "pageSize",
        "runCompression",
        "runSize",
    ];

    /// The value of a setting as [`with_options`](Self::with_options) reads it; `None` for an unknown name.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        Some(match name {
            "bufferPercent" => self.buffer_percent.to_string(),
            "compression" => compression_text(self.compression),
            "fanout" => self.fanout.to_string(),
            "filterBits" => self.filter_bits.to_string(),
            "largeValueSize" => self.large_value_bytes.to_string(),
            "leafFilterBits" => self.leaf_filter_bits.to_string(),
            "leafSize" => self.leaf_bytes.to_string(),
            "pageSize" => self.page_bytes.to_string(),
            "runCompression" => compression_text(self.run_compression),
            "runSize" => self.run_bytes.to_string(),
            _ => return None,
        })
    }

    /// These settings with some of them changed by name, each at most once.
    pub(crate) fn with_options(mut self, entries: &[(String, String)]) -> Result<TreeSettings, BetreeError> {
        for (name, value) in entries {
            match name.as_str() {
                "compression" => self.compression = parse_compression("compression", value)?,
                "runCompression" => self.run_compression = parse_compression("runCompression", value)?,
                "pageSize" => {
                    let expected = "a size from 64B to 128KB";
                    self.page_bytes = parse_size("pageSize", value, 64..=128 << 10, expected)?;
                }
                "leafSize" => {
                    let expected = "a size from 512B to 8MB";
                    self.leaf_bytes = parse_size("leafSize", value, 512..=8 << 20, expected)?;
                }
                "fanout" => self.fanout = parse_size("fanout", value, 4..=512, "a number from 4 to 512")?,
                "bufferPercent" => {
                    self.buffer_percent =
                        parse_size("bufferPercent", value, 0..=50, "hundredths of a leaf, from 0 to 50")?;
                }
                "runSize" => {
                    self.run_bytes =
                        parse_size("runSize", value, 256..=16 << 20, "a size from 256B to 16MB")?;
                }
                "filterBits" => {
                    self.filter_bits =
                        parse_size("filterBits", value, 0..=32, "bits for each key, from 0 to 32")?;
                }
                "leafFilterBits" => {
                    self.leaf_filter_bits =
                        parse_size("leafFilterBits", value, 0..=32, "bits for each key, from 0 to 32")?;
                }
                "largeValueSize" => {
                    self.large_value_bytes =
                        parse_size("largeValueSize", value, 16..=32 << 20, "a size from 16B to 32MB")?;
                }
                _ => return Err(BetreeError::UnknownOption { name: name.clone(), known: KNOWN }),
            }
        }
        let is_named = |wanted: &str| entries.iter().any(|(name, _)| name == wanted);
        if is_named("compression") && !is_named("runCompression") {
            self.run_compression = self.compression;
        }
        if self.leaf_bytes < self.page_bytes {
            let value = self.leaf_bytes.to_string();
            return Err(BetreeError::BadOption {
                name: "leafSize",
                value,
                expected: "at least the pageSize",
            });
        }
        Ok(self)
    }

    /// Whether this is a large value that is not in blocks of its own yet.
    pub(crate) fn is_large<B: AsRef<[u8]>>(&self, content: &Content<B>) -> bool {
        matches!(content, Content::Value(value) if value.as_ref().len() > self.large_value_bytes)
    }

    /// The pending target of a leaf ([`crate::tree::flush_policy`]).
    pub(crate) fn leaf_pending_target(&self) -> usize {
        (self.leaf_bytes * self.buffer_percent / 100).max(1)
    }
}

/// A compression by name: `none`, `lz4`, `snappy`, `zlib`, `zlib-LEVEL`, `zstd` or `zstd-LEVEL`.
pub(crate) fn parse_compression(name: &'static str, value: &str) -> Result<Compression, BetreeError> {
    let bad = || BetreeError::BadOption {
        name,
        value: value.to_owned(),
        expected: match cfg!(feature = "codecs") {
            true => "none, lz4, snappy, zlib, zlib-1 to zlib-9, zstd, or zstd-1 to zstd-19",
            false => {
                "none, lz4, zstd, or zstd-1 to zstd-19; build it with the feature 'codecs' for snappy and zlib"
            }
        },
    };
    match value {
        "snappy" | "zlib" if cfg!(not(feature = "codecs")) => Err(bad()),
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "snappy" => Ok(Compression::Snappy),
        "zlib" => Ok(Compression::Zlib(6)),
        "zstd" => Ok(Compression::Zstd(1)),
        other => {
            let (method, level) = other.split_once('-').ok_or_else(bad)?;
            match (method, level.parse::<i8>()) {
                ("zstd", Ok(level @ 1..=19)) => Ok(Compression::Zstd(level)),
                ("zlib", Ok(level @ 1..=9)) if cfg!(feature = "codecs") => {
                    Ok(Compression::Zlib(level.unsigned_abs()))
                }
                _ => Err(bad()),
            }
        }
    }
}

/// The name of a compression, as [`parse_compression`] reads it.
fn compression_text(compression: Compression) -> String {
    match compression {
        Compression::None => "none".to_owned(),
        Compression::Lz4 => "lz4".to_owned(),
        Compression::Snappy => "snappy".to_owned(),
        Compression::Zlib(level) => format!("zlib-{level}"),
        Compression::Zstd(level) => format!("zstd-{level}"),
    }
}

/// A number with an optional unit: `16KB`, `1MB`, `64B`, `32`.
pub(crate) fn parse_size(
    name: &'static str,
    value: &str,
    range: std::ops::RangeInclusive<usize>,
    expected: &'static str,
) -> Result<usize, BetreeError> {
    let bad = || BetreeError::BadOption { name, value: value.to_owned(), expected };
    let size = value.parse::<ByteSize>().ok().and_then(|size| usize::try_from(size.bytes()).ok());
    size.filter(|size| range.contains(size)).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use crate::options::tree_settings::*;

    fn parse(entries: &[(&str, &str)]) -> Result<TreeSettings, BetreeError> {
        let entries: Vec<_> =
            entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        TreeSettings::default().with_options(&entries)
    }

    #[test]
    fn options_are_read_by_name_and_unit() {
        let settings = parse(&[
            ("compression", "lz4"),
            ("pageSize", "8KB"),
            ("leafSize", "1MB"),
            ("fanout", "16"),
            ("bufferPercent", "0"),
            ("runSize", "64KB"),
            ("runCompression", "zstd-3"),
            ("filterBits", "12"),
            ("leafFilterBits", "8"),
            ("largeValueSize", "4KB"),
        ]);
        let expected = TreeSettings {
            page_bytes: 8192,
            leaf_bytes: 1 << 20,
            fanout: 16,
            compression: Compression::Lz4,
            run_compression: Compression::Zstd(3),
            buffer_percent: 0,
            run_bytes: 64 << 10,
            filter_bits: 12,
            leaf_filter_bits: 8,
            large_value_bytes: 4096,
        };
        assert_eq!(settings.unwrap(), expected);
    }

    #[test]
    fn runs_are_compressed_as_leaves_are_by_default() {
        assert_eq!(parse(&[("compression", "none")]).unwrap().run_compression, Compression::None);
        assert_eq!(
            parse(&[("runCompression", "lz4")]).unwrap().compression,
            TreeSettings::default().compression
        );
    }

    #[test]
    fn unknown_names_and_impossible_values_are_refused() {
        for entry in [
            ("colour", "blue"),
            ("compression", "gzip"),
            ("compression", "zstd-99"),
            ("compression", "zlib-10"),
            ("compression", "snappy-1"),
            ("runCompression", "gzip"),
            ("pageSize", "-1"),
            ("pageSize", "16XB"),
            ("pageSize", "99999999999999999999"),
            ("pageSize", "99999999999999999GB"),
            ("leafSize", "1KB"),
            ("fanout", "1"),
            ("bufferPercent", "51"),
            ("runSize", "17MB"),
            ("filterBits", "many"),
            ("leafFilterBits", "33"),
            ("largeValueSize", "15"),
            ("largeValueSize", "33MB"),
        ] {
            assert!(parse(&[entry]).is_err(), "{entry:?}");
        }
    }
}
