//! Primary keys that wait for their documents to be fetched in the order of the keys.
//!
//! Entries of an index give primary keys in an order that has nothing to do with where the documents are.
//! Where the order of the documents does not matter, some thousand keys are gathered and sorted first, so
//! that neighbours are fetched one after the other, from pages that are at hand.

use std::ops::Range;

/// Keys that are gathered at most.
const KEYS_MAX: usize = 4096;
/// Bytes of keys from which on no further key is gathered.
const BYTES_MAX: usize = 128 * 1024;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct GatheredKeys {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
    /// The place of the next key to fetch.
    next: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Gathering,
    Fetching,
    /// The last keys are being fetched.
    Ending,
}

impl GatheredKeys {
    /// Whether keys are wanted.
    pub fn is_gathering(&self) -> bool {
        self.phase == Phase::Gathering
    }

    /// Takes a key; when there are enough, they are sorted.
    pub fn push(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.places.push(start..self.bytes.len());
        if self.places.len() >= KEYS_MAX || self.bytes.len() >= BYTES_MAX {
            self.sort(Phase::Fetching);
        }
    }

    /// There are no more keys.
    pub fn end(&mut self) {
        self.sort(Phase::Ending);
    }

    fn sort(&mut self, phase: Phase) {
        let bytes = &self.bytes;
        self.places.sort_unstable_by(|a, b| bytes[a.clone()].cmp(&bytes[b.clone()]));
        self.next = 0;
        self.phase = phase;
    }

    /// The key to fetch; `None` where more are to be gathered, or at the end.
    pub fn current(&self) -> Option<&[u8]> {
        match self.phase {
            Phase::Gathering => None,
            Phase::Fetching | Phase::Ending => Some(&self.bytes[self.places.get(self.next)?.clone()]),
        }
    }

    /// Moves to the next key; behind the last, gathering begins again.
    pub fn advance(&mut self) {
        self.next += 1;
        if self.phase == Phase::Fetching && self.next == self.places.len() {
            self.bytes.clear();
            self.places.clear();
            self.phase = Phase::Gathering;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_sorted_and_gathering_begins_again_when_they_are_used_up() {
        let mut gathered = GatheredKeys::default();
        let mut fetched = Vec::new();
        let mut number = 0_u32;
        while number < 5_000 {
            assert!(gathered.is_gathering() && gathered.current().is_none());
            while gathered.is_gathering() && number < 5_000 {
                gathered.push(&number.reverse_bits().to_be_bytes());
                number += 1;
            }
            if number == 5_000 {
                gathered.end();
            }
            let first = fetched.len();
            while let Some(key) = gathered.current() {
                fetched.push(key.to_vec());
                gathered.advance();
            }
            assert!(fetched[first..].is_sorted());
        }
        assert!(!gathered.is_gathering());
        fetched.sort();
        fetched.dedup();
        assert_eq!(fetched.len(), 5_000);
    }
}
