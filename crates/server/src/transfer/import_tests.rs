//! Ends of an import, against a store that does as the test says.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bson::{Document, RawDocumentBuf, doc};

use super::error::TransferError;
use super::import::{End, Import, ImportOptions, Imported, Talk, import_into};
use super::import_plan::ImportPlan;
use super::input::Source;
use super::interrupt::Interrupt;
use super::target::{Beside, Target};
use super::*;

/// Replies in order; after the last one the store takes everything.
struct Scripted {
    replies: VecDeque<Result<Document, TransferError>>,
    /// The documents of each command.
    seen: Arc<Mutex<Vec<Vec<Document>>>>,
}

impl Target for Scripted {
    fn run_raw(
        &mut self,
        _database: &str,
        _command: Document,
        beside: Option<Beside<'_>>,
    ) -> Result<RawDocumentBuf, TransferError> {
        let documents = beside.map(|beside| beside.documents).unwrap_or_default();
        let seen = documents.iter().map(|raw| Document::try_from(raw).unwrap()).collect();
        self.seen.lock().unwrap().push(seen);
        let all = doc! { "ok": 1, "n": i32::try_from(documents.len()).unwrap() };
        let reply = self.replies.pop_front().unwrap_or(Ok(all))?;
        Ok(RawDocumentBuf::try_from(&reply).unwrap())
    }

    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}

fn parameters(file: &Path) -> Import {
    Import {
        source: Source::File(file.to_owned()),
        format: None,
        target: TargetChoice::Data("unused".into()),
        database: None,
        collection: None,
        rows: RowOptions::default(),
        options: ImportOptions { batch_records: Some(100), talk: Talk::Quiet, ..ImportOptions::default() },
    }
}

type Seen = Vec<Vec<Document>>;

fn run(import: &Import, replies: Vec<Result<Document, TransferError>>) -> (Imported, Seen) {
    let seen = Arc::default();
    let target = Scripted { replies: replies.into(), seen: Arc::clone(&seen) };
    let plan = ImportPlan::of(import).unwrap();
    let imported = import_into(&import.options, &plan, Box::new(target), Interrupt::default());
    let seen = seen.lock().unwrap().clone();
    (imported, seen)
}

fn lines(count: usize) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    let text: String = (0..count).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn taken(count: i32) -> Result<Document, TransferError> {
    Ok(doc! { "ok": 1, "n": count })
}

#[test]
fn a_resumed_import_that_stops_at_faults_passes_over_what_is_in_already() {
    let file = lines(100);
    let mut import = parameters(file.path());
    import.options.writing.after_fault = AfterFault::Stop;
    import.options.resume = Some("10:65f0c3a8e4b0f2a1c3d4e5f6".parse().unwrap());
    let there = |n: i32| {
        let key = doc! { "_id": 1 };
        let error = doc! { "index": n, "code": 11000, "errmsg": "E11000", "keyPattern": key };
        Ok(doc! { "ok": 1, "n": n, "writeErrors": [error] })
    };
    // The first is in already, and so is the 21st of those behind it.
    let (imported, seen) = run(&import, vec![there(0), there(20)]);
    assert!(matches!(imported.end, End::Complete));
    assert_eq!(
        (imported.counts.already_in, imported.counts.inserted, imported.counts.passed_over),
        (2, 88, 10)
    );
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [90, 89, 68]);
    let refused = Ok(doc! { "ok": 1, "n": 3, "writeErrors": [{ "index": 3, "code": 121, "errmsg": "no" }] });
    let (imported, _) = run(&import, vec![there(0), refused]);
    assert_eq!(imported.stopped.unwrap().line, 15);
}

#[test]
fn a_full_disk_ends_the_import_with_the_place_and_the_point_to_go_on() {
    let file = lines(350);
    let full = doc! { "ok": 1, "n": 0, "writeErrors": [{ "index": 0, "code": 14031, "errmsg": "no space" }] };
    let (imported, _) = run(&parameters(file.path()), vec![taken(100), taken(100), Ok(full)]);
    assert_eq!(imported.counts.inserted, 200);
    assert_eq!(imported.counts.refused, 0, "the documents are not at fault");
    assert!(matches!(imported.end, End::Failed(TransferError::Refused { code: 14031, .. })));
    let stopped = imported.stopped.unwrap();
    assert_eq!((stopped.line, stopped.doubtful, stopped.point.records), (201, 0, 200));
}

