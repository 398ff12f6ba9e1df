//! The k least documents of many, by their sort keys.
//!
//! # Algorithm
//! 1. Documents gather in the order in which they come, without a comparison, until there are twice as many
//!    as wanted.
//! 2. A *cut* keeps the k least of them. A selection finds these in linear time, so a document costs a few
//!    comparisons, however many are wanted. The key of the greatest that is left is the *bound*: documents
//!    with that key or a greater one are refused from then on.
//! 3. Where few are wanted, or memory for twice as many is short, a heap holds exactly the k least. Its
//!    greatest gives way to each lesser one.
//!
//! A comparison reads eight bytes of each key first, which lie beside each other. Where all keys begin with
//! the same bytes, as `item number 17` does, a cut takes the eight bytes behind those.
//!
//! # Invariants
//! - Of documents with equal keys those that came first are held, and come first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// So few documents are held in a heap from the start: its bound is the tightest one.
const HEAP_MAX: u64 = 256;

/// A document on its way in.
#[derive(Clone, Copy)]
pub(super) struct Pushed<'p> {
    pub key: &'p [u8],
    /// How many came before it.
    pub arrival: u64,
    pub primary_key: &'p [u8],
    pub document: &'p [u8],
}

/// A document that waits, ordered by key and then by arrival.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Eight bytes of the key, as a number that compares as they do; or 0 in all that are compared.
    prefix: u64,
    arrival: u64,
    key_bytes: u32,
    primary_bytes: u32,
    /// Sort key, primary key and document.
    bytes: Box<[u8]>,
}

impl Waiting {
    fn new(pushed: &Pushed<'_>) -> Waiting {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("keys are shorter than documents");
        let parts = [pushed.key, pushed.primary_key, pushed.document];
        Waiting {
            prefix: 0,
            arrival: pushed.arrival,
            key_bytes: length(pushed.key),
            primary_bytes: length(pushed.primary_key),
            bytes: parts.concat().into_boxed_slice(),
        }
    }

