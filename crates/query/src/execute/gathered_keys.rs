//! Primary keys that wait for others, before their documents are fetched.
//!
//! Entries of an index give primary keys in an order that has nothing to do with where the documents are. So
//! some keys are gathered first, in one of two [orders](KeyOrder):
//! - Where the order of the rows does not matter, some thousand keys are gathered and sorted. Neighbours are
//!   then fetched one after the other, from pages that are at hand.
//! - Where an engine sends a request for each get, keys are gathered in the order of their entries, as many
//!   as are worth [one request](FetchAhead).
//!
//! # Steps
//! 1. The executor gathers: it steps through its source, and [pushes](GatheredKeys::push) the keys.
//! 2. When there are enough, the source gives a whole document, or it is at its end, gathering
//!    [stops](GatheredKeys::stop).
//! 3. The executor fetches the document of each key, then takes what gathering stopped at, and gathers again.
//!
//! # Invariants
//! - The work of a step counts when its key is given, so that counters do not show that a scan has read
//!   ahead of a limit.
//! - The source stands at the document that gathering stopped at until that is given.

use std::ops::Range;

use pando_catalog::{BlockingMode, Bytes, Collection, FetchAhead, FetchedKeys, StorageError, Transaction};

use super::Counters;

/// Keys that are gathered at most where they are sorted.
const SORTED_MAX: usize = 4096;
/// Bytes of keys from which on no further key is gathered.
const BYTES_MAX: usize = 128 * 1024;

/// The order in which gathered keys are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOrder {
    /// Their own.
    OfKeys,
    /// That in which they came.
    OfEntries,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct GatheredKeys {
    order: KeyOrder,
    keys: PackedKeys,
    /// The place of the next key to fetch.
    next: usize,
    phase: Phase,
    fetches: FetchAhead,
    /// The entries and documents that the steps since the last key have examined.
    examined: Counters,
}

/// Keys in one piece of memory.
#[derive(Debug, Default)]
struct PackedKeys {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    key: Range<usize>,
    /// The entries and documents that the steps to it have examined.
    examined: Counters,
}

impl FetchedKeys for PackedKeys {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn key(&self, place: usize) -> &[u8] {
        &self.bytes[self.places[place].key.clone()]
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    /// Keys are given, then what follows them.
    Giving(Stop),
}

/// The reason why gathering stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// There are keys enough.
    Enough,
    /// The source stands at a document, which has this primary key where it does not stand in a scan.
    Document(Vec<u8>),
    /// The source is at its end.
    End,
}

/// The next thing that was gathered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'g> {
    /// A key whose document is to be [fetched](GatheredKeys::fetch).
    Key(&'g [u8]),
    /// The document that the source stands at, with its primary key.
    Document(Vec<u8>),
    /// There is none.
    End,
}

impl GatheredKeys {
    pub fn new(order: KeyOrder) -> GatheredKeys {
        GatheredKeys {
            order,
            keys: PackedKeys::default(),
            next: 0,
            phase: Phase::Gathering,
            fetches: FetchAhead::default(),
            examined: Counters::default(),
        }
    }

    /// Adds what a step has examined.
    pub fn count(&mut self, examined: Counters) {
        self.examined.add(examined);
    }

    /// Takes a key. `most` is the number of keys that the rows which are wanted may need.
    pub fn push(&mut self, key: &[u8], most: usize) {
        let start = self.keys.bytes.len();
        self.keys.bytes.extend_from_slice(key);
        let examined = std::mem::take(&mut self.examined);
        self.keys.places.push(Place { key: start..self.keys.bytes.len(), examined });
        let enough = match self.order {
            KeyOrder::OfKeys => SORTED_MAX,
            KeyOrder::OfEntries => self.fetches.part().min(most),
        };
        if self.keys.count() >= enough || self.keys.bytes.len() >= BYTES_MAX {
            self.stop(Stop::Enough);
        }
    }

