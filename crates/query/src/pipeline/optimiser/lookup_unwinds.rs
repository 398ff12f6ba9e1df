//! An `$unwind` of the array that the `$lookup` right before it makes becomes part of it: the joined
//! documents go on one by one, and the array is never put together.

use super::ParsedStage;

/// Takes an `$unwind` into the `$lookup` before it, or puts it behind the other stages.
pub(super) fn place(unwind: ParsedStage, rewritten: &mut Vec<ParsedStage>) {
    if let Some(before) = rewritten.last_mut()
        && let (Some(lookup), Some(unwind)) = (before.definition.as_lookup(), unwind.definition.as_unwind())
        && let Some(joined) = lookup.unwinding(unwind)
    {
        before.definition = joined;
        return;
    }
    rewritten.push(unwind);
}
