//! `$match` stages that stand side by side become one, and one that holds for every document goes.
//!
//! The tests of the earlier one stand first, so an expression that fails sees only the documents that they
//! let through.

use pando_document::RawDocumentBuf;

use super::{ParsedStage, match_of};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;

/// Merges the filters of a pipeline. A row of them becomes one list, however long it is: lists within lists
/// would reach the deepest nesting of a filter.
pub(super) fn merge(stages: &mut Vec<ParsedStage>, scope: &ParseScope) -> Result<(), QueryError> {
    let mut at = 0;
    while at < stages.len() {
        let row: Vec<RawDocumentBuf> = stages[at..].iter().map_while(filter_of).collect();
        if row.is_empty() {
            at += 1;
            continue;
        }
        let length = row.len();
        let mut kept = Vec::new();
        for filter in row {
            if !Filter::parse(&filter, scope)?.is_everything() {
                kept.push(filter);
            }
        }
        if length == 1 && kept.len() == 1 {
            at += 1;
            continue;
        }
        let together = if kept.is_empty() { None } else { Some(match_of(&kept, scope)?) };
        let next = at + usize::from(together.is_some());
        stages.splice(at..at + length, together);
        at = next;
    }
    Ok(())
}

fn filter_of(stage: &ParsedStage) -> Option<RawDocumentBuf> {
    match stage.name() {
        "$match" => stage.argument_document(),
        _ => None,
    }
}
