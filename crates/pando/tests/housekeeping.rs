//! The periodic work of a store, on a simulated clock: it is done when it is due, shown, and ends with the
//! store. The requests of a store are listed while they run.

use std::path::Path;
use std::time::Duration;

use pando_commands::{BlockingMode, ConnectionState, Request};
use pando_document::RawDocumentBuf;
use pando_environment::{Environment, Simulation};
use pandodb::bson::{self, Document};
use pandodb::{Commands, CommandsOptions, EngineName, EngineOptions, doc, open_commands};

fn opened() -> (Simulation, Commands) {
    let simulation = Environment::simulated(7);
    let environment = simulation.environment.clone();
    let options = EngineOptions::default();
    let commands = open_commands(
        EngineName::Memory,
        Path::new("unused"),
        &options,
        environment,
        CommandsOptions::default(),
        None,
    );
    (simulation, commands.unwrap())
}

fn ask(commands: &Commands, connection: &mut ConnectionState, command: Document) -> Document {
    let body = RawDocumentBuf::from_vec(bson::serialize_to_vec(&command).unwrap()).unwrap();
    let mut reply = Vec::new();
    commands.handle(connection, &Request::of(&body), BlockingMode::MayBlock, &mut reply);
    bson::deserialize_from_slice(&reply).unwrap()
}

fn runs(commands: &Commands, connection: &mut ConnectionState, chore: &str) -> i64 {
    let status = ask(commands, connection, doc! { "serverStatus": 1, "$db": "admin" });
    let chores = status.get_document("pando").unwrap().get_document("housekeeping").unwrap();
    chores.get_document(chore).unwrap().get_i64("runs").unwrap()
}

#[test]
fn unused_cursors_are_closed_when_their_time_is_over_and_nothing_runs_after_the_close() {
    let (simulation, commands) = opened();
    let connection = &mut ConnectionState::new(1, "test");
    let documents: Vec<Document> = (0..10).map(|id| doc! { "_id": id }).collect();
    ask(&commands, connection, doc! { "insert": "c", "documents": documents, "$db": "d" });
    let found = ask(&commands, connection, doc! { "find": "c", "batchSize": 2, "$db": "d" });
    let id = found.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! { "getMore": id, "collection": "c", "batchSize": 2, "$db": "d" };
    for _ in 0..100 {
        simulation.clock.advance(Duration::from_secs(5));
        simulation.tasks.run_until_idle();
    }
    assert_eq!(runs(&commands, connection, "cursorExpiry"), 100);
    assert!(ask(&commands, connection, more.clone()).get_f64("ok").is_ok_and(|ok| ok > 0.0));
    for _ in 0..130 {
        simulation.clock.advance(Duration::from_secs(5));
        simulation.tasks.run_until_idle();
    }
    assert_eq!(ask(&commands, connection, more).get_i32("code").unwrap(), 43);
    commands.close().unwrap();
    simulation.clock.advance(Duration::from_secs(60));
    assert!(!simulation.tasks.run_one());
}

#[test]
fn a_caller_that_only_reads_has_no_expired_document_removed() {
    let passes = |commands: &Commands| {
        let connection = &mut ConnectionState::new(1, "test");
        let status = ask(commands, connection, doc! { "serverStatus": 1, "$db": "admin" });
        status.get_document("metrics").unwrap().get_document("ttl").unwrap().get_i64("passes").unwrap()
    };
    for (is_reader, expected) in [(false, true), (true, false)] {
        let (simulation, commands) = opened();
        if is_reader {
            commands.stop_periodic_work();
        }
        for _ in 0..30 {
            simulation.clock.advance(Duration::from_secs(5));
            simulation.tasks.run_until_idle();
        }
        assert_eq!(passes(&commands) > 0, expected, "{is_reader}");
        commands.close().unwrap();
    }
}

#[test]
fn entries_of_the_profiler_are_written_without_being_asked_for() {
    let (simulation, commands) = opened();
    let connection = &mut ConnectionState::new(1, "test");
    ask(&commands, connection, doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "d" });
    ask(&commands, connection, doc! { "profile": 2, "$db": "d" });
    ask(&commands, connection, doc! { "find": "c", "filter": { "_id": 1 }, "$db": "d" });
    ask(&commands, connection, doc! { "profile": 0, "$db": "d" });
    simulation.clock.advance(Duration::from_secs(2));
    simulation.tasks.run_until_idle();
    let entries = ask(&commands, connection, doc! { "count": "system.profile", "$db": "d" });
    assert_eq!(entries.get_i32("n").unwrap(), 1);
    assert!(runs(&commands, connection, "profileWrites") >= 1);
}

#[test]
fn a_request_lists_itself() {
    let (_simulation, commands) = opened();
    let connection = &mut ConnectionState::new(7, "test");
    let listed = ask(&commands, connection, doc! { "currentOp": 1, "$db": "admin" });
    let inprog = listed.get_array("inprog").unwrap();
    assert_eq!(inprog.len(), 1);
    let own = inprog[0].as_document().unwrap();
    assert_eq!((own.get_i32("connectionId").unwrap(), own.get_str("op").unwrap()), (7, "command"));
    let again = ask(&commands, connection, doc! { "currentOp": 1, "$db": "admin" });
    let opid = |reply: &Document| {
        reply.get_array("inprog").unwrap()[0].as_document().unwrap().get_i32("opid").unwrap()
    };
    assert!(opid(&again) > opid(&listed));
}
