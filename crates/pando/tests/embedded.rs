//! The database in this process: the promises to a program that uses the library.

use std::os::unix::fs::FileExt;

use pandodb::bson::Document;
use pandodb::{
    Collection, DurabilityChoice, EngineName, EngineOptions, Error, Options, Pando, VerifyDepth, doc,
    restore_store, verify_store,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Note {
    #[serde(rename = "_id")]
    id: i32,
    text: String,
    tags: Vec<String>,
}

fn note(id: i32) -> Note {
    Note { id, text: format!("note {id}"), tags: vec![format!("t{}", id % 3)] }
}

#[test]
fn written_documents_are_there_when_the_folder_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    {
        let pando = Pando::open(folder.path()).unwrap();
        let notes = pando.database("d").collection::<Note>("notes");
        notes.create_index(doc! { "tags": 1 }).run().unwrap();
        notes.insert_many((0..2500).map(note)).run().unwrap();
        pando.close().unwrap();
    }
    let pando = Pando::open(folder.path()).unwrap();
    let notes = pando.database("d").collection::<Note>("notes");
    assert_eq!(notes.find_one(doc! { "_id": 7 }).run().unwrap(), Some(note(7)));
    let found: Vec<i32> =
        notes.find(doc! { "tags": "t1" }).run().unwrap().map(|note| note.unwrap().id).collect();
    assert_eq!(found.len(), 833);
    assert_eq!(pando.list_database_names().run().unwrap(), vec!["d".to_owned()]);
}

#[test]
fn a_store_that_is_dropped_without_close_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for durability in [DurabilityChoice::Synced, DurabilityChoice::Logged] {
        let options = Options { durability, ..Options::default() };
        let pando = Pando::open_with(folder.path(), &options).unwrap();
        pando.database("d").collection::<Document>("c").insert_one(&doc! { "n": 1 }).run().unwrap();
    }
    let pando = Pando::open(folder.path()).unwrap();
    assert_eq!(pando.database("d").collection::<Document>("c").count_documents(doc! {}).run().unwrap(), 2);
}

#[test]
fn updates_deletes_and_duplicates_are_told() {
    let options = Options { engine: EngineName::Memory, ..Options::default() };
    let pando = Pando::open_with("unused", &options).unwrap();
    let notes = pando.database("d").collection::<Note>("notes");
    notes.insert_many((0..10).map(note)).run().unwrap();
    let changed =
        notes.update_many(doc! { "_id": { "$lt": 5 } }, doc! { "$push": { "tags": "x" } }).run().unwrap();
    assert_eq!((changed.matched_count, changed.modified_count), (5, 5));
    assert_eq!(notes.delete_many(doc! { "tags": "x" }).run().unwrap().deleted_count, 5);
    match notes.insert_one(note(9)).run() {
        Err(Error::Write(errors)) => assert_eq!(errors[0].code, 11000),
        other => panic!("a duplicate was not refused: {other:?}"),
    }
    assert!(matches!(
        pando.database("d").run_command(doc! { "nonsense": 1 }).run(),
        Err(Error::Command { code: 59, .. })
    ));
}

#[test]
fn a_folder_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _open = Pando::open(folder.path()).unwrap();
    let refusals = [
        Pando::open(folder.path()).unwrap_err(),
        verify_store(folder.path(), VerifyDepth::Blocks).unwrap_err(),
        verify_store(folder.path(), VerifyDepth::Collections).unwrap_err(),
    ];
    for refused in refusals {
        assert!(refused.to_string().contains("cannot open"), "{refused}");
        assert!(refused.to_string().contains("this process"), "{refused}");
        let Error::InUse { folder: told, process, .. } = refused else { panic!("{refused:?}") };
        assert_eq!((told.as_path(), process), (folder.path(), Some(std::process::id())));
    }
}

#[test]
fn a_damaged_store_is_not_told_as_one_in_use() {
    let folder = tempfile::tempdir().unwrap();
    Pando::open(folder.path()).unwrap().close().unwrap();
    std::fs::write(folder.path().join("data.0000"), b"x").unwrap();
    let refused = Pando::open(folder.path()).unwrap_err();
    assert!(matches!(refused, Error::Open(_)), "{refused:?}");
}

