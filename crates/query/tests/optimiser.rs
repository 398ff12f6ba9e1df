//! The optimiser changes no answer: thousands of random pipelines over random documents give the same with it
//! and without, with memory and with none, drawn one by one, in a row, and in parts by several runs.
//!
//! A stage that fails may see fewer documents with the optimiser, so an answer without an error is no failure
//! where there is one without it. A failure names its seed: `PANDO_SEED=… cargo test -p pando-query --test
//! outside optimiser::`.

use std::collections::VecDeque;
use std::path::Path;

use pando_catalog::{Bytes, QueryMemory, ScratchSpace};
use pando_document::{ArrayWriter, Document, RawArray, RawDocument, RawDocumentBuf, Value, doc};
use pando_environment::Environment;
use pando_query::QueryError;
use pando_query::expression::{Optimisation, ParseScope};
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{
    Flow, ForeignAccess, ForeignPath, ForeignSearch, Pipeline, RunOptions, Source, Take,
};

use crate::random_pipelines::Chance;

fn array_of(documents: &[Document]) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    documents.iter().for_each(|document| writer.push_document(&document.to_raw()));
    writer.finish();
    RawDocumentBuf::from_vec(bytes).expect("an array")
}

/// The documents of the only collection.
struct Documents {
    waiting: VecDeque<Bytes>,
    all: Vec<Bytes>,
    access: ForeignAccess,
}

impl Source for Documents {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.waiting.pop_front())
    }

    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        for document in self.all.iter().filter(|_| collection == "c") {
            let document = RawDocument::from_bytes(document)?;
            if filter.matches(document)? {
                take(document)?;
            }
        }
        Ok(())
    }

    fn foreign_access(&mut self, _: &str, _: &str) -> Result<ForeignAccess, QueryError> {
        Ok(self.access)
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(())
    }
}

/// How the documents of a pipeline are drawn.
#[derive(Clone, Copy, Debug)]
enum Drawing {
    OneByOne,
    InARow,
    /// Several runs read a part of the documents each, where the first stages can.
    InParts,
}

fn run(
    stages: &[Document],
    documents: &[Bytes],
    optimisation: Optimisation,
    memory: StageMemory,
    drawing: Drawing,
    by: ForeignPath,
) -> Result<Vec<String>, String> {
    let stages = array_of(stages);
    let scope = ParseScope::at(0).optimised(optimisation);
    let pipeline =
        Pipeline::parse(RawArray::from_document(&stages), &scope).map_err(|error| error.to_string())?;
    let options = RunOptions::new(memory, 7);
    let mut run = pipeline.start(&options);
    // An index is that of an engine behind a network: with one of this machine each document is searched for.
    let access = match by {
        ForeignPath::Scan => ForeignAccess { documents: Some(documents.len() as u64), ..Default::default() },
        ForeignPath::Index => ForeignAccess { by, search: ForeignSearch::ByRequests, documents: None },
    };
    let of = |part: &[Bytes]| Documents {
        waiting: part.iter().cloned().collect(),
        all: documents.to_vec(),
        access,
    };
    let mut source = of(documents);
    if let (Drawing::InParts, Some(stages)) = (drawing, pipeline.gathering_stages()) {
        source = of(&[]);
        let mut parts = documents.chunks(3);
        run.gather(stages, &mut of(parts.next().unwrap_or_default())).map_err(|error| error.to_string())?;
        for part in parts {
            let mut later = pipeline.start(&options);
            later.gather(stages, &mut of(part)).map_err(|error| error.to_string())?;
            run.absorb(stages, &mut later, &mut || Ok(())).map_err(|error| error.to_string())?;
        }
    }
    let mut given = Vec::new();
    let mut keep = |document: &RawDocument| given.push(format!("{:?}", Document::from_raw(document)));
    match drawing {
        Drawing::OneByOne => {
            while let Some(bytes) = run.next(&mut source).map_err(|error| error.to_string())? {
                keep(RawDocument::from_bytes(&bytes).expect("just made"));
            }
        }
        Drawing::InARow | Drawing::InParts => run
            .for_each(&mut source, &mut |document, _| {
                keep(document);
                Ok(Flow::More)
            })
            .map_err(|error| error.to_string())?,
    }
    Ok(given)
}

#[test]
fn pipelines_give_the_same_with_and_without_the_optimiser() {
    const PIPELINES: u64 = 3000;
    let begin = std::env::var("PANDO_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = begin.map_or(1..PIPELINES, |seed: u64| seed..seed + 1);
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).expect("it opens");
    let (mut answers, mut rows) = (0, 0);
    for seed in seeds {
        let mut chance = Chance::of_seed(seed);
        let documents: Vec<Bytes> = (0..chance.below(14))
            .map(|id| {
                let mut document = doc! { "_id": (i32::try_from(id).expect("few")) };
                for (name, value) in chance.fields(&["a", "b", "k", "t"], 0).iter() {
                    document.push(name, value.clone());
                }
                Bytes::from(document.to_raw().into_vec())
            })
            .collect();
        let stages = chance.pipeline();
        let unlimited = StageMemory::unlimited(DiskUse::Allowed);
        let plain = run(
            &stages,
            &documents,
            Optimisation::Off,
            unlimited.clone(),
            Drawing::OneByOne,
            ForeignPath::Scan,
        );
        let Ok(plain) = plain else { continue };
        answers += 1;
        rows += plain.len();
        for optimisation in [Optimisation::On, Optimisation::Off] {
            for drawing in [Drawing::OneByOne, Drawing::InARow, Drawing::InParts] {
                let memory = QueryMemory::with_scratch(0, &scratch);
                let none = StageMemory { account: memory.account(), disk_use: DiskUse::Allowed };
                for (memory, by) in [
                    (&unlimited, ForeignPath::Scan),
                    (&none, ForeignPath::Scan),
                    (&unlimited, ForeignPath::Index),
                    (&none, ForeignPath::Index),
                ] {
                    let other = run(&stages, &documents, optimisation, memory.clone(), drawing, by);
                    assert_eq!(
                        other.as_ref(),
                        Ok(&plain),
                        "PANDO_SEED={seed}, {optimisation:?}, {drawing:?}, {by:?}, {memory:?}, {stages:?} over {documents:?}"
                    );
                }
            }
        }
    }
    assert!(begin.is_some() || (answers > 1200 && rows > 2500), "{answers} answers of {rows} documents");
}

#[test]
fn a_lookup_of_many_documents_at_once_finds_values_that_look_like_operators_or_patterns() {
    let of = |id: i32, value: Value| Bytes::from(doc! { "_id": id, "k": (value) }.to_raw().into_vec());
    let operator = || Value::Document(doc! { "$gt": 1 });
    let documents = [
        of(0, Value::Int32(1)),
        of(1, operator()),
        of(2, Value::Array(vec![operator(), Value::Int32(1)])),
        of(3, Value::Null),
        of(4, Value::String("a".into())),
    ];
    let join = doc! { "from": "c", "localField": "k", "foreignField": "k", "as": "j" };
    let stages = [doc! { "$lookup": (join) }, doc! { "$project": { "j": "$j._id" } }];
    let memory = StageMemory::unlimited(DiskUse::Allowed);
    let [one_by_one, at_once] = [ForeignPath::Scan, ForeignPath::Index]
        .map(|by| run(&stages, &documents, Optimisation::On, memory.clone(), Drawing::OneByOne, by).unwrap());
    assert_eq!(one_by_one, at_once);
    assert!(at_once[1].contains("Int32(1)") && at_once[1].contains("Int32(2)"), "{at_once:?}");
}
