//! Every plan of a filter finds the same documents. Filters run as a collection scan, through each index in
//! turn, and by the planner's choice, with and without a sort. They are those of the corpus, and random ones
//! over random documents.

use std::path::PathBuf;
use std::sync::Arc;

use pando_catalog::{Begin, Caller, Operation};
use pando_collation::TextOrder;
use pando_document::{Document, RawDocumentBuf, Value, doc};
use pando_environment::SeededRandom;
use pando_keyorder::Direction;
use pando_query::execute::Executor;
use pando_query::explain::{ExplainedProjection, winning_plan};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{FindSpecification, Hint, Plan, ProjectionNeeds, plan};
use pando_query::shell_text::document_text;
use pando_query::sort::Sort;

use crate::extended_json;
use crate::random_filters::{
    collated, folded, merging_filter, random_document, random_filter, random_sort, text_order,
};
use crate::store::{Store, id_of, index, numbered};

fn explained(plan: &Plan) -> String {
    document_text(&winning_plan(plan, ExplainedProjection::Whole).to_raw())
}

/// Carries a filter out in every way, and compares with the answer.
fn check(store: &Store, filter: &Filter, sort: &Sort, wanted: &[i64], context: &str) {
    let find = FindSpecification { sort, ..FindSpecification::matching(filter) };
    let indexes = store.indexes();
    let mut hints = vec![None, Some(Hint::Natural(Direction::Descending))];
    hints.extend(
        indexes
            .iter()
            // A hint on a sparse index leaves documents out, in MongoDB as here.
            .filter(|index| index.sparse == pando_catalog::Sparseness::Dense)
            .map(|index| Some(Hint::Name(index.name.clone()))),
    );
    for hint in &hints {
        let made = match plan(&FindSpecification { hint: hint.as_ref(), ..find }, &indexes) {
            Ok(made) => made,
            // An index of the fields that documents happen to have serves only some filters.
            Err(error) if error.to_string().contains("wildcard") => continue,
            Err(error) if error.to_string().contains("No query solutions") => continue,
            Err(error) => panic!("{context} by {hint:?}: {error}"),
        };
        let shown = explained(&made);
        let ids = store.run(made);
        match sort {
            Sort::By(_) => assert_eq!(ids, wanted, "{context} by {hint:?}: {shown}"),
            Sort::Unordered | Sort::Natural(_) => {
                let mut sorted = ids.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, wanted, "{context} by {hint:?}: {shown}");
            }
        }
    }
}

/// The documents and the answered filters of one corpus file.
fn corpus(name: &str) -> (Vec<RawDocumentBuf>, Vec<(String, Vec<i64>)>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/filters").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut documents = Vec::new();
    let mut filters = Vec::new();
    let mut filter = "";
    for line in text.lines() {
        if let Some(document) = line.strip_prefix("doc ") {
            documents.push(extended_json::document(document));
        } else if let Some(next) = line.strip_prefix("find ") {
            filter = next;
        } else if let Some(ids) = line.strip_prefix("ids") {
            let ids = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
            filters.push((filter.to_owned(), ids));
        }
    }
    (documents, filters)
}

fn check_corpus(name: &str, indexes: &[Document]) {
    check_corpus_without(&[], name, indexes);
}

/// Leaves out the documents that an index refuses.
fn check_corpus_without(refused: &[i64], name: &str, indexes: &[Document]) {
    let (mut documents, filters) = corpus(name);
    documents.retain(|document| !refused.contains(&id_of(document)));
    let stores = Store::of_all_layouts(&doc! { "none": 1, "_id": 1 }, &documents, indexes);
    for (text, mut wanted) in filters {
        wanted.retain(|id| !refused.contains(id));
        let filter = Filter::parse(&extended_json::document(&text), &ParseScope::default()).unwrap();
        for store in &stores {
            check(store, &filter, &Sort::Unordered, &wanted, &text);
        }
    }
}