#[test]
fn handles_and_actions_print_names_and_no_documents() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "it is printed alone")]
    struct App {
        store: Pando,
        notes: Collection<Note>,
    }
    let store = Pando::open_in_memory().unwrap();
    let database = store.database("d");
    let notes = database.collection::<Note>("notes");
    let session = store.start_session().run().unwrap();
    let (insert, search) = (notes.insert_one(note(7)), notes.find(doc! { "text": "secret" }));
    let printed = format!("{database:?} {session:?} {insert:?} {search:?} {:?}", notes.find(doc! {}).run());
    assert!(printed.contains("\"d\"") && printed.contains("Cursor(d.notes)"), "{printed}");
    assert!(!printed.contains("note 7") && !printed.contains("secret"), "{printed}");
    let printed = format!("{:?}", App { notes: notes.clone(), store: store.clone() });
    assert!(printed.contains("Pando") && printed.contains("Collection(d.notes)"), "{printed}");
}

#[test]
fn a_sound_store_is_found_sound_and_a_damaged_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let notes = pando.database("d").collection::<Note>("notes");
    notes.create_index(doc! { "tags": 1 }).run().unwrap();
    notes.insert_many((0..5000).map(note)).run().unwrap();
    // The folder is free once no handle is left.
    drop(notes);
    pando.close().unwrap();
    let report = verify_store(folder.path(), VerifyDepth::Collections).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.collections[0].1.documents, 5000);
    assert!(report.pages > 0 && report.trees == 5);

    // Bits turn in every 4 KiB beyond the superblocks; some of them are of live blocks.
    let file = folder.path().join("data.0000");
    let mut bytes = std::fs::read(&file).unwrap();
    for at in (80 * 1024..bytes.len()).step_by(4096) {
        bytes[at + 100] ^= 0x10;
    }
    std::fs::write(&file, bytes).unwrap();
    let report = verify_store(folder.path(), VerifyDepth::Blocks);
    assert!(report.is_err() || !report.unwrap().is_sound());
    let refused = Pando::open(folder.path()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("pando verify") && refused.contains("backup"), "{refused}");
}

#[test]
fn a_cache_with_which_no_engine_can_work_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine_options = EngineOptions { cache_bytes: 1000, ..EngineOptions::default() };
    let options = Options { engine_options, ..Options::default() };
    let refused = Pando::open_with(folder.path().join("data"), &options).map(drop).unwrap_err().to_string();
    assert!(refused.contains("16 MiB"), "{refused}");
    for endless in [1 << 60, u64::MAX / 2, u64::MAX] {
        let engine_options = EngineOptions { cache_bytes: endless, ..EngineOptions::default() };
        let options = Options { engine_options, ..Options::default() };
        let refused = Pando::open_with(folder.path().join("data"), &options).map(drop).unwrap_err();
        assert!(matches!(&refused, Error::InvalidArgument(text) if text.contains("1 PiB")), "{refused:?}");
    }
    assert!(!folder.path().join("data").exists());
}