    /// Stops gathering.
    pub fn stop(&mut self, stop: Stop) {
        if self.order == KeyOrder::OfKeys {
            let PackedKeys { bytes, places } = &mut self.keys;
            places.sort_unstable_by(|a, b| bytes[a.key.clone()].cmp(&bytes[b.key.clone()]));
        }
        self.next = 0;
        self.fetches.restart();
        self.phase = Phase::Giving(stop);
    }

    /// The next thing; `None` where more is to be gathered. A document is given once, a key until it is
    /// fetched. `counters` gets what the steps to it have examined.
    pub fn next(&mut self, counters: &mut Counters) -> Option<Next<'_>> {
        let Phase::Giving(stop) = &self.phase else { return None };
        if self.next < self.keys.count() {
            counters.add(std::mem::take(&mut self.keys.places[self.next].examined));
            return Some(Next::Key(self.keys.key(self.next)));
        }
        if *stop == Stop::End {
            counters.add(std::mem::take(&mut self.examined));
            return Some(Next::End);
        }
        self.keys.bytes.clear();
        self.keys.places.clear();
        match std::mem::replace(&mut self.phase, Phase::Gathering) {
            Phase::Giving(Stop::Document(key)) => {
                counters.add(std::mem::take(&mut self.examined));
                Some(Next::Document(key))
            }
            _ => None,
        }
    }

    /// The document of the key that comes next, which is over then. Repeatable after `WouldBlock`.
    pub fn fetch(
        &mut self,
        collection: &Collection,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<Bytes>, StorageError> {
        let document = self.fetches.fetch(&self.keys, self.next, collection, transaction, blocking)?;
        self.next += 1;
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all keys that can be given, as if their documents were fetched.
    fn take(gathered: &mut GatheredKeys, counters: &mut Counters, keys: &mut Vec<Vec<u8>>) {
        while let Some(Next::Key(key)) = gathered.next(counters) {
            keys.push(key.to_vec());
            gathered.next += 1;
        }
    }

    #[test]
    fn keys_come_sorted_and_gathering_begins_again_when_they_are_used_up() {
        let mut gathered = GatheredKeys::new(KeyOrder::OfKeys);
        let (mut fetched, mut counters) = (Vec::new(), Counters::default());
        let mut number = 0_u32;
        while number < 5_000 {
            while gathered.phase == Phase::Gathering && number < 5_000 {
                gathered.count(Counters { keys_examined: 2, ..Counters::default() });
                gathered.push(&number.reverse_bits().to_be_bytes(), 1);
                number += 1;
            }
            if number == 5_000 {
                gathered.stop(Stop::End);
            }
            let first = fetched.len();
            take(&mut gathered, &mut counters, &mut fetched);
            assert!(fetched[first..].is_sorted());
        }
        assert_eq!(gathered.next(&mut counters), Some(Next::End));
        assert_eq!(counters.keys_examined, 10_000);
        fetched.sort();
        fetched.dedup();
        assert_eq!(fetched.len(), 5_000);
    }

    #[test]
    fn a_document_comes_behind_the_keys_before_it_and_counts_then() {
        let mut gathered = GatheredKeys::new(KeyOrder::OfEntries);
        let (mut keys, mut counters) = (Vec::new(), Counters::default());
        let one = Counters { keys_examined: 1, documents_examined: 1, returned: 0 };
        for key in [b"z", b"a"] {
            gathered.count(one);
            gathered.push(key, 100);
        }
        assert_eq!(gathered.next(&mut counters), None);
        gathered.count(one);
        gathered.stop(Stop::Document(b"m".to_vec()));
        take(&mut gathered, &mut counters, &mut keys);
        assert_eq!((keys, counters.keys_examined), (vec![b"z".to_vec(), b"a".to_vec()], 3));
        assert_eq!(gathered.phase, Phase::Gathering);
        gathered.push(b"b", 1);
        assert_eq!(gathered.next(&mut counters), Some(Next::Key(b"b")));
    }
}
