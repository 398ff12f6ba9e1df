//! The fingerprint: 64 bits of hash that stand for a key of a tree, in tables of intents, write sets and
//! filters.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::identifiers::TreeId;

/// The increment of Weyl sequences: 2⁶⁴ divided by the golden ratio.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// The fingerprint of a key.
///
/// The tree's number is spread over all bits of the seed first. For a short key xxh3 adds the seed to the
/// bytes of the key as it is, so with small seeds neighbouring keys of neighbouring trees would collide.
pub(crate) fn fingerprint(tree: TreeId, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, u64::from(tree.get()).wrapping_mul(GOLDEN_RATIO))
}
