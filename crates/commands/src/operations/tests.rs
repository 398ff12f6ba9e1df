//! Tests of the table: an interruption hits the request that it is meant for, and no other.

use pando_document::{Binary, Value, doc};
use pando_environment::Monotonic;

use super::*;
use crate::session_id::SessionOwner;

fn entered(table: &Arc<OperationTable>, id: i64) -> Entered {
    let operation = Arc::new(Operation::default());
    operation.begin();
    table.enter(id, "127.0.0.1:1", &operation)
}

fn list(table: &OperationTable, entered: &Entered, wants_answer: bool) -> i32 {
    let facts = RequestFacts { database: "shop", session: None, began: Monotonic::default(), wants_answer };
    table.list(entered.record(), RunningRequest::of(&doc! { "find": "c" }.to_raw(), facts));
    let mut number = 0;
    entered.record().change(|request| number = request.number);
    number
}

#[test]
fn a_connection_leaves_the_table_when_it_ends() {
    let table = Arc::new(OperationTable::default());
    let first = entered(&table, 1);
    let second = entered(&table, 2);
    assert_eq!((table.open(), table.ever(), table.busy()), (2, 2, 0));
    list(&table, &second, true);
    assert_eq!(table.busy(), 1);
    drop(first);
    drop(second);
    assert_eq!((table.open(), table.ever(), table.busy()), (0, 2, 0));
}

#[test]
fn a_kill_hits_the_request_of_its_number_and_no_later_one() {
    let table = Arc::new(OperationTable::default());
    let connection = entered(&table, 1);
    let operation = Arc::clone(connection.record().operation());
    let first = list(&table, &connection, true);
    connection.record().end();
    let second = list(&table, &connection, true);
    assert!(!table.kill(first));
    assert_eq!(operation.interruption(), None);
    assert!(table.kill(second));
    assert_eq!(operation.interruption(), Some(Interruption::Killed));
}

#[test]
fn a_request_ends_with_its_client_unless_the_client_wants_no_answer() {
    let table = Arc::new(OperationTable::default());
    let waited_for = entered(&table, 1);
    list(&table, &waited_for, true);
    waited_for.record().client_gone();
    assert_eq!(waited_for.record().operation().interruption(), Some(Interruption::ClientGone));
    let unacknowledged = entered(&table, 2);
    unacknowledged.record().client_gone();
    list(&table, &unacknowledged, false);
    unacknowledged.record().client_gone();
    assert_eq!(unacknowledged.record().operation().interruption(), None);
    unacknowledged.record().end();
    list(&table, &unacknowledged, true);
    assert_eq!(unacknowledged.record().operation().interruption(), Some(Interruption::ClientGone));
}

#[test]
fn a_request_that_waits_for_a_key_ends_at_once_with_its_client_or_its_transaction() {
    let simulation = pando_environment::Environment::simulated(1);
    let table = Arc::new(OperationTable::default());
    let binary = Binary { subtype: 4, bytes: vec![1; 16] };
    let body = doc! { "update": "c", "$db": "shop", "lsid": { "id": Value::Binary(binary) } }.to_raw();
    let clock = simulation.environment.clock();
    let begin = |id| table.enter(id, "test", &Arc::new(Operation::new(clock)));
    let wait = |connection: &Entered| {
        connection.record().operation().begin();
        let request = RunningRequest::of_waiting(&body, SessionOwner::NOBODY, Monotonic::default());
        table.list_wait(connection.record(), request, OperationWait::Intent)
    };
    let (gone, other) = (begin(1), begin(2));
    let _waits = [wait(&gone), wait(&other)];
    gone.record().client_gone();
    assert_eq!(gone.record().operation().interruption(), Some(Interruption::ClientGone));
    let _later = wait(&gone);
    assert_eq!(gone.record().operation().interruption(), Some(Interruption::ClientGone));
    table.end_waits_of(&[SessionId::from_bytes([2; 16])]);
    assert_eq!(other.record().operation().interruption(), None);
    table.end_waits_of(&[SessionId::from_bytes([1; 16])]);
    assert_eq!(other.record().operation().interruption(), Some(Interruption::Killed));
}

#[test]
fn closing_interrupts_requests_that_run_and_those_that_still_come() {
    let table = Arc::new(OperationTable::default());
    let running = entered(&table, 1);
    let later = entered(&table, 2);
    list(&table, &running, true);
    table.begin_closing();
    list(&table, &later, true);
    for connection in [running, later] {
        assert_eq!(connection.record().operation().interruption(), Some(Interruption::Shutdown));
    }
}

#[test]
fn a_dropped_collection_ends_its_users_with_a_text_and_no_others() {
    let table = Arc::new(OperationTable::default());
    let (user, other, dropper) = (entered(&table, 1), entered(&table, 2), entered(&table, 3));
    for connection in [&user, &other, &dropper] {
        list(&table, connection, true);
    }
    other.record().change(|request| request.namespace = "shop.d".to_owned());
    table.end_users_of("shop.c", "gone", dropper.record());
    assert_eq!(user.record().operation().interruption(), Some(Interruption::CollectionDropped));
    assert_eq!(user.record().end().and_then(|request| request.drop_text).as_deref(), Some("gone"));
    assert_eq!(other.record().operation().interruption(), None);
    assert_eq!(dropper.record().operation().interruption(), None);
}

#[test]
fn a_request_that_waits_for_the_log_is_listed_until_then_and_does_not_end_the_next_one() {
    let table = Arc::new(OperationTable::default());
    let connection = entered(&table, 1);
    let record = connection.record();
    let number = list(&table, &connection, true);
    let request = record.end().expect("it was listed");
    let waiting = table.list_wait(record, request, OperationWait::GroupCommit);
    assert_eq!(record.listed().running.map(|request| request.number), Some(number));
    assert_eq!(record.operation().wait(), Some(OperationWait::GroupCommit));
    // The client has sent the next request before it got the answer of this one.
    let next = list(&table, &connection, true);
    drop(waiting);
    assert_eq!(record.operation().wait(), None);
    assert_eq!(record.listed().running.map(|request| request.number), Some(next));
    record.end();
    // A request that was answered from the cache gets its number now.
    let body = doc! { "insert": "c", "$db": "shop" }.to_raw();
    let waiting = table.list_wait(
        record,
        RunningRequest::of_waiting(&body, SessionOwner::NOBODY, Monotonic::default()),
        OperationWait::GroupCommit,
    );
    let listed = record.listed().running.expect("it is listed");
    assert!(listed.number > next && listed.namespace == "shop.c");
    drop(waiting);
    assert!(record.listed().running.is_none());
}
