//! Compression of block payloads: none, LZ4, Snappy, zlib, Zstandard, or Zstandard with rows stored by
//! columns ([`columns`]).
//!
//! Contexts are kept, because creating one costs more than compressing a page. Each thread keeps
//! one for compression, since few threads compress. Those for decompression come from a pool
//! ([`ObjectPool`]). A payload that compression does not shorten by 512 bytes is stored uncompressed, so that
//! reading it costs no decompression.

mod more_codecs;

use std::cell::RefCell;

use bytes::Bytes;
use zstd::zstd_safe::{CCtx, CParameter, DCtx};

use crate::base::Codec;
use crate::base::columns::{self, Columns};
use crate::memory::ObjectPool;
use crate::memory::page_memory;

impl Codec {
    /// Decompresses the payload into exactly `raw`; false if it is invalid or has another length.
    pub(crate) fn decompress_into(self, stored: &[u8], raw: &mut [u8]) -> bool {
        let length = match self {
            Codec::None if stored.len() == raw.len() => {
                raw.copy_from_slice(stored);
                Some(raw.len())
            }
            Codec::None => None,
            Codec::Lz4 => lz4_flex::block::decompress_into(stored, raw).ok(),
            Codec::Zstd => with_decompression(|context| context.decompress(raw, stored).ok()),
            Codec::Snappy => more_codecs::decompress_snappy(stored, raw),
            Codec::Zlib => more_codecs::decompress_zlib(stored, raw),
            Codec::ZstdColumns => {
                return Columns::decode(stored, raw.len()).is_some_and(|(columns, frame)| {
                    let is_whole = Codec::Zstd.decompress_into(frame, raw);
                    if is_whole {
                        columns.unfold(raw);
                    }
                    is_whole
                });
            }
        };
        length == Some(raw.len())
    }

    /// The decompressed payload, if it is valid and has this length.
    pub(crate) fn decompress(self, stored: &[u8], raw_length: usize) -> Option<Bytes> {
        page_memory::filled(raw_length, |raw| self.decompress_into(stored, raw))
    }
}

/// The compression of a tree's blocks; an option of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compression {
    /// Uncompressed.
    None,
    /// LZ4: fast, and about a quarter larger than Zstandard.
    Lz4,
    /// Zstandard at this level; 1 suits pages.
    Zstd(i8),
    /// Snappy: about as fast as LZ4.
    Snappy,
    /// zlib at this level, from 1 to 9: slower than Zstandard, and no smaller.
    Zlib(u8),
}

