//! The pointer by which a parent refers to a block: its address, how it is stored, and the checksum of its
//! bytes.
//!
//! 40 bytes on disk, little-endian. 40 zero bytes mean "no pointer" where one is optional.
//!
//! ```text
//!   0       2      3       4             8            12         16        24       32         40
//!   | file  | kind | codec | disk length | raw length | reserved | address | birth  | checksum |
//!   | u16   | u8   | u8    | u32         | u32        | u32 = 0  | u64     | u64    | u64      |
//!
//!  parent                                                block
//!  [.. pointer: checksum 0x5e1f.., address 4096 ..] ---> [ header 40 bytes | stored payload ]
//!                         |                                  grain 4096 = byte 131072
//!                         +---- xxh3-64 of header and stored payload
//! ```
//!
//! The checksum is in the parent and not in the block. So a lost write and a misdirected write are found too:
//! the old block at that address would pass a checksum of its own.

use pando_encryption::SEAL_BYTES;

use crate::base::{
    BLOCK_BYTES_MAX, BlockAddress, Codec, Extent, FileId, GRAIN_BYTES, Generation, UNIT_BYTES,
};

/// Bytes of the header in front of every block.
pub(crate) const BLOCK_HEADER_BYTES: usize = 40;

/// The type of a block. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum BlockKind {
    /// The directory of a leaf.
    LeafDirectory = 1,
    /// A page of a leaf.
    Page = 2,
    /// The directory of an inner node.
    InnerNode = 3,
    /// The index of a slice of a run.
    RunIndex = 4,
    /// A page of a run.
    RunPage = 5,
    /// A filter of a run or leaf.
    Filter = 6,
    /// A value too large for a page.
    LargeValue = 7,
    /// A part of the list of trees.
    Catalog = 8,
    /// The root of the space map.
    SpaceRoot = 9,
    /// A part of a whole space map.
    SpaceSnapshot = 10,
    /// The changes of the space map in one generation.
    SpaceDelta = 11,
}

impl BlockKind {
    const ALL: [BlockKind; 11] = [
        BlockKind::LeafDirectory,
        BlockKind::Page,
        BlockKind::InnerNode,
        BlockKind::RunIndex,
        BlockKind::RunPage,
        BlockKind::Filter,
        BlockKind::LargeValue,
        BlockKind::Catalog,
        BlockKind::SpaceRoot,
        BlockKind::SpaceSnapshot,
        BlockKind::SpaceDelta,
    ];

    /// The kind of this number, if there is one.
    pub(crate) fn from_number(number: u8) -> Option<BlockKind> {
        BlockKind::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }
}

/// The reason why bytes are not a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// No kind of block has this number.
    #[error("there is no block kind {found}")]
    Kind {
        /// The value found.
        found: u8,
    },
    /// No codec has this number.
    #[error("there is no codec {found}")]
    Codec {
        /// The value found.
        found: u8,
    },
    /// A length that no block has.
    #[error("a block cannot have {found} bytes")]
    Length {
        /// The value found.
        found: u32,
    },
    /// A file that no store has. Format version 1 has one file.
    #[error("there is no data file {found}")]
    File {
        /// The value found.
        found: u16,
    },
    /// An address beyond every file.
    #[error("grain {found} lies beyond every file")]
    Address {
        /// The value found.
        found: u64,
    },
    /// Reserved bytes are not zero: a newer program wrote them.
    #[error("the reserved bytes hold {found}")]
    Reserved {
        /// The value found.
        found: u32,
    },
}

/// The parts of a pointer, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PointerFields {
    /// The file that holds the block.
    pub(crate) file: FileId,
    /// The type of the block.
    pub(crate) kind: BlockKind,
    /// How its payload is stored.
    pub(crate) codec: Codec,
    /// Where it begins.
    pub(crate) address: BlockAddress,
    /// Header, stored payload and seal, in bytes.
    pub(crate) disk_length: u32,
    /// The payload decompressed, in bytes.
    pub(crate) raw_length: u32,
    /// The generation that was being built when the block was written.
    pub(crate) birth: Generation,
    /// xxh3 (64 bits, seed 0) of header, stored payload and seal.
    pub(crate) checksum: u64,
}

