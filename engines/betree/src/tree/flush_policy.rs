//! Flush policy: which children of a node are flushed. Pure arithmetic, decided before anything is written.
//!
//! # Terms
//! - *Pending target* of a child: the bytes that are pending for it on average. The target of a leaf is a
//!   part of its size, so that a leaf is rewritten for twice that part. The target of an inner node is half
//!   the size of a run.
//! - *Action* for a child: *keep* it (no messages arrive), *buffer* the arriving messages as a slice, or
//!   *flush* the child: the arriving messages and all its slices go down.
//!
//! # Rules, in this order
//! 1. Messages that only append to a leaf, with nothing pending on the way, are flushed.
//! 2. A child is *due* if it has twice its target, or if it would get one slice too many and has its target.
//!    If more is pending than the targets of all children together, the largest are due until the rest is
//!    within.
//! 3. Of the due children the largest are flushed, as long as all together are within the
//!    [*limit*](StepLimit) of this step. A step that is made for this node flushes one in any case. The rest
//!    is overdue. The limit does not bind appends, nor trees without runs.
//! 4. A leaf with [eight times its target](LARGE_FACTOR) is *large*: the limit for such leaves is all bytes
//!    that arrive at the tree, and the largest is flushed in any case. So putting a leaf off never makes a
//!    step long.
//! 5. All other arriving messages are buffered.
//!
//! The limit makes steps short. Messages that arrive at a node together are due together, as a rule. Without
//! a limit one flush would rewrite all leaves below a node, and the next ones none.
//!
//! A target of 0 means that inner nodes have no runs: all arriving messages are flushed, and slices from
//! before the layout was changed are due.

/// Slices that a child may have. A read looks at all their filters.
pub(crate) const SLICES_MAX: usize = 8;

/// The multiple of its target from which on a leaf is large and flushed beyond the limit: half a leaf and
/// more, as a rule.
pub(crate) const LARGE_FACTOR: usize = 8;

/// The messages of a node for one child.
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

    fn is_due(self, target: usize) -> bool {
        self.total() >= 2 * target || (self.slices >= SLICES_MAX && self.total() >= target)
    }
}

/// The action for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildAction {
    /// No messages arrive, and the child stays as it is.
    Keep,
    Buffer,
    Flush,
}

/// The actions for all children of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildActions {
    pub(crate) actions: Vec<ChildAction>,
    /// Bytes that are flushed, without appends.
    pub(crate) moved: usize,
    /// Bytes that are due and stay.
    pub(crate) overdue: usize,
}

/// The bytes that may be flushed from a node in this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepLimit {
    pub(crate) bytes: usize,
    /// Whether the largest due child is flushed in any case: a step made for this node has to do something.
    pub(crate) at_least_one: bool,
    /// Bytes from which on a child is large. Large children may be flushed up to `large_bytes_max`, if that
    /// is more than `bytes`.
    pub(crate) large_from: usize,
    pub(crate) large_bytes_max: usize,
}

/// Decides for all children of a node.
pub(crate) fn decide(loads: &[Load], target: usize, limit: StepLimit) -> ChildActions {
    let actions: Vec<ChildAction> = loads.iter().map(|load| action_at_first(*load, target)).collect();
    let mut decided = ChildActions { actions, ..ChildActions::default() };
    let mut largest: Vec<usize> = (0..loads.len())
        .filter(|at| loads[*at].total() > 0 && decided.actions[*at] != ChildAction::Flush)
        .collect();
    largest.sort_by_key(|at| std::cmp::Reverse(loads[*at].total()));
    let target_of_all = target * loads.len();
    let mut staying: usize = largest.iter().map(|at| loads[*at].total()).sum();
    for at in largest {
        let load = loads[at];
        if !load.is_due(target) && staying <= target_of_all {
            continue;
        }
        staying -= load.total();
        let is_large = load.total() >= limit.large_from;
        let most = if is_large { limit.bytes.max(limit.large_bytes_max) } else { limit.bytes };
        let is_forced = (limit.at_least_one || is_large) && decided.moved == 0;
        if !is_forced && decided.moved + load.total() > most {
            decided.overdue += load.total();
        } else {
            decided.moved += load.total();
            decided.actions[at] = ChildAction::Flush;
        }
    }
    decided
}

fn action_at_first(load: Load, target: usize) -> ChildAction {
    match load.arriving {
        0 => ChildAction::Keep,
        _ if target == 0 || load.appends => ChildAction::Flush,
        _ => ChildAction::Buffer,
    }
}

