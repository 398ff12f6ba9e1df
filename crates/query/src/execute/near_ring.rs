//! The candidates of one ring of a search by distances ([`near_search`](super::near_search)), and the
//! documents among them in the order of their distances.
//!
//! # Terms
//! - *Candidate*: an entry of the index. The cell that it names tells the least distance that its document
//!   can have; that of a point is about as small as a metre.
//!
//! # Steps
//! 1. Candidates are sorted by their least distances.
//! 2. The document of the first one is fetched, and kept with its distance.
//! 3. A kept document is given once no candidate can have a nearer one. So of a ring with many documents
//!    about as many are fetched as are asked for.
//! 4. Where there is no memory for those that are kept, all documents of the ring are sorted in files.
//!
//! # Not here
//! The fetching of documents, and which of them belong to the ring: `near_search`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pando_catalog::{KeySet, QueryAccount, Reservation, Sorter};

use super::source::Found;
use crate::QueryError;
use crate::sort::Check;

/// Bytes of the distance at the front of a key.
const DISTANCE: usize = size_of::<f64>();

/// The entries of a ring.
pub(super) struct Candidates {
    sorter: Sorter,
    /// The keys whose documents were looked at, where one may come again.
    seen: Option<KeySet>,
    count: u64,
}

impl Candidates {
    /// None so far. `seen` is empty, and there where several candidates may be of one document.
    pub fn new(account: &QueryAccount, seen: Option<KeySet>) -> Candidates {
        Candidates { sorter: Sorter::new(account), seen, count: 0 }
    }

    /// Adds a candidate with the least distance of its document, which is not negative. `document` is empty
    /// where it is to be fetched.
    pub fn push(
        &mut self,
        least: f64,
        primary_key: &[u8],
        document: &[u8],
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        self.count += 1;
        self.sorter.push(&key_of(least, primary_key), document, check)
    }

    /// Counts a candidate that is not in the ring.
    pub fn pass(&mut self) {
        self.count += 1;
    }
}

/// A document with its distance.
pub(super) struct Fetched {
    pub distance: f64,
    pub document: Vec<u8>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingStep {
    /// The document of the candidate is to be fetched, and then kept or dismissed.
    Fetch,
    /// The document of the candidate is at hand, and is to be kept or dismissed.
    Judge,
    /// A document was given.
    Given,
    /// There is no more.
    End,
}

/// See the module's head.
pub(super) struct NearRing {
    account: QueryAccount,
    candidates: Candidates,
    /// The candidate at hand: its key in the sorter, and its document if it has one.
    candidate: Option<(Vec<u8>, Vec<u8>)>,
    has_all_candidates: bool,
    /// Documents by their keys, the nearest on top.
    kept: BinaryHeap<Reverse<(Vec<u8>, Vec<u8>)>>,
    kept_bytes: usize,
    reservation: Reservation,
    /// All documents, where there is no memory for those that are kept.
    sorted: Option<Sorter>,
    documents: u64,
}

impl NearRing {
    /// The ring of candidates that are complete.
    pub fn new(
        mut candidates: Candidates,
        account: &QueryAccount,
        check: Check<'_>,
    ) -> Result<NearRing, QueryError> {
        candidates.sorter.finish(check)?;
        Ok(NearRing {
            account: account.clone(),
            candidates,
            candidate: None,
            has_all_candidates: false,
            kept: BinaryHeap::new(),
            kept_bytes: 0,
            reservation: account.reserve(),
            sorted: None,
            documents: 0,
        })
    }

    /// Entries that the ring had.
    pub fn candidates(&self) -> u64 {
        self.candidates.count
    }

    /// Documents that it had.
    pub fn kept(&self) -> u64 {
        self.documents
    }

    /// The primary key of the candidate at hand.
    pub fn candidate_key(&self) -> &[u8] {
        self.candidate.as_ref().map_or(&[], |(key, _)| &key[DISTANCE..])
    }

    /// The document of the candidate at hand, which it had from the index.
    pub fn candidate_document(&mut self) -> Vec<u8> {
        self.candidate.as_mut().map(|(_, document)| std::mem::take(document)).unwrap_or_default()
    }

    /// Passes over the candidate at hand.
    pub fn dismiss(&mut self) {
        self.candidate = None;
    }

    /// Keeps the document of the candidate at hand.
    pub fn keep(&mut self, fetched: Fetched, check: Check<'_>) -> Result<(), QueryError> {
        let key = key_of(fetched.distance, self.candidate_key());
        self.candidate = None;
        self.documents += 1;
        if let Some(sorted) = &mut self.sorted {
            return sorted.push(&key, &fetched.document, check);
        }
        self.kept_bytes += bytes_of(&key, &fetched.document);
        self.kept.push(Reverse((key, fetched.document)));
        if self.reservation.grow_to(self.kept_bytes) {
            return Ok(());
        }
        let mut sorted = Sorter::new(&self.account);
        for Reverse((key, document)) in std::mem::take(&mut self.kept) {
            sorted.push(&key, &document, check)?;
        }
        self.kept_bytes = 0;
        self.reservation.shrink_to(0);
        self.sorted = Some(sorted);
        Ok(())
    }

