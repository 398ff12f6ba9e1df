//! Rows that stand for several, distinct values, and rows in any order.

use std::sync::Arc;

use pando_catalog::{Begin, BlockingMode, Caller, Interruption, Operation};
use pando_document::{RawDocumentBuf, Value, doc};
use pando_keyorder::Direction;
use pando_query::execute::{Counters, Executor};
use pando_query::explain::{PlanSummary, Purpose};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{Consumer, FindSpecification, Hint, ProjectionNeeds, plan};
use pando_query::shell_text::document_text;
use pando_query::sort::Sort;

use crate::reluctant;
use crate::store::{Store, id_of, index, numbered};

/// Runs of a plan: their documents as text, and how many documents each stands for, equal ones together.
fn runs_of(store: &Store, find: &FindSpecification<'_>) -> (Vec<(String, u64)>, Counters) {
    let operation = Operation::default();
    let made = plan(find, &store.indexes()).unwrap();
    let collection = Arc::clone(&store.collection);
    let mut executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
    let transaction = store.catalog.begin(Begin::READ).unwrap();
    let mut runs: Vec<(String, u64)> = Vec::new();
    while let Some(run) = executor.next_run(&*transaction, Caller::may_block(&operation)).unwrap() {
        let shown = document_text(run.row.document);
        match runs.last_mut() {
            Some((last, documents)) if *last == shown => *documents += run.documents,
            _ => runs.push((shown, run.documents)),
        }
    }
    (runs, executor.counters())
}

#[test]
fn a_run_stands_for_all_entries_with_its_value_and_only_for_those() {
    let mut documents = numbered(1_000);
    documents.extend([
        doc! { "_id": 1_000, "n": (3.0) }.to_raw(),
        doc! { "_id": 1_001 }.to_raw(),
        doc! { "_id": 1_002, "n": (Value::Null) }.to_raw(),
    ]);
    let store = Store::new(&documents, &[index(doc! { "n": 1 }, &[])]);
    let filter = Filter::everything();
    let paths = ["n".to_owned()];
    let groups = FindSpecification {
        needs: ProjectionNeeds::Paths(&paths),
        consumer: Consumer::Groups,
        ..FindSpecification::matching(&filter)
    };
    let (runs, counters) = runs_of(&store, &groups);
    let expected = |n: i32| (format!("{{ n: {n} }}"), 100);
    assert_eq!(runs[0], ("{ n: null }".to_owned(), 2), "a missing field is null to a group");
    assert_eq!(runs[1..5], [expected(0), expected(1), expected(2), expected(3)]);
    assert_eq!(runs[5], ("{ n: 3.0 }".to_owned(), 1), "a number of another type shows as itself");
    assert_eq!(runs.iter().map(|(_, documents)| documents).sum::<u64>(), 1_003);
    assert_eq!((counters.keys_examined, counters.documents_examined, counters.returned), (1_003, 0, 1_003));

    let counted =
        FindSpecification { needs: ProjectionNeeds::Nothing, ..FindSpecification::matching(&filter) };
    let (runs, counters) = runs_of(&store, &counted);
    assert_eq!(runs.iter().map(|(_, documents)| documents).sum::<u64>(), 1_003);
    assert_eq!((counters.documents_examined, counters.returned), (1_003, 1_003));
}

#[test]
fn the_number_of_all_documents_is_the_counters_and_no_document_is_read() {
    let store = Store::new(&numbered(1_000), &[index(doc! { "n": 1 }, &[])]);
    let (everything, some) = (
        Filter::everything(),
        Filter::parse(&doc! { "n": { "$ne": 3 } }.to_raw(), &ParseScope::default()).unwrap(),
    );
    let number = |filter| FindSpecification {
        needs: ProjectionNeeds::Nothing,
        consumer: Consumer::Groups,
        ..FindSpecification::matching(filter)
    };
    let all = number(&everything);
    for (skip, limit, rows) in [
        (0, None, 1_000),
        (7, None, 993),
        (0, Some(5), 5),
        (997, Some(5), 3),
        (2_000, None, 0),
        (0, Some(0), 0),
    ] {
        let find = FindSpecification { skip, limit, ..all };
        let (runs, counters) = runs_of(&store, &find);
        let expected: Vec<(String, u64)> = (rows > 0).then(|| ("{}".to_owned(), rows)).into_iter().collect();
        assert_eq!(runs, expected, "{skip} skipped, limit {limit:?}");
        assert_eq!((counters.keys_examined, counters.documents_examined, counters.returned), (0, 0, rows));
        let made = plan(&find, &store.indexes()).unwrap();
        assert_eq!(PlanSummary::of(&made, Purpose::Count).text(), Some("RECORD_STORE_FAST_COUNT"));
    }
    // Where each document counts, by a hint, or behind a filter, documents are stepped through.
    let natural = Hint::Natural(Direction::Ascending);
    for (find, examined) in [
        (FindSpecification { consumer: Consumer::Documents, ..all }, 1_000),
        (FindSpecification { hint: Some(&natural), ..all }, 1_000),
        (FindSpecification { hint: Some(&natural), ..number(&some) }, 1_000),
    ] {
        let (runs, counters) = runs_of(&store, &find);
        assert_eq!(runs.iter().map(|(_, documents)| documents).sum::<u64>(), counters.returned);
        assert_eq!(counters.documents_examined, examined);
    }
}

