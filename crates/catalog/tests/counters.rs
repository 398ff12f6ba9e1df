//! Counters equal a scan: after every step of random histories, at old snapshots, beside other threads, and
//! stores of programs without counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_catalog::{
    Begin, BlockingMode, Catalog, CatalogError, CollectionCounts, Durability, Interruption, Operation,
    PrimaryKey, SharedEngine, Transaction, verify_collection,
};
use pando_document::patch::{PatchChange, PatchOperator, encode};
use pando_document::{RawDocument, RawValue, doc};
use pando_environment::SeededRandom;

use crate::counted::{
    DATABASE, NAMES, assert_collection, assert_counted, assert_sound, change_something, drop_counters,
    engines, index, lease, namespace, run, some_document, some_index, some_options, write_one, write_some,
};

fn with_collections(engine: &SharedEngine) -> Catalog {
    let catalog = Catalog::open(Arc::clone(engine)).unwrap();
    for (at, name) in NAMES.iter().enumerate() {
        catalog.create_collection(&namespace(name), some_options(at), [at as u8; 16]).unwrap();
    }
    catalog
}

fn counts_of(catalog: &Catalog, name: &str) -> CollectionCounts {
    let collection = catalog.collection(DATABASE, name).unwrap();
    catalog.counts(&collection, &Operation::default()).unwrap()
}

/// Documents, bytes and the entries of `a_1` of a collection, by its counters.
fn counted(catalog: &Catalog, name: &str) -> (u64, u64, u64) {
    let counts = counts_of(catalog, name);
    let entries =
        counts.index_entries.iter().find(|(index, _)| index == "a_1").map_or(0, |(_, count)| *count);
    (counts.documents, counts.data_bytes, entries)
}

#[test]
fn counters_equal_a_scan_after_every_step_of_a_random_history() {
    for (name, engine, _folder) in engines() {
        let steps = if name == "memory" { 500 } else { 250 };
        for seed in 0..3 {
            let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
            run(&catalog, &SeededRandom::new(seed), steps);
            // The counters are the same when the catalog is opened again.
            assert_sound(&Catalog::open(Arc::clone(&engine)).unwrap());
        }
    }
}

#[test]
fn an_old_snapshot_has_the_counters_of_its_time() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let chance = SeededRandom::new(9);
        let mut readers: Vec<(Box<dyn Transaction>, u64)> = Vec::new();
        for step in 0..150 {
            write_some(&catalog, &chance, 0..40);
            if step % 30 == 0 {
                catalog
                    .create_indexes(&namespace(NAMES[0]), vec![some_index(&chance)], &Operation::default())
                    .ok();
            }
            if step % 20 == 0 {
                let reader = catalog.begin(Begin::READ).unwrap();
                let documents = assert_counted(&catalog, &*reader);
                readers.push((reader, documents));
            }
            for (reader, documents) in &readers {
                assert_eq!(assert_counted(&catalog, &**reader), *documents);
            }
        }
    }
}

#[test]
fn the_sums_of_a_collection_are_what_its_documents_are() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        catalog
            .create_indexes(
                &namespace("one"),
                vec![index(doc! { "a": 1 }, "a_1", &[])],
                &Operation::default(),
            )
            .unwrap();
        let lease = lease(&catalog, "one").unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        let first = doc! { "_id": 1, "a": [1, 2, 3] }.to_raw();
        let second = doc! { "_id": 2, "a": 5 }.to_raw();
        for document in [&first, &second] {
            lease.insert(&mut transaction, document, BlockingMode::MayBlock).unwrap();
        }
        let bytes = (first.as_bytes().len() + second.as_bytes().len()) as u64;
        transaction.commit(Durability::None).unwrap();
        assert_eq!(counted(&catalog, "one"), (2, bytes, 4));
        assert_eq!(counted(&catalog, "two"), (0, 0, 0));
        let mut transaction = catalog.begin_write().unwrap();
        let key = PrimaryKey::of(RawValue::Int32(1)).into_bytes();
        let shorter = doc! { "_id": 1 }.to_raw();
        lease.replace(&mut transaction, &key, &first, &shorter, BlockingMode::MayBlock).unwrap();
        transaction.commit(Durability::None).unwrap();
        let bytes = (shorter.as_bytes().len() + second.as_bytes().len()) as u64;
        assert_eq!(counted(&catalog, "one"), (2, bytes, 2));
        let mut transaction = catalog.begin_write().unwrap();
        lease.remove(&mut transaction, &key, &shorter, BlockingMode::MayBlock).unwrap();
        transaction.commit(Durability::None).unwrap();
        assert_eq!(counted(&catalog, "one"), (1, second.as_bytes().len() as u64, 1));
    }
}