#[test]
fn documents_have_the_same_ids_when_an_import_goes_on_and_those_that_are_in_are_no_faults() {
    let file = lines(350);
    let (first, seen) = run(&parameters(file.path()), vec![taken(100), Err(TransferError::Closed)]);
    let stopped = first.stopped.unwrap();
    assert_eq!((stopped.line, stopped.doubtful, stopped.point.records), (101, 100, 100));

    let mut again = parameters(file.path());
    again.options.resume = Some(stopped.point);
    let duplicate = doc! { "index": 3, "code": 11000, "errmsg": "E11000 … index: _id_ dup key: { … }" };
    let other = doc! { "index": 4, "code": 11000, "errmsg": "E11000 … index: n_1 dup key: { … }" };
    let reply = doc! { "ok": 1, "n": 98, "writeErrors": [duplicate, other] };
    let (second, seen_again) = run(&again, vec![Ok(reply)]);
    assert_eq!(seen_again[0], seen[1], "the batch in doubt comes again with its ids");
    let counts = second.counts;
    assert_eq!((counts.passed_over, counts.already_in, counts.refused), (100, 1, 1));
    assert_eq!(counts.inserted, 98 + 150);
    assert!(matches!(second.end, End::Complete));
}

#[test]
fn a_folder_goes_on_at_the_file_where_it_stopped_and_tells_again_which_files_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |count: i32| (0..count).flat_map(|n| doc! { "n": n }.to_vec().unwrap()).collect::<Vec<u8>>();
    let cut = bytes(2);
    std::fs::write(folder.path().join("b.bson"), &cut[..cut.len() - 1]).unwrap();
    std::fs::write(folder.path().join("c.bson"), bytes(250)).unwrap();
    let import = parameters(folder.path());
    // Each collection is created before its first document.
    let replies = vec![taken(0), taken(1), taken(0), taken(100), Err(TransferError::Closed)];
    let (first, seen) = run(&import, replies);
    assert_eq!(first.counts.inserted, 101);
    let [DamagedFile { damage: Damage::Unreadable { point, .. }, .. }] = &first.damaged[..] else {
        panic!("{:?}", first.damaged)
    };
    assert_eq!((point.records, &point.place), (1, &None));
    let stopped = first.stopped.unwrap();
    assert_eq!((stopped.line, stopped.doubtful, stopped.point.records), (101, 100, 100));

    let mut again = import.clone();
    again.options.resume = Some(stopped.point.to_string().parse().unwrap());
    let (second, seen_again) = run(&again, vec![]);
    assert_eq!(seen_again[1], seen[4], "the batch in doubt comes again with its ids");
    assert_eq!((second.counts.passed_over, second.counts.inserted), (100, 150));
    assert!(matches!(second.damaged[..], [DamagedFile { damage: Damage::ToldBefore, .. }]));
    assert!(matches!(second.end, End::Complete) && !second.is_complete());
}

#[test]
fn a_user_who_wants_to_stop_at_the_first_error_gets_what_was_before_it() {
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    std::fs::write(file.path(), "{\"n\":0}\n{\"n\":1}\nnonsense\n{\"n\":3}\n").unwrap();
    let writing = Writing { after_fault: AfterFault::Stop, ..Writing::default() };
    let mut stopping = parameters(file.path());
    stopping.options.writing = writing;
    let (imported, seen) = run(&stopping, vec![]);
    assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 2);
    assert!(matches!(imported.end, End::Failed(TransferError::FirstError)));
    let stopped = imported.stopped.unwrap();
    assert_eq!((stopped.line, stopped.point.records), (3, 2));
}

#[test]
fn a_dump_s_collection_has_its_options_and_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let documents = [doc! { "_id": 1, "a": "x" }, doc! { "_id": 2 }];
    let bytes: Vec<u8> = documents.iter().flat_map(|one| one.to_vec().unwrap()).collect();
    std::fs::write(folder.path().join("c.bson"), &bytes).unwrap();
    let description = r#"{"options":{"capped":false},"indexes":[{"key":{"a":1},"name":"a_1"}]}"#;
    std::fs::write(folder.path().join("c.metadata.json"), description).unwrap();
    let (imported, seen) = run(&parameters(&folder.path().join("c.bson")), vec![]);
    assert_eq!((imported.counts.inserted, imported.counts.indexes), (2, 1));
    assert_eq!(seen[1], documents);

    // A file that ends within its last document: the others are in.
    std::fs::write(folder.path().join("c.bson"), &bytes[..bytes.len() - 1]).unwrap();
    let (imported, _) = run(&parameters(&folder.path().join("c.bson")), vec![]);
    assert_eq!(imported.counts.inserted, 1);
    let End::Failed(error) = imported.end else { panic!("half a document is an error") };
    assert!(error.to_string().contains("document 2, at byte") && error.to_string().contains("ends within"));
}