    pub fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes as usize]
    }

    pub fn primary_key(&self) -> &[u8] {
        &self.bytes[self.key_bytes as usize..][..self.primary_bytes as usize]
    }

    pub fn document(&self) -> &[u8] {
        &self.bytes[self.key_bytes as usize + self.primary_bytes as usize..]
    }

    /// Bytes of memory.
    pub fn held_bytes(&self) -> usize {
        size_of::<Waiting>() + self.bytes.len()
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        self.prefix
            .cmp(&other.prefix)
            .then_with(|| self.key().cmp(other.key()))
            .then_with(|| self.arrival.cmp(&other.arrival))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Least {
    wanted: usize,
    held: Held,
    /// Where documents gather: documents with this key or a greater one are not among the least.
    bound: Option<Box<[u8]>>,
    bytes: usize,
}

#[derive(Debug)]
enum Held {
    Gathered(Vec<Waiting>),
    /// The greatest of the least is on top.
    Heap(BinaryHeap<Waiting>),
}

impl Least {
    /// An empty one; it holds `wanted` documents at most, or twice as many.
    pub fn new(wanted: u64) -> Least {
        let held = match wanted <= HEAP_MAX {
            true => Held::Heap(BinaryHeap::new()),
            false => Held::Gathered(Vec::new()),
        };
        Least { wanted: usize::try_from(wanted).unwrap_or(usize::MAX), held, bound: None, bytes: 0 }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Documents with this key or a greater one are not among the least; `None` where any may be.
    pub fn bound(&self) -> Option<&[u8]> {
        match &self.held {
            Held::Gathered(_) => self.bound.as_deref(),
            Held::Heap(heap) if heap.len() == self.wanted => heap.peek().map(Waiting::key),
            Held::Heap(_) => None,
        }
    }

    /// Whether a document with this key may be among the least. Equal keys keep the earlier document.
    #[inline]
    pub fn admits(&self, key: &[u8]) -> bool {
        self.wanted > 0 && self.bound().is_none_or(|bound| key < bound)
    }

    /// Takes a document in, if it may be among the least.
    pub fn push(&mut self, pushed: &Pushed<'_>) {
        if !self.admits(pushed.key) {
            return;
        }
        let waiting = Waiting::new(pushed);
        self.bytes += waiting.held_bytes();
        match &mut self.held {
            Held::Heap(heap) => {
                if heap.len() == self.wanted {
                    self.bytes -= heap.pop().map_or(0, |gone| gone.held_bytes());
                }
                heap.push(waiting);
            }
            Held::Gathered(gathered) => {
                gathered.push(waiting);
                if gathered.len() >= self.wanted.saturating_mul(2) {
                    self.cut();
                }
            }
        }
    }

    /// Keeps the least alone, from now on.
    pub fn hold_least_alone(&mut self) {
        self.cut();
        if let Held::Gathered(gathered) = &mut self.held {
            let mut gathered = std::mem::take(gathered);
            // Later ones have prefixes of none.
            gathered.iter_mut().for_each(|waiting| waiting.prefix = 0);
            self.held = Held::Heap(BinaryHeap::from(gathered));
        }
    }

    /// Step 2.
    fn cut(&mut self) {
        let Held::Gathered(gathered) = &mut self.held else { return };
        if gathered.len() <= self.wanted {
            return;
        }
        set_prefixes(gathered);
        let (_, greatest, _) = gathered.select_nth_unstable(self.wanted - 1);
        self.bound = Some(greatest.key().into());
        self.bytes -= gathered.drain(self.wanted..).map(|gone| gone.held_bytes()).sum::<usize>();
    }

    /// The least, the greatest first.
    pub fn into_descending(mut self) -> Vec<Waiting> {
        self.cut();
        let mut least = self.into_unordered();
        set_prefixes(&mut least);
        least.sort_unstable_by(|one, other| other.cmp(one));
        least
    }

    /// The least, in the order in which they came.
    pub fn into_arrivals(mut self) -> Vec<Waiting> {
        self.cut();
        let mut least = self.into_unordered();
        least.sort_unstable_by_key(|waiting| waiting.arrival);
        least
    }

    fn into_unordered(self) -> Vec<Waiting> {
        match self.held {
            Held::Gathered(gathered) => gathered,
            Held::Heap(heap) => heap.into_vec(),
        }
    }
}

/// Gives each document the eight bytes of its key behind the bytes that all keys begin with.
fn set_prefixes(list: &mut [Waiting]) {
    let Some((first, others)) = list.split_first() else { return };
    let first = first.key();
    let common = others.iter().fold(first.len(), |common, other| common_bytes(&first[..common], other.key()));
    for waiting in list {
        waiting.prefix = word_of(&waiting.key()[common..]);
    }
}

/// How many first bytes two keys have in common.
fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The first eight bytes, or fewer, as a number that compares as they do.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(word.len());
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in no order, some of them equal.
    fn keys(count: u64) -> Vec<Vec<u8>> {
        let number = |at: u64| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % (count / 2 + 1);
        (0..count).map(|at| format!("item number {}", number(at)).into_bytes()).collect()
    }

    fn push_all(least: &mut Least, keys: &[Vec<u8>]) {
        for (arrival, key) in keys.iter().enumerate() {
            let document = arrival.to_be_bytes();
            let arrival = arrival as u64;
            least.push(&Pushed { key, arrival, primary_key: b"pk", document: &document });
        }
    }

    /// The arrivals of the first keys in order, those of equal ones in order.
    fn expected(keys: &[Vec<u8>], wanted: usize) -> Vec<u64> {
        let mut order: Vec<u64> = (0..keys.len() as u64).collect();
        order.sort_by_key(|arrival| &keys[*arrival as usize]);
        order.truncate(wanted);
        order
    }

    fn arrivals(waiting: &[Waiting]) -> Vec<u64> {
        waiting.iter().map(|waiting| waiting.arrival).collect()
    }

    #[test]
    fn the_least_come_in_order_whether_they_gather_or_lie_in_a_heap() {
        let keys = keys(5_000);
        for wanted in [0, 1, 10, 256, 257, 1_000, 2_400, 2_600, 4_999, 5_000, 9_000] {
            let mut least = Least::new(wanted);
            push_all(&mut least, &keys);
            let mut sorted = least.into_descending();
            sorted.reverse();
            assert_eq!(arrivals(&sorted), expected(&keys, wanted as usize), "{wanted} wanted");
            for waiting in &sorted {
                assert_eq!(waiting.key(), keys[waiting.arrival as usize]);
                assert_eq!(waiting.primary_key(), b"pk");
                assert_eq!(waiting.document(), (waiting.arrival as usize).to_be_bytes());
            }
        }
    }

    #[test]
    fn where_memory_is_short_the_least_alone_are_held_from_then_on() {
        let keys = keys(3_000);
        let mut least = Least::new(500);
        push_all(&mut least, &keys[..900]);
        let before = least.bytes();
        least.hold_least_alone();
        assert!(least.bytes() < before);
        let (bytes, bound) = (least.bytes(), least.bound().unwrap().to_vec());
        for (at, key) in keys.iter().enumerate().skip(900) {
            let document = at.to_be_bytes();
            least.push(&Pushed { key, arrival: at as u64, primary_key: b"pk", document: &document });
            assert!(least.bytes() <= bytes + 500 * 4, "only keys differ in length");
        }
        assert!(least.bound().unwrap() < bound.as_slice());
        let held: usize = match &least.held {
            Held::Heap(heap) => heap.iter().map(Waiting::held_bytes).sum(),
            Held::Gathered(_) => unreachable!("it is a heap by now"),
        };
        assert_eq!(least.bytes(), held);
        let mut sorted = least.into_descending();
        sorted.reverse();
        assert_eq!(arrivals(&sorted), expected(&keys, 500));
    }

    #[test]
    fn the_bound_refuses_later_equals_and_the_least_come_as_they_arrived() {
        let mut least = Least::new(300);
        let keys: Vec<Vec<u8>> = (0..600_u32).rev().map(|number| number.to_be_bytes().to_vec()).collect();
        push_all(&mut least, &keys);
        let bound = 299_u32.to_be_bytes();
        assert_eq!(least.bound(), Some(&bound[..]));
        assert!(!least.admits(&bound) && least.admits(&298_u32.to_be_bytes()));
        assert_eq!(arrivals(&least.into_arrivals()), (300..600).collect::<Vec<u64>>());
    }
}
