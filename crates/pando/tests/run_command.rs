//! Commands as documents: those that a call cannot have, and the cursors that they open.

use pandodb::bson::Document;
use pandodb::{Error, Pando, doc};

fn store() -> Pando {
    let pando = Pando::open_in_memory().unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    notes.insert_many((0..300).map(|id| doc! { "_id": id })).run().unwrap();
    pando
}

/// The open cursors, and those of them without a time-out.
fn cursors(pando: &Pando) -> [i64; 2] {
    let status = pando.database("admin").run_command(doc! { "serverStatus": 1 }).run().unwrap();
    let metrics = status.get_document("metrics").unwrap();
    let open = metrics.get_document("cursor").unwrap().get_document("open").unwrap();
    ["total", "noTimeout"].map(|name| open.get_i64(name).unwrap())
}

#[test]
fn a_command_whose_effect_would_end_with_the_call_is_refused_with_the_way_to_it() {
    let pando = store();
    let session = pando.start_session().run().unwrap();
    let refused = [
        (doc! { "beginTransaction": 1 }, "start_session"),
        (doc! { "rollbackTransaction": 1 }, "start_session"),
        (doc! { "beginLoad": 1, "ns": "c", "indexes": [], "options": {} }, "insert_many"),
        (doc! { "commitLoad": 1 }, "insert_many"),
        (doc! { "setClientLockTimeout": 5 }, "max_time"),
        (doc! { "getLastError": 1 }, "its own result"),
    ];
    for (command, way) in refused {
        for database in [pando.database("d"), session.database("d")] {
            let error = database.run_command(command.clone()).run().unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{error:?}");
            let (text, name) = (error.to_string(), command.keys().next().unwrap());
            assert!(text.contains(way) && text.contains(name.as_str()), "{text}");
        }
    }
}

#[test]
fn a_cursor_of_a_command_times_out_and_one_of_a_search_waits_for_its_program() {
    let pando = store();
    let database = pando.database("d");
    let notes = database.collection::<Document>("notes");
    let of_search = notes.find(doc! {}).batch_size(2).run().unwrap();
    let of_pipeline = notes.aggregate([]).batch_size(2).run().unwrap();
    assert_eq!(cursors(&pando), [2, 2]);
    let find = doc! { "find": "notes", "batchSize": 2 };
    let reply = database.run_command(find).run().unwrap();
    assert_eq!(cursors(&pando), [3, 2]);
    drop((of_search, of_pipeline));
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    database.run_command(doc! { "killCursors": "notes", "cursors": [id] }).run().unwrap();
    assert_eq!(cursors(&pando), [0, 0]);
}

#[test]
fn a_search_whose_next_batch_is_refused_ends_in_the_store_too() {
    let pando = store();
    let mut session = pando.start_session().run().unwrap();
    let notes = session.collection(&pando.database("d").collection::<Document>("notes"));
    let mut found = notes.find(doc! {}).batch_size(2).run().unwrap();
    session.start_transaction().run().unwrap();
    notes.insert_one(doc! { "_id": "new" }).run().unwrap();
    assert_eq!(cursors(&pando)[0], 1);
    assert!(found.nth(2).unwrap().is_err());
    assert_eq!(cursors(&pando)[0], 0);
    assert!(found.next().is_none());
}
