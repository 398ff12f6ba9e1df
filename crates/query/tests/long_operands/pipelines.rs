//! Pipelines with many accumulators, boundaries and variables, over many documents or wide ones.

use std::collections::VecDeque;

use pando_catalog::Bytes;
use pando_document::{Document, RawArray, Value, doc};
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Pipeline, RunOptions, Source, Take};

use super::{Held, Operation, number, numbers, single, wide};

fn unlimited() -> RunOptions {
    RunOptions::new(StageMemory::unlimited(DiskUse::Allowed), 7)
}

pub fn operations() -> Vec<Operation> {
    let of_numbers = |name, stage: fn(usize) -> Document| {
        aggregated(name, move |n| ((0..n).map(|at| single("x", number(at))).collect(), stage(n)))
    };
    let of_wide =
        |name, stage: fn(usize) -> Document| aggregated(name, move |n| (vec![wide(n, number)], stage(n)));
    vec![
        of_numbers("$group with $lastN", |n| group(doc! { "$lastN": { "n": (number(n)), "input": "$x" } })),
        of_numbers("$group with $firstN", |n| group(doc! { "$firstN": { "n": (number(n)), "input": "$x" } })),
        of_numbers("$group with $maxN", |n| group(doc! { "$maxN": { "n": (number(n / 2)), "input": "$x" } })),
        of_numbers("$group with $minN", |n| group(doc! { "$minN": { "n": (number(n / 2)), "input": "$x" } })),
        of_numbers("$group with $addToSet", |_| group(doc! { "$addToSet": "$x" })),
        of_numbers("$group with $push", |_| group(doc! { "$push": "$x" })),
        aggregated("$group with $mergeObjects", |n| {
            let documents = (0..n).map(|at| doc! { "d": (single(format!("f{at}"), 1)) }).collect();
            (documents, group(doc! { "$mergeObjects": "$d" }))
        }),
        of_numbers("$bucket with many boundaries", |n| {
            doc! { "$bucket": { "groupBy": "$x", "boundaries": (numbers(0, n / 2)), "default": "beyond" } }
        }),
        of_wide("$group with many accumulators", |n| {
            let mut group = doc! { "_id": null };
            for at in 0..n {
                group.push(format!("s{at}"), single("$sum", format!("$f{at}")));
            }
            single("$group", group)
        }),
        of_wide("$group by each field", |n| single("$group", single("_id", wide(n, |at| format!("$f{at}"))))),
        of_wide("$lookup with many variables", |n| {
            let mut variables = Document::new();
            for at in 0..n {
                variables.push(format!("v{at}"), format!("$f{at}"));
            }
            let used: Value = (0..n).map(|at| format!("$$v{at}")).collect();
            let pipeline = Value::Array(vec![doc! { "$match": { "$expr": { "$add": used } } }.into()]);
            single("$lookup", doc! { "from": "c", "as": "found", "let": variables, "pipeline": pipeline })
        }),
        aggregated("$lookup by a long array", |n| {
            let fields = doc! { "from": "c", "as": "found", "localField": "a", "foreignField": "x" };
            (vec![single("a", numbers(0, n))], single("$lookup", fields))
        }),
        aggregated("$unwind", |n| (vec![single("a", numbers(0, n))], doc! { "$unwind": "$a" })),
        of_numbers("$sort", |_| doc! { "$sort": { "x": -1 } }),
        of_numbers("$sortByCount", |_| doc! { "$sortByCount": "$x" }),
        of_wide("$replaceRoot", |n| {
            single("$replaceRoot", single("newRoot", wide(n, |at| format!("$f{}", n - 1 - at))))
        }),
    ]
}

fn group(accumulator: Document) -> Document {
    doc! { "$group": { "_id": null, "all": accumulator } }
}

struct Documents {
    waiting: VecDeque<Bytes>,
    all: Vec<Bytes>,
}

impl Source for Documents {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.waiting.pop_front())
    }

    fn find_in(&mut self, _: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        for document in &self.all {
            let document = pando_document::RawDocument::from_bytes(document)?;
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

fn aggregated(
    name: &'static str,
    operands: impl Fn(usize) -> (Vec<Document>, Document) + 'static,
) -> Operation {
    Operation::new(name, move |n| {
        let (documents, stage) = operands(n);
        let all: Vec<Bytes> =
            documents.iter().map(|document| Bytes::from(document.to_raw().into_vec())).collect();
        let stages = Held::new(Value::Array(vec![stage.into()]));
        move || {
            let stages: &RawArray = stages.value().as_array().unwrap();
            let pipeline = Pipeline::parse(stages, &ParseScope::at(0)).unwrap();
            let mut run = pipeline.start(&unlimited());
            let mut source = Documents { waiting: all.iter().cloned().collect(), all: all.clone() };
            while run.next(&mut source).unwrap().is_some() {}
        }
    })
}
