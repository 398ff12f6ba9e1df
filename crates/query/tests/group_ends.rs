//! Groups that need only their ends give the same through every index and through none. Random groups over
//! random documents, in all layouts, and by the choice of the planner.

use std::collections::VecDeque;

use pando_catalog::{Bytes, IndexDescription};
use pando_document::{ArrayWriter, Document, RawArray, RawDocument, RawDocumentBuf, Value, doc};
use pando_environment::SeededRandom;
use pando_query::QueryError;
use pando_query::execute::Counters;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::needs::Needs;
use pando_query::pipeline::{Flow, Pipeline, Pushdown, RunOptions, Source, Take};
use pando_query::plan::{
    Access, AssumedShares, Consumer, Coverage, FindSpecification, Plan, ProjectionNeeds, ScanDirection,
    choose,
};
use pando_query::shell_text::document_text;
use pando_query::sort::Sort;

use crate::store::{Store, index};

/// The documents that a plan has found.
struct Found(VecDeque<RawDocumentBuf>);

impl Source for Found {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.0.pop_front().map(|document| Bytes::from(document.into_vec())))
    }

    fn find_in(&mut self, _: &str, _: &Filter, _: Take<'_>) -> Result<(), QueryError> {
        unreachable!("no stage searches")
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(())
    }
}

/// The plan for the front of a pipeline, as the command `aggregate` makes it, and the stages behind it.
fn planned(stages: &[Document], indexes: &[IndexDescription]) -> (Plan, Pipeline) {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    stages.iter().for_each(|stage| writer.push_document(&stage.to_raw()));
    writer.finish();
    let stages = RawDocumentBuf::from_vec(bytes).unwrap();
    let scope = ParseScope::at(0);
    let pipeline = Pipeline::parse(RawArray::from_document(&stages), &scope).unwrap();
    let Pushdown { filter, sort, skip, limit, rest, rest_unsorted, .. } = pipeline.split_pushdown();
    let filter = Filter::parse(&filter, &scope).unwrap();
    let sort = sort.map_or(Sort::Unordered, |sort| Sort::parse(&sort).unwrap());
    let plan_for = |sort: &Sort, rest: &Pipeline| {
        let paths: Option<Vec<String>> = match rest.needs() {
            Needs::Everything => None,
            Needs::Paths(paths) => Some(paths.into_iter().collect()),
        };
        let ends = rest.group_ends(sort.pattern()).filter(|_| skip == 0 && limit.is_none());
        let find = FindSpecification {
            sort,
            skip,
            limit,
            needs: paths.as_deref().map_or(ProjectionNeeds::Everything, |paths| match paths {
                [] => ProjectionNeeds::Nothing,
                paths => ProjectionNeeds::Paths(paths),
            }),
            consumer: match &ends {
                Some(ends) => Consumer::Ends(ends),
                None if rest.sees_values_only() => Consumer::Groups,
                None => Consumer::Documents,
            },
            ..FindSpecification::matching(&filter)
        };
        choose(&find, indexes, &AssumedShares).unwrap().plan
    };
    let plan = plan_for(&sort, &rest);
    match rest_unsorted.filter(|_| plan.sort.is_some()) {
        Some(unsorted) => (plan_for(&Sort::Unordered, &unsorted), unsorted),
        None => (plan, rest),
    }
}

/// The groups as texts, in one order, with the plan and what it has examined.
fn groups(store: &Store, stages: &[Document], indexes: &[IndexDescription]) -> (Vec<String>, Plan, Counters) {
    let (plan, rest) = planned(stages, indexes);
    let (documents, counters) = store.documents(plan.clone());
    let mut run = rest.start(&RunOptions::new(StageMemory::unlimited(DiskUse::Forbidden), 7));
    let mut given = Vec::new();
    run.for_each(&mut Found(documents.into()), &mut |document: &RawDocument, _| {
        given.push(document_text(document));
        Ok(Flow::More)
    })
    .unwrap();
    given.sort_unstable();
    (given, plan, counters)
}

fn value(chance: &SeededRandom) -> Value {
    match chance.below(16) {
        0 => Value::Null,
        1 => Value::Undefined,
        2 => Value::MinKey,
        3 => Value::MaxKey,
        4 => Value::Double(2.5),
        5 => Value::from(["", "x", "y"][chance.below(3) as usize]),
        6 => Value::Document(doc! { "x": (Value::Int32(chance.below(2) as i32)) }),
        7 => Value::Boolean(true),
        _ => Value::Int32(chance.below(4) as i32),
    }
}

/// `u` is unique, so that a sort that ends with it has one right order.
fn random_document(chance: &SeededRandom, id: i32, arrays: Option<&str>) -> RawDocumentBuf {
    let mut document = doc! { "_id": id, "u": ((id * 7) % 101) };
    for name in ["a", "b", "c"] {
        if arrays == Some(name) && chance.below(6) == 0 {
            document.push(name, Value::Array((0..chance.below(3)).map(|_| value(chance)).collect()));
        } else if chance.below(7) != 0 {
            document
                .push(name, if name == "c" { Value::Int32(chance.below(3) as i32) } else { value(chance) });
        }
    }
    document.to_raw()
}