#[test]
fn filters_of_single_fields_find_the_same_through_every_index() {
    for name in ["null_and_missing.txt", "brackets.txt", "numbers.txt", "operators.txt"] {
        check_corpus(name, &[index(doc! { "x": 1 }, &[])]);
        check_corpus(
            name,
            &[
                index(doc! { "x": -1 }, &[]),
                index(doc! { "x": 1 }, &["sparse"]),
                index(doc! { "x.y": 1 }, &[]),
                index(doc! { "x.y": -1, "_id": 1 }, &[]),
                index(doc! { "x": 1, "_id": -1 }, &[]),
                index(doc! { "_id": 1, "x": 1 }, &[]),
                index(doc! { "x.0": 1 }, &[]),
            ],
        );
        check_corpus(
            name,
            &[
                index(doc! { "$**": 1 }, &[]),
                index(doc! { "x.$**": 1 }, &[]),
                index(doc! { "q": 1, "x.$**": -1 }, &[]),
            ],
        );
    }
}

#[test]
fn patterns_find_the_same_through_every_index() {
    check_corpus("regex.txt", &[index(doc! { "s": 1 }, &[]), index(doc! { "s": -1 }, &["sparse"])]);
}

/// The keys of one document pair each `b` with the `c` beside it, and not with others.
#[test]
fn two_fields_behind_an_inner_array_are_not_bounded_by_an_element_of_the_outer_one() {
    let pair = |b: i32, c: i32| Value::Document(doc! { "b": b, "c": c });
    let element = |list: Vec<Value>| Value::Document(doc! { "x": (Value::Array(list)) });
    let documents = [
        doc! { "_id": 1, "a": (Value::Array(vec![element(vec![pair(1, 9), pair(9, 2)])])) }.to_raw(),
        doc! { "_id": 2, "a": (Value::Array(vec![element(vec![pair(1, 2)])])) }.to_raw(),
        doc! { "_id": 3, "a": (Value::Array(vec![element(vec![pair(1, 9)]), element(vec![pair(9, 2)])])) }
            .to_raw(),
        doc! { "_id": 4, "a": { "x": { "b": 1, "c": 2 } } }.to_raw(),
    ];
    let store = Store::new(&documents, &[index(doc! { "a.x.b": 1, "a.x.c": 1 }, &[])]);
    for (filter, wanted) in [
        (doc! { "a": { "$elemMatch": { "x.b": 1, "x.c": 2 } } }, vec![1, 2]),
        (doc! { "a.x": { "$elemMatch": { "b": 1, "c": 2 } } }, vec![2]),
        (
            doc! { "a": { "$elemMatch": { "x.b": { "$gt": 0, "$lt": 2 }, "x.c": { "$gt": 1, "$lt": 3 } } } },
            vec![1, 2],
        ),
        (doc! { "a.x.b": 1, "a.x.c": 2 }, vec![1, 2, 3, 4]),
    ] {
        let text = document_text(&filter.to_raw());
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        check(&store, &filter, &Sort::Unordered, &wanted, &text);
    }
}

/// The indexes meet no array, so that their bounds settle the filter alone.
#[test]
fn bounds_that_leave_out_the_least_or_the_greatest_key_find_the_same() {
    let values = [Value::MinKey, Value::Null, Value::Int32(5), Value::from("x"), Value::MaxKey];
    let mut documents: Vec<Document> = (1..)
        .zip(values.iter().flat_map(|a| values.iter().map(move |b| [a, b])))
        .map(|(id, [a, b])| doc! { "_id": (Value::Int32(id)), "a": (a.clone()), "b": (b.clone()) })
        .collect();
    documents.push(doc! { "_id": 100, "b": 5 });
    documents.push(doc! { "_id": 101, "a": 5 });
    let documents: Vec<RawDocumentBuf> = documents.iter().map(Document::to_raw).collect();
    let indexes = [
        index(doc! { "b": 1, "a": 1 }, &[]),
        index(doc! { "b": -1, "a": -1 }, &[]),
        index(doc! { "a": 1 }, &[]),
        index(doc! { "a": -1, "b": 1 }, &[]),
    ];
    let stores = Store::of_all_layouts(&doc! { "b": 1, "a": -1, "_id": 1 }, &documents, &indexes);
    let mut tests = Vec::new();
    for key in [Value::MinKey, Value::MaxKey] {
        for operator in ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"] {
            tests.push(doc! { operator: (key.clone()) });
        }
        tests.push(doc! { "$nin": (Value::Array(vec![key])) });
    }
    tests.push(doc! { "$nin": (Value::Array(vec![Value::MinKey, Value::MaxKey])) });
    tests.push(doc! { "$gt": (Value::MinKey), "$lt": (Value::MaxKey) });
    let filters = tests.iter().flat_map(|test| {
        let of = |test: &Document| Value::Document(test.clone());
        [
            doc! { "a": (of(test)) },
            doc! { "b": 5, "a": (of(test)) },
            doc! { "a": (of(test)), "b": (of(test)) },
        ]
    });
    for filter in filters {
        let text = document_text(&filter.to_raw());
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        let matching = documents.iter().filter(|document| filter.matches(document).unwrap());
        let wanted: Vec<i64> = matching.map(|document| id_of(document)).collect();
        for store in &stores {
            check(store, &filter, &Sort::Unordered, &wanted, &text);
        }
    }
}

