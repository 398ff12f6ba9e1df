//! Updates change documents as the oracle does: the corpora in `tests/updates`.

use pando_document::{ObjectId, RawArray, Timestamp};
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::update::{Applied, ApplyKind, EmptyTimestamps, Update, UpdateContext};

use crate::corpus::{self, Case, document_of, value_of};

#[test]
fn updates_give_what_the_oracle_gives() {
    let cases = corpus::read("updates");
    let failures = cases.iter().filter_map(check).collect();
    corpus::report(failures, cases.len(), 150);
}

fn check(case: &Case) -> Option<String> {
    let answer = run(case);
    let is_right = match &answer {
        Err(error) => corpus::is_error(error, &case.expected),
        Ok(text) => {
            let (word, value) = case.expected.split_once(' ').unwrap_or((&case.expected, ""));
            let expected = if value.is_empty() || word == "error" {
                case.expected.clone()
            } else {
                format!("{word} {}", corpus::canonical_text(value))
            };
            *text == expected
        }
    };
    if is_right {
        return None;
    }
    let answer = match answer {
        Ok(text) => text,
        Err(error) => format!("{} ({error})", corpus::error_text(&error)),
    };
    Some(corpus::failure(case, "update", &answer))
}

fn run(case: &Case) -> Result<String, QueryError> {
    let update = case.boxed("update").expect("a case has an update");
    let filters = case.boxed("arrayFilters");
    let filters: Option<&RawArray> = filters.as_ref().and_then(|holder| value_of(holder).as_array());
    let update = Update::parse(value_of(&update), filters, &ParseScope::at(0))?;
    let filter_holder = case.boxed("filter").unwrap_or_else(|| corpus::boxed("{}"));
    let filter = document_of(&filter_holder);
    let mut context = UpdateContext {
        matched_index: None,
        now_millis: 0,
        timestamp: Timestamp { time: 1, increment: 1 },
        kind: ApplyKind::Insert,
        empty_timestamps: EmptyTimestamps::Filled,
    };
    if case.text("upsert").is_some() {
        let new = update.insert(filter, &context, ObjectId::from_parts(1, [0; 5], 1))?;
        return Ok(format!("inserted {}", corpus::canonical_document(&new)));
    }
    context.kind = ApplyKind::Update;
    let document_holder = case.boxed("document").expect("a case has a document");
    let document = document_of(&document_holder);
    let (matched, index) = Filter::parse(filter, &ParseScope::at(0))?.matches_with_position(document)?;
    assert!(matched, "{}: the filter is meant to match", case.place);
    context.matched_index = index;
    Ok(match update.apply(document, &context)? {
        Applied::Unchanged => "unchanged".to_owned(),
        Applied::Changed(new) => format!("changed {}", corpus::canonical_document(&new)),
    })
}