#[test]
fn transactions_that_count_the_same_collection_do_not_conflict() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let lease = lease(&catalog, "one").unwrap();
        let mut transactions: Vec<_> = (0..20).map(|_| catalog.begin_write().unwrap()).collect();
        for (id, transaction) in transactions.iter_mut().enumerate() {
            let document = doc! { "_id": id as i32 }.to_raw();
            lease.insert(transaction, &document, BlockingMode::MayBlock).unwrap();
        }
        for transaction in transactions {
            transaction.commit(Durability::None).unwrap();
        }
        assert_eq!(assert_sound(&catalog), 20);
    }
}

#[test]
fn counters_stay_right_beside_threads_that_write_build_and_drop() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3_u64)
                .map(|thread| {
                    let catalog = &catalog;
                    scope.spawn(move || {
                        let chance = SeededRandom::new(thread);
                        for _ in 0..300 {
                            // Neighbours overlap, so that there are conflicts.
                            write_some(catalog, &chance, thread * 20..thread * 20 + 30);
                        }
                    })
                })
                .collect();
            let builder = scope.spawn(|| {
                let chance = SeededRandom::new(77);
                while !ended.load(Ordering::Relaxed) {
                    let name = namespace(NAMES[chance.below(2) as usize]);
                    let wanted = some_index(&chance);
                    catalog.drop_index(&name, &wanted.name, &Operation::default()).ok();
                    catalog.create_indexes(&name, vec![wanted], &Operation::default()).unwrap_or_default();
                }
            });
            let reader = scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    // The description first: its trees are there at the snapshot.
                    let collection = catalog.collection(DATABASE, NAMES[0]).unwrap();
                    let reader = catalog.begin(Begin::READ).unwrap();
                    let documents = collection.document_count(&*reader, BlockingMode::MayBlock).unwrap();
                    let mut scan = collection
                        .scan_documents(pando_catalog::KeyRange::all(), pando_catalog::Direction::Forward);
                    let mut scanned = 0;
                    while scan.next(&*reader, BlockingMode::MayBlock).unwrap().is_some() {
                        scanned += 1;
                    }
                    assert_eq!(documents, Some(scanned));
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            ended.store(true, Ordering::Relaxed);
            builder.join().unwrap();
            reader.join().unwrap();
        });
        assert_sound(&catalog);
    }
}

#[test]
fn a_store_of_a_program_without_counters_is_counted_when_they_are_first_needed() {
    for (_, engine, _folder) in engines() {
        let chance = SeededRandom::new(5);
        {
            let catalog = with_collections(&engine);
            let wanted = [index(doc! { "a": 1 }, "a_1", &[]), index(doc! { "s": 1 }, "s_1", &["sparse"])];
            catalog.create_indexes(&namespace("one"), wanted.to_vec(), &Operation::default()).unwrap();
            for _ in 0..60 {
                write_some(&catalog, &chance, 0..40);
            }
            drop_counters(&engine);
        }
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let collection = catalog.collection(DATABASE, "one").unwrap();
        let early = catalog.begin(Begin::READ).unwrap();
        // Statements that write before the count keep no counters, and leave none behind.
        for _ in 0..20 {
            let lease = lease(&catalog, "one").unwrap();
            let mut transaction = catalog.begin_write().unwrap();
            write_one(&lease, &mut transaction, &chance, chance.below(40) as i32).unwrap();
            transaction.commit(Durability::None).unwrap();
        }
        assert_eq!(collection.document_count(&*early, BlockingMode::MayBlock).unwrap(), None);
        let counts = counts_of(&catalog, "one");
        let reader = catalog.begin(Begin::READ).unwrap();
        assert_eq!(counts.documents, assert_collection(&collection, &*reader));
        assert_eq!(
            collection.document_count(&*early, BlockingMode::MayBlock).unwrap(),
            None,
            "a snapshot from before the count has no counters"
        );
        let other = catalog.collection(DATABASE, "two").unwrap();
        assert_eq!(other.counts(&*reader, BlockingMode::MayBlock).unwrap(), None, "nobody asked for it");
        counts_of(&catalog, "two");
        for _ in 0..60 {
            write_some(&catalog, &chance, 0..40);
            assert_sound(&catalog);
        }
        assert_sound(&Catalog::open(Arc::clone(&engine)).unwrap());
    }
}