#[test]
fn a_transaction_that_has_written_counts_its_own_documents() {
    let store = Store::new(&numbered(20), &[]);
    let everything = Filter::everything();
    let find = FindSpecification {
        needs: ProjectionNeeds::Nothing,
        consumer: Consumer::Groups,
        ..FindSpecification::matching(&everything)
    };
    let operation = Operation::default();
    let mut transaction = store.catalog.begin_write().unwrap();
    for expected in 20..23 {
        let made = plan(&find, &store.indexes()).unwrap();
        let memory = StageMemory::unlimited(DiskUse::Forbidden);
        let collection = Arc::clone(&store.collection);
        let mut executor = Executor::new(collection, made, &memory).unwrap();
        assert_eq!(executor.count(&*transaction, Caller::may_block(&operation)).unwrap(), expected);
        let document = doc! { "_id": (expected as i32) }.to_raw();
        store.collection.insert(&mut transaction, &document, BlockingMode::MayBlock).unwrap();
    }
}

#[test]
fn distinct_values_jump_over_long_runs_forwards_and_backwards() {
    let store = Store::new(&numbered(5_000), &[index(doc! { "n": 1, "_id": 1 }, &[])]);
    let paths = ["n".to_owned()];
    for (filter, values) in [
        (doc! {}, (0..10).collect::<Vec<i32>>()),
        (doc! { "n": { "$gt": 3, "$lte": 7 } }, (4..=7).collect()),
        (doc! { "n": { "$in": [1, 5, 77] } }, vec![1, 5]),
    ] {
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        for direction in [1, -1] {
            let sort = Sort::parse(&doc! { "n": direction }.to_raw()).unwrap();
            let find = FindSpecification {
                sort: &sort,
                needs: ProjectionNeeds::Paths(&paths),
                consumer: Consumer::Values("n"),
                ..FindSpecification::matching(&filter)
            };
            let (runs, counters) = runs_of(&store, &find);
            let shown: Vec<i32> = runs
                .iter()
                .map(|(text, _)| text.split(&[' ', ','][..]).nth(2).unwrap().parse().unwrap())
                .collect();
            let mut wanted = values.clone();
            if direction < 0 {
                wanted.reverse();
            }
            assert_eq!(shown, wanted);
            assert!(
                counters.keys_examined <= 20,
                "{} keys for {} values",
                counters.keys_examined,
                values.len()
            );
        }
    }
}

#[test]
fn a_count_of_the_first_in_a_sort_in_memory_sorts_the_fields_of_entries() {
    let store = Store::new(&numbered(50), &[index(doc! { "n": 1, "_id": 1 }, &[])]);
    let filter = Filter::parse(&doc! { "n": { "$gte": 0 } }.to_raw(), &ParseScope::default()).unwrap();
    let sort = Sort::parse(&doc! { "_id": -1 }.to_raw()).unwrap();
    let hint = Hint::Pattern(doc! { "n": 1, "_id": 1 }.to_raw());
    let find = FindSpecification {
        sort: &sort,
        limit: Some(1),
        hint: Some(&hint),
        needs: ProjectionNeeds::Nothing,
        ..FindSpecification::matching(&filter)
    };
    let (runs, _) = runs_of(&store, &find);
    assert_eq!(runs, [("{ n: 9, _id: 49 }".to_owned(), 1)]);
}

