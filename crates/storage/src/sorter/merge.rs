//! The merge of runs and pieces: the least of their next entries is next.
//!
//! Sources are numbered in the order of arrival, runs before pieces, and of equal keys the lower source is
//! less: so the merge is stable.

use super::arena::{Arena, prefix_of};
use crate::error::StorageError;
use crate::run::{Run, RunFiles, RunReader, RunValue};
use crate::tournament::Tournament;

/// See the module's head. The arena and the files are given at each call, and are always the same.
pub(super) struct Merge {
    readers: Vec<RunReader>,
    /// By piece: the rank of its next entry.
    ranks: Vec<usize>,
    heads: Vec<Head>,
    tournament: Tournament,
    /// The winner's entry was given.
    is_given: bool,
    /// Bytes of a block as they are stored.
    stored: Vec<u8>,
}

/// The next entry of a source, as far as most comparisons need it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    is_at_end: bool,
    prefix: u64,
}

impl Merge {
    /// A merge of all pieces and of these runs.
    pub fn new(arena: &Arena, runs: &[Run], files: &RunFiles) -> Result<Merge, StorageError> {
        let (mut readers, mut stored) = (Vec::with_capacity(runs.len()), Vec::new());
        for run in runs {
            let mut reader = RunReader::new(run);
            reader.step(files, &mut stored)?;
            readers.push(reader);
        }
        Ok(Merge::of(arena, readers, stored))
    }

    /// A merge of all pieces.
    pub fn of_memory(arena: &Arena) -> Merge {
        Merge::of(arena, Vec::new(), Vec::new())
    }

    fn of(arena: &Arena, readers: Vec<RunReader>, stored: Vec<u8>) -> Merge {
        let mut merge = Merge {
            ranks: vec![0; arena.pieces()],
            readers,
            heads: Vec::new(),
            tournament: Tournament::default(),
            is_given: false,
            stored,
        };
        let sources = merge.readers.len() + merge.ranks.len();
        merge.heads = (0..sources).map(|source| merge.head(arena, source)).collect();
        merge.tournament = Tournament::new(sources, |one, other| merge.is_less(arena, one, other));
        merge
    }

    /// Moves to the next entry; its source, or `None` at the end.
    pub fn next<E: From<StorageError>>(
        &mut self,
        arena: &Arena,
        files: &RunFiles,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let winner = self.tournament.winner();
        if self.is_given
            && let Some(reader) = self.readers.get_mut(winner)
        {
            if reader.is_at_block_end() {
                check()?;
            }
            reader.step(files, &mut self.stored)?;
            self.replay(arena, winner);
            self.is_given = false;
        }
        Ok(self.next_of_memory(arena))
    }

    /// The same where there are no runs, or none has won.
    pub fn next_of_memory(&mut self, arena: &Arena) -> Option<usize> {
        if self.is_given {
            let winner = self.tournament.winner();
            self.ranks[winner - self.readers.len()] += 1;
            self.replay(arena, winner);
        }
        let winner = self.tournament.winner();
        self.is_given = self.heads.get(winner).is_some_and(|head| !head.is_at_end);
        self.is_given.then_some(winner)
    }

    fn replay(&mut self, arena: &Arena, winner: usize) {
        self.heads[winner] = self.head(arena, winner);
        let mut tournament = std::mem::take(&mut self.tournament);
        tournament.replay(|one, other| self.is_less(arena, one, other));
        self.tournament = tournament;
    }

    /// The entry of a source.
    pub fn entry<'m>(&'m self, arena: &'m Arena, source: usize) -> (&'m [u8], RunValue<'m>) {
        match source.checked_sub(self.readers.len()) {
            None => {
                let reader = &self.readers[source];
                (reader.key().unwrap_or_default(), reader.value())
            }
            Some(piece) => match arena.slot(piece, self.ranks[piece]) {
                Some(slot) => (arena.key(slot), RunValue::Near(arena.value(slot))),
                None => (&[], RunValue::Near(&[])),
            },
        }
    }

    fn head(&self, arena: &Arena, source: usize) -> Head {
        let prefix = match source.checked_sub(self.readers.len()) {
            None => self.readers[source].key().map(prefix_of),
            Some(piece) => arena.slot(piece, self.ranks[piece]).map(|slot| slot.prefix),
        };
        Head { is_at_end: prefix.is_none(), prefix: prefix.unwrap_or(0) }
    }

    fn is_less(&self, arena: &Arena, one: usize, other: usize) -> bool {
        let keys = || self.entry(arena, one).0.cmp(self.entry(arena, other).0);
        let order = self.heads[one].cmp(&self.heads[other]);
        order.then_with(keys).then(one.cmp(&other)).is_lt()
    }
}