/// A checked pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Pointer(PointerFields);

impl Pointer {
    /// Bytes of a pointer on disk.
    pub(crate) const ENCODED_BYTES: usize = 40;

    /// The bytes in place of a pointer that is absent.
    pub(crate) const NONE: [u8; Pointer::ENCODED_BYTES] = [0; Pointer::ENCODED_BYTES];

    /// A pointer of these fields, if a block can have such lengths.
    pub(crate) fn new(fields: PointerFields) -> Result<Pointer, PointerError> {
        let disk_length = fields.disk_length as usize;
        if !(BLOCK_HEADER_BYTES..=BLOCK_HEADER_BYTES + BLOCK_BYTES_MAX + SEAL_BYTES).contains(&disk_length) {
            return Err(PointerError::Length { found: fields.disk_length });
        }
        if fields.raw_length as usize > BLOCK_BYTES_MAX {
            return Err(PointerError::Length { found: fields.raw_length });
        }
        let grains = u64::from(fields.disk_length).div_ceil(GRAIN_BYTES);
        if BlockAddress::checked(fields.address.get() + grains).is_none() {
            return Err(PointerError::Address { found: fields.address.get() });
        }
        Ok(Pointer(fields))
    }

    /// The pointer as it stands on disk.
    pub(crate) fn encode(&self) -> [u8; Pointer::ENCODED_BYTES] {
        let mut bytes = [0; Pointer::ENCODED_BYTES];
        bytes[0..2].copy_from_slice(&self.0.file.get().to_le_bytes());
        bytes[2] = self.0.kind.number();
        bytes[3] = self.0.codec.number();
        bytes[4..8].copy_from_slice(&self.0.disk_length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.0.raw_length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.0.address.get().to_le_bytes());
        bytes[24..32].copy_from_slice(&self.0.birth.get().to_le_bytes());
        bytes[32..40].copy_from_slice(&self.0.checksum.to_le_bytes());
        bytes
    }

    /// Decodes a pointer.
    pub(crate) fn decode(bytes: &[u8; Pointer::ENCODED_BYTES]) -> Result<Pointer, PointerError> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let reserved = u32_at(12);
        if reserved != 0 {
            return Err(PointerError::Reserved { found: reserved });
        }
        let file = FileId::new(u16::from_le_bytes([bytes[0], bytes[1]]));
        if file != FileId::FIRST {
            return Err(PointerError::File { found: file.get() });
        }
        Pointer::new(PointerFields {
            file,
            kind: BlockKind::from_number(bytes[2]).ok_or(PointerError::Kind { found: bytes[2] })?,
            codec: Codec::from_number(bytes[3]).ok_or(PointerError::Codec { found: bytes[3] })?,
            disk_length: u32_at(4),
            raw_length: u32_at(8),
            address: BlockAddress::checked(u64_at(16)).ok_or(PointerError::Address { found: u64_at(16) })?,
            birth: Generation::new(u64_at(24)),
            checksum: u64_at(32),
        })
    }

    /// Decodes a pointer; `None` for the bytes of [`NONE`](Pointer::NONE).
    pub(crate) fn decode_optional(
        bytes: &[u8; Pointer::ENCODED_BYTES],
    ) -> Result<Option<Pointer>, PointerError> {
        if *bytes == Pointer::NONE { Ok(None) } else { Pointer::decode(bytes).map(Some) }
    }

    pub(crate) const fn file(&self) -> FileId {
        self.0.file
    }

    pub(crate) const fn kind(&self) -> BlockKind {
        self.0.kind
    }

    pub(crate) const fn codec(&self) -> Codec {
        self.0.codec
    }

    pub(crate) const fn address(&self) -> BlockAddress {
        self.0.address
    }

    /// Header and stored payload, in bytes.
    pub(crate) const fn disk_length(&self) -> u32 {
        self.0.disk_length
    }

    /// The payload decompressed, in bytes.
    pub(crate) const fn raw_length(&self) -> u32 {
        self.0.raw_length
    }

    /// The generation that was being built when the block was written.
    pub(crate) const fn birth(&self) -> Generation {
        self.0.birth
    }

    pub(crate) const fn checksum(&self) -> u64 {
        self.0.checksum
    }

    /// The grains that the block takes, in bytes.
    pub(crate) const fn grain_bytes(&self) -> u64 {
        (self.0.disk_length as u64).next_multiple_of(GRAIN_BYTES)
    }

    /// The units that the block touches.
    pub(crate) fn extent(&self) -> Extent {
        let start = self.0.address.byte_offset();
        let first = start / UNIT_BYTES;
        let end = (start + self.grain_bytes()).div_ceil(UNIT_BYTES);
        Extent::new(self.0.file, first, end - first)
    }
}

