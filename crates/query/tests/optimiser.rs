//! The optimiser changes no answer: thousands of random pipelines over random documents give the same with it
//! and without, with memory and with none, drawn one by one, in a row, and in parts by several runs.
//!
//! A stage that fails may see fewer documents with the optimiser, so an answer without an error is no failure
//! where there is one without it. A failure names its seed: `PANDO_SEED=… cargo test -p pando-query --test
//! optimiser`.

use std::collections::VecDeque;
use std::path::Path;

use pando_catalog::{Bytes, QueryMemory, ScratchSpace};
use pando_document::{ArrayWriter, Document, RawArray, RawDocument, RawDocumentBuf, Value, doc};
use pando_environment::Environment;
use pando_query::QueryError;
use pando_query::expression::{Optimisation, ParseScope};
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Flow, ForeignAccess, ForeignPath, Pipeline, RunOptions, Source, Take};

/// A series of random numbers (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 11).expect("64 bits") % end
    }

    fn of<'c, C>(&mut self, choices: &'c [C]) -> &'c C {
        &choices[self.below(choices.len())]
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn scalar(&mut self) -> Value {
        match self.below(9) {
            0 => Value::Null,
            1 => Value::from("x"),
            2 => Value::Double(1.0),
            3 => Value::Int64(2),
            4 => Value::Boolean(true),
            _ => Value::Int32(i32::try_from(self.below(4)).expect("small")),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 2 { 4 } else { 8 }) {
            0..=3 => self.scalar(),
            4 | 5 => Value::Array((0..self.below(4)).map(|_| self.value(depth + 1)).collect()),
            _ => Value::Document(self.fields(&["x", "y", "k"], depth + 1)),
        }
    }

    fn fields(&mut self, names: &[&str], depth: usize) -> Document {
        let mut document = Document::new();
        for name in names {
            if !self.one_in(4) {
                let value = self.value(depth);
                document.push(*name, value);
            }
        }
        document
    }

    fn path(&mut self) -> String {
        let first = *self.of(&["a", "b", "k", "t", "j", "_id"]);
        match self.below(4) {
            0 => format!("{first}.{}", self.of(&["x", "y", "k"])),
            _ => first.to_owned(),
        }
    }

    fn condition(&mut self) -> Value {
        let value = self.scalar();
        let operator = match self.below(9) {
            0 => return value,
            1 => doc! { "$in": (Value::Array(vec![value, self.scalar()])) },
            2 => doc! { "$exists": (self.one_in(2)) },
            3 => doc! { "$type": (*self.of(&["int", "null", "object", "array", "string"])) },
            4 => doc! { "$not": { "$eq": (value) } },
            5 => doc! { "$ne": (value) },
            _ => {
                let mut one = Document::new();
                one.push(*self.of(&["$gt", "$gte", "$lt", "$lte", "$eq"]), value);
                one
            }
        };
        Value::Document(operator)
    }

    fn filter(&mut self, depth: usize) -> Document {
        let mut filter = Document::new();
        for _ in 0..=self.below(2) {
            let path = self.path();
            let condition = self.condition();
            filter.insert(path.as_str(), condition);
        }
        if depth < 2 && self.one_in(4) {
            let clauses = (0..=self.below(2)).map(|_| Value::Document(self.filter(depth + 1))).collect();
            filter.push(*self.of(&["$or", "$and", "$nor"]), Value::Array(clauses));
        }
        if self.one_in(8) {
            filter.push("$expr", doc! { "$eq": [(format!("${}", self.path())), (self.scalar())] });
        }
        filter
    }

    fn expression(&mut self) -> Value {
        match self.below(5) {
            0 => Value::Document(doc! { "$ifNull": [(format!("${}", self.path())), 7] }),
            1 => Value::Document(doc! { "$literal": (self.scalar()) }),
            _ => Value::from(format!("${}", self.path())),
        }
    }

    fn sort(&mut self) -> Document {
        let mut sort = Document::new();
        for _ in 0..=self.below(2) {
            let direction = if self.one_in(2) { 1 } else { -1 };
            let path = self.path();
            sort.insert(path.as_str(), direction);
        }
        sort
    }

    fn lookup(&mut self) -> Document {
        let mut options = doc! { "from": "c", "as": (*self.of(&["j", "j", "t", "a.j"])) };
        if !self.one_in(4) {
            options.push("localField", self.path());
            options.push("foreignField", self.path());
        }
        if self.one_in(3) || options.get("localField").is_none() {
            let stages = match self.below(3) {
                0 => vec![],
                1 => vec![doc! { "$match": (self.filter(1)) }],
                _ => vec![doc! { "$sort": { "_id": -1 } }, doc! { "$limit": 2 }],
            };
            options.push("pipeline", Value::Array(stages.into_iter().map(Value::Document).collect()));
            if self.one_in(3) {
                options.push("let", doc! { "v": (format!("${}", self.path())) });
            }
        }
        doc! { "$lookup": (options) }
    }

    /// One stage, or some that belong together.
    fn stages(&mut self) -> Vec<Document> {
        let name = *self.of(&["a", "b", "k", "z"]);
        let mut computed = Document::new();
        computed.push(name, self.expression());
        match self.below(20) {
            0..=3 => vec![doc! { "$match": (self.filter(0)) }],
            4 => vec![doc! { "$addFields": (computed) }],
            5 => {
                computed.insert("k", 1);
                vec![doc! { "$project": (computed) }]
            }
            6 => vec![doc! { "$unset": (self.path()) }],
            7 => vec![doc! { "$sort": (self.sort()) }],
            8 => vec![doc! { "$limit": (1 + i32::try_from(self.below(9)).expect("small")) }],
            9 => vec![doc! { "$skip": (i32::try_from(self.below(4)).expect("small")) }],
            10 => {
                let mut unwind = doc! { "path": (format!("${}", self.of(&["t", "a", "j", "t.x"]))) };
                if self.one_in(2) {
                    unwind.push("preserveNullAndEmptyArrays", true);
                }
                if self.one_in(4) {
                    unwind.push("includeArrayIndex", "n");
                }
                vec![doc! { "$unwind": (unwind) }]
            }
            11 => {
                let id = match self.below(3) {
                    0 => Value::Document(doc! { "x": (self.expression()), "y": (self.expression()) }),
                    _ => self.expression(),
                };
                // Groups have no order of their own; equal keys are one group.
                let mut stages = vec![
                    doc! { "$group": { "_id": (id), "a": { "$sum": "$k" }, "t": { "$push": "$b" } } },
                    doc! { "$sort": { "_id": 1 } },
                ];
                if self.one_in(2) {
                    let path = *self.of(&["_id", "_id", "_id.x", "_id.y"]);
                    let mut filter = Document::new();
                    let condition = match self.below(4) {
                        0 => Value::Document(doc! { "$exists": (self.one_in(2)) }),
                        1 => Value::Document(doc! { "$type": "null" }),
                        _ => self.condition(),
                    };
                    filter.push(path, condition);
                    stages.push(doc! { "$match": (filter) });
                }
                stages
            }
            12 => vec![doc! { "$replaceRoot": { "newRoot": (self.root()) } }],
            13 => vec![doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$match": (self.filter(1)) }] } }],
            14 => vec![self.lookup()],
            15 => self.windows(),
            16 => self.ends_of_groups(),
            17 => self.groups_of_elements(),
            18 => self.group_with(&["$sum", "$avg", "$count"]),
            _ => {
                let lookup = self.lookup();
                vec![lookup, doc! { "$unwind": "$j" }, doc! { "$match": { "j.k": (self.condition()) } }]
            }
        }
    }

    /// An expression for the values of an accumulator.
    fn argument(&mut self) -> Value {
        match self.below(8) {
            0 => Value::from("$$ROOT"),
            1 => Value::Document(doc! { "$type": (format!("${}", self.path())) }),
            2 => Value::Int32(1),
            _ => self.expression(),
        }
    }

    /// A group with some of these accumulators, in the order of its keys.
    fn group_with(&mut self, operators: &[&str]) -> Vec<Document> {
        let mut group = Document::new();
        let id = match self.below(4) {
            0 => Value::Null,
            1 => Value::Document(doc! { "x": (self.expression()), "y": (self.expression()) }),
            _ => self.expression(),
        };
        group.push("_id", id);
        for name in ["a", "k", "t"] {
            let mut call = Document::new();
            match *self.of(operators) {
                "$count" => call.push("$count", Document::new()),
                "$top" => {
                    let options = doc! { "sortBy": (self.sort()), "output": (self.argument()) };
                    call.push("$top", options);
                }
                operator => call.push(operator, self.argument()),
            }
            group.push(name, call);
        }
        vec![doc! { "$group": (group) }, doc! { "$sort": { "_id": 1 } }]
    }

    /// The ends of an order by groups.
    fn ends_of_groups(&mut self) -> Vec<Document> {
        let mut stages = vec![doc! { "$sort": (self.sort()) }];
        let operators: &[&str] = if self.one_in(4) {
            &["$first", "$last", "$push"]
        } else {
            &["$first", "$last", "$last", "$count"]
        };
        stages.extend(self.group_with(operators));
        stages
    }

    /// Groups of the elements of an array.
    fn groups_of_elements(&mut self) -> Vec<Document> {
        let field = *self.of(&["t", "a", "k", "t.x"]);
        let mut unwind = doc! { "path": (format!("${field}")) };
        if self.one_in(2) {
            unwind.push("preserveNullAndEmptyArrays", true);
        }
        if self.one_in(6) {
            unwind.push("includeArrayIndex", "n");
        }
        let mut stages = vec![doc! { "$unwind": (unwind) }];
        stages.extend(self.group_with(&["$sum", "$push", "$first", "$last", "$max", "$count", "$top"]));
        stages
    }

    /// A window, and a filter of its partitions, which a stage in front makes no arrays of.
    fn windows(&mut self) -> Vec<Document> {
        let partition = match self.below(3) {
            0 => Value::Document(doc! { "x": "$k", "y": "$p" }),
            _ => Value::from("$p"),
        };
        let is_array =
            doc! { "$in": [{ "$type": (format!("${}", self.of(&["a", "b", "k"]))) }, ["array", "missing"]] };
        let own = doc! { "$cond": [(is_array), "$_id", "$k"] };
        let mut stages = vec![
            doc! { "$addFields": { "p": { "$cond": [{ "$isArray": "$k" }, (own), "$k"] } } },
            doc! { "$setWindowFields": {
                "partitionBy": (partition), "sortBy": { "_id": 1 },
                "output": { "n": { "$sum": 1, "window": { "documents": ["unbounded", "current"] } } }
            } },
        ];
        let mut filter = Document::new();
        filter.push(*self.of(&["p", "k", "p.x", "n"]), self.condition());
        stages.push(doc! { "$match": (filter) });
        stages
    }

    fn root(&mut self) -> Value {
        match self.below(3) {
            0 => Value::from("$b"),
            _ => Value::Document(doc! { "$mergeObjects": [{ "a": "$k" }, "$$ROOT"] }),
        }
    }

    fn pipeline(&mut self) -> Vec<Document> {
        let mut pipeline = Vec::new();
        for _ in 0..=self.below(5) {
            pipeline.extend(self.stages());
        }
        pipeline
    }
}

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
        Ok(ForeignAccess { by: ForeignPath::Scan, documents: Some(self.all.len() as u64) })
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
) -> Result<Vec<String>, String> {
    let stages = array_of(stages);
    let scope = ParseScope::at(0).optimised(optimisation);
    let pipeline =
        Pipeline::parse(RawArray::from_document(&stages), &scope).map_err(|error| error.to_string())?;
    let options = RunOptions::new(memory, 7);
    let mut run = pipeline.start(&options);
    let of = |part: &[Bytes]| Documents { waiting: part.iter().cloned().collect(), all: documents.to_vec() };
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
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        chance.next();
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
        let plain = run(&stages, &documents, Optimisation::Off, unlimited.clone(), Drawing::OneByOne);
        let Ok(plain) = plain else { continue };
        answers += 1;
        rows += plain.len();
        for optimisation in [Optimisation::On, Optimisation::Off] {
            for drawing in [Drawing::OneByOne, Drawing::InARow, Drawing::InParts] {
                let memory = QueryMemory::with_scratch(0, &scratch);
                let none = StageMemory { account: memory.account(), disk_use: DiskUse::Allowed };
                for memory in [unlimited.clone(), none] {
                    let other = run(&stages, &documents, optimisation, memory.clone(), drawing);
                    assert_eq!(
                        other.as_ref(),
                        Ok(&plain),
                        "PANDO_SEED={seed}, {optimisation:?}, {drawing:?}, {memory:?}, {stages:?} over {documents:?}"
                    );
                }
            }
        }
    }
    assert!(begin.is_some() || (answers > 1200 && rows > 2500), "{answers} answers of {rows} documents");
}