#[test]
fn arrays_that_two_fields_do_not_share_bound_both() {
    let numbers = |list: &[i32]| Value::Array(list.iter().map(|number| Value::Int32(*number)).collect());
    let documents = [
        doc! { "_id": 1, "m": (numbers(&[1, 5])), "n": 2 }.to_raw(),
        doc! { "_id": 2, "m": 1, "n": (numbers(&[2, 7])) }.to_raw(),
        doc! { "_id": 3, "m": (numbers(&[5, 6])), "n": 2 }.to_raw(),
        doc! { "_id": 4, "m": 1, "n": (numbers(&[7])) }.to_raw(),
        doc! { "_id": 5, "o": [{ "b": 1 }, { "b": 9 }], "m": 3 }.to_raw(),
        doc! { "_id": 6, "o": [{ "b": 4 }], "m": 3 }.to_raw(),
    ];
    let indexes = [index(doc! { "m": 1, "n": 1 }, &[]), index(doc! { "o.b": 1, "m": 1 }, &[])];
    let store = Store::new(&documents, &indexes);
    for (filter, wanted) in [
        (doc! { "m": 1, "n": 2 }, vec![1, 2]),
        (doc! { "m": { "$gte": 5 }, "n": 2 }, vec![1, 3]),
        (doc! { "o": { "$elemMatch": { "b": { "$gt": 2, "$lt": 8 } } } }, vec![6]),
        (doc! { "o.b": { "$gt": 2, "$lt": 8 } }, vec![5, 6]),
    ] {
        let text = document_text(&filter.to_raw());
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        check(&store, &filter, &Sort::Unordered, &wanted, &text);
    }
}

#[test]
fn filters_of_arrays_find_the_same_through_every_index() {
    check_corpus(
        "arrays.txt",
        &[
            index(doc! { "a": 1 }, &[]),
            index(doc! { "a": -1 }, &["sparse"]),
            index(doc! { "a.b": 1 }, &[]),
            index(doc! { "a.b": 1, "a.c": 1 }, &[]),
            index(doc! { "a.c": -1, "a.b": 1 }, &[]),
            index(doc! { "a.b.c": 1 }, &[]),
            index(doc! { "_id": 1, "a.b": 1, "a.c": -1 }, &[]),
        ],
    );
    check_corpus("arrays.txt", &[index(doc! { "$**": 1 }, &[]), index(doc! { "a.b.$**": 1, "q": 1 }, &[])]);
}

#[test]
fn filters_of_arrays_find_the_same_through_indexes_of_elements() {
    // In these two 0 is an index and a name.
    check_corpus_without(
        &[21, 22],
        "arrays.txt",
        &[
            index(doc! { "a.0": 1 }, &[]),
            index(doc! { "a.0": 1, "a.b": -1 }, &[]),
            index(doc! { "a.0.b": 1 }, &[]),
            index(doc! { "a.1": -1, "_id": 1 }, &[]),
        ],
    );
}

#[test]
fn filters_of_several_fields_find_the_same_through_every_index() {
    check_corpus(
        "logical.txt",
        &[
            index(doc! { "a": 1 }, &[]),
            index(doc! { "b": 1 }, &[]),
            index(doc! { "a": 1, "b": -1 }, &[]),
            index(doc! { "b": -1, "a": 1 }, &[]),
            index(doc! { "b": 1, "a": 1 }, &["sparse"]),
            index(doc! { "c.d": 1 }, &[]),
        ],
    );
}

