//! The table of sessions over an engine in memory.

use pando_catalog::{
    CachedReads, Caller, Durability, ErrorKind, Operation, SharedEngine, StorageError, WriteTransaction,
};
use pando_document::{RawDocumentBuf, doc};
use pando_environment::Environment;

use super::*;
use crate::generic_arguments::{Participation, ReadLevel, Start, StatementIds, TransactionSupport};
use crate::open_load::OpenLoad;
use crate::operations::ConnectionRecord;

fn catalog() -> Catalog {
    let engine: SharedEngine = Arc::new(pando_memory::MemoryEngine::new(&Environment::real()));
    Catalog::open(engine).unwrap()
}

fn id(byte: u8) -> SessionId {
    SessionId::from_bytes([byte; 16])
}

fn begun() -> Begun {
    let environment = Environment::real();
    Begun {
        at: environment.clock().monotonic(),
        ms: 0,
        level: ReadLevel::Local,
        past: None,
        connection: Arc::new(ConnectionRecord::new(1, "test", Arc::new(Operation::default()))),
    }
}

fn entered(
    sessions: &Sessions,
    catalog: &Catalog,
    session: SessionId,
    participation: Participation,
) -> Result<SessionUse, CommandError> {
    entered_for(sessions, catalog, session, (participation, TransactionSupport::Statement))
}

fn entered_for(
    sessions: &Sessions,
    catalog: &Catalog,
    session: SessionId,
    asked: (Participation, TransactionSupport),
) -> Result<SessionUse, CommandError> {
    entered_as(sessions, catalog, session, asked, BlockingMode::CachedOnly)
}

fn entered_as(
    sessions: &Sessions,
    catalog: &Catalog,
    session: SessionId,
    (participation, support): (Participation, TransactionSupport),
    blocking: BlockingMode,
) -> Result<SessionUse, CommandError> {
    let operation = Operation::default();
    let caller = Caller { blocking, operation: &operation };
    let mut session = sessions.take(session, catalog, caller)?;
    let (statement_ids, blocking, cached_reads) =
        (StatementIds::default(), caller.blocking, CachedReads::Told);
    let entry = Entry { participation, support, statement_ids, catalog, blocking, cached_reads };
    match session.enter(&entry, begun) {
        Ok(()) => Ok(session),
        Err(error) => {
            session.leave(EndOfRequest::Again, TransactionSupport::Statement, 1_000);
            Err(error)
        }
    }
}

fn code_of(outcome: Result<SessionUse, CommandError>) -> i32 {
    match outcome {
        Ok(_) => 0,
        Err(CommandError::WouldBlock(_)) => -1,
        Err(CommandError::Failed(failure)) => failure.code.code(),
    }
}

fn leave(session: SessionUse, end: EndOfRequest) {
    session.leave(end, TransactionSupport::Statement, 1_000);
}

const BEGIN: fn(i64) -> Participation = |number| Participation::Transaction(number, Start::Begins);
const GO_ON: fn(i64) -> Participation = |number| Participation::Transaction(number, Start::Continues);

#[test]
fn a_session_serves_one_request_at_a_time() {
    let (sessions, catalog) = (Sessions::default(), catalog());
    let first = entered(&sessions, &catalog, id(1), BEGIN(1)).unwrap();
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), GO_ON(1))), -1);
    assert_eq!(code_of(entered(&sessions, &catalog, id(2), BEGIN(1))), 0);
    leave(first, EndOfRequest::Answered);
    leave(entered(&sessions, &catalog, id(1), GO_ON(1)).unwrap(), EndOfRequest::Answered);
    // The other one was dropped without an end, as by a panic.
    assert_eq!(code_of(entered(&sessions, &catalog, id(2), GO_ON(1))), 251);
    assert_eq!(sessions.figures.open(), 1);
}

#[test]
fn a_request_that_is_handled_again_begins_its_transaction_again() {
    let (sessions, catalog) = (Sessions::default(), catalog());
    for _ in 0..3 {
        let session = entered(&sessions, &catalog, id(1), BEGIN(7)).unwrap();
        leave(session, EndOfRequest::Again);
        assert_eq!(sessions.figures.open(), 0);
    }
    leave(entered(&sessions, &catalog, id(1), BEGIN(7)).unwrap(), EndOfRequest::Answered);
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), BEGIN(7))), 117);
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), BEGIN(6))), 225);
    leave(entered(&sessions, &catalog, id(1), GO_ON(7)).unwrap(), EndOfRequest::Again);
    leave(entered(&sessions, &catalog, id(1), GO_ON(7)).unwrap(), EndOfRequest::Failed);
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), GO_ON(7))), 251);
    assert_eq!(catalog.engine().live_transactions().len(), 0);
}