#[test]
fn the_first_count_is_right_beside_threads_that_write() {
    for (_, engine, _folder) in engines() {
        {
            let catalog = with_collections(&engine);
            let lease = lease(&catalog, "one").unwrap();
            let chance = SeededRandom::new(1);
            let mut transaction = catalog.begin_write().unwrap();
            for id in 0..3_000 {
                lease.insert(&mut transaction, &some_document(&chance, id), BlockingMode::MayBlock).unwrap();
            }
            transaction.commit(Durability::None).unwrap();
            drop(lease);
            catalog
                .create_indexes(
                    &namespace("one"),
                    vec![index(doc! { "a": 1 }, "a_1", &[])],
                    &Operation::default(),
                )
                .unwrap();
            drop_counters(&engine);
        }
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let (catalog, ended) = (&catalog, &ended);
                scope.spawn(move || {
                    let chance = SeededRandom::new(thread);
                    while !ended.load(Ordering::Relaxed) {
                        let lease = lease(catalog, "one").unwrap();
                        let mut transaction = catalog.begin_write().unwrap();
                        let id = chance.below(3_000) as i32 / 2 * 2 + thread as i32;
                        write_one(&lease, &mut transaction, &chance, id).unwrap();
                        transaction.commit(Durability::None).unwrap();
                    }
                });
            }
            // Both wait for the build turn; one of them counts.
            let counting = |name: &'static str| {
                let catalog = &catalog;
                scope.spawn(move || counts_of(catalog, name))
            };
            let counters = [counting("one"), counting("one"), counting("two")];
            counters.into_iter().for_each(|counter| _ = counter.join().unwrap());
            ended.store(true, Ordering::Relaxed);
        });
        assert_sound(&catalog);
    }
}

#[test]
fn an_interrupted_first_count_is_made_again() {
    for (_, engine, _folder) in engines() {
        let chance = SeededRandom::new(2);
        {
            let catalog = with_collections(&engine);
            for _ in 0..40 {
                write_some(&catalog, &chance, 0..40);
            }
            drop_counters(&engine);
        }
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let operation = Operation::default();
        operation.begin();
        operation.interrupt(Interruption::Killed);
        for name in NAMES {
            let ended = catalog.counts(&catalog.collection(DATABASE, name).unwrap(), &operation);
            assert!(matches!(ended, Err(CatalogError::Interrupted(Interruption::Killed))), "{ended:?}");
        }
        for _ in 0..20 {
            let lease = lease(&catalog, "one").unwrap();
            let mut transaction = catalog.begin_write().unwrap();
            write_one(&lease, &mut transaction, &chance, chance.below(40) as i32).unwrap();
            transaction.commit(Durability::None).unwrap();
        }
        NAMES.iter().for_each(|name| _ = counts_of(&catalog, name));
        assert_sound(&catalog);
    }
}

#[test]
fn an_index_that_is_built_before_the_first_count_is_counted_with_it() {
    for (_, engine, _folder) in engines() {
        let chance = SeededRandom::new(3);
        {
            let catalog = with_collections(&engine);
            for _ in 0..60 {
                write_some(&catalog, &chance, 0..40);
            }
            drop_counters(&engine);
        }
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let wanted = [index(doc! { "a": 1 }, "a_1", &[]), index(doc! { "s": 1 }, "s_1", &["sparse"])];
        catalog.create_indexes(&namespace("one"), wanted.to_vec(), &Operation::default()).unwrap();
        for name in NAMES {
            counts_of(&catalog, name);
        }
        assert_sound(&catalog);
    }
}

#[test]
fn counters_that_an_interrupted_count_or_build_has_left_are_gone_after_the_next_open() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let chance = SeededRandom::new(4);
        for _ in 0..30 {
            write_some(&catalog, &chance, 0..40);
        }
        let trees = engine.list_trees().unwrap();
        let counters = trees.iter().find(|tree| tree.name == "counters").unwrap().id;
        // Sums of a collection without a mark, of an index that was never published, and a kind of a later
        // program.
        let number =
            trees.iter().find(|tree| tree.name.starts_with("collection-")).unwrap().name[11..].parse();
        let number: u8 = number.unwrap();
        let mut transaction = engine.begin(Begin::WRITE).unwrap();
        transaction.delete(counters, &[0, number]).unwrap();
        transaction.put(counters, &[3, 200], &77_i64.to_le_bytes()).unwrap();
        transaction.put(counters, &[9, 200], b"later").unwrap();
        transaction.commit(Durability::None).unwrap();
        drop(catalog);
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        let reader = engine.begin(Begin::READ).unwrap();
        let get = |key: &[u8]| reader.get(counters, key, BlockingMode::MayBlock).unwrap();
        assert_eq!((get(&[1, number]), get(&[2, number]), get(&[3, 200])), (None, None, None));
        assert_eq!(get(&[9, 200]).as_deref(), Some(&b"later"[..]));
        for name in NAMES {
            counts_of(&catalog, name);
        }
        assert_sound(&catalog);
    }
}