#[test]
fn a_refused_document_says_which_rule_it_breaks_and_a_duplicate_which_key() {
    let pando = Pando::open_in_memory().unwrap();
    let database = pando.database("d");
    let schema = doc! { "required": ["b"], "properties": { "a": { "bsonType": "int" } } };
    let validator = doc! { "validator": { "$jsonSchema": schema } };
    database.create_collection("c").further_options(validator).run().unwrap();
    let of = |document: Document| match database.collection::<Document>("c").insert_one(document).run() {
        Err(Error::Write(errors)) => errors.into_iter().next().unwrap(),
        other => panic!("not refused: {other:?}"),
    };
    let wrong = of(doc! { "a": "x", "b": 1 });
    assert!(wrong.message.contains("the field 'a': type did not match"), "{}", wrong.message);
    assert!(wrong.details.unwrap().contains_key("details"));
    let lacking = of(doc! { "a": 1 });
    assert!(lacking.message.contains("it lacks b"), "{}", lacking.message);
    database.collection("c").insert_one(doc! { "_id": 7, "b": 1 }).run().unwrap();
    let duplicate = of(doc! { "_id": 7, "b": 1 });
    assert_eq!(duplicate.details, Some(doc! { "keyPattern": { "_id": 1 }, "keyValue": { "_id": 7 } }));
    let rules = doc! { "locale": "en", "strength": 1 };
    database.create_collection("by_letters").collation(rules).run().unwrap();
    let fruits = database.collection::<Document>("by_letters");
    fruits.insert_one(doc! { "_id": "apple" }).run().unwrap();
    match fruits.insert_one(doc! { "_id": "APPLE" }).run() {
        Err(Error::Write(errors)) => {
            let details = errors[0].details.as_ref().unwrap();
            assert_eq!(details.get_array("hexEncoded").unwrap(), &[true.into()], "{details}");
            assert_eq!(details.get_document("collation").unwrap().get_str("locale").unwrap(), "en");
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn many_threads_use_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let pando = pando.clone();
            std::thread::spawn(move || {
                let counters = pando.database("d").collection::<Document>("counters");
                for _ in 0..50 {
                    let update = doc! { "update": "counters", "updates": [
                    { "q": { "_id": "shared" }, "u": { "$inc": { "n": 1 } }, "upsert": true } ] };
                    pando.database("d").run_command(update).run().unwrap();
                    counters.insert_one(&doc! { "thread": thread }).run().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let counters = pando.database("d").collection::<Document>("counters");
    let shared = counters.find_one(doc! { "_id": "shared" }).run().unwrap().unwrap();
    assert_eq!(shared.get_i32("n").unwrap(), 200);
    assert_eq!(counters.count_documents(doc! {}).run().unwrap(), 201);
}

#[test]
fn a_damage_names_the_collection_and_the_index_beside_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let notes = pando.database("d").collection::<Note>("notes");
    notes.create_index(doc! { "tags": 1 }).run().unwrap();
    notes.insert_many((0..20_000).map(note).collect::<Vec<_>>()).run().unwrap();
    drop(notes);
    pando.close().unwrap();
    let bytes = std::fs::read(folder.path().join("data.0000")).unwrap();
    let file = std::fs::File::options().write(true).open(folder.path().join("data.0000")).unwrap();
    let mut named = Vec::new();
    // One place after the other, so that the catalog is whole each time but one. The store is below 1 MB,
    // and the blocks of the index may share two of these places.
    for at in (80 * 1024..bytes.len().min(1 << 20)).step_by(4 * 1024) {
        let damaged: Vec<u8> = bytes[at..at + 4096].iter().map(|byte| byte ^ 0x10).collect();
        file.write_all_at(&damaged, at as u64).unwrap();
        let report = verify_store(folder.path(), VerifyDepth::Blocks);
        named.extend(report.map(|report| report.problems).unwrap_or_default());
        file.write_all_at(&bytes[at..at + 4096], at as u64).unwrap();
    }
    let names =
        |owner: &str| named.iter().any(|problem| problem.starts_with(owner) && problem.contains("tree-"));
    assert!(names("collection d.notes: "), "{named:?}");
    assert!(names("index tags_1 of d.notes: "), "{named:?}");
}

/// How often the log was written to the device.
fn log_syncs(pando: &Pando) -> i64 {
    let status = pando.database("admin").run_command(doc! { "engineStatus": 1 }).run().unwrap();
    status.get_i64("log.syncs").unwrap_or_else(|_| panic!("{status}"))
}

#[test]
fn writes_of_commands_and_of_pipelines_are_on_the_device_as_the_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let database = pando.database("d");
    let numbers = database.collection::<Document>("numbers");
    numbers.insert_one(doc! { "_id": 0 }).run().unwrap();
    database.create_collection("sums").run().unwrap();
    let before = log_syncs(&pando);
    for id in 1..=20 {
        let insert = doc! { "insert": "numbers", "documents": [{ "_id": id }] };
        database.run_command(insert).run().unwrap();
    }
    let between = log_syncs(&pando);
    assert!(between - before >= 20, "{} syncs of 20 commands", between - before);
    for sum in 1..=20 {
        let stages = [doc! { "$set": { "sum": sum } }, doc! { "$merge": "sums" }];
        numbers.aggregate(stages).run().unwrap();
    }
    let after = log_syncs(&pando);
    assert!(after - between >= 20, "{} syncs of 20 pipelines", after - between);
}

#[test]
fn a_cache_by_name_is_refused_since_it_has_a_field_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let named = vec![("cache".to_owned(), "1MB".to_owned())];
    let options =
        Options { engine_options: EngineOptions { named, ..EngineOptions::default() }, ..Options::default() };
    let refused = Pando::open_with(folder.path(), &options).map(drop).unwrap_err();
    assert!(matches!(&refused, Error::InvalidArgument(text) if text.contains("cache_bytes")), "{refused:?}");
}

/// With the collection of a moment before its snapshot a find failed some times a second.
#[test]
fn a_find_beside_an_index_that_comes_and_goes_gives_all_documents() {
    let folder = tempfile::tempdir().unwrap();
    let pando = Pando::open(folder.path()).unwrap();
    let notes = pando.database("d").collection::<Document>("c");
    notes.insert_many((0..300).map(|id| doc! { "_id": id, "a": id % 7 })).run().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..400 {
                notes.create_index(doc! { "a": 1 }).run().unwrap();
                notes.drop_index("a_1").run().unwrap();
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        for _ in 0..2 {
            threads.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let found = notes.find(doc! { "a": { "$gte": 2 } }).run().unwrap();
                    assert_eq!(found.map(Result::unwrap).count(), 214);
                    assert!(notes.find_one(doc! { "a": { "$gte": 2 } }).run().unwrap().is_some());
                }
            });
        }
    });
}