impl std::fmt::Debug for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PointerFields { file, kind, address, disk_length, .. } = self.0;
        write!(f, "{kind:?} at {}:{address:?}, {disk_length} bytes, born {:?}", file.name(), self.0.birth)
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use crate::base::pointer::*;

    fn example() -> Pointer {
        Pointer::new(PointerFields {
            file: FileId::FIRST,
            kind: BlockKind::Page,
            codec: Codec::Zstd,
            address: BlockAddress::new(0x0102_0304_0506),
            disk_length: 0x0000_1234,
            raw_length: 0x0000_4000,
            birth: Generation::new(0x1112_1314_1516_1718),
            checksum: 0x2122_2324_2526_2728,
        })
        .unwrap()
    }

    #[test]
    fn a_pointer_has_the_bytes_that_the_format_says() {
        let golden = "0000020234120000004000000000000006050403020100001817161514131211282726252423222\
                      1"
        .replace([' ', '\n'], "");
        let hex: String = example().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden);
        assert_eq!(Pointer::decode(&example().encode()), Ok(example()));
    }

    #[test]
    fn no_pointer_is_told_from_a_pointer() {
        assert_eq!(Pointer::decode_optional(&Pointer::NONE), Ok(None));
        assert_eq!(Pointer::decode_optional(&example().encode()), Ok(Some(example())));
        assert_eq!(Pointer::decode(&Pointer::NONE), Err(PointerError::Kind { found: 0 }));
    }

    #[test]
    fn an_unknown_codec_kind_or_file_is_named() {
        let with = |at: usize, byte: u8| {
            let mut bytes = example().encode();
            bytes[at] = byte;
            Pointer::decode(&bytes).unwrap_err()
        };
        assert_eq!(with(3, 99), PointerError::Codec { found: 99 });
        assert_eq!(with(3, 99).to_string(), "there is no codec 99");
        assert_eq!(with(2, 77), PointerError::Kind { found: 77 });
        assert_eq!(with(0, 3), PointerError::File { found: 3 });
        assert_eq!(with(1, 1).to_string(), "there is no data file 256");
    }

    #[test]
    fn random_bytes_are_a_pointer_only_if_they_encode_to_themselves() {
        let random = SeededRandom::new(0x706f_696e);
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut bytes = example().encode();
            for _ in 0..random.below(4) {
                bytes[random.below(40) as usize] = random.next_u64() as u8;
            }
            if let Ok(pointer) = Pointer::decode(&bytes) {
                accepted += 1;
                assert_eq!(pointer.encode(), bytes);
                assert!(pointer.extent().start() < pointer.extent().end());
            }
        }
        assert!(accepted > 1_000);
    }

    #[test]
    fn every_kind_has_its_own_number() {
        for (at, kind) in BlockKind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.number()), at + 1);
            assert_eq!(BlockKind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(BlockKind::from_number(12), None);
    }
}
