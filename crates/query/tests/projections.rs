//! Projections of `find` show what the oracle shows: the corpora in `tests/projections`.

use pando_document::{RawDocument, RawDocumentBuf};
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::projection::Projection;

use crate::corpus::{self, Case, document_of, value_of};

#[test]
fn projections_show_what_the_oracle_shows() {
    let cases = corpus::read("projections");
    let failures = cases.iter().filter_map(check).collect();
    corpus::report(failures, cases.len(), 80);
}

fn check(case: &Case) -> Option<String> {
    corpus::check_documents(case, "projection", run(case))
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
    Ok(corpus::canonical_array(&RawDocumentBuf::from_vec(bytes)?))
}