#[test]
fn a_name_that_sqlite_takes_for_something_else_than_a_path_is_refused() {
    for name in [":memory:", "file:notes.db"] {
        let refused = Pando::open(name).map(drop).unwrap_err();
        assert!(matches!(&refused, Error::InvalidArgument(text) if text.contains(name)), "{refused:?}");
        assert!(!std::path::Path::new(name).exists());
    }
}

#[test]
fn an_empty_path_is_refused_and_leaves_nothing_behind() {
    for refused in [Pando::open("").err(), verify_store("", VerifyDepth::Blocks).err()] {
        let refused = refused.expect("an empty path is no folder").to_string();
        assert!(refused.contains("the path of the store is empty: name a folder"), "{refused}");
    }
    assert!(!std::path::Path::new("data.0000").exists() && !std::path::Path::new("LOCK").exists());
}

#[test]
fn a_path_that_is_a_file_or_leads_through_one_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.odt");
    std::fs::write(&file, b"x").unwrap();
    for path in [file.clone(), file.join("store")] {
        let refused = Pando::open(&path).err().unwrap().to_string();
        assert!(refused.contains("letter.odt is a file: a store is a folder"), "{refused}");
    }
}

#[test]
fn a_store_of_another_engine_is_told_in_the_words_of_the_library_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tikv-store"), b"x").unwrap();
    let refusals = [
        Pando::open(folder.path()).err(),
        verify_store(folder.path(), VerifyDepth::Blocks).err().filter(|_| !cfg!(feature = "engine-tikv")),
    ];
    for refused in refusals.into_iter().flatten() {
        let refused = refused.to_string();
        for words in ["tikv-store", "EngineName::Tikv", "engine-tikv", "--engine tikv"] {
            assert!(refused.contains(words), "{refused}");
        }
        assert!(!refused.contains("correct the path") && !refused.contains("there is no store"), "{refused}");
    }
}

#[test]
fn a_backup_of_an_open_store_is_restored_with_the_incremental_one_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let pando = Pando::open(at("data")).unwrap();
    let notes = pando.database("d").collection::<Note>("notes");
    notes.insert_many((0..100).map(note)).run().unwrap();
    let full = pando.backup(at("monday")).run().unwrap();
    notes.insert_one(note(100)).run().unwrap();
    let more = pando.backup(at("tuesday")).since(at("monday")).run().unwrap();
    assert!(full.bytes > 0 && !full.incremental && more.incremental, "{full:?} {more:?}");
    let engine = EngineOptions::default();
    restore_store(EngineName::Betree, &[at("monday"), at("tuesday")], at("restored"), &engine).unwrap();
    let restored = Pando::open(at("restored")).unwrap().database("d").collection::<Note>("notes");
    assert_eq!(restored.count_documents(doc! {}).run().unwrap(), 101);
    let refused = pando.backup(at("monday")).run();
    assert!(matches!(refused, Err(Error::Command { .. })), "{refused:?}");
}

#[test]
fn damaged_copies_of_superblocks_are_remarked_until_checkpoints_have_written_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let fill = |id: i32| {
        let pando = Pando::open(folder.path()).unwrap();
        pando.database("shop").collection::<Document>("items").insert_one(doc! { "_id": id }).run().unwrap();
        pando.close().unwrap();
    };
    (0..3).for_each(fill);
    let data = folder.path().join("data.0000");
    let whole = std::fs::read(&data).unwrap();
    // The second copies of both slots: a field, the magic, and everything.
    for (front, end, byte) in [(20, 28, 0xff), (0, 8, 0xff), (0, 4_096, 0)] {
        let mut bytes = whole.clone();
        for copy in [65_536, 69_632] {
            bytes[copy + front..copy + end].fill(byte);
        }
        std::fs::write(&data, bytes).unwrap();
        let report = verify_store(folder.path(), VerifyDepth::Blocks).unwrap();
        assert!(report.is_sound() && !report.is_closed_by_damage, "{:?}", report.problems);
        assert_eq!(report.remarks.len(), 2, "bytes {front} to {end}: {:?}", report.remarks);
        assert!(report.remarks[0].contains("at byte 65536"), "{:?}", report.remarks);
    }
    (3..6).for_each(fill);
    let report = verify_store(folder.path(), VerifyDepth::Blocks).unwrap();
    assert_eq!((report.is_sound(), report.remarks), (true, vec![]));
}
