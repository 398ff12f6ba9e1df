//! Projections of `find` show what the oracle shows: the corpora in `tests/projections`.

mod corpus;

use corpus::Case;
use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::projection::Projection;

#[test]
fn projections_show_what_the_oracle_shows() {
    let cases = corpus::read("projections");
    let failures = cases.iter().filter_map(check).collect();
    corpus::report(failures, cases.len(), 80);
}

fn check(case: &Case) -> Option<String> {
    let answer = run(case);
    let is_right = match &answer {
        Err(error) => corpus::is_error(error, &case.expected),
        Ok(text) => case
            .expected
            .strip_prefix("documents ")
            .is_some_and(|documents| corpus::canonical_text(documents) == *text),
    };
    if is_right {
        return None;
    }
    let answer = answer.unwrap_or_else(|error| format!("{} ({error})", corpus::error_text(&error)));
    let projection = case.text("projection").unwrap_or_default();
    Some(format!("{}: {projection}\n   expected {}\n   but was  {answer}", case.place, case.expected))
}

fn run(case: &Case) -> Result<String, QueryError> {
    let scope = ParseScope::at(0);
    let specification = case.boxed("projection").expect("a case has a projection");
    let projection = Projection::parse(document_of(&specification), &scope)?;
    let filter = case.boxed("filter").unwrap_or_else(|| corpus::boxed("{}"));
    let filter = Filter::parse(document_of(&filter), &scope)?;
    let documents = case.boxed("documents").expect("a case has documents");
    let mut bytes = Vec::new();
    let mut shown = pando_document::ArrayWriter::begin(&mut bytes);
    for document in value_of(&documents).as_array().expect("documents are an array") {
        let document = document.expect("valid").as_document().expect("a document");
        let (matched, index) = filter.matches_with_position(document)?;
        if matched {
            let mut projected = Vec::new();
            projection.apply(document, index, &mut projected)?;
            shown.push_document(RawDocument::from_bytes(&projected)?);
        }
    }
    shown.finish();
    let shown = RawDocumentBuf::from_vec(bytes)?;
    let mut holder = Vec::new();
    let mut writer = pando_document::DocumentWriter::begin(&mut holder);
    writer.append("v", RawValue::Array(pando_document::RawArray::from_document(&shown)));
    writer.finish();
    Ok(corpus::canonical(&RawDocumentBuf::from_vec(holder)?))
}

fn value_of(holder: &RawDocument) -> RawValue<'_> {
    holder.get("v").expect("valid").expect("a box holds v")
}

fn document_of(holder: &RawDocument) -> &RawDocument {
    value_of(holder).as_document().expect("this field is a document")
}