#[test]
fn a_transaction_that_is_ended_before_its_first_statement_is_handled_again_does_not_begin() {
    let (sessions, catalog) = (Sessions::default(), catalog());
    let end = |number| entered_for(&sessions, &catalog, id(1), (GO_ON(number), TransactionSupport::End));
    leave(entered(&sessions, &catalog, id(1), BEGIN(7)).unwrap(), EndOfRequest::Again);
    assert_eq!(code_of(end(8)), 251, "no one has begun it");
    let session = end(7).unwrap();
    assert!(matches!(session.stage(), Stage::Aborted));
    leave(session, EndOfRequest::Failed);
    for _ in 0..2 {
        assert_eq!(code_of(entered(&sessions, &catalog, id(1), BEGIN(7))), 251);
    }
    leave(entered(&sessions, &catalog, id(1), BEGIN(8)).unwrap(), EndOfRequest::Answered);
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), BEGIN(8))), 117);
}

#[test]
fn a_transaction_does_not_begin_where_its_first_read_would_have_to_wait() {
    let (sessions, catalog) = (Sessions::default(), catalog());
    let operation = Operation::default();
    let enter = |number: i64, blocking| {
        let caller = Caller { blocking, operation: &operation };
        let mut session = sessions.take(id(1), &catalog, caller).unwrap();
        let entry = Entry {
            participation: BEGIN(number),
            support: TransactionSupport::Statement,
            statement_ids: StatementIds::default(),
            catalog: &catalog,
            blocking,
            cached_reads: CachedReads::NotTold,
        };
        let entered = session.enter(&entry, || {
            assert_eq!(blocking, BlockingMode::MayBlock);
            begun()
        });
        leave(session, if entered.is_ok() { EndOfRequest::Answered } else { EndOfRequest::Again });
        match entered {
            Ok(()) => 0,
            Err(CommandError::WouldBlock(_)) => -1,
            Err(CommandError::Failed(failure)) => failure.code.code(),
        }
    };
    assert_eq!(enter(7, BlockingMode::CachedOnly), -1);
    assert_eq!(catalog.engine().live_transactions().len(), 0);
    assert_eq!(enter(7, BlockingMode::MayBlock), 0);
    assert_eq!(catalog.engine().live_transactions().len(), 1);
    // The next one ends it, and is ended itself before its first statement comes again.
    assert_eq!(enter(8, BlockingMode::CachedOnly), -1);
    assert_eq!(catalog.engine().live_transactions().len(), 0);
    let ended = entered_for(&sessions, &catalog, id(1), (GO_ON(8), TransactionSupport::End)).unwrap();
    assert!(matches!(ended.stage(), Stage::Aborted));
    leave(ended, EndOfRequest::Failed);
    assert_eq!(enter(8, BlockingMode::MayBlock), 251);
}

#[test]
fn an_ended_transaction_leaves_no_snapshot_even_if_a_request_works_with_it() {
    let (sessions, catalog) = (Sessions::default(), catalog());
    leave(entered(&sessions, &catalog, id(1), BEGIN(1)).unwrap(), EndOfRequest::Answered);
    let busy = entered(&sessions, &catalog, id(2), BEGIN(1)).unwrap();
    assert_eq!(sessions.idle().len(), 1);
    assert_eq!(catalog.engine().live_transactions().len(), 2);
    let (ended, wanted) = sessions.end_transactions(|_, _| true);
    assert_eq!((ended.len(), wanted), (1, vec![id(2)]));
    leave(busy, EndOfRequest::Answered);
    assert_eq!(catalog.engine().live_transactions().len(), 0);
    for session in [id(1), id(2)] {
        assert_eq!(code_of(entered(&sessions, &catalog, session, GO_ON(1))), 251);
    }
    // A newer number takes the place of an open one.
    leave(entered(&sessions, &catalog, id(1), BEGIN(2)).unwrap(), EndOfRequest::Answered);
    leave(entered(&sessions, &catalog, id(1), BEGIN(3)).unwrap(), EndOfRequest::Answered);
    assert_eq!((catalog.engine().live_transactions().len(), sessions.figures.open()), (1, 1));
    sessions.clear();
    assert_eq!(catalog.engine().live_transactions().len(), 0);
}

