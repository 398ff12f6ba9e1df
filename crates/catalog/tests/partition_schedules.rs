//! Partitions that follow the time: made ahead and dropped, whatever the clock and the documents do. Each
//! document expires, and none goes before it has.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, Direction, Drops, KeptPartitions, KeyRange, Operation,
    SharedEngine, StampKind,
};
use pando_document::{Document, RawDocument, RawValue, Value, doc};
use pando_environment::{Environment, SeededRandom};
use pando_memory::MemoryEngine;

use crate::things::{assert_sound, index, insert, namespace};

const MODE: BlockingMode = BlockingMode::MayBlock;
const DAY: i64 = 86_400_000;
const START: i64 = 20_000 * DAY;

fn engines() -> Vec<(SharedEngine, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let betree = pando_betree::Betree::open(&Environment::real(), folder.path(), Default::default()).unwrap();
    vec![(Arc::new(MemoryEngine::new(&Environment::real())), None), (betree, Some(folder))]
}

fn options(every: &str, keep: &str) -> Document {
    doc! {
        "partitioned": true, "primaryKey": { "ts": 1, "_id": 1 },
        "partitionBy": { "field": "ts", "every": every, "keep": keep },
    }
}

/// A collection by days, of which three are kept.
fn by_day(engine: &SharedEngine) -> Catalog {
    let catalog = Catalog::open(Arc::clone(engine)).unwrap();
    catalog.create_collection(&namespace(), options("1d", "3d").to_raw(), [1; 16]).unwrap();
    keep(&catalog, START);
    catalog
        .create_indexes(&namespace(), vec![index(doc! { "a": 1 }, "a_1", &[])], &Operation::default())
        .unwrap();
    catalog
}

fn keep(catalog: &Catalog, now_ms: i64) -> KeptPartitions {
    catalog.keep_partitions(&namespace(), (now_ms, Drops::Due), &Operation::default()).unwrap()
}

fn first(values: &RawDocument) -> RawValue<'_> {
    values.iter().next().unwrap().unwrap().1
}

/// The ends of all partitions but the last, in days since the start.
fn ends(catalog: &Catalog) -> Vec<i64> {
    let collection = catalog.collection("test", "things").unwrap();
    let bounds = collection.partitions().unwrap().into_iter().filter_map(|partition| partition.bound);
    bounds.map(|bound| (StampKind::Date.time_of(first(&bound.values)).unwrap() - START) / DAY).collect()
}

fn put(catalog: &Catalog, id: i32, time: i64) {
    insert(catalog, &doc! { "_id": id, "ts": (Value::DateTime(time)), "a": (id % 3) }).unwrap();
}

/// The ids of all documents, by a scan of the documents and by one of the index.
fn ids(catalog: &Catalog) -> Vec<i32> {
    let collection = catalog.collection("test", "things").unwrap();
    let reader = catalog.begin(Begin::READ).unwrap();
    let id_of = |document: &[u8]| match RawDocument::from_bytes(document).unwrap().get("_id").unwrap() {
        Some(RawValue::Int32(id)) => id,
        other => panic!("{other:?}"),
    };
    let mut found = Vec::new();
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, document)) = scan.next(&*reader, MODE).unwrap() {
        found.push(id_of(document));
    }
    assert_eq!(assert_sound(catalog), found.len() as u64);
    found.sort_unstable();
    found
}

#[test]
fn a_new_collection_has_its_window_and_moves_it_as_time_passes() {
    for (engine, _folder) in engines() {
        let catalog = by_day(&engine);
        assert_eq!(ends(&catalog), [-2, -1, 0, 1, 2, 3]);
        for day in -3..3 {
            put(&catalog, day + 10, START + i64::from(day) * DAY + 5);
        }
        assert_eq!(keep(&catalog, START + DAY - 1), KeptPartitions::default());
        let kept = keep(&catalog, START + DAY);
        assert_eq!((kept.made, kept.dropped.documents, kept.ends_left), (1, 1, 0));
        assert_eq!((ends(&catalog), ids(&catalog)), (vec![-1, 0, 1, 2, 3, 4], vec![8, 9, 10, 11, 12]));
        // Two days at once, as after a stop; and again, with a store that was opened again.
        keep(&catalog, START + 3 * DAY);
        assert_eq!((ends(&catalog), ids(&catalog)), (vec![1, 2, 3, 4, 5, 6], vec![10, 11, 12]));
        drop(catalog);
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        keep(&catalog, START + 4 * DAY);
        assert_eq!((ends(&catalog), ids(&catalog)), (vec![2, 3, 4, 5, 6, 7], vec![11, 12]));
        keep(&catalog, START + 900 * DAY);
        assert_eq!((ends(&catalog), ids(&catalog)), (vec![898, 899, 900, 901, 902, 903], vec![]));
    }
}

#[test]
fn held_drops_leave_the_documents_and_partitions_are_made_all_the_same() {
    for (engine, _folder) in engines() {
        let catalog = by_day(&engine);
        put(&catalog, 1, START);
        let now = START + 50 * DAY;
        let kept = catalog.keep_partitions(&namespace(), (now, Drops::Held), &Operation::default()).unwrap();
        assert_eq!((kept.made, kept.dropped.ids.len()), (3, 0));
        assert_eq!((ends(&catalog), ids(&catalog)), (vec![-2, -1, 0, 1, 2, 3, 51, 52, 53], vec![1]));
        let collection = catalog.collection("test", "things").unwrap();
        assert!(!collection.needs_keeping(now, Drops::Held).unwrap());
        assert!(collection.needs_keeping(now, Drops::Due).unwrap());
    }
}