fn way(chance: &SeededRandom) -> i32 {
    if chance.below(2) == 0 { 1 } else { -1 }
}

fn order(chance: &SeededRandom) -> Document {
    let mut order = Document::new();
    if chance.below(2) == 0 {
        order.push(["a", "c"][chance.below(2) as usize], way(chance));
    }
    let way = way(chance);
    if chance.below(4) != 0 {
        order.push("b", way);
    }
    order.push("u", if chance.below(4) == 0 { -way } else { way });
    order
}

/// A value that a filter may compare with.
fn operand(chance: &SeededRandom) -> Value {
    loop {
        let value = value(chance);
        if !matches!(value, Value::Undefined) {
            return value;
        }
    }
}

fn random_filter(chance: &SeededRandom) -> Document {
    let mut filter = Document::new();
    let tested = if chance.below(2) == 0 { ["a", "b", "c"].as_slice() } else { &[] };
    for &name in tested {
        match chance.below(9) {
            0 => filter.push(name, operand(chance)),
            1 => filter.push(name, doc! { "$gte": (operand(chance)) }),
            2 => filter.push(name, doc! { "$in": [1, 2, 3] }),
            3 if name == "c" => filter.push(name, 1),
            4 if name == "b" => filter.push(name, doc! { "$exists": true }),
            _ => {}
        }
    }
    filter
}

fn random_group(chance: &SeededRandom) -> Document {
    let mut group = Document::new();
    match chance.below(6) {
        0 | 1 => group.push("_id", Value::Null),
        2 => group.push("_id", doc! { "x": "$a" }),
        3 => group.push("_id", "$a.x"),
        _ => group.push("_id", "$a"),
    }
    let output = |chance: &SeededRandom| ["$u", "$b", "$$ROOT", "$c"][chance.below(4) as usize];
    let kind = chance.below(4);
    for name in ["x", "y", "z"].iter().take(chance.below(4) as usize) {
        let one = chance.below(2) == 0;
        let call = match if chance.below(8) == 0 { chance.below(3) } else { kind } {
            0 => doc! { (if one { "$first" } else { "$last" }): (output(chance)) },
            1 => {
                let top = doc! { "sortBy": (order(chance)), "output": (output(chance)) };
                doc! { (if one { "$top" } else { "$bottom" }): top }
            }
            _ => {
                let path = ["$b", "$u", "$a", "$a.x"][chance.below(4) as usize];
                doc! { (if one { "$min" } else { "$max" }): path }
            }
        };
        group.push(*name, call);
    }
    group
}

fn indexes() -> Vec<Document> {
    vec![
        index(doc! { "a": 1, "b": 1, "u": 1 }, &[]),
        index(doc! { "a": -1, "b": -1, "u": 1 }, &[]),
        index(doc! { "a": 1, "b": -1, "u": -1 }, &[]),
        index(doc! { "b": 1, "u": 1 }, &[]),
        index(doc! { "b": -1 }, &["sparse"]),
        index(doc! { "c": 1, "a": 1, "b": 1, "u": 1 }, &[]),
        index(doc! { "c": -1, "b": 1, "u": 1 }, &[]),
        index(doc! { "a": 1, "c": 1, "b": -1, "u": -1 }, &[]),
        index(doc! { "a.x": 1, "b": 1, "u": 1 }, &[]),
        index(doc! { "a.x": 1 }, &["sparse"]),
        index(doc! { "u": 1 }, &[]),
    ]
}

/// The plans that have been taken, so that the test is about them.
#[derive(Debug, Default)]
struct Taken {
    all: u32,
    covered: u32,
    fetched: u32,
    backward: u32,
    both_ends: u32,
}

impl Taken {
    fn note(&mut self, plan: &Plan) {
        self.all += 1;
        if !plan.is_distinct() {
            return;
        }
        match plan.coverage {
            Coverage::Document => self.fetched += 1,
            _ => self.covered += 1,
        }
        match &plan.access {
            Access::Index(scan) if scan.direction == ScanDirection::Backward => self.backward += 1,
            Access::Union(_) => self.both_ends += 1,
            _ => {}
        }
    }
}

