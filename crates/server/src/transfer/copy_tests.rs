//! Copies between two stores that do as the test says.

use std::sync::{Arc, Mutex};

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};

use super::comparison::{Check, Ends};
use super::copy::{Continuation, Copied, StoreCopy, copy_into};
use super::error::TransferError;
use super::import::{End, ImportOptions, Talk};
use super::import_plan::ImportPlan;
use super::interrupt::Interrupt;
use super::shared_store::SharedStore;
use super::stored_collections::{Selection, plan_of};
use super::target::{Beside, Target, TargetChoice};
use super::{Existing, WriteMode, Writing};

/// The answer to a request; `Err` breaks the connection.
type Answer = Result<RawDocumentBuf, TransferError>;
type Answers = Box<dyn FnMut(&str, &Document) -> Answer + Send>;

/// A request: its command, and the documents beside it.
type Seen = Arc<Mutex<Vec<(Document, Vec<RawDocumentBuf>)>>>;

struct Scripted {
    answers: Answers,
    seen: Seen,
}

impl Target for Scripted {
    fn run_raw(&mut self, database: &str, command: Document, beside: Option<Beside<'_>>) -> Answer {
        let documents = beside.map(|beside| beside.documents.to_vec()).unwrap_or_default();
        self.seen.lock().unwrap().push((command.clone(), documents));
        (self.answers)(database, &command)
    }

    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}

fn store(answers: impl FnMut(&str, &Document) -> Answer + Send + 'static) -> (SharedStore, Seen) {
    let seen = Seen::default();
    let scripted = Scripted { answers: Box::new(answers), seen: Arc::clone(&seen) };
    (SharedStore::over(Box::new(scripted), "mongodb://there"), seen)
}

fn raw(document: &Document) -> Answer {
    Ok(RawDocumentBuf::try_from(document).unwrap())
}

fn listed(name: &str, documents: &[Document]) -> Document {
    doc! { "ok": 1, "cursor": { "id": 0_i64, "ns": name, "firstBatch": documents.to_vec() } }
}

/// A document that no `Document` can hold: one of its names is there twice.
fn twice() -> RawDocumentBuf {
    let mut document = rawdoc! { "_id": 2, "a": 1 };
    document.append(bson::cstr!("a"), 2);
    document
}

/// A source with one collection of three documents, in two batches, one view, and parts of the server itself.
/// `breaks` says whether the connection breaks before the second batch.
fn source(breaks: bool) -> (SharedStore, Seen) {
    store(move |_, command| {
        let (name, _) = command.iter().next().unwrap();
        match name.as_str() {
            "listDatabases" => raw(&doc! { "ok": 1, "databases": [{ "name": "shop" }, { "name": "local" }] }),
            "listCollections" => raw(&listed(
                "shop.$cmd.listCollections",
                &[
                    doc! { "name": "a", "type": "view", "options": { "viewOn": "z" } },
                    doc! { "name": "z", "type": "collection", "options": { "capped": true } },
                    doc! { "name": "system.views", "type": "collection" },
                ],
            )),
            "listIndexes" => raw(&listed(
                "shop.z",
                &[doc! { "key": { "_id": 1 }, "name": "_id_" }, doc! { "key": { "n": 1 }, "name": "n_1" }],
            )),
            "collStats" => raw(&doc! { "ok": 1, "size": 60 }),
            "find" => Ok(rawdoc! { "ok": 1.0, "cursor": {
                "id": 7_i64, "firstBatch": [rawdoc! { "_id": 1 }, twice()],
            } }),
            "getMore" if breaks => Err(TransferError::Closed),
            "getMore" => {
                Ok(rawdoc! { "ok": 1.0, "cursor": { "id": 0_i64, "nextBatch": [rawdoc! { "_id": 3 }] } })
            }
            "count" => raw(&doc! { "ok": 1, "n": 3 }),
            "aggregate" => raw(&listed("shop.z", &[doc! { "_id": 1, "n": 3_i64 }])),
            "dbHash" => raw(&doc! { "ok": 1, "collections": { "z": "5a" } }),
            other => panic!("{other}"),
        }
    })
}

/// A target with so many documents in each collection, which has no capped collections.
fn target(documents: i64) -> (SharedStore, Seen) {
    target_of_digest(documents, "5a")
}