    /// Takes a step; a document that is given stands in `found` afterwards.
    pub fn step(&mut self, found: &mut Found, check: Check<'_>) -> Result<RingStep, QueryError> {
        if self.candidate.is_none() && !self.has_all_candidates {
            self.draw(check)?;
        }
        let nearest_kept = self.kept.peek().map(|Reverse((key, _))| key);
        match (&self.candidate, nearest_kept) {
            // A candidate with an equal least distance may come before it by its key.
            (Some((candidate, _)), Some(kept)) if kept[..DISTANCE] < candidate[..DISTANCE] => {
                Ok(self.give_kept(found))
            }
            (Some((_, document)), _) if document.is_empty() => Ok(RingStep::Fetch),
            (Some(_), _) => Ok(RingStep::Judge),
            (None, Some(_)) => Ok(self.give_kept(found)),
            (None, None) => self.give_sorted(found, check),
        }
    }

    /// Takes the next candidate whose document was not looked at.
    fn draw(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        loop {
            let Some((key, document)) = self.candidates.sorter.next(check)? else {
                self.has_all_candidates = true;
                if let Some(sorted) = &mut self.sorted {
                    sorted.finish(check)?;
                }
                return Ok(());
            };
            let candidate = (key.to_vec(), document.to_vec());
            let is_new = match &mut self.candidates.seen {
                Some(seen) => seen.insert(&candidate.0[DISTANCE..], check)?,
                None => true,
            };
            if is_new {
                self.candidate = Some(candidate);
                return Ok(());
            }
        }
    }

    fn give_kept(&mut self, found: &mut Found) -> RingStep {
        let Some(Reverse((key, document))) = self.kept.pop() else { return RingStep::End };
        self.kept_bytes -= bytes_of(&key, &document);
        found.primary_key.clear();
        found.primary_key.extend_from_slice(&key[DISTANCE..]);
        found.document = document;
        RingStep::Given
    }

    fn give_sorted(&mut self, found: &mut Found, check: Check<'_>) -> Result<RingStep, QueryError> {
        let Some(sorted) = &mut self.sorted else { return Ok(RingStep::End) };
        let Some((key, document)) = sorted.next(check)? else { return Ok(RingStep::End) };
        found.primary_key.clear();
        found.primary_key.extend_from_slice(&key[DISTANCE..]);
        found.document.clear();
        found.document.extend_from_slice(document);
        Ok(RingStep::Given)
    }
}

/// A key in the order of distances, and of primary keys where they are equal. Distances are not negative, so
/// that their bits are in their order.
fn key_of(distance: f64, primary_key: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(DISTANCE + primary_key.len());
    key.extend_from_slice(&distance.to_bits().to_be_bytes());
    key.extend_from_slice(primary_key);
    key
}

/// Memory of a document that is kept.
fn bytes_of(key: &[u8], document: &[u8]) -> usize {
    key.len() + document.len() + 64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_catalog::{QueryMemory, ScratchSpace};
    use pando_environment::{Environment, SeededRandom};

    use super::*;

    /// Documents are numbers with distances; candidates have less exact ones, and some come twice.
    #[test]
    fn documents_come_by_distance_whatever_the_memory_and_no_more_are_fetched_than_needed() {
        let simulation = Environment::simulated(1);
        let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).unwrap();
        let check: Check<'_> = &mut || Ok(());
        for budget in [0, 50_000, 100 << 20] {
            let account = QueryMemory::with_scratch(budget, &scratch).account();
            let chance = SeededRandom::new(budget as u64);
            let distances: Vec<f64> = (0..500).map(|_| chance.below(1_000) as f64 / 4.0).collect();
            let mut candidates = Candidates::new(&account, Some(KeySet::new(&account)));
            for (number, distance) in distances.iter().enumerate() {
                for _ in 0..1 + chance.below(2) {
                    let least = (distance - chance.below(8) as f64).max(0.0);
                    candidates.push(least, &number.to_be_bytes(), &[], check).unwrap();
                }
            }
            let mut ring = NearRing::new(candidates, &account, check).unwrap();
            let mut found = Found::default();
            let (mut given, mut fetched) = (Vec::new(), 0);
            loop {
                match ring.step(&mut found, check).unwrap() {
                    RingStep::Fetch => {
                        fetched += 1;
                        let number = usize::from_be_bytes(ring.candidate_key().try_into().unwrap());
                        match number % 3 {
                            0 => ring.dismiss(),
                            _ => {
                                let (distance, document) = (distances[number], vec![7; 400]);
                                ring.keep(Fetched { distance, document }, check).unwrap();
                            }
                        }
                    }
                    RingStep::Judge => unreachable!("no candidate has its document"),
                    RingStep::Given => {
                        given.push(usize::from_be_bytes(found.primary_key[..].try_into().unwrap()));
                        assert_eq!(found.document.len(), 400);
                    }
                    RingStep::End => break,
                }
                if given.len() == 10 && budget > 1 << 20 {
                    assert!(fetched < 60, "{fetched} documents were fetched for ten");
                }
            }
            let mut wanted: Vec<usize> = (0..500).filter(|number| number % 3 != 0).collect();
            wanted.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]).then(a.cmp(b)));
            assert_eq!(given, wanted, "with a budget of {budget}");
            assert_eq!((ring.kept(), fetched), (wanted.len() as u64, 500));
        }
    }
}
