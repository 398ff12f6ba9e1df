//! The filter of a slice or of a leaf: it tells that a key is absent without a read of the pages.
//!
//! It is a split-block Bloom filter as in Apache Parquet's specification. A filter has blocks of 32 bytes,
//! each of eight words of 32 bits. A key belongs to one block and sets one bit in each of its words, so a
//! probe touches one cache line. With 10 bits a key, about one in a hundred absent keys passes.
//!
//! The upper half of the key's hash (xxh3, 64 bits, seed 0) selects the block. The lower half, times eight
//! odd numbers, selects the bits.

use xxhash_rust::xxh3::xxh3_64;

use crate::base::{Fields, FormatError, write_varint};

/// The odd numbers of Parquet's specification.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];
const BLOCK_BYTES: usize = 32;
const BLOCK_BITS: usize = BLOCK_BYTES * 8;

/// The hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn of(key: &[u8]) -> KeyHash {
        KeyHash(xxh3_64(key))
    }

    fn masks(self) -> [u32; 8] {
        SALTS.map(|salt| 1 << ((self.0 as u32).wrapping_mul(salt) >> 27))
    }

    /// The block of the key, out of this many.
    fn block(self, blocks: usize) -> usize {
        (((self.0 >> 32) * blocks as u64) >> 32) as usize
    }
}

/// A filter; see the module's head. A filter without blocks lets every key pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    blocks: Box<[[u32; 8]]>,
}

impl Filter {
    /// A filter of these keys with this many bits each; 0 for a filter without blocks.
    pub(crate) fn new(keys: &[KeyHash], bits_per_key: usize) -> Filter {
        let blocks = (keys.len() * bits_per_key).div_ceil(BLOCK_BITS);
        let mut blocks = vec![[0_u32; 8]; blocks].into_boxed_slice();
        if !blocks.is_empty() {
            for key in keys {
                let block = &mut blocks[key.block(blocks.len())];
                block.iter_mut().zip(key.masks()).for_each(|(word, mask)| *word |= mask);
            }
        }
        Filter { blocks }
    }

    /// Whether the key may be present. False is certain.
    pub(crate) fn may_contain(&self, key: KeyHash) -> bool {
        if self.blocks.is_empty() {
            return true;
        }
        let block = &self.blocks[key.block(self.blocks.len())];
        block.iter().zip(key.masks()).all(|(word, mask)| word & mask != 0)
    }

    /// Whether it has no blocks and lets every key pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Heap memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }

    /// Bytes of the encoded blocks, without their count.
    pub(super) fn encoded_bytes(&self) -> usize {
        crate::base::varint_len(self.blocks.len() as u64) + self.blocks.len() * BLOCK_BYTES
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        write_varint(out, self.blocks.len() as u64);
        for word in self.blocks.iter().flatten() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Filter, FormatError> {
        let count = fields.count("filter blocks", fields.remaining() / BLOCK_BYTES)?;
        let mut blocks = vec![[0; 8]; count].into_boxed_slice();
        for word in blocks.iter_mut().flatten() {
            *word = fields.u32("filter")?;
        }
        Ok(Filter { blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(numbers: std::ops::Range<u32>) -> Vec<KeyHash> {
        numbers.map(|number| KeyHash::of(&number.to_be_bytes())).collect()
    }

    #[test]
    fn every_key_passes_and_of_others_few_do() {
        for count in [1_u32, 7, 100, 10_000] {
            let keys = hashes(0..count);
            let filter = Filter::new(&keys, 10);
            assert!(keys.iter().all(|key| filter.may_contain(*key)));
            let others = hashes(1_000_000..1_020_000);
            let passed = others.iter().filter(|key| filter.may_contain(**key)).count();
            assert!(passed < 600, "{passed} of 20,000 pass a filter of {count} keys");
        }
    }

    #[test]
    fn a_filter_without_bits_lets_every_key_through() {
        let filter = Filter::new(&hashes(0..9), 0);
        assert!(filter.may_contain(KeyHash::of(b"any")));
        assert_eq!(filter.heap_bytes(), 0);
    }

    /// The bytes of docs/data-file.md: a change here is a change of the format.
    #[test]
    fn golden_a_filter_of_two_keys() {
        let filter = Filter::new(&[KeyHash::of(b"pando"), KeyHash::of(b"")], 10);
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN);
        let mut fields = Fields::new("test", &bytes);
        assert_eq!(Filter::decode(&mut fields), Ok(filter));
    }

    const GOLDEN: &str = "011000040008000800300000000110000009000000200400000001040080000008";

    #[test]
    fn more_blocks_than_there_are_bytes_are_refused() {
        let mut bytes = Vec::new();
        write_varint(&mut bytes, u64::MAX);
        bytes.extend_from_slice(&[0; 64]);
        assert!(Filter::decode(&mut Fields::new("test", &bytes)).is_err());
    }
}
