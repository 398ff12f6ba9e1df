//! Rewrites of a parsed pipeline into one that gives the same and does less.
//!
//! # Rules
//! 1. A `$match` moves in front of a stage that passes the fields it asks about through unchanged. The parts
//!    of a conjunction move one by one.
//! 2. `$skip` and `$limit` move in front of a stage that makes one document of one.
//! 3. A `$sort` moves in front of an `$unwind` that leaves its fields alone.
//! 4. A `$sort` with a `$limit` behind it, perhaps after a `$skip`, holds only so many documents.
//!
//! MongoDB does the same, so a stage that would fail may see fewer documents here as there.
//!
//! # Invariants
//! - Stages move forward only, so the rewriting ends.
//! - Variables of the request are constants by now; a moved filter is parsed in the same scope.

use std::sync::Arc;

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use super::{ParsedStage, stage};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::needs::Needs;

/// Rewrites the stages of a pipeline.
pub(super) fn rewrite(stages: Vec<ParsedStage>, scope: &ParseScope) -> Result<Vec<ParsedStage>, QueryError> {
    let mut rewritten: Vec<ParsedStage> = Vec::with_capacity(stages.len());
    for stage in stages {
        match stage.name() {
            "$match" => place_match(stage, &mut rewritten, scope)?,
            "$skip" | "$limit" => {
                let behind = |before: &ParsedStage| !before.definition.is_one_to_one();
                let at = rewritten.iter().rposition(behind).map_or(0, |at| at + 1);
                rewritten.insert(at, stage);
            }
            "$sort" => {
                let at = place_of_sort(&stage, &rewritten);
                rewritten.insert(at, stage);
            }
            _ => rewritten.push(stage),
        }
    }
    limit_sorts(&mut rewritten);
    Ok(rewritten)
}

/// Puts each part of a filter as far to the front as it may stand.
fn place_match(
    stage: ParsedStage,
    rewritten: &mut Vec<ParsedStage>,
    scope: &ParseScope,
) -> Result<(), QueryError> {
    // Most often there is no stage that it could pass.
    let passes_nothing = rewritten.last().is_none_or(|before| !before.definition.is_transparent());
    let Some(filter) = stage.argument_document().filter(|_| !passes_nothing) else {
        rewritten.push(stage);
        return Ok(());
    };
    // Parts that end at one place go on as one stage, in the order in which they were written.
    let mut parts_by_place: Vec<(usize, Vec<RawDocumentBuf>)> = Vec::new();
    for part in &*filter {
        let (name, value) = part?;
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append(name, value);
        writer.finish();
        let part = RawDocumentBuf::from_vec(bytes)?;
        let at = place_of_filter(&part, rewritten, scope)?;
        match parts_by_place.iter_mut().find(|(place, _)| *place == at) {
            Some((_, parts)) => parts.push(part),
            None => parts_by_place.push((at, vec![part])),
        }
    }
    if let [(only, _)] = parts_by_place.as_slice() {
        rewritten.insert(*only, stage);
        return Ok(());
    }
    // From the back, so that the places in front stay what they were.
    parts_by_place.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, parts) in parts_by_place {
        rewritten.insert(at, match_of(&parts, scope)?);
    }
    Ok(())
}

/// The place of a filter: behind the last stage that it must not pass.
fn place_of_filter(
    filter: &RawDocument,
    before: &[ParsedStage],
    scope: &ParseScope,
) -> Result<usize, QueryError> {
    let mut needs = Needs::nothing();
    Filter::parse(filter, scope)?.add_needs(&mut needs);
    let Needs::Paths(paths) = needs else { return Ok(before.len()) };
    let stops = |stage: &ParsedStage| {
        !stage.definition.is_transparent() || !paths.iter().all(|path| stage.definition.passes(path))
    };
    Ok(before.iter().rposition(stops).map_or(0, |at| at + 1))
}

/// The stage `{$match: {…}}` of some parts of a filter.
fn match_of(parts: &[RawDocumentBuf], scope: &ParseScope) -> Result<ParsedStage, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut filter = writer.document("$match");
    for part in parts {
        for field in &**part {
            let (name, value) = field?;
            filter.append(name, value);
        }
    }
    filter.finish();
    writer.finish();
    let text = RawDocumentBuf::from_vec(bytes)?;
    let argument = text.get("$match")?.unwrap_or(RawValue::Document(RawDocument::empty()));
    let definition = stage::parse("$match", argument, scope)?.swap_remove(0);
    Ok(ParsedStage { text, definition })
}

/// The place of a `$sort`: in front of each `$unwind` right before it that leaves its fields alone.
fn place_of_sort(sort: &ParsedStage, before: &[ParsedStage]) -> usize {
    let Needs::Paths(paths) = sort.definition.needs(Needs::nothing()) else { return before.len() };
    let stops = |stage: &ParsedStage| {
        stage.name() != "$unwind" || !paths.iter().all(|path| stage.definition.passes(path))
    };
    before.iter().rposition(stops).map_or(0, |at| at + 1)
}

/// Tells each `$sort` how many of its documents are drawn.
fn limit_sorts(stages: &mut [ParsedStage]) {
    for at in 0..stages.len() {
        let (mut skipped, mut wanted) = (0_u64, None);
        for behind in &stages[at + 1..] {
            match (behind.name(), behind.argument_count()) {
                ("$skip", Some(count)) => skipped = skipped.saturating_add(count),
                ("$limit", Some(count)) => wanted = Some(skipped.saturating_add(count)),
                _ => {}
            }
            if behind.name() != "$skip" {
                break;
            }
        }
        if let Some(limited) = wanted.and_then(|wanted| stages[at].definition.limited(wanted)) {
            stages[at].definition = Arc::from(limited);
        }
    }
}

/// Whether two dotted paths lie apart: neither is the other or leads to it.
pub(super) fn lie_apart(one: &str, other: &str) -> bool {
    let leads = |short: &str, long: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    !leads(one, other) && !leads(other, one)
}

#[cfg(test)]
mod tests;
