//! The keys of groups, each with the number of its group: a hash table that compares without following a
//! pointer.
//!
//! A key of up to 16 bytes stands in its slot; that is a number, a date, an ObjectId, a short string. Of a
//! longer one the slot has the first eight bytes, and its place among all long keys.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Bytes of a key that a slot has room for.
const SLOT_KEY_BYTES: usize = 16;
/// Memory of a slot: the table is between seven sixteenths and seven eighths full.
const SLOT_BYTES: usize = (size_of::<Slot>() + 1) * 16 / 9;

/// See the module's head.
pub(super) struct GroupKeys {
    slots: HashTable<Slot>,
    /// The long keys, one behind the other.
    long: Vec<u8>,
    hashing: Hashing,
}

/// The hash function, seeded anew for each pipeline, so that nobody can choose keys that collide. All tables
/// of a pipeline have the same, so that a walk through one meets the keys of another in about their order.
///
/// A short key is two words. Each word is mixed with a secret one, and the halves of their product of 128
/// bits are folded into one another, as in wyhash. A long key goes through SipHash.
#[derive(Clone)]
pub(super) struct Hashing {
    secrets: [u64; 3],
    long: RandomState,
}

impl Default for Hashing {
    fn default() -> Hashing {
        let long = RandomState::default();
        Hashing { secrets: [0_u64, 1, 2].map(|number| long.hash_one(number)), long }
    }
}

impl std::fmt::Debug for Hashing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hashing(secret)")
    }
}

impl Hashing {
    #[inline]
    fn of(&self, key: &[u8], words: [u64; 2]) -> u64 {
        match key.len() {
            0..=SLOT_KEY_BYTES => self.of_words(words, key.len()),
            _ => self.long.hash_one(key),
        }
    }

    #[inline]
    fn of_words(&self, [low, high]: [u64; 2], key_bytes: usize) -> u64 {
        let [first, second, third] = self.secrets;
        fold(fold(low ^ first, high ^ second) ^ key_bytes as u64, third)
    }

    #[inline]
    fn of_slot(&self, slot: &Slot, long: &[u8]) -> u64 {
        let key_bytes = slot.key_bytes as usize;
        match key_bytes {
            0..=SLOT_KEY_BYTES => self.of_words(slot.words, key_bytes),
            _ => self.long.hash_one(slot.long_key(long)),
        }
    }
}

/// Both halves of a product.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[derive(Clone, Copy)]
struct Slot {
    number: u32,
    key_bytes: u32,
    /// The key and zeros; of a long one its first eight bytes, and where it begins in `long`.
    words: [u64; 2],
}

impl GroupKeys {
    /// No keys.
    pub fn new(hashing: &Hashing) -> GroupKeys {
        GroupKeys { slots: HashTable::new(), long: Vec::new(), hashing: hashing.clone() }
    }

    /// Calls a function with each key and the number of its group, in the order of the table.
    pub fn try_for_each<E>(&self, mut visit: impl FnMut(&[u8], usize) -> Result<(), E>) -> Result<(), E> {
        self.slots
            .iter()
            .try_for_each(|slot| slot.with_key(&self.long, |key| visit(key, slot.number as usize)))
    }

    /// The number of the group with a key.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let words = words_of(key);
        let found = self.slots.find(self.hashing.of(key, words), |slot| {
            slot.key_bytes as usize == key.len()
                && slot.words[0] == words[0]
                && match key.len() <= SLOT_KEY_BYTES {
                    true => slot.words[1] == words[1],
                    false => slot.long_key(&self.long) == key,
                }
        });
        found.map(|slot| slot.number as usize)
    }

    /// Adds a key that is not there; the memory that it takes.
    pub fn insert(&mut self, key: &[u8], number: usize) -> usize {
        let mut words = words_of(key);
        let hash = self.hashing.of(key, words);
        let mut bytes = SLOT_BYTES;
        if key.len() > SLOT_KEY_BYTES {
            words[1] = self.long.len() as u64;
            self.long.extend_from_slice(key);
            // The list of long keys is doubled when it is full.
            bytes += key.len() * 3 / 2;
        }
        let slot = Slot {
            number: u32::try_from(number).expect("groups are fewer than four thousand million"),
            key_bytes: u32::try_from(key.len()).expect("a key is about as long as a document at most"),
            words,
        };
        let (long, hashing) = (&self.long, &self.hashing);
        self.slots.insert_unique(hash, slot, |slot| hashing.of_slot(slot, long));
        bytes
    }

    /// All keys, those of the last groups first.
    pub fn into_descending(self) -> DescendingKeys {
        // The numbers are those from zero on.
        let mut slots = vec![Slot { number: 0, key_bytes: 0, words: [0; 2] }; self.slots.len()];
        for slot in self.slots {
            let rank = slots.len() - 1 - slot.number as usize;
            slots[rank] = slot;
        }
        DescendingKeys { slots, long: self.long }
    }
}

/// Keys that leave their table.
pub(super) struct DescendingKeys {
    slots: Vec<Slot>,
    long: Vec<u8>,
}

impl DescendingKeys {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Calls a function with the key at a rank.
    pub fn with_key<T>(&self, rank: usize, take: impl FnOnce(&[u8]) -> T) -> T {
        self.slots[rank].with_key(&self.long, take)
    }
}

impl Slot {
    fn long_key<'l>(&self, long: &'l [u8]) -> &'l [u8] {
        &long[self.words[1] as usize..][..self.key_bytes as usize]
    }

    fn with_key<T>(&self, long: &[u8], take: impl FnOnce(&[u8]) -> T) -> T {
        let length = self.key_bytes as usize;
        if length > SLOT_KEY_BYTES {
            return take(self.long_key(long));
        }
        let mut bytes = [0; SLOT_KEY_BYTES];
        bytes[..8].copy_from_slice(&self.words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.words[1].to_le_bytes());
        take(&bytes[..length])
    }
}

/// The first bytes of a key, and zeros behind a short one.
#[inline]
fn words_of(key: &[u8]) -> [u64; 2] {
    let mut bytes = [0; SLOT_KEY_BYTES];
    let length = key.len().min(SLOT_KEY_BYTES);
    bytes[..length].copy_from_slice(&key[..length]);
    let (words, _) = bytes.as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_are_found_and_leave_in_descending_order() {
        let key = |number: usize| {
            let mut key = vec![0; number % 40];
            key.extend_from_slice(&number.to_be_bytes()[4..]);
            key
        };
        let mut keys = GroupKeys::new(&Hashing::default());
        for number in 0..3_000 {
            assert_eq!(keys.find(&key(number)), None, "{number}");
            assert!(keys.insert(&key(number), number) >= size_of::<Slot>());
        }
        assert!((0..3_000).all(|number| keys.find(&key(number)) == Some(number)));
        let mut seen = vec![false; 3_000];
        keys.try_for_each(|found, number| {
            seen[number] = found == key(number);
            Ok::<(), ()>(())
        })
        .unwrap();
        assert!(seen.into_iter().all(|seen| seen));
        let zeros = keys.find(&[0; 16]);
        assert_eq!((zeros, keys.find(b"")), (None, None), "a length tells keys with zeros apart");
        let keys = keys.into_descending();
        assert_eq!(keys.len(), 3_000);
        for rank in 0..3_000 {
            keys.with_key(rank, |found| assert_eq!(found, key(2_999 - rank)));
        }
    }
}