#[test]
fn a_clock_that_was_ahead_for_a_time_does_no_harm() {
    for (engine, _folder) in engines() {
        let catalog = by_day(&engine);
        put(&catalog, 1, START);
        let ahead = START + 4_000 * DAY;
        catalog.keep_partitions(&namespace(), (ahead, Drops::Held), &Operation::default()).unwrap();
        put(&catalog, 2, ahead);
        // The clock is back, and the slots of today are cut out of the gap.
        for day in 0..5 {
            let kept = keep(&catalog, START + day * DAY);
            assert_eq!(kept.ends_left, 0);
            put(&catalog, 10 + day as i32, START + day * DAY);
        }
        assert_eq!(ends(&catalog), [2, 3, 4, 5, 6, 7, 4001, 4002, 4003]);
        assert_eq!(ids(&catalog), [2, 11, 12, 13, 14]);
        assert_eq!(keep(&catalog, START - 900 * DAY).dropped.ids.len(), 0);
        assert_eq!(ids(&catalog), [2, 11, 12, 13, 14]);
    }
}

#[test]
fn documents_on_both_sides_of_an_end_make_a_longer_partition_that_ends_all_the_same() {
    for (engine, _folder) in engines() {
        let catalog = by_day(&engine);
        for (id, day) in [(1, 4), (2, 5)] {
            put(&catalog, id, START + day * DAY + 7);
        }
        let kept = keep(&catalog, START + 2 * DAY);
        assert_eq!((kept.made, kept.ends_left), (1, 1), "day 5 begins between the documents");
        assert_eq!(ends(&catalog), [0, 1, 2, 3, 4]);
        let kept = keep(&catalog, START + 3 * DAY);
        assert_eq!((kept.made, kept.ends_left), (1, 1));
        assert_eq!(ends(&catalog), [1, 2, 3, 4, 6]);
        // The documents of the two days go together.
        keep(&catalog, START + 8 * DAY);
        assert_eq!(ids(&catalog), [1, 2]);
        keep(&catalog, START + 9 * DAY);
        assert_eq!(ids(&catalog), Vec::<i32>::new());
    }
}

#[test]
fn documents_that_cannot_be_placed_in_time_are_refused() {
    for (engine, _folder) in engines() {
        let catalog = by_day(&engine);
        for value in [Value::Null, Value::Int64(START), Value::from("2026"), Value::MinKey] {
            let mut document = doc! { "_id": 1, "a": 1 };
            document.push("ts", value);
            let refused = insert(&catalog, &document).unwrap_err();
            assert!(refused.to_string().contains("a date in the field 'ts'"), "{refused}");
        }
        assert_eq!(ids(&catalog), Vec::<i32>::new());
    }
}

#[test]
fn a_snapshot_from_before_a_cut_finds_its_documents_by_an_index() {
    for (engine, _folder) in engines() {
        let catalog = by_day(&engine);
        put(&catalog, 1, START + 4 * DAY + 7);
        let before = catalog.begin(Begin::READ).unwrap();
        // The document goes, and then its keys go to another partition.
        let collection = catalog.lease("test", "things", Caller::may_block(&Operation::default())).unwrap();
        let collection = collection.unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        let id = collection.id_key(RawValue::Int32(1));
        let key = collection.locate(&*transaction, &id, MODE).unwrap().unwrap();
        let old = collection.fetch(&*transaction, &key, MODE).unwrap().unwrap();
        collection.remove(&mut transaction, &key, RawDocument::from_bytes(&old).unwrap(), MODE).unwrap();
        transaction.commit(pando_catalog::Durability::None).unwrap();
        drop(collection);
        put(&catalog, 2, START + 3 * DAY + 7);
        assert_eq!(keep(&catalog, START + 2 * DAY).made, 2);
        let collection = catalog.collection("test", "things").unwrap();
        let found = |keys: KeyRange| {
            let index = collection.index("a_1").unwrap();
            let within: Arc<[KeyRange]> = vec![keys].into();
            let mut scan = collection.scan_entries(index, KeyRange::all(), Direction::Forward, Some(within));
            let mut count = 0;
            while scan.next(&*before, MODE).unwrap().is_some() {
                count += 1;
            }
            count
        };
        assert_eq!((found(KeyRange::all()), found(KeyRange::point(&key))), (1, 1));
        before.rollback();
        assert_eq!(ids(&catalog), [2]);
    }
}

#[test]
fn no_document_goes_before_its_time() {
    for seed in 0..20 {
        for (engine, _folder) in engines().into_iter().take(1) {
            let chance = SeededRandom::new(seed);
            let catalog = by_day(&engine);
            let (mut now, mut expected) = (START, Vec::<(i32, i64)>::new());
            for id in 0..200 {
                now += chance.below(DAY as u64) as i64;
                let spread = [1, 3, 10][chance.below(3) as usize];
                let time = now + (chance.below(2 * spread * DAY as u64) as i64) - spread as i64 * DAY;
                put(&catalog, id, time);
                expected.push((id, time));
                if chance.below(3) == 0 {
                    keep(&catalog, now);
                    let there = ids(&catalog);
                    let day = |time: i64| time - time.rem_euclid(DAY);
                    let lives = |time: i64| day(time) >= day(now - 3 * DAY);
                    for (id, time) in &expected {
                        assert!(there.contains(id) || !lives(*time), "seed {seed}: {id} is gone too early");
                    }
                    expected.retain(|(id, _)| there.contains(id));
                    assert!(catalog.collection("test", "things").unwrap().partitions().unwrap().len() < 40);
                }
            }
        }
    }
}
