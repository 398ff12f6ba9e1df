//! Which children of a node are flushed: pure arithmetic, decided before anything is written.
//!
//! # Terms
//! - *Share* of a child: the bytes that are to be pending for it on average. A leaf's is a part of its size, so that a leaf is
//!   rewritten for twice that part; an inner node's is half the size of a run.
//! - *ChildAction* of a child: what arrives for it *joins* its slices, or goes *down* to it together with all its slices.
//!
//! # Rules, in this order
//! 1. Down goes what only appends to a leaf, with nothing pending on the way.
//! 2. *Due* is what reaches twice the share, and what would make one slice too many and reaches the share; and where more is
//!    pending than the shares of all children together, the heaviest are, until the rest is within.
//! 3. Of what is due the heaviest goes down, and more, the heavier first, as long as all together are within the [*limit*](StepLimit) of
//!    this step; where the step is made for this node, one in any case. The rest of it is late: it goes down in a later step. What appends, and
//!    what goes down because nothing waits in nodes, is not bound by the limit.
//! 4. What waits for a leaf and reaches [eight shares](LARGE_SHARES) is *heavy*: it goes down as if the limit were all that arrives at the tree, the
//!    heaviest in any case. So no step becomes long for having been put off.
//! 5. All else that arrives joins.
//!
//! The limit makes steps short. What arrives at a node at once is due at once, as a rule: without it one flush rewrites all leaves
//! below a node, and the next ones none.
//!
//! A share of 0 means that nothing waits in nodes: all that arrives goes down, and what has waited since the tree was laid out
//! otherwise is due.

/// Slices that a child may have. A read looks at all their filters.
pub(crate) const SLICES_MAX: usize = 8;

/// The shares that a leaf may have waiting for it before it goes down in any flush that comes by: half a leaf and more, as a rule.
pub(crate) const LARGE_SHARES: usize = 8;

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

    fn is_due(self, share: usize) -> bool {
        self.total() >= 2 * share || (self.slices >= SLICES_MAX && self.total() >= share)
    }
}

/// What becomes of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildAction {
    /// Nothing arrives, nothing happens.
    Stays,
    Joins,
    GoesDown,
}

/// What becomes of all children of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildActions {
    pub(crate) actions: Vec<ChildAction>,
    /// Bytes that go down, but what appends.
    pub(crate) moved: usize,
    /// Bytes that are due and stay.
    pub(crate) overdue: usize,
}

/// How much may go down from a node in this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepLimit {
    pub(crate) bytes: usize,
    /// The heaviest child goes down in any case, if it is due: a step that is made for this node has to do something.
    pub(crate) at_least_one: bool,
    /// From how many bytes on a child is heavy; such ones may go down up to `heavy_bytes`, if that is more than `bytes`.
    pub(crate) heavy_from: usize,
    pub(crate) heavy_bytes: usize,
}

/// Decides for all children of a node.
pub(crate) fn decide(loads: &[Load], share: usize, limit: StepLimit) -> ChildActions {
    let actions: Vec<ChildAction> = loads.iter().map(|load| action_at_first(*load, share)).collect();
    let mut decided = ChildActions { actions, ..ChildActions::default() };
    let mut heaviest: Vec<usize> = (0..loads.len())
        .filter(|at| loads[*at].total() > 0 && decided.actions[*at] != ChildAction::GoesDown)
        .collect();
    heaviest.sort_by_key(|at| std::cmp::Reverse(loads[*at].total()));
    let budget = share * loads.len();
    let mut staying: usize = heaviest.iter().map(|at| loads[*at].total()).sum();
    for at in heaviest {
        let load = loads[at];
        if !load.is_due(share) && staying <= budget {
            continue;
        }
        staying -= load.total();
        let is_heavy = load.total() >= limit.heavy_from;
        let most = if is_heavy { limit.bytes.max(limit.heavy_bytes) } else { limit.bytes };
        let is_forced = (limit.at_least_one || is_heavy) && decided.moved == 0;
        if !is_forced && decided.moved + load.total() > most {
            decided.overdue += load.total();
        } else {
            decided.moved += load.total();
            decided.actions[at] = ChildAction::GoesDown;
        }
    }
    decided
}

fn action_at_first(load: Load, share: usize) -> ChildAction {
    match load.arriving {
        0 => ChildAction::Stays,
        _ if share == 0 || load.appends => ChildAction::GoesDown,
        _ => ChildAction::Joins,
    }
}