#[test]
fn a_list_of_ids_is_looked_up_key_by_key() {
    let store = Store::new(&numbered(100), &[]);
    for (ids, found) in [(vec![7, 3, 200, 3, 99], vec![3, 7, 99]), (vec![], vec![])] {
        let list = Value::Array(ids.iter().map(|id| Value::Int32(*id)).collect());
        let filter =
            Filter::parse(&doc! { "_id": { "$in": list } }.to_raw(), &ParseScope::default()).unwrap();
        let find = FindSpecification::matching(&filter);
        let (runs, counters) = runs_of(&store, &find);
        assert_eq!(runs.len(), found.len());
        assert_eq!(
            (counters.keys_examined, counters.documents_examined),
            (found.len() as u64, found.len() as u64)
        );
        let sort = Sort::parse(&doc! { "_id": -1 }.to_raw()).unwrap();
        let backwards: Vec<i64> = found.iter().rev().map(|id| i64::from(*id)).collect();
        let made = plan(&FindSpecification { sort: &sort, ..find }, &store.indexes()).unwrap();
        assert_eq!(store.run(made), backwards);
    }
}

/// Documents of an index with arrays: each counts once, and fields without arrays come from entries.
#[test]
fn entries_of_arrays_cover_counts_and_the_fields_beside_them() {
    let documents: Vec<RawDocumentBuf> = (0..1_000)
        .map(|id: i32| doc! { "_id": id, "t": [(id % 3), 5, (id % 7)], "n": (id % 10) }.to_raw())
        .collect();
    let store = Store::new(&documents, &[index(doc! { "t": 1, "n": 1 }, &[])]);
    let filter = Filter::parse(&doc! { "t": { "$gte": 0 } }.to_raw(), &ParseScope::default()).unwrap();
    let number = FindSpecification {
        needs: ProjectionNeeds::Nothing,
        consumer: Consumer::Groups,
        ..FindSpecification::matching(&filter)
    };
    let (runs, counters) = runs_of(&store, &number);
    assert_eq!(runs.iter().map(|(_, documents)| documents).sum::<u64>(), 1_000);
    assert_eq!((counters.documents_examined, counters.returned), (0, 1_000));
    let paths = ["n".to_owned()];
    let one = Filter::parse(&doc! { "t": 5 }.to_raw(), &ParseScope::default()).unwrap();
    for (filter, consumer, rows) in [
        (&one, Consumer::Documents, 1_000),
        (&one, Consumer::Values("n"), 10),
        (&filter, Consumer::Groups, 1_000),
    ] {
        let needs = ProjectionNeeds::Paths(&paths);
        let find = FindSpecification { needs, consumer, ..FindSpecification::matching(filter) };
        let (runs, counters) = runs_of(&store, &find);
        assert_eq!(runs.iter().map(|(_, documents)| documents).sum::<u64>(), rows, "{consumer:?}");
        assert_eq!(counters.documents_examined, 0, "{consumer:?}");
        let mut values: Vec<&str> = runs.iter().map(|(text, _)| &text[text.find("n: ").unwrap()..]).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 10, "{consumer:?}");
    }
}