thread_local! {
    static COMPRESSION: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    /// A copy of a block with its rows by columns.
    static FOLDED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Contexts for decompression, 96 KB each.
static DECOMPRESSION: ObjectPool<DCtx<'static>, 16> = ObjectPool::new();

fn with_decompression<R>(decompress: impl FnOnce(&mut DCtx<'static>) -> R) -> R {
    let mut context = DECOMPRESSION.take().unwrap_or_else(DCtx::create);
    let result = decompress(&mut context);
    DECOMPRESSION.put(context);
    result
}

impl Compression {
    /// The most bytes that [`compress_into`](Compression::compress_into) writes for this raw length.
    pub(super) fn bound(self, raw_length: usize) -> usize {
        match self {
            Compression::None => raw_length,
            Compression::Lz4 => lz4_flex::block::get_maximum_output_size(raw_length),
            Compression::Zstd(_) => zstd::zstd_safe::compress_bound(raw_length) + columns::HEADER_BYTES_MAX,
            Compression::Snappy => more_codecs::snappy_bound(raw_length),
            // A payload that does not fit is stored as it is.
            Compression::Zlib(_) => raw_length,
        }
        .max(raw_length)
    }

    /// Stores the payload in the front of `target`, with its rows by columns if it has any. `target` must
    /// have at least [`bound`](Compression::bound) bytes. Returns the codec and the stored length.
    pub(super) fn compress_into(
        self,
        raw: &[u8],
        columns: Option<Columns>,
        target: &mut [u8],
    ) -> (Codec, usize) {
        let compressed = match self {
            Compression::None => None,
            Compression::Lz4 => {
                lz4_flex::block::compress_into(raw, target).ok().map(|length| (Codec::Lz4, length))
            }
            Compression::Snappy => {
                more_codecs::compress_snappy(raw, target).map(|length| (Codec::Snappy, length))
            }
            Compression::Zlib(level) => {
                more_codecs::compress_zlib(raw, target, level).map(|length| (Codec::Zlib, length))
            }
            Compression::Zstd(level) => match columns {
                None => compress_zstd(raw, target, level).map(|length| (Codec::Zstd, length)),
                Some(columns) => {
                    compress_columns(raw, columns, target, level).map(|length| (Codec::ZstdColumns, length))
                }
            },
        };
        match compressed {
            Some((codec, length)) if length + SAVED_BYTES_MIN <= raw.len() => (codec, length),
            _ => {
                target[..raw.len()].copy_from_slice(raw);
                (Codec::None, raw.len())
            }
        }
    }
}

/// Compression must save at least this many bytes, else the time to decompress is not worth it.
const SAVED_BYTES_MIN: usize = 512;

/// The shortest match of the fast levels of Zstandard, in bytes. Their own choice for a page is 5. In 16 KB
/// of digits or hexadecimal text that finds many matches that save a bit or two each. Every read has to
/// follow all of them. With 6 the pages of such documents are 3 % smaller and are read in two thirds of the
/// time. Text is up to 3 % larger.
const QUICK_MATCH_BYTES: u32 = 6;

/// The highest level that gets [`QUICK_MATCH_BYTES`].
const QUICK_LEVEL_MAX: i8 = 2;

fn compress_zstd(raw: &[u8], target: &mut [u8], level: i8) -> Option<usize> {
    // Zero leaves the choice to the level.
    let match_bytes = if (1..=QUICK_LEVEL_MAX).contains(&level) { QUICK_MATCH_BYTES } else { 0 };
    COMPRESSION.with_borrow_mut(|context| {
        context.set_parameter(CParameter::CompressionLevel(i32::from(level))).ok()?;
        context.set_parameter(CParameter::MinMatch(match_bytes)).ok()?;
        context.compress2(target, raw).ok()
    })
}

fn compress_columns(raw: &[u8], columns: Columns, target: &mut [u8], level: i8) -> Option<usize> {
    FOLDED.with_borrow_mut(|folded| {
        folded.clear();
        folded.extend_from_slice(raw);
        columns.fold(folded);
        let header = columns.encode(target);
        let frame = compress_zstd(folded, &mut target[header..], level)?;
        Some(header + frame)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::columns::Rows;

    const EVERY: &[Compression] = &[
        Compression::None,
        Compression::Lz4,
        Compression::Zstd(1),
        Compression::Zstd(9),
        #[cfg(feature = "codecs")]
        Compression::Snappy,
        #[cfg(feature = "codecs")]
        Compression::Zlib(6),
        #[cfg(feature = "codecs")]
        Compression::Zlib(1),
    ];

    fn stored(compression: Compression, raw: &[u8]) -> (Codec, Vec<u8>) {
        let mut target = vec![0; compression.bound(raw.len())];
        let (codec, length) = compression.compress_into(raw, None, &mut target);
        target.truncate(length);
        (codec, target)
    }

    #[test]
    fn rows_are_put_by_columns_where_zstandard_is_asked_for() {
        let rows = |at: u32| [at.wrapping_mul(0x9e37_79b9).to_le_bytes(), (at / 3).to_be_bytes()].concat();
        let raw: Vec<u8> = b"before".iter().copied().chain((0..900).flat_map(rows)).chain([1, 2]).collect();
        let columns = Columns { start: 6, rows: 900, first: 0, second: Rows::Bytes(8) };
        let stored = |compression: Compression, columns| {
            let mut target = vec![0; compression.bound(raw.len())];
            let (codec, length) = compression.compress_into(&raw, columns, &mut target);
            target.truncate(length);
            (codec, target)
        };
        let (codec, bytes) = stored(Compression::Zstd(1), Some(columns));
        assert_eq!(codec, Codec::ZstdColumns);
        assert!(bytes.len() < stored(Compression::Zstd(1), None).1.len());
        assert_eq!(codec.decompress(&bytes, raw.len()).as_deref(), Some(raw.as_slice()));
        let mut target = vec![0; raw.len()];
        assert!(codec.decompress_into(&bytes, &mut target) && target == raw);
        for (wrong, length) in [
            (&bytes[1..], raw.len()),
            (&bytes[..100], raw.len()),
            (&bytes, raw.len() - 1),
            (&bytes, raw.len() + 1),
        ] {
            assert_eq!(codec.decompress(wrong, length), None);
            assert!(!codec.decompress_into(wrong, &mut vec![0; length]));
        }
        for other in [Compression::None, Compression::Lz4] {
            assert_ne!(stored(other, Some(columns)).0, Codec::ZstdColumns);
        }
    }

    #[test]
    fn every_codec_gives_back_what_it_was_given() {
        let raw: Vec<u8> = (0..20_000u32).map(|at| (at / 7 % 251) as u8).collect();
        for &compression in EVERY {
            let (codec, bytes) = stored(compression, &raw);
            assert_eq!(
                codec.decompress(&bytes, raw.len()).as_deref(),
                Some(raw.as_slice()),
                "{compression:?}"
            );
            let mut target = vec![0; raw.len()];
            assert!(codec.decompress_into(&bytes, &mut target) && target == raw, "{compression:?}");
            assert!(!codec.decompress_into(&bytes, &mut target[1..]), "{compression:?}");
            assert!(!codec.decompress_into(&bytes, &mut vec![0; raw.len() + 1]), "{compression:?}");
            assert_eq!(codec == Codec::None, compression == Compression::None);
        }
    }

    #[test]
    fn a_block_that_hardly_shrinks_is_stored_as_it_is() {
        let raw: Vec<u8> =
            (0..64u64).flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
        for compression in &EVERY[1..] {
            assert_eq!(stored(*compression, &raw).0, Codec::None);
            assert_eq!(stored(*compression, &[]).0, Codec::None);
            assert_eq!(stored(*compression, &[0; 400]).0, Codec::None, "400 bytes less");
            assert_ne!(stored(*compression, &[0; 600]).0, Codec::None);
        }
    }

    #[test]
    fn a_wrong_length_or_damaged_bytes_are_refused() {
        let raw = vec![3; 5_000];
        for compression in &EVERY[1..] {
            let (codec, bytes) = stored(*compression, &raw);
            assert_eq!(codec.decompress(&bytes, raw.len() - 1), None);
            assert_eq!(codec.decompress(&bytes, raw.len() + 1), None);
            assert_eq!(codec.decompress(&bytes[..bytes.len() / 2], raw.len()), None);
            assert_eq!(codec.decompress(&[0xFF; 40], raw.len()), None);
        }
    }
}
