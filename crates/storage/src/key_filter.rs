//! A filter of keys: for a fingerprint it answers *never added* or *maybe added*.
//!
//! It has one word of 64 bits for each key, of which the key sets four: one look into memory answers. With
//! ten bits a key, two in a hundred that were never added pass. With more keys than it was made for more
//! pass, and none that was added is lost.

/// Bits for each key that a filter is made for.
const BITS_A_KEY: usize = 10;
/// Keys of the first filter of a growing one.
const FIRST_KEYS: usize = 1 << 10;
/// Keys of the largest filter of a growing one, which takes 1.3 MB.
const KEYS_MAX: usize = 1 << 20;

/// See the module's head.
#[derive(Clone, Debug)]
pub(crate) struct KeyFilter {
    words: Box<[u64]>,
}

impl KeyFilter {
    /// An empty filter for this many keys.
    pub(crate) fn for_keys(keys: usize) -> KeyFilter {
        let words = (keys.saturating_mul(BITS_A_KEY) / 64).clamp(1, u32::MAX as usize);
        KeyFilter { words: vec![0; words].into_boxed_slice() }
    }

    pub(crate) fn add(&mut self, fingerprint: u64) {
        let (at, bits) = self.place_of(fingerprint);
        self.words[at] |= bits;
    }

    pub(crate) fn may_contain(&self, fingerprint: u64) -> bool {
        let (at, bits) = self.place_of(fingerprint);
        self.words[at] & bits == bits
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.words.len() * 8
    }

    fn place_of(&self, fingerprint: u64) -> (usize, u64) {
        // Fingerprints of one shard have bits in common, so they are spread first.
        let mixed = (fingerprint ^ (fingerprint >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = ((mixed >> 32) * self.words.len() as u64) >> 32;
        let bits = (0..4).fold(0, |bits, part| bits | 1 << (mixed >> (part * 6) & 63));
        (at as usize, bits)
    }
}

/// Filters, each for four times as many keys as the one before, for keys that nobody has counted yet. With
/// 1.4 million it has its largest size, and lets more and more others pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrowingFilter {
    filters: Vec<KeyFilter>,
    /// Keys for which the last filter still has room.
    room: usize,
}

impl GrowingFilter {
    pub(crate) fn add(&mut self, fingerprint: u64) {
        if self.room == 0 {
            let keys = FIRST_KEYS << (2 * self.filters.len()).min(usize::BITS as usize / 2);
            if self.filters.is_empty() || keys <= KEYS_MAX {
                self.filters.push(KeyFilter::for_keys(keys));
                self.room = keys;
            }
        }
        self.room = self.room.saturating_sub(1);
        let last = self.filters.last_mut().expect("the first filter is made for the first key");
        last.add(fingerprint);
    }

    pub(crate) fn may_contain(&self, fingerprint: u64) -> bool {
        self.filters.iter().any(|filter| filter.may_contain(fingerprint))
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.filters.iter().map(KeyFilter::memory).sum()
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn fingerprints(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|number| xxh3_64(&number.to_le_bytes()))
    }

    #[test]
    fn added_keys_pass_and_few_others_do() {
        let mut filter = KeyFilter::for_keys(10_000);
        let mut growing = GrowingFilter::default();
        for fingerprint in fingerprints(10_000) {
            filter.add(fingerprint);
            growing.add(fingerprint);
        }
        assert!(fingerprints(10_000).all(|one| filter.may_contain(one) && growing.may_contain(one)));
        let others: Vec<u64> = fingerprints(110_000).skip(10_000).collect();
        let passing = others.iter().filter(|one| filter.may_contain(**one)).count();
        assert!(passing < 4_000, "{passing} of 100,000");
        let passing = others.iter().filter(|one| growing.may_contain(**one)).count();
        assert!(passing < 8_000, "{passing} of 100,000");
        assert!(growing.memory() < 10_000 * 4, "{} bytes", growing.memory());
    }

    #[test]
    fn keys_of_one_shard_are_spread_over_the_whole_filter() {
        let shard = |one: &u64| (one >> 40) % 64 == 7;
        let mut filter = KeyFilter::for_keys(20_000);
        fingerprints(1 << 20).filter(shard).for_each(|one| filter.add(one));
        let others = fingerprints(3 << 20).skip(1 << 20).filter(shard);
        let (mut asked, mut passing) = (0, 0);
        for other in others {
            asked += 1;
            passing += usize::from(filter.may_contain(other));
        }
        assert!(passing < asked / 25, "{passing} of {asked}");
    }
}