fn target_of_digest(documents: i64, digest: &'static str) -> (SharedStore, Seen) {
    store(move |_, command| {
        let (name, _) = command.iter().next().unwrap();
        match name.as_str() {
            "find" if documents == 0 => raw(&listed("shop.z", &[])),
            "find" => raw(&listed("shop.z", &[doc! { "_id": 1 }])),
            "create" if command.contains_key("capped") => {
                raw(&doc! { "ok": 0, "code": 115, "errmsg": "capped is not supported" })
            }
            "insert" | "update" => raw(&doc! { "ok": 1, "n": 3 }),
            "count" => raw(&doc! { "ok": 1, "n": 2 }),
            "aggregate" => raw(&listed("shop.z", &[doc! { "_id": 1, "n": documents.max(3) }])),
            "dbHash" if digest.is_empty() => raw(&doc! { "ok": 0, "code": 59, "errmsg": "no such command" }),
            "dbHash" => raw(&doc! { "ok": 1, "collections": { "z": digest } }),
            _ => raw(&doc! { "ok": 1 }),
        }
    })
}

fn run(source: SharedStore, target: SharedStore, options: &ImportOptions) -> Result<Copied, TransferError> {
    run_as(source, target, options, Continuation::None)
}

fn run_as(
    source: SharedStore,
    target: SharedStore,
    options: &ImportOptions,
    continuation: Continuation,
) -> Result<Copied, TransferError> {
    let plan: ImportPlan = plan_of(&source, Selection::default())?;
    let copy = StoreCopy {
        from: TargetChoice::Data("unused".into()),
        to: TargetChoice::Data("unused too".into()),
        database: None,
        collection: None,
        engine: None,
        engine_options: Vec::new(),
        options: ImportOptions { talk: Talk::Quiet, ..options.clone() },
        continuation,
        check: Check::Hash,
    };
    copy_into(&copy, plan, Ends { source, target }, Interrupt::default())
}

fn names(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().unwrap();
    seen.iter().map(|(command, _)| command.keys().next().unwrap().clone()).collect()
}

#[test]
fn options_come_first_then_documents_as_their_bytes_then_indexes_and_views_last() {
    let ((source, _), (target, seen)) = (source(false), target(0));
    let copied = run(source, target, &ImportOptions::default()).unwrap();
    let asked = names(&seen);
    let (before, after) = (&asked[..4], &asked[4..]);
    assert_eq!(before, ["serverStatus", "listCollections", "listCollections", "find"]);
    assert_eq!(after, ["create", "insert", "createIndexes", "create", "count", "aggregate", "dbHash"]);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[5].1, [rawdoc! { "_id": 1 }, twice(), rawdoc! { "_id": 3 }]);
    assert_eq!(seen[7].0.get("viewOn"), Some(&Bson::from("z")));
    let counts = copied.imported.counts;
    assert_eq!((counts.inserted, counts.indexes, counts.not_created), (3, 1, 1), "the capped option is told");
    assert_eq!(copied.imported.remarks.len(), 2, "{:?}", copied.imported.remarks);
    // The counters differ, so that both sides are counted.
    let compared = &copied.compared[0];
    assert_eq!((compared.source, compared.target, compared.agrees(WriteMode::Insert)), (3, 3, true));
    assert!(copied.imported.input_bytes > 0);
}

