//! A `$sort` moves in front of stages that leave its fields alone: of `$unwind`, `$lookup`, `$graphLookup`
//! and `$addFields`. There it has fewer documents, or stands at the front, where a plan may do it by an
//! index.
//!
//! By several fields it passes only stages that make one document of each. In front of others it would see
//! documents that go no further, and two arrays of one document are an error of the sort.

use super::ParsedStage;
use crate::needs::Needs;

/// Puts a `$sort` to its place.
pub(super) fn place(sort: ParsedStage, rewritten: &mut Vec<ParsedStage>) {
    let at = match sort.definition.needs(Needs::nothing()) {
        Needs::Paths(paths) => {
            let stops = |stage: &ParsedStage| {
                let is_passable =
                    matches!(stage.name(), "$unwind" | "$lookup" | "$graphLookup" | "$addFields" | "$set");
                let cannot_fail = paths.len() == 1 || stage.definition.is_one_to_one();
                !is_passable || !cannot_fail || !paths.iter().all(|path| stage.definition.passes(path))
            };
            rewritten.iter().rposition(stops).map_or(0, |at| at + 1)
        }
        Needs::Everything => rewritten.len(),
    };
    rewritten.insert(at, sort);
}
