//! Pipelines give what the oracle gives: the corpora in `tests/pipelines`; and they survive a source that
//! must wait.

mod corpus;

use std::collections::VecDeque;

use corpus::{Case, value_of};
use pando_catalog::Bytes;
use pando_document::{ArrayWriter, RawArray, RawDocument, RawDocumentBuf};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::pipeline::{Pipeline, RunOptions, Source};
use pando_query::sort::DiskUse;
use pando_query::{ErrorCode, QueryError};

const OPTIONS: RunOptions = RunOptions { disk_use: DiskUse::Forbidden, seed: 7 };

/// Documents in memory, and an action before each of them.
struct Documents {
    waiting: VecDeque<Bytes>,
    all: Vec<Bytes>,
    interruptions: Interruptions,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interruptions {
    None,
    /// Every other call fails.
    Due,
    JustHappened,
}

impl Documents {
    fn new(documents: &RawArray, interruptions: Interruptions) -> Documents {
        let all: Vec<Bytes> = documents
            .iter()
            .map(|document| {
                let document = document.expect("valid").as_document().expect("a document");
                Bytes::copy_from_slice(document.as_bytes())
            })
            .collect();
        Documents { waiting: all.iter().cloned().collect(), all, interruptions }
    }

    fn interrupt(&mut self) -> Result<(), QueryError> {
        match self.interruptions {
            Interruptions::None => Ok(()),
            Interruptions::JustHappened => {
                self.interruptions = Interruptions::Due;
                Ok(())
            }
            Interruptions::Due => {
                self.interruptions = Interruptions::JustHappened;
                Err(QueryError::new(ErrorCode::InvalidLength, "not now"))
            }
        }
    }
}

impl Source for Documents {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        self.interrupt()?;
        Ok(self.waiting.pop_front())
    }

    /// The only other collection is this one again.
    fn find_in(&mut self, collection: &str, filter: &Filter) -> Result<Vec<Bytes>, QueryError> {
        self.interrupt()?;
        let mut found = Vec::new();
        for document in self.all.iter().filter(|_| collection == "c") {
            if filter.matches(RawDocument::from_bytes(document)?)? {
                found.push(document.clone());
            }
        }
        Ok(found)
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(())
    }
}

#[test]
fn pipelines_give_what_the_oracle_gives() {
    let cases = corpus::read("pipelines");
    let failures = cases.iter().filter_map(|case| check(case, Interruptions::None)).collect();
    corpus::report(failures, cases.len(), 80);
}

#[test]
fn pipelines_go_on_where_they_were_after_their_source_had_to_wait() {
    let cases = corpus::read("pipelines");
    let failures = cases.iter().filter_map(|case| check(case, Interruptions::Due)).collect();
    corpus::report(failures, cases.len(), 80);
}

#[test]
fn the_front_of_a_pipeline_is_given_to_the_plan() {
    let holder = corpus::boxed(
        r#"[{"$match": {"a": 1}}, {"$match": {"b": 2}}, {"$sort": {"c": -1}}, {"$skip": 3}, {"$limit": 4}, {"$match": {"d": 1}}]"#,
    );
    let stages = value_of(&holder).as_array().expect("an array");
    let pushdown = Pipeline::parse(stages, &ParseScope::at(0)).expect("it parses").split_pushdown();
    assert_eq!(
        corpus::canonical_document(&pushdown.filter),
        corpus::canonical_text(r#"{"$and": [{"a": 1}, {"b": 2}]}"#)
    );
    assert_eq!(
        pushdown.sort.map(|sort| corpus::canonical_document(&sort)),
        Some(corpus::canonical_text(r#"{"c": -1}"#))
    );
    assert_eq!((pushdown.skip, pushdown.limit, pushdown.rest.stages().count()), (3, Some(4), 1));
}

#[test]
fn a_limit_before_a_skip_or_a_sort_is_left_in_the_pipeline() {
    let holder = corpus::boxed(r#"[{"$limit": 4}, {"$sort": {"c": 1}}, {"$skip": 3}]"#);
    let stages = value_of(&holder).as_array().expect("an array");
    let pushdown = Pipeline::parse(stages, &ParseScope::at(0)).expect("it parses").split_pushdown();
    assert!(pushdown.sort.is_none());
    assert_eq!((pushdown.skip, pushdown.limit, pushdown.rest.stages().count()), (0, Some(4), 2));
}

#[test]
fn groups_beyond_the_memory_limit_are_refused_unless_disk_use_is_allowed() {
    let text = format!(r#"[{{"v": "{}"}}]"#, "x".repeat(1 << 20));
    let documents = corpus::boxed(&text);
    let stages =
        corpus::boxed(r#"[{"$group": {"_id": null, "all": {"$push": "$v"}}}, {"$project": {"n": "$_id"}}]"#);
    let pipeline = Pipeline::parse(value_of(&stages).as_array().expect("an array"), &ParseScope::at(0))
        .expect("it parses");
    let one = Documents::new(value_of(&documents).as_array().expect("an array"), Interruptions::None);
    for (disk_use, is_refused) in [(DiskUse::Forbidden, true), (DiskUse::Allowed, false)] {
        let waiting = std::iter::repeat_n(one.all[0].clone(), 120).collect();
        let mut source = Documents { waiting, all: Vec::new(), interruptions: Interruptions::None };
        let answer = pipeline.start(&RunOptions { disk_use, seed: 0 }).next(&mut source);
        assert_eq!(answer.is_err(), is_refused, "disk use {disk_use:?}");
        if let Err(error) = answer {
            assert_eq!(error.code(), Some(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed), "{error:?}");
        }
    }
}

fn check(case: &Case, interruptions: Interruptions) -> Option<String> {
    corpus::check_documents(case, "pipeline", run(case, interruptions))
}

fn run(case: &Case, interruptions: Interruptions) -> Result<String, QueryError> {
    let stages = case.boxed("pipeline").expect("a case has a pipeline");
    let stages = value_of(&stages).as_array().expect("a pipeline is an array");
    let documents = case.boxed("documents").expect("a case has documents");
    let mut source = Documents::new(value_of(&documents).as_array().expect("an array"), interruptions);
    let mut run = Pipeline::parse(stages, &ParseScope::at(0))?.start(&OPTIONS);
    let mut bytes = Vec::new();
    let mut given = ArrayWriter::begin(&mut bytes);
    loop {
        match run.next(&mut source) {
            Ok(Some(document)) => given.push_document_bytes(&document),
            Ok(None) => break,
            Err(error) if error.code() == Some(ErrorCode::InvalidLength) => {}
            Err(error) => return Err(error),
        }
    }
    given.finish();
    Ok(corpus::canonical_array(&RawDocumentBuf::from_vec(bytes)?))
}
