//! Snappy and zlib, which stores need only where they are asked for: the feature `codecs`, with six packages.
//!
//! A store with such blocks has a bit in its superblock. A program without the feature refuses to open it
//! ([`FEATURE_MORE_CODECS`](crate::base::FEATURE_MORE_CODECS)), and refuses the options that ask for them.

#[cfg(feature = "codecs")]
use std::cell::RefCell;

#[cfg(feature = "codecs")]
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

#[cfg(feature = "codecs")]
use crate::memory::ObjectPool;

#[cfg(feature = "codecs")]
thread_local! {
    static SNAPPY: RefCell<snap::raw::Encoder> = RefCell::new(snap::raw::Encoder::new());
    /// The context of zlib, with its level.
    static ZLIB: RefCell<Option<(u8, Compress)>> = const { RefCell::new(None) };
}

/// The most bytes that Snappy writes for this raw length.
#[cfg(feature = "codecs")]
pub(super) fn snappy_bound(raw_length: usize) -> usize {
    snap::raw::max_compress_len(raw_length)
}

/// The stored length; `None` where the target is too short.
#[cfg(feature = "codecs")]
pub(super) fn compress_snappy(raw: &[u8], target: &mut [u8]) -> Option<usize> {
    SNAPPY.with_borrow_mut(|encoder| encoder.compress(raw, target).ok())
}

/// The raw length; `None` for an invalid block.
#[cfg(feature = "codecs")]
pub(super) fn decompress_snappy(stored: &[u8], raw: &mut [u8]) -> Option<usize> {
    snap::raw::Decoder::new().decompress(stored, raw).ok()
}

/// The stored length; `None` where the target is too short.
#[cfg(feature = "codecs")]
pub(super) fn compress_zlib(raw: &[u8], target: &mut [u8], level: u8) -> Option<usize> {
    ZLIB.with_borrow_mut(|kept| {
        let context = match kept {
            Some((of, context)) if *of == level => {
                context.reset();
                context
            }
            _ => {
                let context = Compress::new(flate2::Compression::new(u32::from(level)), true);
                &mut kept.insert((level, context)).1
            }
        };
        match context.compress(raw, target, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => usize::try_from(context.total_out()).ok(),
            Ok(Status::Ok | Status::BufError) | Err(_) => None,
        }
    })
}

/// Contexts of zlib for decompression.
#[cfg(feature = "codecs")]
static INFLATION: ObjectPool<Decompress, 16> = ObjectPool::new();

/// The raw length; `None` for an invalid stream, and one that is longer.
#[cfg(feature = "codecs")]
pub(super) fn decompress_zlib(stored: &[u8], raw: &mut [u8]) -> Option<usize> {
    let mut context = INFLATION.take().unwrap_or_else(|| Decompress::new(true));
    context.reset(true);
    let outcome = context.decompress(stored, raw, FlushDecompress::Finish);
    let (read, written) = (context.total_in(), context.total_out());
    INFLATION.put(context);
    match outcome {
        Ok(Status::StreamEnd) if read == stored.len() as u64 => usize::try_from(written).ok(),
        Ok(_) | Err(_) => None,
    }
}

// Without the feature no tree asks for these codecs, and no store with their blocks is open.

#[cfg(not(feature = "codecs"))]
pub(super) fn snappy_bound(raw_length: usize) -> usize {
    raw_length
}

#[cfg(not(feature = "codecs"))]
pub(super) fn compress_snappy(_raw: &[u8], _target: &mut [u8]) -> Option<usize> {
    None
}

#[cfg(not(feature = "codecs"))]
pub(super) fn decompress_snappy(_stored: &[u8], _raw: &mut [u8]) -> Option<usize> {
    None
}

#[cfg(not(feature = "codecs"))]
pub(super) fn compress_zlib(_raw: &[u8], _target: &mut [u8], _level: u8) -> Option<usize> {
    None
}

#[cfg(not(feature = "codecs"))]
pub(super) fn decompress_zlib(_stored: &[u8], _raw: &mut [u8]) -> Option<usize> {
    None
}
