//! Pipelines give what the oracle gives: the corpora in `tests/pipelines`; and they survive a source that
//! must wait.

use std::collections::VecDeque;
use std::path::Path;

use pando_catalog::{Bytes, QueryMemory, ScratchSpace};
use pando_document::{ArrayWriter, RawArray, RawDocument, RawDocumentBuf};
use pando_environment::Environment;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Pipeline, RunOptions, Source, Take};
use pando_query::{ErrorCode, QueryError};

use crate::corpus::{self, Case, value_of};

fn unlimited() -> RunOptions {
    RunOptions::new(StageMemory::unlimited(DiskUse::Forbidden), 7)
}

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
    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        self.interrupt()?;
        for document in self.all.iter().filter(|_| collection == "c") {
            let document = RawDocument::from_bytes(document)?;
            if filter.matches(document)? {
                take(document)?;
            }
        }
        Ok(())
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
    assert_eq!(corpus::canonical_document(&pushdown.filter), corpus::canonical_text(r#"{"a": 1, "b": 2}"#));
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

/// As on MongoDB 6.0.27: an array of more than 100 MB is refused with disk use and without.
#[test]
fn a_group_whose_array_exceeds_the_memory_limit_is_refused() {
    let text = format!(r#"[{{"v": "{}"}}]"#, "x".repeat(1 << 20));
    for disk_use in [DiskUse::Forbidden, DiskUse::Allowed] {
        let stages = r#"[{"$group": {"_id": null, "all": {"$push": "$v"}}}, {"$project": {"n": "$_id"}}]"#;
        let error =
            run_repeated(stages, &text, StageMemory::unlimited(disk_use)).expect_err("it is too large");
        assert_eq!(error.code(), Some(ErrorCode::ExceededMemoryLimit), "{error:?}");
        let message = "$push used too much memory and cannot spill to disk. Memory limit: 104857600 bytes";
        assert_eq!(error.message(), message);
    }
}

#[test]
fn groups_beyond_the_memory_limit_are_refused_unless_disk_use_is_allowed() {
    let text = format!(r#"[{{"v": "{}"}}, {{"v": "{}", "w": 1}}]"#, "x".repeat(1 << 20), "y".repeat(1 << 20));
    for (disk_use, is_refused) in [(DiskUse::Forbidden, true), (DiskUse::Allowed, false)] {
        let stages = r#"[{"$group": {"_id": "$w", "all": {"$push": "$v"}}}, {"$project": {"n": "$_id"}}]"#;
        let answer = run_repeated(stages, &text, StageMemory::unlimited(disk_use));
        assert_eq!(answer.is_err(), is_refused, "disk use {disk_use:?}");
        if let Err(error) = answer {
            assert_eq!(error.code(), Some(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed), "{error:?}");
        }
    }
}

/// The first document that a pipeline makes of 120 documents: these again and again.
fn run_repeated(stages: &str, documents: &str, memory: StageMemory) -> Result<Option<Bytes>, QueryError> {
    let (stages, documents) = (corpus::boxed(stages), corpus::boxed(documents));
    let stages = value_of(&stages).as_array().expect("an array");
    let pipeline = Pipeline::parse(stages, &ParseScope::at(0)).expect("it parses");
    let all = Documents::new(value_of(&documents).as_array().expect("an array"), Interruptions::None).all;
    let waiting = all.iter().cycle().take(120).cloned().collect();
    let mut source = Documents { waiting, all: Vec::new(), interruptions: Interruptions::None };
    pipeline.start(&RunOptions::new(memory, 0)).next(&mut source)
}

/// With no memory at all each document is spilled by itself.
#[test]
fn pipelines_without_memory_give_the_same_documents() {
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).expect("it opens");
    let cases = corpus::read("pipelines");
    let mut spills = 0;
    for case in &cases {
        let stages = case.boxed("pipeline").expect("a case has a pipeline");
        let given = |memory: StageMemory| {
            run_with(case, Interruptions::Due, &RunOptions::new(memory, 7))
                .map(|documents| canonical(&documents, value_of(&stages)))
                .map_err(|error| error.to_string())
        };
        let memory = QueryMemory::with_scratch(0, &scratch);
        let spilled = given(StageMemory { account: memory.account(), disk_use: DiskUse::Allowed });
        assert_eq!(spilled, given(StageMemory::unlimited(DiskUse::Allowed)), "{:?}", value_of(&stages));
        spills += memory.figures().spills;
        assert_eq!((memory.figures().held_bytes, scratch.figures().files), (0, 0));
    }
    assert!(spills > 100, "{spills}");
}

/// With several runs that read a part each, some of them without memory.
#[test]
fn pipelines_give_the_same_documents_where_their_first_stages_read_parts() {
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).expect("it opens");
    let (mut parted, cases) = (0, corpus::read("pipelines"));
    for case in &cases {
        let stages = case.boxed("pipeline").expect("a case has a pipeline");
        let array = value_of(&stages).as_array().expect("a pipeline is an array");
        let Ok(pipeline) = Pipeline::parse(array, &ParseScope::at(0)) else { continue };
        let Some(gathering) = pipeline.gathering_stages() else { continue };
        let whole = run_with(case, Interruptions::None, &unlimited());
        let whole = whole.map(|documents| canonical(&documents, value_of(&stages)));
        let documents = case.boxed("documents").expect("a case has documents");
        let all = Documents::new(value_of(&documents).as_array().expect("an array"), Interruptions::None).all;
        for (first, spilling) in [(1, [false; 3]), (2, [true, false, true]), (3, [false, true, false])] {
            let memory = QueryMemory::with_scratch(0, &scratch);
            let options = |is_spilling: bool| match is_spilling {
                true => {
                    let none = StageMemory { account: memory.account(), disk_use: DiskUse::Allowed };
                    RunOptions::new(none, 7)
                }
                false => RunOptions::new(StageMemory::unlimited(DiskUse::Allowed), 7),
            };
            let parts = [&all[..first.min(all.len())], &all[first.min(all.len())..], &[]];
            let in_parts = run_in_parts(&pipeline, gathering, parts, spilling.map(options));
            let in_parts = in_parts.map(|documents| canonical(&documents, value_of(&stages)));
            match (&whole, in_parts) {
                (Ok(whole), Ok(in_parts)) => assert_eq!(&in_parts, whole, "{:?}", value_of(&stages)),
                (Err(whole), Err(in_parts)) => assert_eq!(in_parts.to_string(), whole.to_string()),
                (whole, in_parts) => panic!("{whole:?} and {in_parts:?}: {:?}", value_of(&stages)),
            }
            parted += 1;
        }
    }
    assert!(parted > 100, "{parted}");
}

fn run_in_parts(
    pipeline: &Pipeline,
    stages: usize,
    parts: [&[Bytes]; 3],
    options: [RunOptions; 3],
) -> Result<RawDocumentBuf, QueryError> {
    let source = |part: &[Bytes]| Documents {
        waiting: part.iter().cloned().collect(),
        all: Vec::new(),
        interruptions: Interruptions::None,
    };
    let [mut run, mut second, mut third] = options.map(|options| pipeline.start(&options));
    run.gather(stages, &mut source(parts[0]))?;
    second.gather(stages, &mut source(parts[1]))?;
    third.gather(stages, &mut source(parts[2]))?;
    run.absorb(stages, &mut second, &mut || Ok(()))?;
    run.absorb(stages, &mut third, &mut || Ok(()))?;
    let mut bytes = Vec::new();
    let mut given = ArrayWriter::begin(&mut bytes);
    let mut nothing_more = source(&[]);
    while let Some(document) = run.next(&mut nothing_more)? {
        given.push_document_bytes(&document);
    }
    given.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// The documents in the order that the pipeline gives them, or, where groups have no order, sorted.
fn canonical(documents: &RawDocumentBuf, stages: pando_document::RawValue<'_>) -> Vec<String> {
    let array = RawArray::from_document(documents);
    let mut texts: Vec<String> =
        array.iter().map(|document| format!("{:?}", document.expect("just written").to_owned())).collect();
    let text = format!("{stages:?}");
    if ["$group", "$sortByCount", "$bucket", "$facet"].iter().any(|stage| text.contains(stage)) {
        texts.sort();
    }
    texts
}

fn check(case: &Case, interruptions: Interruptions) -> Option<String> {
    corpus::check_documents(case, "pipeline", run(case, interruptions))
}

fn run(case: &Case, interruptions: Interruptions) -> Result<String, QueryError> {
    Ok(corpus::canonical_array(&run_with(case, interruptions, &unlimited())?))
}

fn run_with(
    case: &Case,
    interruptions: Interruptions,
    options: &RunOptions,
) -> Result<RawDocumentBuf, QueryError> {
    let stages = case.boxed("pipeline").expect("a case has a pipeline");
    let stages = value_of(&stages).as_array().expect("a pipeline is an array");
    let documents = case.boxed("documents").expect("a case has documents");
    let mut source = Documents::new(value_of(&documents).as_array().expect("an array"), interruptions);
    let mut run = Pipeline::parse(stages, &ParseScope::at(0))?.start(options);
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
    Ok(RawDocumentBuf::from_vec(bytes)?)
}