#[test]
fn a_collection_with_documents_is_refused_unless_the_user_says_how_to_treat_it() {
    let refused = run(source(false).0, target(5).0, &ImportOptions::default());
    let Err(error @ TransferError::Filled { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("shop.z") && error.to_string().contains("--drop"), "{error}");

    let dropped = ImportOptions { existing: Existing::Dropped, ..ImportOptions::default() };
    let copied = run(source(false).0, target(5).0, &dropped).unwrap();
    assert!(!copied.compared[0].agrees(WriteMode::Insert), "five of three: somebody has written there");

    let writing = Writing { mode: WriteMode::Upsert, ..Writing::default() };
    let copied =
        run(source(false).0, target(5).0, &ImportOptions { writing, ..ImportOptions::default() }).unwrap();
    assert!(copied.compared[0].agrees(WriteMode::Upsert));
}

#[test]
fn a_source_that_breaks_leaves_the_place_and_a_point_to_go_on() {
    let (target_store, _) = target(0);
    let copied = run(source(true).0, target_store, &ImportOptions::default()).unwrap();
    let End::Failed(TransferError::Source { place, .. }) = &copied.imported.end else {
        panic!("{:?}", copied.imported.end)
    };
    assert_eq!(place, "mongodb://there");
    let stopped = copied.imported.stopped.unwrap();
    assert_eq!((stopped.line, stopped.doubtful, stopped.point.records), (3, 0, 2));
    assert!(copied.compared.is_empty());

    let again = ImportOptions { resume: Some(stopped.point), ..ImportOptions::default() };
    let (target_store, seen) = target(2);
    let copied = run(source(false).0, target_store, &again).unwrap();
    assert_eq!(copied.imported.counts.passed_over, 2);
    let seen = seen.lock().unwrap();
    let inserted = seen.iter().find(|(command, _)| command.contains_key("insert")).unwrap();
    assert_eq!(inserted.1, [rawdoc! { "_id": 3 }]);
}

#[test]
fn other_content_of_the_target_is_found_by_its_hash_where_both_sides_have_one() {
    let copied = run(source(false).0, target_of_digest(0, "5b").0, &ImportOptions::default()).unwrap();
    let compared = &copied.compared[0];
    assert_eq!((compared.source, compared.target), (3, 3));
    assert!(!compared.agrees(WriteMode::Insert), "the digests differ");

    let copied = run(source(false).0, target_of_digest(0, "").0, &ImportOptions::default()).unwrap();
    assert!(copied.compared[0].agrees(WriteMode::Insert), "counted only");
    let remarks = &copied.imported.remarks;
    assert!(remarks.last().unwrap().starts_with("documents are counted and not hashed: "), "{remarks:?}");
}

#[test]
fn a_copy_that_was_killed_goes_on_behind_the_documents_of_the_target() {
    let again = |documents: i64| {
        // The counters differ, so that the aggregation tells the count.
        let (target, seen) = store(move |_, command| {
            let (name, _) = command.iter().next().unwrap();
            match name.as_str() {
                "count" => raw(&doc! { "ok": 1, "n": documents }),
                "aggregate" => raw(&listed("shop.z", &[doc! { "_id": 1, "n": documents }])),
                "insert" => raw(&doc! { "ok": 1, "n": 2, "writeErrors": [
                    { "index": 0, "code": 11000, "errmsg": "E11000 dup key", "keyPattern": { "_id": 1 } },
                ] }),
                "dbHash" => raw(&doc! { "ok": 1, "collections": { "z": "5a" } }),
                _ => raw(&doc! { "ok": 1 }),
            }
        });
        let options = ImportOptions::default();
        (run_as(source(false).0, target, &options, Continuation::FromTarget).unwrap(), names(&seen))
    };
    let (copied, asked) = again(3);
    assert!(!asked.contains(&"insert".to_owned()), "{asked:?}");
    assert!(asked.contains(&"createIndexes".to_owned()), "{asked:?}");
    assert_eq!(copied.imported.counts.passed_over, 3);
    assert!(copied.imported.is_complete());

    let (copied, asked) = again(1);
    assert!(asked.contains(&"insert".to_owned()), "{asked:?}");
    let counts = copied.imported.counts;
    assert_eq!((counts.inserted, counts.already_in, counts.refused), (2, 1, 0));
    assert!(!copied.compared[0].agrees(WriteMode::Insert), "this target counts no document more");
}

#[test]
fn a_name_that_the_source_does_not_have_is_told_with_those_that_it_has() {
    let (source, _) = source(false);
    let missing = |database, collection| {
        let selection = Selection { database: Some(database), collection };
        plan_of(&source, selection).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(missing("shpo", None), "the source has no database shpo; it has shop");
    assert!(missing("local", None).starts_with("the database local belongs to a server"));
    assert!(missing("shop", Some("y")).starts_with("the source has no collection shop.y; it has a, "));
}

/// A source with a time series of three documents, which has no `_id` that is unique and no digest.
fn series_source() -> SharedStore {
    let (source, _) = store(move |_, command| {
        let (name, _) = command.iter().next().unwrap();
        match name.as_str() {
            "listDatabases" => raw(&doc! { "ok": 1, "databases": [{ "name": "shop" }] }),
            "listCollections" => raw(&listed(
                "shop.$cmd.listCollections",
                &[
                    doc! { "name": "ts", "type": "timeseries", "options": { "timeseries": { "timeField": "t" } } },
                ],
            )),
            "listIndexes" => raw(&listed("shop.ts", &[])),
            "collStats" => raw(&doc! { "ok": 1, "size": 60 }),
            "find" => raw(&listed("shop.ts", &[doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": 2 }])),
            "count" => raw(&doc! { "ok": 1, "n": 3 }),
            "aggregate" => raw(&listed("shop.ts", &[doc! { "_id": 1, "n": 3_i64 }])),
            "dbHash" => raw(&doc! { "ok": 1, "collections": {} }),
            other => panic!("{other}"),
        }
    });
    source
}

/// A target that has so many documents of the series, and takes what comes.
fn series_target(documents: i64) -> (SharedStore, Seen) {
    let mut has = documents;
    store(move |_, command| {
        let (name, _) = command.iter().next().unwrap();
        match name.as_str() {
            "find" => raw(&listed("shop.ts", &[doc! { "_id": 1 }])),
            "insert" => {
                has += 3;
                raw(&doc! { "ok": 1, "n": 3 })
            }
            "count" => raw(&doc! { "ok": 1, "n": has }),
            "aggregate" => raw(&listed("shop.ts", &[doc! { "_id": 1, "n": has }])),
            "dbHash" => raw(&doc! { "ok": 1, "collections": {} }),
            _ => raw(&doc! { "ok": 1 }),
        }
    })
}

#[test]
fn a_time_series_of_which_the_target_has_a_part_is_left_as_it_is() {
    let upsert = Writing { mode: WriteMode::Upsert, ..Writing::default() };
    let ways = [
        (ImportOptions::default(), Continuation::FromTarget),
        (ImportOptions { writing: upsert, ..ImportOptions::default() }, Continuation::None),
    ];
    for (options, continuation) in ways {
        let run = |documents| {
            let (target, seen) = series_target(documents);
            let copied = run_as(series_source(), target, &options, continuation).unwrap();
            let asked = names(&seen);
            assert!(!asked.contains(&"update".to_owned()), "{asked:?}");
            (copied, asked.contains(&"insert".to_owned()))
        };
        let mode = options.writing.mode;
        for part in [2, 5] {
            let (copied, inserts) = run(part);
            assert!(!inserts && !copied.compared[0].agrees(mode), "{part}: {copied:?}");
            let remark = copied.imported.remarks.last().unwrap();
            assert!(remark.contains("--db shop --collection ts --drop"), "{remark}");
        }
        let (copied, inserts) = run(3);
        assert!(!inserts && copied.compared[0].agrees(mode), "{copied:?}");
        let (copied, inserts) = run(0);
        assert!(inserts && copied.compared[0].agrees(mode), "{copied:?}");
        assert_eq!(copied.compared[0].digests, None, "neither side has one");
    }
}

#[test]
fn a_time_series_goes_on_at_a_point_only_if_the_target_has_what_is_before_it() {
    let options = |records: u64| {
        let resume = Some(format!("{records}:65f0c3a8e4b0f2a1c3d4e5f6").parse().unwrap());
        ImportOptions { resume, ..ImportOptions::default() }
    };
    let inserted = |documents, records| {
        let (target, seen) = series_target(documents);
        run(series_source(), target, &options(records)).unwrap();
        let seen = seen.lock().unwrap();
        seen.iter().find(|(command, _)| command.contains_key("insert")).map(|(_, beside)| beside.len())
    };
    assert_eq!(inserted(2, 2), Some(1));
    // The connection broke, and the batch was in all the same.
    assert_eq!(inserted(2, 1), None);
    assert_eq!(inserted(1, 0), None);
}

#[test]
fn a_filled_time_series_is_refused_without_the_advice_to_add_to_it() {
    let refused =
        run(series_source(), series_target(1).0, &ImportOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("--drop") && !refused.contains("--mode upsert"), "{refused}");
}

#[test]
fn an_upsert_is_hashed_where_the_counts_are_equal_and_agrees_with_no_refused_document() {
    let upsert = || {
        let writing = Writing { mode: WriteMode::Upsert, ..Writing::default() };
        ImportOptions { writing, ..ImportOptions::default() }
    };
    let copied = run(source(false).0, target_of_digest(3, "5b").0, &upsert()).unwrap();
    assert!(!copied.compared[0].agrees(WriteMode::Upsert), "the digests differ");
    let copied = run(source(false).0, target_of_digest(3, "5a").0, &upsert()).unwrap();
    assert!(copied.compared[0].agrees(WriteMode::Upsert) && copied.compared[0].digests.is_some());

    let (refusing, _) = store(move |_, command| {
        let (name, _) = command.iter().next().unwrap();
        match name.as_str() {
            "update" => raw(&doc! { "ok": 1, "n": 2, "writeErrors": [
                { "index": 1, "code": 11000, "errmsg": "E11000 dup key", "keyPattern": { "name": 1 } },
            ] }),
            "count" => raw(&doc! { "ok": 1, "n": 5 }),
            "aggregate" => raw(&listed("shop.z", &[doc! { "_id": 1, "n": 5_i64 }])),
            _ => raw(&doc! { "ok": 1 }),
        }
    });
    let copied = run(source(false).0, refusing, &upsert()).unwrap();
    let compared = &copied.compared[0];
    assert_eq!((compared.source, compared.target, compared.left_out), (3, 5, 1));
    assert!(!compared.agrees(WriteMode::Upsert));
}

#[test]
fn a_collection_that_is_not_at_the_target_has_no_digest_there() {
    let (empty, _) = store(move |_, command| {
        let (name, _) = command.iter().next().unwrap();
        match name.as_str() {
            "find" => raw(&listed("shop.z", &[])),
            "count" => raw(&doc! { "ok": 1, "n": 3 }),
            "dbHash" => raw(&doc! { "ok": 1, "collections": {} }),
            _ => raw(&doc! { "ok": 1, "n": 3 }),
        }
    });
    let copied = run(source(false).0, empty, &ImportOptions::default()).unwrap();
    let digests = copied.compared[0].digests.clone().unwrap();
    assert_eq!((digests.source.as_deref(), digests.target), (Some("5a"), None));
    assert!(!copied.compared[0].agrees(WriteMode::Insert));
}

#[test]
fn a_user_without_the_right_to_bypass_a_validator_copies_without_it_and_is_told() {
    let source = || {
        let (source, _) = store(|_, command| {
            let (name, _) = command.iter().next().unwrap();
            match name.as_str() {
                "listDatabases" => raw(&doc! { "ok": 1, "databases": [{ "name": "shop" }] }),
                "listCollections" => raw(&listed(
                    "shop.$cmd.listCollections",
                    &[doc! { "name": "v", "options": { "validator": { "n": 1 } } }],
                )),
                "listIndexes" => raw(&listed("shop.v", &[])),
                "find" => raw(&listed("shop.v", &[doc! { "_id": 1 }])),
                "count" => raw(&doc! { "ok": 1, "n": 1 }),
                "dbHash" => raw(&doc! { "ok": 1, "collections": { "v": "5a" } }),
                _ => raw(&doc! { "ok": 1 }),
            }
        });
        source
    };
    for may_bypass in [true, false] {
        let (target, seen) = store(move |_, command| {
            let (name, _) = command.iter().next().unwrap();
            match name.as_str() {
                _ if command.contains_key("bypassDocumentValidation") && !may_bypass => {
                    raw(&doc! { "ok": 0, "code": 13, "errmsg": "not authorized" })
                }
                "connectionStatus" => {
                    let right = if may_bypass { "bypassDocumentValidation" } else { "insert" };
                    let other = doc! { "resource": { "db": "other", "collection": "" }, "actions": ["bypassDocumentValidation"] };
                    let own = doc! { "resource": { "db": "shop", "collection": "" }, "actions": [right] };
                    let info = doc! {
                        "authenticatedUsers": [{ "user": "ada", "db": "admin" }],
                        "authenticatedUserPrivileges": [other, own],
                    };
                    raw(&doc! { "ok": 1, "authInfo": info })
                }
                "find" => raw(&listed("shop.v", &[])),
                "dbHash" => raw(&doc! { "ok": 1, "collections": { "v": "5a" } }),
                _ => raw(&doc! { "ok": 1, "n": 1 }),
            }
        });
        let copied = run(source(), target, &ImportOptions::default()).unwrap();
        assert!(copied.imported.is_complete(), "{copied:?}");
        let told = copied.imported.remarks.iter().any(|remark| remark.contains("has no right"));
        assert_eq!(told, !may_bypass, "{copied:?}");
        let seen = seen.lock().unwrap();
        let insert = seen.iter().find(|(command, _)| command.contains_key("insert")).unwrap();
        assert_eq!(insert.0.contains_key("bypassDocumentValidation"), may_bypass);
    }
}
