//! Statements about more than one transaction holds, and index builds beneath them, on the default engine.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pandodb::bson::{Binary, Document, spec::BinarySubtype};
use pandodb::{Collection, Pando, VerifyDepth, doc, verify_store};

/// More than two steps.
const DOCUMENTS: i32 = 25_000;

fn fill(documents: &Collection<Document>) {
    for start in (0..DOCUMENTS).step_by(5_000) {
        let batch: Vec<Document> =
            (start..start + 5_000).map(|id| doc! { "_id": id, "k": id % 1_000, "u": id, "n": 0 }).collect();
        documents.insert_many(&batch).run().unwrap();
    }
}

fn assert_sound(folder: &Path) {
    let report = verify_store(folder, VerifyDepth::Collections).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn an_update_of_many_documents_changes_each_once_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let documents = pando.database("d").collection::<Document>("c");
    documents.create_index(doc! { "n": 1 }).run().unwrap();
    fill(&documents);
    let (ended, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut id = 0;
            while !ended.load(Ordering::Relaxed) {
                id = (id + 7_919) % DOCUMENTS;
                documents.update_one(doc! { "_id": id }, doc! { "$inc": { "other": 1 } }).run().unwrap();
                writes.fetch_add(1, Ordering::Relaxed);
            }
        });
        while writes.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let changed = documents.update_many(doc! { "n": 0 }, doc! { "$inc": { "n": 1 } }).run();
        ended.store(true, Ordering::Relaxed);
        let changed = changed.unwrap();
        assert_eq!((changed.matched_count, changed.modified_count), (DOCUMENTS as u64, DOCUMENTS as u64));
    });
    assert_eq!(documents.count_documents(doc! { "n": 1 }).run().unwrap(), DOCUMENTS as u64, "each once");
    assert_eq!(documents.delete_many(doc! { "k": { "$gte": 200 } }).run().unwrap().deleted_count, 20_000);
    assert_eq!(documents.count_documents(doc! {}).run().unwrap(), 5_000);
    drop(documents);
    pando.close().unwrap();
    assert_sound(folder.path());
}

#[test]
fn a_few_large_documents_are_several_steps_too_and_an_error_leaves_what_was_done_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let documents = pando.database("d").collection::<Document>("c");
    let large = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 1 << 20] };
    for id in 0..40 {
        documents.insert_one(&doc! { "_id": id, "n": 1, "large": large.clone() }).run().unwrap();
    }
    documents.update_one(doc! { "_id": 30 }, doc! { "$set": { "n": "text" } }).run().unwrap();
    let refused = documents.update_many(doc! {}, doc! { "$inc": { "n": 1 } }).run();
    assert!(refused.unwrap_err().to_string().contains("non-numeric"));
    assert_eq!(documents.count_documents(doc! { "n": 2 }).run().unwrap(), 30, "those before it");
    assert_eq!(documents.delete_many(doc! { "n": { "$ne": 2 } }).run().unwrap().deleted_count, 10);
    assert_eq!(documents.delete_many(doc! {}).run().unwrap().deleted_count, 30);
}

#[test]
fn documents_that_become_large_are_several_steps_too() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let documents = pando.database("d").collection::<Document>("c");
    let small: Vec<Document> = (0..40).map(|id| doc! { "_id": id, "n": 1 }).collect();
    documents.insert_many(&small).run().unwrap();
    documents.update_one(doc! { "_id": 30 }, doc! { "$set": { "n": "text" } }).run().unwrap();
    let large = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 1 << 20] };
    let update = doc! { "$set": { "large": large }, "$inc": { "n": 1 } };
    assert!(
        documents.update_many(doc! {}, update.clone()).run().unwrap_err().to_string().contains("non-numeric")
    );
    assert_eq!(documents.count_documents(doc! { "n": 2 }).run().unwrap(), 30, "those before it");
    let changed = documents.update_many(doc! { "n": 1 }, update).run().unwrap();
    assert_eq!((changed.matched_count, changed.modified_count), (9, 9));
}

#[test]
fn indexes_built_beneath_writers_hold_what_the_documents_do_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let documents = pando.database("d").collection::<Document>("c");
    fill(&documents);
    let (ended, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (documents, ended, writes) = (&documents, &ended, &writes);
            scope.spawn(move || {
                let mut id = thread;
                while !ended.load(Ordering::Relaxed) {
                    id = (id + 7_919 * 2) % (DOCUMENTS * 2);
                    let filter = doc! { "_id": id };
                    match id % 5 {
                        0 => drop(documents.delete_one(filter).run().unwrap()),
                        1 if documents.count_documents(filter.clone()).run().unwrap() == 0 => {
                            documents.insert_one(&doc! { "_id": id, "k": [id, 1], "u": id }).run().unwrap();
                        }
                        _ => {
                            let update = doc! { "$set": { "k": id % 77, "u": id + 1_000_000 * (id % 3) } };
                            documents.update_one(filter, update).run().unwrap();
                        }
                    }
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while writes.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        let before = writes.load(Ordering::Relaxed);
        let built = pando
            .database("d")
            .run_command(doc! { "createIndexes": "c", "indexes": [
                { "key": { "k": 1 }, "name": "k_1" },
                { "key": { "u": -1 }, "name": "u_-1", "unique": true },
            ] })
            .run();
        let during = writes.load(Ordering::Relaxed) - before;
        ended.store(true, Ordering::Relaxed);
        assert_eq!(built.unwrap().get_i32("numIndexesAfter").unwrap(), 3);
        assert!(during > 0, "writers go on");
    });
    let validated = pando.database("d").run_command(doc! { "validate": "c", "full": true }).run().unwrap();
    assert!(validated.get_bool("valid").unwrap(), "{validated}");
    drop(documents);
    pando.close().unwrap();
    assert_sound(folder.path());
    let pando = Pando::open(folder.path()).unwrap();
    let validated = pando.database("d").run_command(doc! { "validate": "c", "full": true }).run().unwrap();
    assert!(validated.get_bool("valid").unwrap(), "{validated}");
}
