//! The header of a block. It repeats the pointer's fields, so that a reader can tell which block it found in
//! a wrong place.
//!
//! 40 bytes, little-endian. The checksum in the pointer covers header and stored payload.
//!
//! ```text
//!   0        4      5       6          8      12            16      24        32           36         40
//!   | "PBLK" | kind | codec | reserved | tree | disk length | birth | address | raw length | reserved |
//!   | 4 B    | u8   | u8    | u16      | u32  | u32         | u64   | u64     | u32        | u32      |
//! ```

use pando_storage::TreeId;

use crate::base::{BLOCK_HEADER_BYTES, BlockAddress, BlockKind, Codec, Generation};

/// The first bytes of every block.
const MAGIC: [u8; 4] = *b"PBLK";

/// The identity of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) kind: BlockKind,
    pub(super) codec: Codec,
    pub(super) tree: TreeId,
    pub(super) disk_length: u32,
    pub(super) birth: Generation,
    pub(super) address: BlockAddress,
    pub(super) raw_length: u32,
}

impl BlockHeader {
    pub(super) fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind.number();
        bytes[5] = self.codec.number();
        bytes[8..12].copy_from_slice(&self.tree.get().to_le_bytes());
        bytes[12..16].copy_from_slice(&self.disk_length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.birth.get().to_le_bytes());
        bytes[24..32].copy_from_slice(&self.address.get().to_le_bytes());
        bytes[32..36].copy_from_slice(&self.raw_length.to_le_bytes());
        bytes
    }

    /// Decodes a header; `None` if the bytes are not one.
    pub(super) fn decode(bytes: &[u8]) -> Option<BlockHeader> {
        let bytes: &[u8; BLOCK_HEADER_BYTES] = bytes.first_chunk()?;
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let is_header = bytes[0..4] == MAGIC && bytes[6..8] == [0; 2] && u32_at(36) == 0;
        if !is_header {
            return None;
        }
        Some(BlockHeader {
            kind: BlockKind::from_number(bytes[4])?,
            codec: Codec::from_number(bytes[5])?,
            tree: TreeId::new(u32_at(8)),
            disk_length: u32_at(12),
            birth: Generation::new(u64_at(16)),
            address: BlockAddress::checked(u64_at(24))?,
            raw_length: u32_at(32),
        })
    }
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use super::*;

    fn example() -> BlockHeader {
        BlockHeader {
            kind: BlockKind::LeafDirectory,
            codec: Codec::Lz4,
            tree: TreeId::new(0x0a0b_0c0d),
            disk_length: 0x1234,
            birth: Generation::new(7),
            address: BlockAddress::new(256),
            raw_length: 0x4000,
        }
    }

    #[test]
    fn a_header_has_the_bytes_that_the_format_says() {
        let golden = "50424c4b010100000d0c0b0a34120000070000000000000000010000000000000040000000000000";
        let hex: String = example().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden);
        assert_eq!(BlockHeader::decode(&example().encode()), Some(example()));
    }

    #[test]
    fn random_bytes_are_a_header_only_if_they_encode_to_themselves() {
        let random = SeededRandom::new(0x6865_6164);
        for _ in 0..20_000 {
            let mut bytes = example().encode();
            bytes[random.below(40) as usize] = random.next_u64() as u8;
            if let Some(header) = BlockHeader::decode(&bytes) {
                assert_eq!(header.encode(), bytes);
            }
        }
        assert_eq!(BlockHeader::decode(&[0; 39]), None);
    }
}