/// How many of a child's slices (sizes, newest first) become one with what joins them.
///
/// The newest do as long as all together are within `small`: what fills no unit of the device is as cheap to write again as a slice
/// beside it, and one slice less to read. Else none while there is place for one more; where there is not, the newest, and those
/// behind it as long as they are too many or not larger than all that is newer.
pub(crate) fn united_with(slices: &[usize], arriving: usize, small: usize) -> usize {
    let mut sum = arriving;
    let mut count = 0;
    while count < slices.len() && sum + slices[count] <= small {
        sum += slices[count];
        count += 1;
    }
    if slices.len() - count < SLICES_MAX {
        return count;
    }
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
    use crate::tree::flush_policy::*;

    fn load(pending: usize, slices: usize, arriving: usize) -> Load {
        Load { pending, slices, arriving, appends: false }
    }

    fn limit(bytes: usize) -> StepLimit {
        StepLimit { bytes, at_least_one: true, heavy_from: usize::MAX, heavy_bytes: 0 }
    }

    fn actions(loads: &[Load], share: usize) -> Vec<ChildAction> {
        decide(loads, share, limit(usize::MAX)).actions
    }

    #[test]
    fn what_is_small_joins_and_what_reaches_twice_the_share_goes_down() {
        let loads = [load(0, 0, 10), load(150, 2, 60), load(0, 0, 0), load(0, 0, 200), load(0, 0, 1)];
        use ChildAction::{GoesDown, Joins, Stays};
        assert_eq!(actions(&loads, 100), [Joins, GoesDown, Stays, GoesDown, Joins]);
    }

    #[test]
    fn an_append_goes_down_however_small_it_is() {
        let loads = [load(0, 0, 5), Load { arriving: 5, appends: true, ..Load::default() }];
        assert_eq!(actions(&loads, 100), [ChildAction::Joins, ChildAction::GoesDown]);
    }

    #[test]
    fn a_node_over_its_budget_sends_the_heaviest_down_until_it_is_within() {
        let loads = [load(190, 3, 1), load(100, 3, 0), load(20, 1, 0), load(180, 3, 1)];
        use ChildAction::{GoesDown, Joins, Stays};
        assert_eq!(actions(&loads, 100), [GoesDown, Stays, Stays, Joins]);
    }

    #[test]
    fn too_many_slices_go_down_if_they_are_worth_it_and_are_united_if_not() {
        assert_eq!(actions(&[load(90, 8, 10), load(0, 0, 0)], 100)[0], ChildAction::GoesDown);
        assert_eq!(actions(&[load(50, 8, 10), load(0, 0, 0)], 100)[0], ChildAction::Joins);
        assert_eq!(united_with(&[5, 4, 20, 1, 1, 1, 1], 5, 0), 0);
        assert_eq!(united_with(&[5, 4, 20, 1, 1, 1, 1, 1], 5, 0), 2);
        assert_eq!(united_with(&[50, 60, 20, 1, 1, 1, 1, 1], 5, 0), 1);
        assert_eq!(united_with(&[1; 8], 1, 0), 8);
        assert_eq!(united_with(&[1, 50, 500, 5_000, 50_000, 50_000, 1, 1, 1, 1, 1], 1, 0), 4);
    }

    #[test]
    fn slices_that_fill_no_unit_become_one_with_what_arrives() {
        assert_eq!(united_with(&[], 1, 10), 0);
        assert_eq!(united_with(&[4, 20], 5, 10), 1);
        assert_eq!(united_with(&[4, 2, 1, 1], 5, 10), 1);
        assert_eq!(united_with(&[4], 7, 10), 0);
        assert_eq!(united_with(&[1; 12], 1, 5), 12, "and those behind them while they are too many");
        assert_eq!(united_with(&[1, 1, 9, 9, 9], 1, 5), 2);
    }

    #[test]
    fn a_step_sends_down_no_more_than_its_limit_but_the_heaviest_in_any_case() {
        let loads = [load(200, 1, 10), load(300, 1, 0), load(10, 1, 10), load(250, 1, 10)];
        use ChildAction::{GoesDown, Joins, Stays};
        let decided = decide(&loads, 100, limit(1));
        assert_eq!(decided.actions, [Joins, GoesDown, Joins, Joins]);
        assert_eq!((decided.moved, decided.overdue), (300, 470));
        let decided = decide(&loads, 100, limit(600));
        assert_eq!(decided.actions, [Joins, GoesDown, Joins, GoesDown]);
        assert_eq!((decided.moved, decided.overdue), (560, 210));
        let heavy = [load(200, 1, 0), load(0, 0, 0)];
        assert_eq!(decide(&heavy, 100, limit(0)).actions, [GoesDown, Stays]);
        let spent = decide(&heavy, 100, StepLimit { at_least_one: false, ..limit(199) });
        assert_eq!((spent.actions, spent.moved, spent.overdue), (vec![Stays, Stays], 0, 200));
    }

    #[test]
    fn what_is_heavy_goes_down_without_credit_as_far_as_more_arrives() {
        let loads = [load(700, 1, 150), load(900, 1, 0), load(250, 1, 0), load(800, 1, 20)];
        use ChildAction::{GoesDown, Joins, Stays};
        let of = |heavy_bytes| {
            let limit = StepLimit { bytes: 0, at_least_one: false, heavy_from: 800, heavy_bytes };
            decide(&loads, 100, limit)
        };
        assert_eq!(of(10).actions, [Joins, GoesDown, Stays, Joins], "one in any case");
        assert_eq!(of(1_800).actions, [GoesDown, GoesDown, Stays, Joins]);
        assert_eq!((of(1_800).moved, of(1_800).overdue), (1_750, 250 + 820));
        let lighter = [load(700, 1, 0), load(0, 0, 0)];
        let limit = StepLimit { bytes: 0, at_least_one: false, heavy_from: 800, heavy_bytes: 5_000 };
        assert_eq!(decide(&lighter, 100, limit).actions, [Stays, Stays]);
    }

    #[test]
    fn without_a_share_all_that_arrives_goes_down_and_what_has_waited_as_the_limit_allows() {
        use ChildAction::{GoesDown, Stays};
        assert_eq!(actions(&[load(0, 0, 0), load(0, 0, 1)], 0), [Stays, GoesDown]);
        assert_eq!(actions(&[load(7, 1, 0), load(9, 1, 0)], 0), [GoesDown, GoesDown]);
        let decided = decide(&[load(7, 1, 0), load(0, 0, 1), load(9, 1, 0)], 0, limit(10));
        assert_eq!(decided.actions, [Stays, GoesDown, GoesDown]);
        assert_eq!((decided.moved, decided.overdue), (9, 7));
    }
}