#[test]
fn a_write_is_remembered_by_its_record_until_the_session_is_old() {
    let (sessions, catalog) = (Sessions::default(), catalog());
    catalog
        .create_collection(&pando_catalog::Namespace::new("d", "c").unwrap(), RawDocumentBuf::new(), [1; 16])
        .unwrap();
    let mut session = entered(&sessions, &catalog, id(1), Participation::RetryableWrite(5)).unwrap();
    assert!(session.repeated(0).is_none());
    session.executed(0, None);
    session.forget_news();
    assert!(session.repeated(0).is_none(), "its transaction was rolled back");
    session.executed(0, Some(&doc! { "_id": 1 }.get("_id").unwrap().clone()));
    let mut transaction = catalog.begin_write().unwrap();
    session.write_record(&mut transaction, Durability::None, 1_000).unwrap();
    transaction.commit(Durability::None).unwrap();
    session.keep_news();
    assert_eq!(session.repeated(0), Some(Some(pando_document::Value::Int32(1))));
    assert_eq!(session.retried(), [0]);
    leave(session, EndOfRequest::Answered);

    // A new table knows it from the record.
    let sessions = Sessions::default();
    let mut session = entered(&sessions, &catalog, id(1), Participation::RetryableWrite(5)).unwrap();
    assert!(session.repeated(0).is_some() && session.repeated(1).is_none());
    leave(session, EndOfRequest::Answered);
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), Participation::RetryableWrite(4))), 225);
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), BEGIN(5))), 117);
    assert_eq!(
        sessions.figures.iter().find(|(name, _)| *name == "retriedCommandsCount"),
        Some(("retriedCommandsCount", 1))
    );

    // Its record goes when it is old and its session is not in use.
    remove_records(&catalog, 5_000, &sessions.forget_before(500)).unwrap();
    leave(
        entered(&sessions, &catalog, id(1), Participation::RetryableWrite(5)).unwrap(),
        EndOfRequest::Answered,
    );
    remove_records(&catalog, 500, &sessions.forget_before(5_000)).unwrap();
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), Participation::RetryableWrite(4))), 225);
    remove_records(&catalog, 5_000, &sessions.forget_before(5_000)).unwrap();
    assert_eq!(code_of(entered(&sessions, &catalog, id(1), Participation::RetryableWrite(4))), 0);
}

#[test]
fn after_a_lost_answer_the_record_tells_whether_a_commit_has_happened() {
    let lost = StorageError::new(ErrorKind::Undetermined, "the answer was lost");
    for has_happened in [true, false] {
        let (sessions, catalog) = (Sessions::default(), catalog());
        let finish = |transaction: WriteTransaction| match has_happened {
            true => drop(transaction.commit(Durability::None).unwrap()),
            false => drop(transaction),
        };
        let again = |participation| {
            let asked = (participation, TransactionSupport::Statement);
            let cached = entered_as(&sessions, &catalog, id(1), asked, BlockingMode::CachedOnly);
            assert_eq!(code_of(cached), -1, "the record is read where waiting is allowed");
            entered_as(&sessions, &catalog, id(1), asked, BlockingMode::MayBlock)
        };

        let mut write = entered(&sessions, &catalog, id(1), Participation::RetryableWrite(5)).unwrap();
        write.executed(0, None);
        let mut transaction = catalog.begin_write().unwrap();
        write.write_record(&mut transaction, Durability::None, 1_000).unwrap();
        finish(transaction);
        write.doubt_if_undetermined(&lost);
        leave(write, EndOfRequest::Failed);
        let mut write = again(Participation::RetryableWrite(5)).unwrap();
        assert_eq!(write.repeated(0).is_some(), has_happened);
        leave(write, EndOfRequest::Answered);

        let session = entered(&sessions, &catalog, id(1), BEGIN(6)).unwrap();
        let mut transaction = catalog.begin_write().unwrap();
        session.write_commit_record(&mut transaction, 1_000).unwrap();
        finish(transaction);
        session.doubt_if_undetermined(&lost);
        leave(session, EndOfRequest::Failed);
        let expected =
            if has_happened { ErrorCode::TransactionCommitted } else { ErrorCode::NoSuchTransaction };
        assert_eq!(code_of(again(GO_ON(6))), expected.code());
    }
}

#[test]
fn a_load_ends_with_its_transaction() {
    let (catalog, sessions) = (catalog(), Sessions::default());
    let begins = Participation::Transaction(1, Start::Begins);
    let mut session = entered(&sessions, &catalog, id(1), begins).unwrap();
    let namespace = pando_catalog::Namespace::new("d", "c").unwrap();
    let load = catalog.begin_load(&namespace, RawDocumentBuf::new(), [1; 16], Vec::new()).unwrap();
    let load = OpenLoad::new(load);
    let mut bound = load.clone();
    session.open().unwrap().hold_load(load);
    assert!(bound.is_open() && bound.lock().is_ok());
    session.end_open();
    assert!(!bound.is_open() && bound.lock().is_err() && bound.take().is_err());
    bound =
        OpenLoad::new(catalog.begin_load(&namespace, RawDocumentBuf::new(), [1; 16], Vec::new()).unwrap());
    let mut whole = bound.take().unwrap();
    whole.insert(&doc! { "_id": 1 }.to_raw(), &Operation::default()).unwrap();
    assert_eq!(whole.len(), 1);
    assert!(!bound.is_open(), "it was taken for its commit");
}
