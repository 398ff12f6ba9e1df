//! Searches for words as `explain` prints them: TEXT_MATCH around the scans of the terms.

use pando_catalog::FieldKind;
use pando_document::{Document, RawValue, Value};

use super::{around, fetch, named, owned, scan};
use crate::plan::interval;
use crate::plan::{Plan, Scores, TextAccess};

/// The stages of a search, and whether the plan's skip is part of them.
pub(super) fn search(plan: &Plan, search: &TextAccess) -> (Document, bool) {
    let shown = text_match(search);
    if !search.others.is_empty() {
        let mut union = named("OR");
        let others = search.others.iter().map(|scan| Value::Document(scan::index_scan(scan)));
        let stages = std::iter::once(Value::Document(shown)).chain(others);
        union.push("inputStages", Value::Array(stages.collect()));
        return fetch(plan, union);
    }
    // The search itself asks documents for phrases and negations.
    let mut filter = plan.residual.as_ref().map(|filter| filter.without_search()).unwrap_or_default();
    if filter.is_empty() {
        return (shown, false);
    }
    let mut stage = named("FETCH");
    stage.push("filter", std::mem::take(&mut filter));
    (around(stage, shown), false)
}

fn text_match(search: &TextAccess) -> Document {
    let mut stage = named("TEXT_MATCH");
    let mut prefix = Document::new();
    for (field, bounds) in search.index.fields.iter().zip(&search.bounds) {
        if field.kind == FieldKind::TextTerm {
            break;
        }
        let value = bounds
            .list()
            .first()
            .and_then(|point| interval::value_of(&point.lower, field.direction, &search.index.text_order));
        prefix.push(field.path.as_str(), value.unwrap_or(Value::Null));
    }
    stage.push("indexPrefix", prefix);
    stage.push("indexName", search.index.name.as_str());
    stage.push("parsedTextQuery", search.search.shown());
    stage.push("textIndexVersion", Value::Int32(3));
    let mut scans: Vec<Value> =
        search.search.key_terms().iter().map(|_| Value::Document(term_scan(search))).collect();
    let inner = match search.scores {
        Scores::Wanted => of_scans(named("TEXT_OR"), scans),
        Scores::Unneeded if scans.len() == 1 => match scans.pop() {
            Some(Value::Document(scan)) => around(named("FETCH"), scan),
            _ => named("FETCH"),
        },
        Scores::Unneeded => around(named("FETCH"), of_scans(named("OR"), scans)),
    };
    around(stage, inner)
}

fn of_scans(mut stage: Document, mut scans: Vec<Value>) -> Document {
    match scans.len() {
        1 => stage.push("inputStage", scans.remove(0)),
        _ => stage.push("inputStages", Value::Array(scans)),
    }
    stage
}

fn term_scan(search: &TextAccess) -> Document {
    let mut stage = named("IXSCAN");
    if let Ok(Some(RawValue::Document(pattern))) = search.index.specification.get("key") {
        stage.push("keyPattern", owned(pattern));
    }
    stage.push("indexName", search.index.name.as_str());
    stage.push("direction", "forward");
    stage.push("indexBounds", Document::new());
    stage
}