#[test]
fn random_groups_over_random_documents_give_the_same_through_every_index() {
    let mut taken = Taken::default();
    for seed in 1..=40 {
        let chance = SeededRandom::new(seed);
        let arrays = [None, None, None, Some("a"), Some("b")][chance.below(5) as usize];
        let documents: Vec<RawDocumentBuf> =
            (0..chance.below(90) as i32).map(|id| random_document(&chance, id, arrays)).collect();
        let stores = Store::of_all_layouts(&doc! { "none": 1, "_id": 1 }, &documents, &indexes());
        for _ in 0..40 {
            let mut stages = vec![doc! { "$match": (random_filter(&chance)) }];
            let group = random_group(&chance);
            // Without a sort the first document is that of the plan.
            let needs_sort = ["$first", "$last"].iter().any(|name| format!("{group:?}").contains(name));
            if needs_sort || chance.below(3) != 0 {
                stages.push(doc! { "$sort": (order(&chance)) });
            }
            stages.push(doc! { "$group": group });
            let store = &stores[chance.below(stores.len() as u64) as usize];
            let described = store.indexes();
            let (primary, others): (Vec<_>, Vec<_>) =
                described.iter().cloned().partition(|index| index.is_primary());
            let (wanted, ..) = groups(store, &stages, &primary);
            let mut choices: Vec<Vec<IndexDescription>> = vec![described.clone()];
            choices.extend(others.iter().map(|index| [primary.clone(), vec![index.clone()]].concat()));
            for choice in &choices {
                let (given, plan, _) = groups(store, &stages, choice);
                taken.note(&plan);
                assert_eq!(given, wanted, "seed {seed}: {stages:?} by {:?}", plan.access);
            }
        }
    }
    let Taken { all, covered, fetched, backward, both_ends } = taken;
    // Most groups need more than their ends, and most indexes have others.
    let are_many = [covered, fetched, backward, both_ends].iter().all(|taken| *taken > 80);
    assert!(
        all > 10_000 && are_many,
        "{covered} covered, {fetched} fetched, {backward} backward, {both_ends} of both ends"
    );
}

#[test]
fn the_ends_of_groups_cost_a_few_entries_each() {
    let documents: Vec<RawDocumentBuf> = (0..10_000)
        .map(|id: i32| doc! { "_id": id, "a": (id % 10), "b": ((id * 7_919) % 10_007), "c": 1 }.to_raw())
        .collect();
    let of_a = index(doc! { "a": 1, "b": 1 }, &[]);
    let store = Store::new(&documents, &[of_a, index(doc! { "b": 1 }, &[])]);
    let by_b = doc! { "$sort": { "b": 1 } };
    let by_a_and_b = doc! { "$sort": { "a": 1, "b": 1 } };
    for (stages, keys, fetched) in [
        (vec![doc! { "$group": { "_id": (Value::Null), "x": { "$min": "$b" } } }], 1, 0),
        (vec![doc! { "$group": { "_id": (Value::Null), "x": { "$max": "$b" } } }], 1, 0),
        (
            vec![doc! { "$group": { "_id": (Value::Null), "x": { "$min": "$b" }, "y": { "$max": "$b" } } }],
            2,
            0,
        ),
        (vec![by_b.clone(), doc! { "$group": { "_id": (Value::Null), "x": { "$last": "$c" } } }], 1, 1),
        (vec![doc! { "$match": { "a": 3 } }, doc! { "$group": { "_id": 1, "x": { "$max": "$b" } } }], 1, 0),
        (vec![doc! { "$group": { "_id": "$a" } }], 10, 0),
        (vec![doc! { "$group": { "_id": "$a", "x": { "$max": "$b" } } }], 10, 0),
        (vec![by_b, doc! { "$group": { "_id": "$a", "x": { "$first": "$c" } } }], 10, 10),
        (
            vec![
                by_a_and_b,
                doc! { "$group": { "_id": "$a", "x": { "$first": "$b" }, "y": { "$last": "$c" } } },
            ],
            20,
            20,
        ),
        (
            vec![
                doc! { "$group": { "_id": "$a", "x": { "$top": { "sortBy": { "b": -1 }, "output": "$c" } } } },
            ],
            10,
            10,
        ),
    ] {
        let (given, plan, counters) = groups(&store, &stages, &store.indexes());
        assert!(!given.is_empty() && plan.is_distinct(), "{stages:?}: {:?}", plan.access);
        assert_eq!((counters.keys_examined, counters.documents_examined), (keys, fetched), "{stages:?}");
    }
}

#[test]
fn a_minimum_passes_over_nulls_without_reading_each() {
    let documents: Vec<RawDocumentBuf> = (0..3_000)
        .map(|id: i32| match id % 3 {
            0 => doc! { "_id": id }.to_raw(),
            1 => doc! { "_id": id, "b": (Value::Null) }.to_raw(),
            _ => doc! { "_id": id, "b": id }.to_raw(),
        })
        .collect();
    let store = Store::new(&documents, &[index(doc! { "b": 1 }, &[])]);
    let minimum = [doc! { "$group": { "_id": (Value::Null), "x": { "$min": "$b" } } }];
    let (given, plan, counters) = groups(&store, &minimum, &store.indexes());
    assert!(plan.is_distinct());
    assert_eq!(given, ["{ _id: null, x: 2 }"]);
    assert_eq!(counters.keys_examined, 2, "one null, and the least value");
    let none = Store::new(&documents[..2], &[index(doc! { "b": 1 }, &[])]);
    let (given, ..) = groups(&none, &minimum, &none.indexes());
    assert_eq!(given, ["{ _id: null, x: null }"], "a group without a value is still a group");
    let (given, ..) = groups(&Store::new(&[], &[index(doc! { "b": 1 }, &[])]), &minimum, &store.indexes());
    assert!(given.is_empty());
}