#[test]
fn random_filters_and_sorts_over_random_documents_give_the_same_by_every_plan() {
    check_random(
        1..=40,
        &[
            index(doc! { "a": 1 }, &[]),
            index(doc! { "a": -1, "b": 1 }, &[]),
            index(doc! { "b": 1, "c": -1, "_id": 1 }, &[]),
            index(doc! { "c": 1, "_id": 1 }, &[]),
            index(doc! { "c": 1, "b": 1, "_id": 1 }, &[]),
            index(doc! { "a": 1, "b": 1, "_id": 1 }, &[]),
            index(doc! { "c": -1, "a": 1 }, &[]),
            index(doc! { "b": 1 }, &["sparse"]),
            index(doc! { "t.u": 1, "t.v": -1 }, &[]),
            index(doc! { "t.v": 1 }, &["sparse"]),
            index(doc! { "b": 1, "t.u": 1 }, &[]),
            collated(index(doc! { "b": -1, "a": 1 }, &[]), &folded()),
            collated(index(doc! { "a": 1, "c": -1 }, &[]), &folded()),
            collated(index(doc! { "t.v": 1, "t.u": 1 }, &["sparse"]), &folded()),
            collated(index(doc! { "c": 1, "b": 1 }, &[]), &text_order(doc! { "locale": "sv" })),
        ],
    );
}

#[test]
fn random_filters_give_the_same_by_wildcard_indexes() {
    let excluding =
        doc! { "v": 2, "key": { "$**": 1 }, "name": "e", "wildcardProjection": { "t.v": 0, "b": 0 } };
    let all = index(doc! { "$**": 1 }, &[]);
    let compound = index(doc! { "c": 1, "t.$**": -1, "b": 1 }, &[]);
    check_random(41..=60, &[all]);
    check_random(61..=80, &[excluding, compound]);
}

fn check_random(seeds: std::ops::RangeInclusive<u64>, indexes: &[Document]) {
    for seed in seeds {
        let chance = SeededRandom::new(seed);
        // Two thirds of the seeds ask without a collation.
        let order = match chance.below(6) {
            0 => folded(),
            1 => text_order(doc! { "locale": "fr_CA", "numericOrdering": true }),
            _ => TextOrder::SIMPLE,
        };
        let documents: Vec<_> = (0..60).map(|id| random_document(&chance, id)).collect();
        let stores = Store::of_all_layouts(&doc! { "c": 1, "b": -1, "_id": 1 }, &documents, indexes);
        for _ in 0..40 {
            let text = match chance.below(4) {
                0 => merging_filter(&chance),
                _ => random_filter(&chance, 0),
            };
            let scope = ParseScope::default().collated_by(&order);
            let filter = Filter::parse(&text.to_raw(), &scope).unwrap();
            let matching: Vec<&RawDocumentBuf> =
                documents.iter().filter(|document| filter.matches(document).unwrap()).collect();
            let ids: Vec<i64> = matching.iter().map(|document| id_of(document)).collect();
            let context = format!("seed {seed}, {order:?}: {text:?}");
            stores.iter().for_each(|store| check(store, &filter, &Sort::Unordered, &ids, &context));
            let pattern = random_sort(&chance);
            let sort = Sort::parse(&pattern.to_raw()).unwrap().collated_by(&order);
            let mut keyed: Vec<(Vec<u8>, i64)> = matching
                .iter()
                .map(|document| {
                    let mut key = Vec::new();
                    sort.pattern().unwrap().append_key(document, &mut key).unwrap();
                    (key, id_of(document))
                })
                .collect();
            keyed.sort();
            let ids: Vec<i64> = keyed.into_iter().map(|(_, id)| id).collect();
            for store in &stores {
                check(store, &filter, &sort, &ids, &format!("{context} sorted by {pattern:?}"));
                check_page(store, &filter, &sort, &ids, &chance);
            }
        }
    }
}

/// Skip and limit cut a page out of the answer, sorted or not.
fn check_page(store: &Store, filter: &Filter, sort: &Sort, ids: &[i64], chance: &SeededRandom) {
    let (skip, limit) = (chance.below(5), 1 + chance.below(5));
    let find = FindSpecification { sort, skip, limit: Some(limit), ..FindSpecification::matching(filter) };
    let page = store.run(plan(&find, &store.indexes()).unwrap());
    let wanted: Vec<i64> = ids.iter().copied().skip(skip as usize).take(limit as usize).collect();
    assert_eq!(page, wanted);
}

