//! OP_COMPRESSED: a codec that wraps a message and unwraps it.
//!
//! Layout after the header: original op code (i32), uncompressed length without header (i32), compressor
//! (u8), content.
//!
//! A [`Codec`] holds the working memory of the compressors, some hundred KB for zstd. Each thread has one,
//! and allocates the memory at its first use. The length that a client claims is bounded before memory is
//! allocated for it. The bounds are [`MESSAGE_BYTES_MAX`], and for snappy and zlib the largest expansion of
//! the format.

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OpCode, patch_length};
use crate::{Compressed, WireError};

/// After the header: original op code, uncompressed length, compressor.
const ENVELOPE_BYTES: usize = 9;

/// Snappy's densest element makes 64 bytes of three; zlib's limit is 1032 to one (its author's own figure).
const SNAPPY_EXPANSION_MAX: usize = 22;
const ZLIB_EXPANSION_MAX: usize = 1032;
/// Room for headers of the compressed formats, so that tiny messages are not refused by the two bounds above.
const EXPANSION_SLACK: usize = 64;

/// Fast levels: replies are sent once and read once.
const ZSTD_LEVEL: i32 = 1;
const ZLIB_LEVEL: u32 = 3;

/// How a message is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// Not at all, in the same envelope.
    Noop,
    /// Snappy, raw format.
    Snappy,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// Every compressor, in the order of their ids.
    pub const ALL: [Compressor; 4] =
        [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

    /// The byte in the envelope.
    pub const fn id(self) -> u8 {
        match self {
            Compressor::Noop => 0,
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }

    /// The compressor of a byte.
    ///
    /// # Errors
    /// [`WireError::UnknownCompressor`].
    pub const fn from_id(id: u8) -> Result<Compressor, WireError> {
        match id {
            0 => Ok(Compressor::Noop),
            1 => Ok(Compressor::Snappy),
            2 => Ok(Compressor::Zlib),
            3 => Ok(Compressor::Zstd),
            _ => Err(WireError::UnknownCompressor { id }),
        }
    }

    /// Its name in the `compression` list of a hello.
    pub const fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a command, request or reply, may be compressed. The handshake and messages with a secret may not,
/// since the length of compressed bytes tells about their content.
pub fn may_be_compressed(command: &str) -> bool {
    const NEVER: [&str; 11] = [
        "hello",
        "ismaster",
        "saslStart",
        "saslContinue",
        "getnonce",
        "authenticate",
        "createUser",
        "updateUser",
        "copydbSaslStart",
        "copydbgetnonce",
        "copydb",
    ];
    !NEVER.iter().any(|never| never.eq_ignore_ascii_case(command))
}

/// The working memory of the compressors.
#[derive(Default)]
pub struct Codec {
    snappy: Option<snap::raw::Encoder>,
    zlib: Option<(Compress, Decompress)>,
    zstd: Option<(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)>,
    scratch: Vec<u8>,
}

impl Codec {
    /// A codec that holds no memory yet.
    pub fn new() -> Codec {
        Codec::default()
    }

    /// Replaces the content of `out` by the whole frame that `compressed` carries: the header of the envelope
    /// with the original op code and length, then the content.
    ///
    /// # Errors
    /// [`WireError::UncompressedLength`] and [`WireError::Decompress`]; `out` then holds nothing of use.
    pub fn decompress(
        &mut self,
        header: &Header,
        compressed: &Compressed<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let claimed = compressed.uncompressed_bytes;
        let content_bytes = claimed_length(compressed)?;
        let frame_bytes =
            u32::try_from(content_bytes + HEADER_BYTES).expect("bounded by the longest message");
        out.clear();
        out.reserve(content_bytes + HEADER_BYTES);
        let original = compressed.original_op_code.code();
        Header::append(out, frame_bytes, header.request_id, header.response_to, original);
        self.decompress_content(compressed, content_bytes, out)
            .map_err(|source| WireError::Decompress { compressor: compressed.compressor, source })?;
        if out.len() == content_bytes + HEADER_BYTES {
            Ok(())
        } else {
            Err(WireError::UncompressedLength { claimed })
        }
    }

    /// Appends the decompressed content to `out`, which has room for `content_bytes` and grows no further.
    fn decompress_content(
        &mut self,
        compressed: &Compressed<'_>,
        content_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let content = compressed.content;
        match compressed.compressor {
            Compressor::Noop => out.extend_from_slice(content),
            Compressor::Snappy => {
                out.resize(HEADER_BYTES + content_bytes, 0);
                let written = snap::raw::Decoder::new().decompress(content, &mut out[HEADER_BYTES..])?;
                out.truncate(HEADER_BYTES + written);
            }
            Compressor::Zlib => {
                let inflate = &mut self.zlib_contexts().1;
                inflate.reset(true);
                // Writes into the room that is there, and never grows it.
                let status = inflate.decompress_vec(content, out, FlushDecompress::Finish)?;
                if status != Status::StreamEnd {
                    return Err("the stream does not end where its length says".into());
                }
            }
            Compressor::Zstd => {
                let inflate = &mut self.zstd_contexts()?.1;
                // A cursor, so that the content lands behind the header without a buffer between.
                let mut target = std::io::Cursor::new(std::mem::take(out));
                target.set_position(HEADER_BYTES as u64);
                let done = inflate.decompress_to_buffer(content, &mut target);
                *out = target.into_inner();
                // An allocator may give more room than was asked for, so the result is compared with the
                // claim.
                done?;
            }
        }
        Ok(())
    }

    /// Wraps the message that begins at `start` and ends with `out` into an OP_COMPRESSED, in place.
    ///
    /// # Errors
    /// [`WireError::Compress`], [`WireError::TooLargeToSend`]; the message is then as it was.
    pub fn compress(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        compressor: Compressor,
    ) -> Result<(), WireError> {
        let header = Header::decode(&out[start..])?;
        let mut packed = std::mem::take(&mut self.scratch);
        packed.clear();
        let content = &out[start + HEADER_BYTES..];
        let content_bytes = u32::try_from(content.len()).expect("bounded by the longest message");
        let done = self.compress_content(content, compressor, &mut packed);
        if let Err(source) = done {
            return Err(WireError::Compress { compressor, source });
        }
        let bytes = HEADER_BYTES + ENVELOPE_BYTES + packed.len();
        if bytes > MESSAGE_BYTES_MAX {
            return Err(WireError::TooLargeToSend { bytes });
        }
        out.truncate(start);
        Header::append_open(out, header.request_id, header.response_to, OpCode::Compressed);
        out.extend_from_slice(&header.op_code.to_le_bytes());
        out.extend_from_slice(&content_bytes.to_le_bytes());
        out.push(compressor.id());
        out.extend_from_slice(&packed);
        if packed.capacity() <= SCRATCH_KEPT_BYTES {
            self.scratch = packed;
        }
        patch_length(out, start)
    }

    fn compress_content(
        &mut self,
        content: &[u8],
        compressor: Compressor,
        packed: &mut Vec<u8>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match compressor {
            Compressor::Noop => packed.extend_from_slice(content),
            Compressor::Snappy => {
                packed.resize(snap::raw::max_compress_len(content.len()), 0);
                let written =
                    self.snappy.get_or_insert_with(snap::raw::Encoder::new).compress(content, packed)?;
                packed.truncate(written);
            }
            Compressor::Zlib => {
                // Deflate stores what it cannot compress, at five bytes per 16 KB; the rest is header and
                // trailer.
                packed.reserve(content.len() + content.len() / 1024 + 64);
                let deflate = &mut self.zlib_contexts().0;
                deflate.reset();
                if deflate.compress_vec(content, packed, FlushCompress::Finish)? != Status::StreamEnd {
                    return Err("the compressed bytes are longer than their bound".into());
                }
            }
            Compressor::Zstd => {
                let bound = zstd::zstd_safe::compress_bound(content.len());
                packed.reserve(bound);
                self.zstd_contexts()?.0.compress_to_buffer(content, packed)?;
            }
        }
        Ok(())
    }

    fn zlib_contexts(&mut self) -> &mut (Compress, Decompress) {
        self.zlib
            .get_or_insert_with(|| (Compress::new(Compression::new(ZLIB_LEVEL), true), Decompress::new(true)))
    }

    fn zstd_contexts(
        &mut self,
    ) -> std::io::Result<&mut (zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)> {
        if self.zstd.is_none() {
            self.zstd = Some((zstd::bulk::Compressor::new(ZSTD_LEVEL)?, zstd::bulk::Decompressor::new()?));
        }
        Ok(self.zstd.as_mut().expect("set two lines above"))
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}

/// Larger scratch buffers go back to the allocator after use.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;

/// The claimed length, if it is possible for this content.
fn claimed_length(compressed: &Compressed<'_>) -> Result<usize, WireError> {
    let claimed = compressed.uncompressed_bytes;
    let content = compressed.content;
    let bound = match compressed.compressor {
        Compressor::Noop => content.len(),
        Compressor::Snappy => content.len() * SNAPPY_EXPANSION_MAX + EXPANSION_SLACK,
        Compressor::Zlib => content.len() * ZLIB_EXPANSION_MAX + EXPANSION_SLACK,
        Compressor::Zstd => MESSAGE_BYTES_MAX,
    };
    let bound = bound.min(MESSAGE_BYTES_MAX - HEADER_BYTES);
    // Two of the four say themselves how long they will be.
    let exact = match compressed.compressor {
        Compressor::Noop => Some(content.len()),
        Compressor::Snappy => snap::raw::decompress_len(content).ok(),
        Compressor::Zlib | Compressor::Zstd => None,
    };
    match usize::try_from(claimed) {
        Ok(bytes) if bytes <= bound && exact.is_none_or(|exact| exact == bytes) => Ok(bytes),
        _ => Err(WireError::UncompressedLength { claimed }),
    }
}