#[test]
fn rows_in_any_order_are_fetched_in_the_order_of_their_keys_and_none_is_lost() {
    let documents: Vec<RawDocumentBuf> = (0..10_000)
        .map(|id: i32| doc! { "_id": id, "n": ((id * 7_919) % 10_007), "t": [(id % 3), 5] }.to_raw())
        .collect();
    let store = Store::new(&documents, &[index(doc! { "n": 1 }, &[]), index(doc! { "t": 1 }, &[])]);
    let operation = Operation::default();
    for (filter, wanted) in
        [(doc! { "n": { "$lt": 9_000 } }, None), (doc! { "t": { "$gte": 0 } }, Some(10_000))]
    {
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        let made = plan(&FindSpecification::matching(&filter), &store.indexes()).unwrap();
        let mut expected = store.run(made.clone());
        expected.sort_unstable();
        assert!(wanted.is_none_or(|wanted| wanted == expected.len()));
        let collection = Arc::clone(&store.collection);
        let executor = Executor::new(collection, made, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
        let mut executor = executor.in_any_order();
        let transaction = reluctant::Reluctant::new(store.catalog.begin(Begin::READ).unwrap());
        let (mut ids, mut turns) = (Vec::new(), 0);
        let mut blocking = BlockingMode::CachedOnly;
        loop {
            match executor.next(&transaction, Caller { blocking, operation: &operation }) {
                Ok(Some(row)) => {
                    let id = id_of(row.document);
                    turns += usize::from(ids.last().is_some_and(|last| *last > id));
                    ids.push(id);
                    blocking = BlockingMode::CachedOnly;
                }
                Ok(None) => break,
                Err(error) => {
                    assert!(error.is_would_block() && blocking == BlockingMode::CachedOnly, "{error:?}");
                    blocking = BlockingMode::MayBlock;
                }
            }
        }
        assert!(turns <= 3, "{turns} times a lesser key came behind a greater one");
        ids.sort_unstable();
        assert_eq!(ids, expected);
    }
}

#[test]
fn a_sort_in_memory_ends_while_it_gives_its_rows() {
    let store = Store::new(&numbered(100), &[]);
    let filter = Filter::everything();
    let sort = Sort::parse(&doc! { "n": -1 }.to_raw()).unwrap();
    let find = FindSpecification { sort: &sort, ..FindSpecification::matching(&filter) };
    let made = plan(&find, &store.indexes()).unwrap();
    let memory = StageMemory::unlimited(DiskUse::Forbidden);
    let mut executor = Executor::new(Arc::clone(&store.collection), made, &memory).unwrap();
    let transaction = store.catalog.begin(Begin::READ).unwrap();
    let operation = Operation::default();
    operation.begin();
    assert!(executor.next(&*transaction, Caller::may_block(&operation)).unwrap().is_some());
    operation.interrupt(Interruption::Killed);
    assert!(executor.next(&*transaction, Caller::may_block(&operation)).is_err());
}

#[test]
fn a_scan_jumps_over_entries_that_lie_out_of_the_bounds_of_later_fields() {
    let documents: Vec<RawDocumentBuf> = (0..20_000)
        .map(|id: i32| doc! { "_id": id, "a": (id / 1_000), "b": (id % 1_000), "c": (id % 7) }.to_raw())
        .collect();
    for keys in [doc! { "a": 1, "b": 1, "c": 1 }, doc! { "a": -1, "b": -1, "c": 1 }] {
        let store = Store::new(&documents, &[index(keys, &[])]);
        for (filter, wanted) in [
            (doc! { "a": { "$gte": 3 }, "b": 500 }, (3..20).map(|a| a * 1_000 + 500).collect::<Vec<i64>>()),
            (doc! { "a": { "$lt": 2 }, "b": { "$in": [3, 900] } }, vec![3, 900, 1_003, 1_900]),
            (doc! { "a": { "$lte": 1 }, "b": { "$gt": 997, "$lt": 999 } }, vec![998, 1_998]),
            (doc! { "a": { "$gte": 0 }, "b": { "$gte": 400 }, "c": 9 }, vec![]),
        ] {
            let text = document_text(&filter.to_raw());
            let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
            for way in [1, -1] {
                let sort = Sort::parse(&doc! { "a": way, "b": way }.to_raw()).unwrap();
                let find = FindSpecification { sort: &sort, ..FindSpecification::matching(&filter) };
                let made = plan(&find, &store.indexes()).unwrap();
                assert!(made.sort.is_none(), "{text}");
                let (found, counters) = store.documents(made);
                let mut ids: Vec<i64> = found.iter().map(|document| id_of(document)).collect();
                if way < 0 {
                    ids.reverse();
                }
                assert_eq!(ids, wanted, "{text}");
                // The last one looks at the values of `b` one by one, and of each at its only `c`.
                let most = if text.contains("c: 9") { 20_000 } else { 17 * 60 };
                assert!(counters.keys_examined <= most, "{text}: {} keys", counters.keys_examined);
            }
        }
    }
}

#[test]
fn a_scan_of_entries_asks_a_network_for_many_documents_at_once_and_for_few_where_few_are_wanted() {
    let documents: Vec<RawDocumentBuf> = (0..5_000)
        .map(|id: i32| doc! { "_id": id, "n": (id * 7_919 % 10_007), "odd": (id % 2) }.to_raw())
        .collect();
    let store = Store::new(&documents, &[index(doc! { "n": 1 }, &[])]);
    let sort = Sort::parse(&doc! { "n": -1 }.to_raw()).unwrap();
    for (filter, limit, requests, lone) in [
        // 64 first, then a thousand each time.
        (doc! { "n": { "$gte": 0 } }, None, 6, 0),
        (doc! { "n": { "$gte": 0 } }, Some(1), 0, 1),
        (doc! { "n": { "$gte": 0 } }, Some(50), 1, 0),
        (doc! { "n": { "$gte": 0 }, "odd": 1 }, Some(8), 2, 0),
        // 16 first, then as many as there were, a thousand at most.
        (doc! { "n": { "$gte": 0 }, "odd": 2 }, Some(1), 11, 0),
    ] {
        let shown = document_text(&filter.to_raw());
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        let find = FindSpecification { sort: &sort, limit, ..FindSpecification::matching(&filter) };
        let made = plan(&find, &store.indexes()).unwrap();
        let begin = store.catalog.begin(Begin::READ).unwrap();
        let transaction = reluctant::Reluctant::over(reluctant::Network::Between, begin);
        store.documents_in(made, &transaction);
        assert_eq!((transaction.requests(), transaction.lone_gets()), (requests, lone), "{shown}");
    }
}
