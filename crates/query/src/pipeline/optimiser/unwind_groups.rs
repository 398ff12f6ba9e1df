//! An `$unwind` in front of a `$group` becomes part of it: each element is fed to its group, and the
//! documents of the elements are never put together.

use super::ParsedStage;

/// Takes each such `$unwind` into the group behind it.
pub(super) fn take_in(stages: &mut Vec<ParsedStage>) {
    let mut at = 0;
    while at + 1 < stages.len() {
        let unwind = stages[at].definition.as_unwind();
        match unwind.and_then(|unwind| stages[at + 1].definition.over_elements(unwind)) {
            Some(group) => {
                stages[at + 1].definition = group;
                stages.remove(at);
            }
            None => at += 1,
        }
    }
}
