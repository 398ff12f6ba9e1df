//! The sorter: takes documents with their sort keys, and gives them back in order.
//!
//! 1. Without a limit all documents go into the external sorter ([`pando_catalog::Sorter`]), which stays in
//!    memory while they fit.
//! 2. With a limit of k documents only the k least are held ([`Least`]), or some more while there is memory.
//!    So a sorted first page costs the memory of that page. Where the k least do not fit, they move to the
//!    external sorter, and so do all later ones that may be among them.
//!
//! # Invariants
//! - Documents with equal keys come in the order in which they were pushed.
//! - Without disk use, at most [`MEMORY_BYTES_MAX`] bytes are held, and more is an error rather than a guess.

use pando_catalog::{QueryAccount, Reservation};

use super::least::{Least, Pushed, Waiting};
use crate::memory::{DiskUse, MEMORY_BYTES_MAX, NO_SCRATCH, StageMemory, USED_UP};
use crate::{ErrorCode, QueryError};

/// Fails if the work has to end.
pub(crate) type Check<'c> = &'c mut dyn FnMut() -> Result<(), QueryError>;

/// Bytes of memory of a document beside its own and its key's.
const DOCUMENT_OVERHEAD: usize = 32;

/// A document in its place.
#[derive(Clone, Copy, Debug)]
pub struct Sorted<'s> {
    /// The sort key.
    pub key: &'s [u8],
    /// As it was pushed.
    pub primary_key: &'s [u8],
    /// As it was pushed.
    pub document: &'s [u8],
}

/// Sorts documents by their keys.
#[derive(Debug)]
pub struct Sorter {
    /// `Some`: only so many are wanted.
    limit: Option<u64>,
    memory: StageMemory,
    bytes_max: usize,
    /// Bytes of documents and keys in memory, without disk use.
    bytes: usize,
    pushed: u64,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Least(Least, Reservation),
    /// The least, sorted, the next one last; and the one that was given.
    SortedLeast(Vec<Waiting>, Option<Waiting>, Reservation),
    External(Box<External>),
}

/// Documents in the external sorter.
#[derive(Debug)]
struct External {
    sorter: pando_catalog::Sorter,
    /// Documents with this key or a greater one are not among the least.
    bound: Option<Box<[u8]>>,
    /// Documents that may still be given.
    left: u64,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Filling,
    Emptying,
}

impl External {
    fn new(account: &QueryAccount, limit: Option<u64>) -> External {
        External {
            sorter: pando_catalog::Sorter::new(account),
            bound: None,
            left: limit.unwrap_or(u64::MAX),
            phase: Phase::Filling,
        }
    }

    fn push(
        &mut self,
        key: &[u8],
        primary_key: &[u8],
        document: &[u8],
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        let length = u16::try_from(primary_key.len()).expect("a key of a tree is shorter than 64 KiB");
        self.sorter.push_parts(key, &[&length.to_le_bytes(), primary_key, document], check)
    }

    fn next(&mut self, check: Check<'_>) -> Result<Option<Sorted<'_>>, QueryError> {
        if self.phase == Phase::Filling {
            self.sorter.finish(check)?;
            self.phase = Phase::Emptying;
        }
        if self.left == 0 {
            // Those behind the limit are let go: the sorter may wait in a cursor.
            self.sorter.release();
            return Ok(None);
        }
        self.left -= 1;
        let Some((key, value)) = self.sorter.next(check)? else { return Ok(None) };
        let (length, rest) = value.split_first_chunk().expect("each value begins with a length");
        let (primary_key, document) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        Ok(Some(Sorted { key, primary_key, document }))
    }
}

impl Sorter {
    /// An empty sorter; `limit` is how many documents will be taken out at most.
    pub fn new(limit: Option<u64>, memory: &StageMemory) -> Sorter {
        let held = match limit {
            Some(limit) => Held::Least(Least::new(limit), memory.account.reserve()),
            None => Held::External(Box::new(External::new(&memory.account, None))),
        };
        Sorter { limit, memory: memory.clone(), bytes_max: MEMORY_BYTES_MAX, bytes: 0, pushed: 0, held }
    }

    /// The same with a smaller limit of memory.
    #[must_use]
    pub fn with_memory(self, bytes_max: usize) -> Sorter {
        Sorter { bytes_max, ..self }
    }

    /// Whether a document with this key would be held: not where as many as are wanted come before it.
    #[inline]
    pub fn admits(&self, key: &[u8]) -> bool {
        match &self.held {
            Held::Least(least, _) => least.admits(key),
            Held::SortedLeast(..) | Held::External(_) => true,
        }
    }

    /// Documents with this key or a greater one are refused; `None` where none is.
    pub fn bound(&self) -> Option<&[u8]> {
        match &self.held {
            Held::Least(least, _) => least.bound(),
            Held::External(external) => external.bound.as_deref(),
            Held::SortedLeast(..) => None,
        }
    }

