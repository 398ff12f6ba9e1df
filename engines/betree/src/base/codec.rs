//! The number in a pointer that says how the block's payload is stored. `space` compresses and decompresses.

/// The bit in the superblock's incompatible features of a store that has blocks in Snappy or zlib.
pub(crate) const FEATURE_MORE_CODECS: u64 = 1;

/// The features of [`FEATURE_MORE_CODECS`] that this program has.
pub(crate) const BUILT_CODECS: u64 = if cfg!(feature = "codecs") { FEATURE_MORE_CODECS } else { 0 };

/// The bit of a store whose blocks and log records are encrypted.
pub(crate) const FEATURE_ENCRYPTED: u64 = 2;

/// The bit of a store whose log or runs may have patches: merge operators that programs before them do not
/// know.
pub(crate) const FEATURE_PATCHES: u64 = 4;

/// How a block is stored; a byte of its pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Codec {
    /// Uncompressed.
    None = 0,
    /// An LZ4 block, without its length before it.
    Lz4 = 1,
    /// A Zstandard frame.
    Zstd = 2,
    /// A [`Columns`](super::Columns) header, then a Zstandard frame of the block with its rows stored by
    /// columns.
    ZstdColumns = 3,
    /// A raw block of Snappy.
    Snappy = 4,
    /// A stream of zlib.
    Zlib = 5,
}

impl Codec {
    /// The codec of this number, if there is one.
    pub(crate) const fn from_number(number: u8) -> Option<Codec> {
        match number {
            0 => Some(Codec::None),
            1 => Some(Codec::Lz4),
            2 => Some(Codec::Zstd),
            3 => Some(Codec::ZstdColumns),
            4 => Some(Codec::Snappy),
            5 => Some(Codec::Zlib),
            _ => None,
        }
    }

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    /// Whether only programs that know [`FEATURE_MORE_CODECS`] can read the block.
    pub(crate) const fn is_of_more_codecs(self) -> bool {
        matches!(self, Codec::Snappy | Codec::Zlib)
    }
}
