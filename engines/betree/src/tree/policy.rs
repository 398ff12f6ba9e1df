//! Which children of a node are flushed: pure arithmetic, decided before anything is written.
//!
//! # Terms
//! - *Share* of a child: the bytes that are to be pending for it on average. A leaf's is a part of its size, so that a leaf is
//!   rewritten for twice that part; an inner node's is half the size of a run.
//! - *Fate* of a child: what arrives for it *joins* its slices, or goes *down* to it together with all its slices.
//!
//! # Rules, in this order
//! 1. Down goes what only appends to a leaf, with nothing pending on the way.
//! 2. Down goes what reaches twice the share.
//! 3. Down goes what would make one slice too many and reaches the share.
//! 4. All else joins; then the heaviest go down, one after the other, until what stays is within the node's budget: the shares
//!    of all children.
//!
//! A share of 0 means that nothing waits in nodes: all that arrives goes down.

/// Slices that a child may have. A read looks at all their filters.
pub(crate) const SLICES_MAX: usize = 8;

/// What a node has for a child, and what arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Bytes in its slices.
    pub(crate) pending: usize,
    pub(crate) slices: usize,
    /// Bytes that arrive.
    pub(crate) arriving: usize,
    pub(crate) appends: bool,
}

impl Load {
    fn total(self) -> usize {
        self.pending + self.arriving
    }
}

/// What becomes of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing arrives, nothing happens.
    Stays,
    Joins,
    GoesDown,
}

/// Decides for all children of a node.
pub(crate) fn decide(loads: &[Load], share: usize) -> Vec<Fate> {
    let mut fates: Vec<Fate> = loads.iter().map(|load| fate_of(*load, share)).collect();
    let budget = share * loads.len();
    let mut staying: usize = loads
        .iter()
        .zip(&fates)
        .filter(|(_, fate)| **fate != Fate::GoesDown)
        .map(|(load, _)| load.total())
        .sum();
    if share == 0 {
        return fates;
    }
    while staying > budget {
        let heaviest = (0..loads.len())
            .filter(|at| fates[*at] != Fate::GoesDown)
            .max_by_key(|at| loads[*at].total())
            .expect("what stays belongs to some child");
        fates[heaviest] = Fate::GoesDown;
        staying -= loads[heaviest].total();
    }
    fates
}

fn fate_of(load: Load, share: usize) -> Fate {
    if load.arriving == 0 {
        return Fate::Stays;
    }
    let is_too_much = load.total() >= 2 * share;
    let is_too_many = load.slices >= SLICES_MAX && load.total() >= share;
    if load.appends || is_too_much || is_too_many { Fate::GoesDown } else { Fate::Joins }
}

/// How many of a child's slices (sizes, newest first) become one with what joins them: none while there is place for one
/// more, else the newest, and those behind it as long as they are too many or not larger than all that is newer.
pub(crate) fn united_with(slices: &[usize], arriving: usize) -> usize {
    if slices.len() < SLICES_MAX {
        return 0;
    }
    let mut sum = arriving + slices[0];
    let mut count = 1;
    // More than the greatest number are there where two nodes became one.
    let least = slices.len() + 1 - SLICES_MAX;
    while count < slices.len() && (count < least || slices[count] <= sum) {
        sum += slices[count];
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(pending: usize, slices: usize, arriving: usize) -> Load {
        Load { pending, slices, arriving, appends: false }
    }

    #[test]
    fn what_is_small_joins_and_what_reaches_twice_the_share_goes_down() {
        let loads = [load(0, 0, 10), load(150, 2, 60), load(0, 0, 0), load(0, 0, 200), load(0, 0, 1)];
        let fates = decide(&loads, 100);
        use Fate::{GoesDown, Joins, Stays};
        assert_eq!(fates, [Joins, GoesDown, Stays, GoesDown, Joins]);
    }

    #[test]
    fn an_append_goes_down_however_small_it_is() {
        let fates = decide(&[load(0, 0, 5), Load { arriving: 5, appends: true, ..Load::default() }], 100);
        assert_eq!(fates, [Fate::Joins, Fate::GoesDown]);
    }

    #[test]
    fn a_node_over_its_budget_sends_the_heaviest_down_until_it_is_within() {
        let loads = [load(190, 3, 1), load(100, 3, 0), load(20, 1, 0), load(180, 3, 1)];
        let fates = decide(&loads, 100);
        use Fate::{GoesDown, Joins, Stays};
        assert_eq!(fates, [GoesDown, Stays, Stays, Joins]);
    }

    #[test]
    fn too_many_slices_go_down_if_they_are_worth_it_and_are_united_if_not() {
        assert_eq!(decide(&[load(90, 8, 10), load(0, 0, 0)], 100)[0], Fate::GoesDown);
        assert_eq!(decide(&[load(50, 8, 10), load(0, 0, 0)], 100)[0], Fate::Joins);
        assert_eq!(united_with(&[5, 4, 20, 1, 1, 1, 1], 5), 0);
        assert_eq!(united_with(&[5, 4, 20, 1, 1, 1, 1, 1], 5), 2);
        assert_eq!(united_with(&[50, 60, 20, 1, 1, 1, 1, 1], 5), 1);
        assert_eq!(united_with(&[1; 8], 1), 8);
        assert_eq!(united_with(&[1, 50, 500, 5_000, 50_000, 50_000, 1, 1, 1, 1, 1], 1), 4);
    }

    #[test]
    fn without_a_share_all_that_arrives_goes_down() {
        assert_eq!(decide(&[load(7, 1, 0), load(0, 0, 1)], 0), [Fate::Stays, Fate::GoesDown]);
    }
}
