//! Batches of updates and deletes: statements that fail, and statements too large for one transaction, among
//! others.

use std::path::Path;

use pandodb::bson::{Bson, Document};
use pandodb::{Database, Pando, doc};

/// More documents than one transaction changes.
const DOCUMENTS: i32 = 12_000;

fn filled(folder: &Path) -> Database {
    let database = Pando::open(folder).unwrap().database("d");
    let documents: Vec<Document> = (0..DOCUMENTS).map(|id| doc! { "_id": id, "n": 0 }).collect();
    database.collection::<Document>("c").insert_many(&documents).run().unwrap();
    database
}

/// `n` and the places of the statements that have failed.
fn run(database: &Database, command: Document) -> (i32, Vec<i32>) {
    let reply = database.run_command(command).run().unwrap();
    let failed = reply.get_array("writeErrors").map(Vec::as_slice).unwrap_or_default();
    let places = failed.iter().filter_map(Bson::as_document).map(|one| one.get_i32("index").unwrap());
    (reply.get_i32("n").unwrap(), places.collect())
}

fn count(database: &Database, filter: Document) -> u64 {
    database.collection::<Document>("c").count_documents(filter).run().unwrap()
}

#[test]
fn an_ordered_batch_of_updates_ends_with_the_failure_and_keeps_what_came_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = filled(folder.path());
    let updates = |last: i32| {
        vec![
            doc! { "q": { "_id": 1 }, "u": { "$set": { "first": 1 } } },
            doc! { "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true },
            doc! { "q": { "_id": -last }, "u": { "$set": { "made": last } }, "upsert": true },
            doc! { "q": { "_id": 2 }, "u": { "$inc": { "_id": 1 } } },
            doc! { "q": { "_id": last }, "u": { "$set": { "last": last } } },
        ]
    };
    let ordered = run(&database, doc! { "update": "c", "updates": updates(3) });
    assert_eq!(ordered, (1 + DOCUMENTS + 1, vec![3]));
    assert_eq!(count(&database, doc! { "last": 3 }), 0);
    let unordered = run(&database, doc! { "update": "c", "ordered": false, "updates": updates(4) });
    assert_eq!(unordered, (1 + DOCUMENTS + 1 + 1 + 1, vec![3]));
    assert_eq!(count(&database, doc! { "last": 4 }), 1);
    assert_eq!(count(&database, doc! { "n": 2 }), DOCUMENTS as u64);
}

#[test]
fn a_large_update_that_fails_is_one_failed_statement_and_the_next_has_its_own_place() {
    let folder = tempfile::tempdir().unwrap();
    let database = filled(folder.path());
    run(
        &database,
        doc! { "update": "c", "updates": [{ "q": { "_id": 11_000 }, "u": { "$set": { "n": "text" } } }] },
    );
    let updates = vec![
        doc! { "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true },
        doc! { "q": { "_id": 1 }, "u": { "$inc": { "_id": 1 } } },
        doc! { "q": { "_id": 1 }, "u": { "$set": { "last": 1 } } },
    ];
    let unordered = run(&database, doc! { "update": "c", "ordered": false, "updates": updates });
    assert_eq!(unordered, (1, vec![0, 1]), "the steps before the failure are not told");
    assert_eq!(count(&database, doc! { "n": 1 }), 11_000, "but stay");
}

#[test]
fn a_batch_of_deletes_counts_large_and_small_statements_up_to_its_failure() {
    let folder = tempfile::tempdir().unwrap();
    let database = filled(folder.path());
    let deletes = |first: i32| {
        vec![
            doc! { "q": { "_id": first }, "limit": 1 },
            doc! { "q": { "_id": { "$gte": 10 } }, "limit": 0 },
            doc! { "q": { "_id": { "$bad": 1 } }, "limit": 1 },
            doc! { "q": { "_id": first + 1 }, "limit": 1 },
        ]
    };
    let ordered = run(&database, doc! { "delete": "c", "deletes": deletes(1) });
    assert_eq!(ordered, (1 + DOCUMENTS - 10, vec![2]));
    assert_eq!(count(&database, doc! {}), 9);
    let unordered = run(&database, doc! { "delete": "c", "ordered": false, "deletes": deletes(3) });
    assert_eq!(unordered, (2, vec![2]));
    assert_eq!(count(&database, doc! {}), 7);
}