/// How many of a child's slices (sizes, newest first) are merged with the newly buffered messages.
///
/// - The newest ones, as long as all together are within `small`. Messages that fill no unit are as cheap to
///   rewrite as to write beside a slice, and there is one slice less to read.
/// - Otherwise none, while the child may have one more slice.
/// - If it may not: the newest ones, until few enough remain. Then those behind them, while the next one is
///   not larger than all newer messages together.
pub(crate) fn slices_to_merge(slices: &[usize], arriving: usize, small: usize) -> usize {
    let mut sum = arriving;
    let mut count = 0;
    while count < slices.len() && sum + slices[count] <= small {
        sum += slices[count];
        count += 1;
    }
    if slices.len() - count < SLICES_MAX {
        return count;
    }
    // A child may have more than the greatest number after two nodes were united.
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
        StepLimit { bytes, at_least_one: true, large_from: usize::MAX, large_bytes_max: 0 }
    }

    fn actions(loads: &[Load], target: usize) -> Vec<ChildAction> {
        decide(loads, target, limit(usize::MAX)).actions
    }

    #[test]
    fn small_loads_are_buffered_and_loads_of_twice_the_target_are_flushed() {
        let loads = [load(0, 0, 10), load(150, 2, 60), load(0, 0, 0), load(0, 0, 200), load(0, 0, 1)];
        use ChildAction::{Buffer, Flush, Keep};
        assert_eq!(actions(&loads, 100), [Buffer, Flush, Keep, Flush, Buffer]);
    }

    #[test]
    fn an_append_is_flushed_however_small_it_is() {
        let loads = [load(0, 0, 5), Load { arriving: 5, appends: true, ..Load::default() }];
        assert_eq!(actions(&loads, 100), [ChildAction::Buffer, ChildAction::Flush]);
    }

    #[test]
    fn a_node_over_its_target_flushes_the_largest_children_until_it_is_within() {
        let loads = [load(190, 3, 1), load(100, 3, 0), load(20, 1, 0), load(180, 3, 1)];
        use ChildAction::{Buffer, Flush, Keep};
        assert_eq!(actions(&loads, 100), [Flush, Keep, Keep, Buffer]);
    }

    #[test]
    fn too_many_slices_are_flushed_if_they_have_the_target_and_merged_if_not() {
        assert_eq!(actions(&[load(90, 8, 10), load(0, 0, 0)], 100)[0], ChildAction::Flush);
        assert_eq!(actions(&[load(50, 8, 10), load(0, 0, 0)], 100)[0], ChildAction::Buffer);
        assert_eq!(slices_to_merge(&[5, 4, 20, 1, 1, 1, 1], 5, 0), 0);
        assert_eq!(slices_to_merge(&[5, 4, 20, 1, 1, 1, 1, 1], 5, 0), 2);
        assert_eq!(slices_to_merge(&[50, 60, 20, 1, 1, 1, 1, 1], 5, 0), 1);
        assert_eq!(slices_to_merge(&[1; 8], 1, 0), 8);
        assert_eq!(slices_to_merge(&[1, 50, 500, 5_000, 50_000, 50_000, 1, 1, 1, 1, 1], 1, 0), 4);
    }

    #[test]
    fn slices_that_fill_no_unit_are_merged_with_the_arriving_messages() {
        assert_eq!(slices_to_merge(&[], 1, 10), 0);
        assert_eq!(slices_to_merge(&[4, 20], 5, 10), 1);
        assert_eq!(slices_to_merge(&[4, 2, 1, 1], 5, 10), 1);
        assert_eq!(slices_to_merge(&[4], 7, 10), 0);
        assert_eq!(slices_to_merge(&[1; 12], 1, 5), 12, "and those behind them while they are too many");
        assert_eq!(slices_to_merge(&[1, 1, 9, 9, 9], 1, 5), 2);
    }

    #[test]
    fn a_step_flushes_no_more_than_its_limit_but_the_largest_child_in_any_case() {
        let loads = [load(200, 1, 10), load(300, 1, 0), load(10, 1, 10), load(250, 1, 10)];
        use ChildAction::{Buffer, Flush, Keep};
        let decided = decide(&loads, 100, limit(1));
        assert_eq!(decided.actions, [Buffer, Flush, Buffer, Buffer]);
        assert_eq!((decided.moved, decided.overdue), (300, 470));
        let decided = decide(&loads, 100, limit(600));
        assert_eq!(decided.actions, [Buffer, Flush, Buffer, Flush]);
        assert_eq!((decided.moved, decided.overdue), (560, 210));
        let large = [load(200, 1, 0), load(0, 0, 0)];
        assert_eq!(decide(&large, 100, limit(0)).actions, [Flush, Keep]);
        let spent = decide(&large, 100, StepLimit { at_least_one: false, ..limit(199) });
        assert_eq!((spent.actions, spent.moved, spent.overdue), (vec![Keep, Keep], 0, 200));
    }

    #[test]
    fn large_children_are_flushed_without_a_quota_up_to_their_own_limit() {
        let loads = [load(700, 1, 150), load(900, 1, 0), load(250, 1, 0), load(800, 1, 20)];
        use ChildAction::{Buffer, Flush, Keep};
        let of = |large_bytes_max| {
            let limit = StepLimit { bytes: 0, at_least_one: false, large_from: 800, large_bytes_max };
            decide(&loads, 100, limit)
        };
        assert_eq!(of(10).actions, [Buffer, Flush, Keep, Buffer], "one in any case");
        assert_eq!(of(1_800).actions, [Flush, Flush, Keep, Buffer]);
        assert_eq!((of(1_800).moved, of(1_800).overdue), (1_750, 250 + 820));
        let smaller = [load(700, 1, 0), load(0, 0, 0)];
        let limit = StepLimit { bytes: 0, at_least_one: false, large_from: 800, large_bytes_max: 5_000 };
        assert_eq!(decide(&smaller, 100, limit).actions, [Keep, Keep]);
    }

    #[test]
    fn without_a_target_all_arriving_messages_are_flushed_and_pending_ones_within_the_limit() {
        use ChildAction::{Flush, Keep};
        assert_eq!(actions(&[load(0, 0, 0), load(0, 0, 1)], 0), [Keep, Flush]);
        assert_eq!(actions(&[load(7, 1, 0), load(9, 1, 0)], 0), [Flush, Flush]);
        let decided = decide(&[load(7, 1, 0), load(0, 0, 1), load(9, 1, 0)], 0, limit(10));
        assert_eq!(decided.actions, [Keep, Flush, Flush]);
        assert_eq!((decided.moved, decided.overdue), (9, 7));
    }
}