#[test]
fn covered_plans_give_the_indexed_fields_with_their_exact_types() {
    let operation = Operation::default();
    let documents: Vec<RawDocumentBuf> = [
        doc! { "_id": 1, "a": 1, "n": { "m": "x" }, "z": 1 },
        doc! { "_id": 2, "a": (1.0), "n": { "m": "y" } },
        doc! { "_id": 3, "a": (Value::Int64(1)), "n": { "m": "z", "k": 5 } },
        doc! { "_id": 4, "a": 1 },
        doc! { "_id": 5, "a": (Value::Null), "n": { "m": "x" } },
    ]
    .iter()
    .map(Document::to_raw)
    .collect();
    let store = Store::new(&documents, &[index(doc! { "a": 1, "n.m": 1 }, &[])]);
    let filter = Filter::parse(&doc! { "a": 1 }.to_raw(), &ParseScope::default()).unwrap();
    let paths = ["a".to_owned(), "n.m".to_owned()];
    let find =
        FindSpecification { needs: ProjectionNeeds::Paths(&paths), ..FindSpecification::matching(&filter) };
    let made = plan(&find, &store.indexes()).unwrap();
    let transaction = store.catalog.begin(Begin::READ).unwrap();
    let collection = Arc::clone(&store.collection);
    let mut executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
    let mut seen = Vec::new();
    while let Some(row) = executor.next(&*transaction, Caller::may_block(&operation)).unwrap() {
        seen.push(Document::from_raw(row.document).unwrap());
    }
    let expected = [
        // `n.m` is missing, which no entry tells from null: the document itself is given.
        doc! { "_id": 4, "a": 1 },
        doc! { "a": 1, "n": { "m": "x" } },
        doc! { "a": (1.0), "n": { "m": "y" } },
        doc! { "a": (Value::Int64(1)), "n": { "m": "z" } },
    ];
    let bytes =
        |documents: &[Document]| documents.iter().map(|document| document.to_raw()).collect::<Vec<_>>();
    assert_eq!(bytes(&seen), bytes(&expected));
    assert_eq!(executor.counters().documents_examined, 1);
    assert_eq!(executor.counters().keys_examined, 4);
}

#[test]
fn a_long_scan_that_must_not_block_gives_its_thread_back_and_loses_nothing() {
    let operation = Operation::default();
    let store = Store::new(&numbered(1_000), &[]);
    let filter = Filter::parse(&doc! { "n": 7 }.to_raw(), &ParseScope::default()).unwrap();
    let made = plan(&FindSpecification::matching(&filter), &store.indexes()).unwrap();
    let collection = Arc::clone(&store.collection);
    let mut executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
    let transaction = store.catalog.begin(Begin::READ).unwrap();
    let (mut rows, mut given_back) = (0, 0);
    loop {
        match executor.next(&*transaction, Caller::cached_only(&operation)) {
            Ok(Some(_)) => rows += 1,
            Ok(None) => break,
            Err(error) => {
                assert!(error.is_would_block());
                given_back += 1;
            }
        }
    }
    assert_eq!(rows, 100);
    assert!((3..=4).contains(&given_back), "1,000 documents are about four budgets, not {given_back}");
}

#[test]
fn a_count_over_an_index_fetches_no_document() {
    let operation = Operation::default();
    let store = Store::new(&numbered(100), &[index(doc! { "n": 1 }, &[])]);
    let filter = Filter::parse(&doc! { "n": { "$lt": 3 } }.to_raw(), &ParseScope::default()).unwrap();
    let find = FindSpecification { needs: ProjectionNeeds::Nothing, ..FindSpecification::matching(&filter) };
    let made = plan(&find, &store.indexes()).unwrap();
    let collection = Arc::clone(&store.collection);
    let mut executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
    let transaction = store.catalog.begin(Begin::READ).unwrap();
    assert_eq!(executor.count(&*transaction, Caller::may_block(&operation)).unwrap(), 30);
    assert_eq!((executor.counters().keys_examined, executor.counters().documents_examined), (31, 0));
}