#[test]
fn dropped_collections_and_indexes_leave_no_counters() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let chance = SeededRandom::new(8);
        for _ in 0..200 {
            change_something(&catalog, &chance);
            write_some(&catalog, &chance, 0..40);
        }
        for name in NAMES {
            catalog.drop_collection(&namespace(name), &Operation::default(), &|_| {}).ok();
        }
        let trees = engine.list_trees().unwrap();
        let counters = trees.iter().find(|tree| tree.name == "counters").unwrap().id;
        let reader = engine.begin(Begin::READ).unwrap();
        let mut cursor = pando_catalog::Cursor::new(
            counters,
            pando_catalog::KeyRange::all(),
            pando_catalog::Direction::Forward,
        );
        let mut left = Vec::new();
        while let Some((key, _)) = cursor.next(&*reader, BlockingMode::MayBlock).unwrap() {
            left.push(key.to_vec());
        }
        assert_eq!(left, Vec::<Vec<u8>>::new());
    }
}

#[test]
fn a_wrong_counter_is_found_by_the_check_and_one_below_zero_is_counted_anew() {
    for (_, engine, _folder) in engines() {
        let catalog = with_collections(&engine);
        let chance = SeededRandom::new(6);
        for _ in 0..30 {
            write_some(&catalog, &chance, 0..40);
        }
        let trees = engine.list_trees().unwrap();
        let counters = trees.iter().find(|tree| tree.name == "counters").unwrap().id;
        let number: u8 = trees.iter().find(|tree| tree.name.starts_with("collection-")).unwrap().name[11..]
            .parse()
            .unwrap();
        let put = |value: i64| {
            let mut transaction = engine.begin(Begin::WRITE).unwrap();
            transaction.put(counters, &[1, number], &value.to_le_bytes()).unwrap();
            transaction.commit(Durability::None).unwrap();
        };
        let collection = catalog.collection(DATABASE, "one").unwrap();
        put(1_000);
        let reader = catalog.begin(Begin::READ).unwrap();
        let report = verify_collection(&collection, &*reader, &Operation::default()).unwrap();
        assert_eq!(report.problem_count, 1, "{report:?}");
        assert!(report.problems[0].contains("the counter of documents says 1000"), "{report:?}");
        put(-1);
        let counts = counts_of(&catalog, "one");
        assert_eq!(counts.documents, report.documents);
        assert_sound(&catalog);
    }
}

#[test]
fn patches_leave_counts_exact_and_sizes_as_estimates_until_all_documents_are_gone() {
    const DOCUMENTS: i32 = 200;
    let change = PatchChange { operator: PatchOperator::Set, path: "t", operand: RawValue::String("longer") };
    let patch = encode(vec![change]).unwrap();
    for (name, engine, _folder) in engines() {
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        catalog.create_collection(&namespace("p"), doc! {}.to_raw(), [1; 16]).unwrap();
        catalog
            .create_indexes(&namespace("p"), vec![index(doc! { "a": 1 }, "a_1", &[])], &Operation::default())
            .unwrap();
        let lease = lease(&catalog, "p").unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        for id in 0..DOCUMENTS {
            let document = doc! { "_id": id, "a": id, "t": "x" }.to_raw();
            lease.insert(&mut transaction, &document, BlockingMode::MayBlock).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        // Some of them are not there.
        for id in 0..DOCUMENTS + 20 {
            let mut transaction = catalog.begin_write().unwrap();
            let patched =
                lease.patch(&mut transaction, RawValue::Int32(id), &patch, BlockingMode::MayBlock).unwrap();
            assert!(patched, "{name}");
            transaction.commit(Durability::None).unwrap();
        }
        let counts = counts_of(&catalog, "p");
        assert_eq!((counts.documents, counts.patches), (200, 220), "{name}");
        let reader = catalog.begin(Begin::READ).unwrap();
        let report = verify_collection(&lease, &*reader, &Operation::default()).unwrap();
        assert_eq!((report.problems, report.documents), (Vec::new(), 200), "{name}");
        drop(reader);
        // Each document is taken away by its whole length, of which the counter knows a part.
        let mut transaction = catalog.begin_write().unwrap();
        for id in 0..DOCUMENTS {
            let key = PrimaryKey::of(RawValue::Int32(id));
            let old = lease.fetch(&*transaction, key.as_bytes(), BlockingMode::MayBlock).unwrap().unwrap();
            let old = RawDocument::from_bytes(&old).unwrap();
            assert_eq!(old.get("t").unwrap().and_then(|text| text.as_str()), Some("longer"));
            lease.remove(&mut transaction, key.as_bytes(), old, BlockingMode::MayBlock).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        let counts = counts_of(&catalog, "p");
        assert_eq!((counts.documents, counts.data_bytes), (0, 0), "{name}: never below zero");
    }
}
