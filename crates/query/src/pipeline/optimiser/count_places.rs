//! `$skip` and `$limit` move in front of stages that make one document of one. Those that stand side by side
//! merge: skips add up, and the least limit counts.

use pando_document::RawValue;

use super::{ParsedStage, stage_of};
use crate::error::QueryError;
use crate::expression::ParseScope;

/// Puts a `$skip` or a `$limit` to its place.
pub(super) fn place(stage: ParsedStage, rewritten: &mut Vec<ParsedStage>) {
    let behind = |before: &ParsedStage| !before.definition.is_one_to_one();
    let at = rewritten.iter().rposition(behind).map_or(0, |at| at + 1);
    rewritten.insert(at, stage);
}

/// Merges neighbours of one name.
pub(super) fn merge(stages: &mut Vec<ParsedStage>, scope: &ParseScope) -> Result<(), QueryError> {
    let mut at = 0;
    while at + 1 < stages.len() {
        let (one, other) = (&stages[at], &stages[at + 1]);
        let merged = match (one.name(), other.name(), one.argument_count(), other.argument_count()) {
            ("$limit", "$limit", Some(one), Some(other)) => Some(("$limit", one.min(other))),
            ("$skip", "$skip", Some(one), Some(other)) => {
                one.checked_add(other).filter(|sum| i64::try_from(*sum).is_ok()).map(|sum| ("$skip", sum))
            }
            _ => None,
        };
        match merged {
            Some((name, count)) => {
                let count = RawValue::Int64(i64::try_from(count).unwrap_or(i64::MAX));
                stages[at] = stage_of(name, count, scope)?;
                stages.remove(at + 1);
            }
            None => at += 1,
        }
    }
    Ok(())
}
