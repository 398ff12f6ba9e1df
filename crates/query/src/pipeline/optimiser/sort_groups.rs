//! A `$sort` in front of a `$group` that has only `$first`, `$last` and counts becomes part of it: the group
//! keeps the documents at both ends of the order, and nothing is sorted.
//!
//! At the front of a pipeline the sort goes to the plan first, which may have an index for it
//! ([`Pipeline::split_pushdown`]).
//!
//! [`Pipeline::split_pushdown`]: crate::pipeline::Pipeline::split_pushdown

use super::ParsedStage;

/// Moves each sort that has such a group behind it into the group.
pub(super) fn take_in(stages: &mut Vec<ParsedStage>) {
    let mut at = 0;
    while at + 1 < stages.len() {
        let pattern = stages[at].definition.sort_pattern();
        match pattern.and_then(|pattern| stages[at + 1].definition.over_unsorted(pattern)) {
            Some(group) => {
                stages[at + 1].definition = group;
                stages.remove(at);
            }
            None => at += 1,
        }
    }
}