    /// Takes a document in. `check` is called between long steps.
    ///
    /// # Errors
    /// [`QueryExceededMemoryLimitNoDiskUseAllowed`](ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed); the
    /// device refused; `check` failed.
    pub fn push(
        &mut self,
        key: &[u8],
        primary_key: &[u8],
        document: &[u8],
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        let arrival = self.pushed;
        self.pushed += 1;
        let bytes = key.len() + primary_key.len() + document.len() + DOCUMENT_OVERHEAD;
        if let Held::External(external) = &mut self.held {
            if external.bound.as_ref().is_some_and(|bound| key >= &**bound) {
                return Ok(());
            }
            if self.memory.disk_use == DiskUse::Forbidden {
                self.bytes += bytes;
                if self.bytes > self.bytes_max {
                    return Err(self.exceeded());
                }
                if !external.sorter.has_room(bytes) {
                    return Err(self.used_up());
                }
            }
            return external.push(key, primary_key, document, check);
        }
        self.push_to_least(Pushed { key, arrival, primary_key, document }, check)
    }

    /// Sorts what it holds so far, so that another one takes it in at once.
    pub(crate) fn settle(&mut self) {
        if let Held::External(external) = &mut self.held {
            external.sorter.sort_last();
        }
    }

    /// Takes in another sorter, whose documents come behind all that were pushed to this one. Neither has a
    /// limit, and both may use the disk.
    ///
    /// # Errors
    /// The device refused; `check` failed.
    pub(crate) fn absorb(&mut self, later: &mut Sorter, check: Check<'_>) -> Result<(), QueryError> {
        let (Held::External(own), Held::External(other)) = (&mut self.held, &mut later.held) else {
            unreachable!("sorters with a limit are not absorbed")
        };
        self.pushed += later.pushed;
        own.sorter.absorb(&mut other.sorter, check)
    }

    fn push_to_least(&mut self, pushed: Pushed<'_>, check: Check<'_>) -> Result<(), QueryError> {
        let Held::Least(least, reservation) = &mut self.held else {
            unreachable!("documents are pushed before the first one is taken out")
        };
        least.push(&pushed);
        let forbids_disk = self.memory.disk_use == DiskUse::Forbidden;
        let is_within = |least: &Least| !forbids_disk || least.bytes() <= self.bytes_max;
        if is_within(least) && reservation.grow_to(least.bytes()) {
            return Ok(());
        }
        least.hold_least_alone();
        if !is_within(least) {
            return Err(self.exceeded());
        }
        if reservation.grow_to(least.bytes()) {
            return Ok(());
        }
        match self.memory.disk_use {
            DiskUse::Forbidden => Err(self.used_up()),
            DiskUse::Allowed => self.move_to_external(check),
        }
    }

    /// Moves the least of all documents so far to the external sorter.
    fn move_to_external(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        let mut external = Box::new(External::new(&self.memory.account, self.limit));
        let emptied = Held::Least(Least::new(0), self.memory.account.reserve());
        let Held::Least(least, mut reservation) = std::mem::replace(&mut self.held, emptied) else {
            unreachable!("only the least move")
        };
        external.bound = least.bound().map(Box::from);
        let mut bytes = least.bytes();
        for waiting in least.into_arrivals() {
            external.push(waiting.key(), waiting.primary_key(), waiting.document(), check)?;
            bytes -= waiting.held_bytes();
            reservation.shrink_to(bytes);
        }
        self.held = Held::External(external);
        Ok(())
    }

    fn exceeded(&self) -> QueryError {
        let bytes = self.bytes_max;
        let more = match self.limit {
            None => "",
            Some(_) => " Aborting operation. Pass allowDiskUse:true to opt in.",
        };
        QueryError::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!(
                "Sort exceeded memory limit of {bytes} bytes, but did not opt in to external sorting.{more}"
            ),
        )
    }

    fn used_up(&self) -> QueryError {
        QueryError::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!("The sort cannot use {NO_SCRATCH}, and {USED_UP}"),
        )
    }

    /// The next document in order. The first call ends the input.
    ///
    /// # Errors
    /// As for [`push`](Sorter::push).
    pub fn next(&mut self, check: Check<'_>) -> Result<Option<Sorted<'_>>, QueryError> {
        self.sort_least(check)?;
        match &mut self.held {
            Held::SortedLeast(sorted, given, reservation) => {
                *given = sorted.pop();
                if given.is_none() {
                    reservation.hold(0);
                }
                Ok(given.as_ref().map(|given| Sorted {
                    key: given.key(),
                    primary_key: given.primary_key(),
                    document: given.document(),
                }))
            }
            Held::External(external) => external.next(check),
            Held::Least(..) => unreachable!("sorted just before"),
        }
    }

    fn sort_least(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        if !matches!(self.held, Held::Least(..)) {
            return Ok(());
        }
        check()?;
        let spare = Held::SortedLeast(Vec::new(), None, self.memory.account.reserve());
        if let Held::Least(least, reservation) = std::mem::replace(&mut self.held, spare) {
            self.held = Held::SortedLeast(least.into_descending(), None, reservation);
        }
        Ok(())
    }
}
