//! Plans of filters with many values and clauses, and their execution on a small collection.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Collection, Durability, IndexDescription, Namespace, PrimaryKey,
    SharedEngine,
};
use pando_document::{Document, RawDocumentBuf, Value, doc};
use pando_environment::Environment;
use pando_memory::MemoryEngine;
use pando_query::execute::Executor;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{FindSpecification, Hint, plan};

use super::{Operation, number, numbers, single};

pub fn operations() -> Vec<Operation> {
    let in_list = |n: usize| single("$in", numbers(0, n));
    vec![
        through_index("three $in on a compound index", move |n| {
            doc! { "a": in_list(n), "b": in_list(n), "c": in_list(n) }
        }),
        through_index("two $in on a compound index, little found", move |n| {
            doc! { "a": in_list(n), "b": (single("$in", numbers(1_000, n))) }
        }),
        through_index("$in and $ne on a compound index", move |n| {
            let others: Value = (0..n).map(|at| doc! { "b": { "$ne": (number(at)) } }).collect();
            doc! { "a": in_list(n), "$and": others }
        }),
        through_index("$nin on an index", |n| doc! { "a": { "$nin": (numbers(0, n)) } }),
        through_index("$and of $ne on an index", |n| {
            clauses("$and", n, |at| doc! { "a": { "$ne": (number(at)) } })
        }),
        found("$and of ranges on an index", |n| {
            clauses("$and", n, |at| doc! { "a": { "$gte": (number(at)) } })
        }),
        found("$all on an index of arrays", |n| doc! { "m": { "$all": (numbers(0, n)) } }),
        found("$elemMatch of many ranges on an index of arrays", |n| {
            let mut ranges = Document::new();
            for at in 0..n {
                ranges.push("$ne", number(at));
            }
            doc! { "m": { "$elemMatch": ranges } }
        }),
        found("$or of equalities of indexed fields", |n| {
            clauses("$or", n, |at| single(if at % 2 == 0 { "a" } else { "m" }, number(at)))
        }),
        found("$or of pairs of indexed fields", |n| {
            clauses("$or", n, |at| doc! { "a": (number(at)), "b": (number(at)) })
        }),
        written("a document with a long indexed array", |n| {
            (doc! { "_id": -1, "m": (numbers(0, n)) }, doc! { "_id": -1, "m": (numbers(0, n)) })
        }),
        written("a long indexed array that changes", |n| {
            (doc! { "_id": -1, "m": (numbers(0, n)) }, doc! { "_id": -1, "m": (numbers(n / 2, n)) })
        }),
    ]
}

fn clauses(operator: &str, count: usize, clause: impl Fn(usize) -> Document) -> Document {
    single(operator, (0..count).map(clause).collect::<Value>())
}

/// A collection of a hundred documents with a compound index and one of arrays.
fn store() -> (Catalog, Arc<Collection>) {
    let engine: SharedEngine = Arc::new(MemoryEngine::new(&Environment::real()));
    let catalog = Catalog::open(engine).unwrap();
    let namespace = Namespace::new("test", "slopes").unwrap();
    catalog.create_collection(&namespace, RawDocumentBuf::new(), [7; 16]).unwrap();
    let indexes = [
        doc! { "v": 2, "key": { "a": 1, "b": 1, "c": 1 }, "name": "compound" },
        doc! { "v": 2, "key": { "m": 1 }, "name": "arrays" },
    ];
    let indexes = indexes.iter().map(|index| IndexDescription::from_specification(&index.to_raw()).unwrap());
    catalog.create_indexes(&namespace, indexes.collect(), &pando_catalog::Operation::default()).unwrap();
    let collection = catalog.collection("test", "slopes").unwrap();
    let mut transaction = catalog.begin_write().unwrap();
    for at in 0..100 {
        let document = doc! {
            "_id": (number(at)), "a": (number(7 * at)), "b": (number(3 * at)), "c": (number(at)),
            "m": [(number(at)), (number(at + 1))],
        };
        collection.insert(&mut transaction, &document.to_raw(), BlockingMode::MayBlock).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    (catalog, collection)
}

/// A find by the plan that the planner chooses.
fn found(name: &'static str, filter: impl Fn(usize) -> Document + 'static) -> Operation {
    planned(name, None, filter)
}

/// A find through the compound index, be it a good idea or not.
fn through_index(name: &'static str, filter: impl Fn(usize) -> Document + 'static) -> Operation {
    planned(name, Some(Hint::Name("compound".to_owned())), filter)
}

fn planned(
    name: &'static str,
    hint: Option<Hint>,
    filter: impl Fn(usize) -> Document + 'static,
) -> Operation {
    Operation::new(name, move |n| {
        let hint = hint.clone();
        let ((catalog, collection), filter) = (store(), filter(n).to_raw());
        move || {
            let filter = Filter::parse(&filter, &ParseScope::at(0)).unwrap();
            let find = FindSpecification { hint: hint.as_ref(), ..FindSpecification::matching(&filter) };
            let plan = plan(&find, &collection.describe_indexes()).unwrap();
            let (transaction, operation) =
                (catalog.begin(Begin::READ).unwrap(), pando_catalog::Operation::default());
            let collection = Arc::clone(&collection);
            let mut executor =
                Executor::new(collection, plan, &StageMemory::unlimited(DiskUse::Forbidden)).unwrap();
            while executor.next(&*transaction, Caller::may_block(&operation)).unwrap().is_some() {}
            transaction.rollback();
        }
    })
}

/// A document that is inserted, replaced and removed.
fn written(name: &'static str, versions: impl Fn(usize) -> (Document, Document) + 'static) -> Operation {
    Operation::new(name, move |n| {
        let ((catalog, collection), (old, new)) = (store(), versions(n));
        let (old, new) = (old.to_raw(), new.to_raw());
        move || {
            let mut transaction = catalog.begin_write().unwrap();
            let key = PrimaryKey::of(old.get("_id").unwrap().unwrap()).into_bytes();
            collection.insert(&mut transaction, &old, BlockingMode::MayBlock).unwrap();
            collection.replace(&mut transaction, &key, &old, &new, BlockingMode::MayBlock).unwrap();
            collection.remove(&mut transaction, &key, &new, BlockingMode::MayBlock).unwrap();
            transaction.rollback();
        }
    })
}
