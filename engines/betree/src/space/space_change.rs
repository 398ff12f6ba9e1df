//! The extents that the trees gained and lost between two checkpoints.
//!
//! Every tree keeps one under the mutex that installs its versions. A checkpoint captures it together with
//! the version. So the space map of a generation is exactly what that generation reaches. An extent that is
//! attached and detached between the same two captures cancels out.

use std::ops::Range;

use super::interval_set::IntervalSet;
use crate::base::{Extent, FileId};

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceChange {
    added: IntervalSet,
    removed: IntervalSet,
}

impl SpaceChange {
    pub(crate) fn new() -> SpaceChange {
        SpaceChange::default()
    }

    /// Adds extents that are reached from now on.
    ///
    /// # Panics
    /// If one of them is attached already.
    pub(crate) fn attach(&mut self, extents: impl IntoIterator<Item = Extent>) {
        for extent in extents {
            let (_cancelled, new) = self.removed.take(units_of(extent));
            for range in new {
                if let Err(overlap) = self.added.insert(range) {
                    panic!("units {overlap:?} of {extent:?} are attached twice");
                }
            }
        }
    }

    /// Adds extents that are not reached any more.
    ///
    /// # Panics
    /// If one of them is detached already.
    pub(crate) fn detach(&mut self, extents: impl IntoIterator<Item = Extent>) {
        for extent in extents {
            let (_cancelled, old) = self.added.take(units_of(extent));
            for range in old {
                if let Err(overlap) = self.removed.insert(range) {
                    panic!("units {overlap:?} of {extent:?} are detached twice");
                }
            }
        }
    }

    /// Combines this change with a later one, of another tree or of the same.
    pub(crate) fn merge(&mut self, later: SpaceChange) {
        self.detach(later.removed.iter().map(extent_of));
        self.attach(later.added.iter().map(extent_of));
    }

    pub(super) fn added(&self) -> &IntervalSet {
        &self.added
    }

    pub(super) fn removed(&self) -> &IntervalSet {
        &self.removed
    }
}

/// The units of an extent. Format version 1 has one file.
pub(crate) fn units_of(extent: Extent) -> Range<u64> {
    assert!(extent.file() == FileId::FIRST, "{extent:?} lies in a file that no store has");
    extent.start()..extent.end()
}

pub(super) fn extent_of(units: Range<u64>) -> Extent {
    Extent::new(FileId::FIRST, units.start, units.end - units.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, units: u64) -> Extent {
        Extent::new(FileId::FIRST, start, units)
    }

    #[test]
    fn extents_that_come_and_go_between_two_checkpoints_cancel() {
        let mut change = SpaceChange::new();
        change.attach([extent(10, 5), extent(20, 2)]);
        change.detach([extent(12, 3), extent(40, 1)]);
        assert_eq!(change.added().iter().collect::<Vec<_>>(), [10..12, 20..22]);
        assert_eq!((change.removed().iter().next(), change.removed().len()), (Some(40..41), 1));
        change.attach([extent(12, 3)]);
        change.detach([extent(10, 5), extent(20, 2)]);
        assert_eq!(change.added().len(), 0);
    }

    #[test]
    fn a_later_change_is_merged_onto_an_earlier_one_as_if_it_were_one() {
        let (mut one, mut earlier, mut later) = (SpaceChange::new(), SpaceChange::new(), SpaceChange::new());
        for change in [&mut one, &mut earlier] {
            change.attach([extent(1, 4)]);
            change.detach([extent(50, 4)]);
        }
        for change in [&mut one, &mut later] {
            change.detach([extent(2, 2), extent(60, 1)]);
            change.attach([extent(90, 1)]);
        }
        earlier.merge(later);
        assert_eq!(earlier, one);
    }

    #[test]
    #[should_panic(expected = "attached twice")]
    fn attaching_twice_is_a_mistake_that_shows() {
        let mut change = SpaceChange::new();
        change.attach([extent(10, 5)]);
        change.attach([extent(14, 2)]);
    }

    #[test]
    #[should_panic(expected = "detached twice")]
    fn detaching_twice_is_a_mistake_that_shows() {
        let mut change = SpaceChange::new();
        change.detach([extent(10, 5)]);
        change.detach([extent(10, 1)]);
    }
}
