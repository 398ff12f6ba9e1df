//! `$match` stages that stand side by side become one, and one that holds for every document goes.
//!
//! The tests of the earlier one stand first, so an expression that fails sees only the documents that they
//! let through.

use pando_document::RawDocumentBuf;

use super::{ParsedStage, match_of};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;

/// Merges the filters of a pipeline.
pub(super) fn merge(stages: &mut Vec<ParsedStage>, scope: &ParseScope) -> Result<(), QueryError> {
    let filter_of = |stage: &ParsedStage| match stage.name() {
        "$match" => stage.argument_document(),
        _ => None,
    };
    let mut at = 0;
    while at < stages.len() {
        let Some(filter) = filter_of(&stages[at]) else {
            at += 1;
            continue;
        };
        if Filter::parse(&filter, scope)?.is_everything() {
            stages.remove(at);
            continue;
        }
        if let Some(next) = stages.get(at + 1).and_then(&filter_of) {
            if !Filter::parse(&next, scope)?.is_everything() {
                let together: [RawDocumentBuf; 2] = [filter, next];
                stages[at] = match_of(&together, scope)?;
            }
            stages.remove(at + 1);
            continue;
        }
        at += 1;
    }
    Ok(())
}