#[test]
fn keys_between_min_and_max_are_found_in_the_order_of_the_index() {
    let store = Store::new(&numbered(30), &[index(doc! { "n": -1, "_id": 1 }, &[])]);
    let filter = Filter::everything();
    let hint = Hint::Pattern(doc! { "n": -1, "_id": 1 }.to_raw());
    let (min, max) = (doc! { "n": 7, "_id": 17 }.to_raw(), doc! { "n": 5, "_id": 15 }.to_raw());
    let find = FindSpecification {
        hint: Some(&hint),
        min: Some(&min),
        max: Some(&max),
        ..FindSpecification::matching(&filter)
    };
    assert_eq!(store.run(plan(&find, &store.indexes()).unwrap()), [17, 27, 6, 16, 26, 5]);
}

/// Most combinations of the lists have no entry, so that scans pass over them in both directions.
#[test]
fn products_of_long_lists_find_the_same_through_every_index() {
    let chance = SeededRandom::new(18);
    let mut triples: Vec<[i32; 3]> = (0..400).map(|_| [0; 3].map(|_: i32| chance.below(40) as i32)).collect();
    triples.sort_unstable();
    triples.dedup();
    let document = |(id, [a, b, c]): (usize, &[i32; 3])| {
        doc! { "_id": (Value::Int32(id as i32)), "a": (*a), "b": (*b), "c": (*c) }.to_raw()
    };
    let documents: Vec<RawDocumentBuf> = triples.iter().enumerate().map(document).collect();
    let indexes = [
        index(doc! { "a": 1, "b": 1, "c": 1 }, &[]),
        index(doc! { "a": -1, "b": 1, "c": -1 }, &[]),
        index(doc! { "c": 1, "a": -1 }, &[]),
    ];
    let fields = doc! { "a": 1, "b": -1, "c": 1, "_id": 1 };
    let stores = Store::of_all_layouts(&fields, &documents, &indexes);
    for round in 0..30 {
        let lists: Vec<Vec<i32>> =
            (0..3).map(|_| (0..5 + chance.below(40)).map(|_| chance.below(60) as i32).collect()).collect();
        let list = |at: usize| lists[at].iter().copied().map(Value::Int32).collect::<Value>();
        // The last field has a list, all but a list, or a range.
        let last = match round % 3 {
            0 => doc! { "$in": (list(2)) },
            1 => doc! { "$nin": (list(2)) },
            _ => doc! { "$gte": (lists[2][0]) },
        };
        let filter = doc! { "a": { "$in": (list(0)) }, "b": { "$in": (list(1)) }, "c": last };
        let context = format!("{filter:?}");
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        let matching = |id: &usize| filter.matches(&documents[*id]).unwrap();
        let wanted: Vec<i64> = (0..documents.len()).filter(matching).map(|id| id as i64).collect();
        stores.iter().for_each(|store| check(store, &filter, &Sort::Unordered, &wanted, &context));
        let sort = |direction: i32| {
            let sort = doc! { "a": direction, "b": direction, "c": direction };
            Sort::parse(&sort.to_raw()).unwrap()
        };
        stores.iter().for_each(|store| check(store, &filter, &sort(1), &wanted, &context));
        let backwards: Vec<i64> = wanted.iter().rev().copied().collect();
        stores.iter().for_each(|store| check(store, &filter, &sort(-1), &backwards, &context));
    }
}

#[test]
fn a_sort_in_memory_gives_its_own_order_and_not_the_document_where_the_scan_stands() {
    let store = Store::new(&numbered(20), &[]);
    let filter = Filter::parse(&doc! {}.to_raw(), &ParseScope::default()).unwrap();
    let sort = Sort::parse(&doc! { "n": -1 }.to_raw()).unwrap();
    for limit in [None, Some(4)] {
        let find = FindSpecification { sort: &sort, limit, ..FindSpecification::matching(&filter) };
        let ids = store.run(plan(&find, &store.indexes()).unwrap());
        let wanted: Vec<i64> =
            (0..10).rev().flat_map(|n| [n, n + 10]).take(limit.unwrap_or(20) as usize).collect();
        assert_eq!(ids, wanted, "limit {limit:?}");
    }
}
