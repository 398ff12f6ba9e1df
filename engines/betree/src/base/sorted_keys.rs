//! Sorted keys that divide a range: the pivots of an inner node or the separators of a leaf directory.
//!
//! Every read searches them, so the layout is compact:
//! - All keys lie in one allocation.
//! - Each key has a *head*: the 8 bytes after the common prefix, as a number that compares as the bytes do.
//! - A search runs over the heads, which lie side by side. It looks at whole keys only where heads are equal.

use std::cmp::Ordering;

/// Keys in ascending order. The first is empty and stands for the lower end of the range.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedKeys {
    bytes: Vec<u8>,
    /// End of each key in `bytes`.
    ends: Vec<u32>,
    heads: Vec<u64>,
    /// Length of the common prefix of all keys but the first.
    shared: usize,
}

impl SortedKeys {
    /// The keys; or, as the error, the place of the first key that is not greater than the one before it (0:
    /// the first key is not empty).
    pub(crate) fn new<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Result<SortedKeys, usize> {
        let mut sorted = SortedKeys::default();
        for (at, key) in keys.enumerate() {
            let ordered = if at == 0 { key.is_empty() } else { sorted.get(at - 1) < key };
            if !ordered {
                return Err(at);
            }
            sorted.bytes.extend_from_slice(key);
            let end = u32::try_from(sorted.bytes.len()).expect("the keys of a block are far below 4 GiB");
            sorted.ends.push(end);
        }
        sorted.bytes.shrink_to_fit();
        sorted.ends.shrink_to_fit();
        sorted.shared = match sorted.len() {
            0 | 1 => 0,
            // In sorted keys the first and the last share exactly the common prefix.
            count => shared_prefix(sorted.get(1), sorted.get(count - 1)),
        };
        sorted.heads = (0..sorted.len()).map(|at| sorted.head_of(sorted.get(at))).collect();
        Ok(sorted)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// The place of the last key that is at or before this one.
    pub(crate) fn covering(&self, key: &[u8]) -> usize {
        self.before(key, |have, key| have <= key)
    }

    /// The place of the last key that is before this one; 0 for the empty key.
    pub(crate) fn below(&self, key: &[u8]) -> usize {
        self.before(key, |have, key| have < key)
    }

    /// Heap memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4 + self.heads.capacity() * 8
    }

    /// The place of the last key for which `counts` is true. The empty key always counts.
    fn before(&self, key: &[u8], counts: impl Fn(&[u8], &[u8]) -> bool) -> usize {
        if self.len() < 2 {
            return 0;
        }
        let prefix = &self.get(1)[..self.shared];
        match key.get(..self.shared).unwrap_or(key).cmp(prefix) {
            Ordering::Less => return 0,
            Ordering::Greater => return self.len() - 1,
            Ordering::Equal => {}
        }
        let head = self.head_of(key);
        let mut low = 1 + self.heads[1..].partition_point(|have| *have < head);
        while low < self.len() && self.heads[low] == head && counts(self.get(low), key) {
            low += 1;
        }
        low - 1
    }

    fn head_of(&self, key: &[u8]) -> u64 {
        let suffix = key.get(self.shared..).unwrap_or_default();
        match suffix.first_chunk::<8>() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes[..suffix.len()].copy_from_slice(suffix);
                u64::from_be_bytes(bytes)
            }
        }
    }
}

/// Length of the common prefix of two keys.
fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use crate::base::sorted_keys::*;

    #[test]
    fn every_key_is_found_where_a_linear_search_finds_it() {
        for seed in 0..500 {
            let random = SeededRandom::new(seed);
            let start = vec![b'p'; (seed % 4) as usize];
            let letters = [0, 1, b'x', 0xFF];
            let key = || {
                let mut key = start.clone();
                let length = random.next_u64() % 12;
                key.extend((0..length).map(|_| letters[random.next_u64() as usize % 4]));
                key
            };
            let mut keys: Vec<Vec<u8>> = (0..seed % 20).map(|_| key()).collect();
            keys.push(Vec::new());
            keys.sort();
            keys.dedup();
            let sorted = SortedKeys::new(keys.iter().map(Vec::as_slice)).expect("the keys are in order");
            let mut wanted: Vec<Vec<u8>> = (0..20).map(|_| key()).collect();
            wanted.extend(keys.iter().cloned());
            wanted.extend([vec![], vec![b'o'], vec![b'p'], vec![b'q'], vec![0xFF; 20]]);
            for key in &wanted {
                let covering =
                    keys.iter().rposition(|have| have <= key).expect("the empty key is before all");
                let below = keys.iter().rposition(|have| have < key).unwrap_or(0);
                assert_eq!(
                    (sorted.covering(key), sorted.below(key)),
                    (covering, below),
                    "seed {seed}, {key:?}"
                );
            }
        }
    }

    #[test]
    fn keys_out_of_order_are_refused_with_their_place() {
        let place = |keys: &[&[u8]]| SortedKeys::new(keys.iter().copied()).map(|sorted| sorted.len());
        assert_eq!(place(&[b"", b"a", b"b"]), Ok(3));
        assert_eq!(place(&[b"a", b"b"]), Err(0));
        assert_eq!(place(&[b"", b"b", b"b"]), Err(2));
        assert_eq!(place(&[]), Ok(0));
    }
}
