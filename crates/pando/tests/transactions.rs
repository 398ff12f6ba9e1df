//! Transactions that end otherwise than by a commit: which error the caller is told, and whether the work is
//! run again.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use pandodb::bson::Document;
use pandodb::{ClientSession, Collection, Error, Pando, doc};

fn store() -> (Pando, Collection<Document>) {
    let pando = Pando::open_in_memory().unwrap();
    let accounts = pando.database("bank").collection::<Document>("accounts");
    accounts.insert_many([doc! { "_id": 1, "sum": 10 }, doc! { "_id": 2, "sum": 0 }]).run().unwrap();
    (pando, accounts)
}

fn add(accounts: &Collection<Document>, id: i32, sum: i32) -> Result<(), Error> {
    accounts.update_one(doc! { "_id": id }, doc! { "$inc": { "sum": sum } }).run().map(drop)
}

fn sum(accounts: &Collection<Document>, id: i32) -> i32 {
    accounts.find_one(doc! { "_id": id }).run().unwrap().unwrap().get_i32("sum").unwrap()
}

/// Ends transactions after a second.
fn shorten_lives(pando: &Pando) {
    let command = doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": 1 };
    pando.database("admin").run_command(command).run().unwrap();
}

/// Checks that an error says that the transaction has ended, with these words.
fn expect_ended(error: &Error, words: &[&str]) {
    let text = error.to_string();
    assert!(matches!(error, Error::TransactionEnded { .. }), "{error:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn a_call_outside_the_session_that_waits_for_it_takes_effect_once_and_the_work_is_not_run_again() {
    let (pando, accounts) = store();
    shorten_lives(&pando);
    let mut session = pando.start_session().run().unwrap();
    let mut runs = 0;
    let outcome = session.with_transaction(|session| {
        runs += 1;
        accounts.update_one(doc! { "_id": 1 }, doc! { "$inc": { "sum": 100 } }).session(session).run()?;
        // The session is forgotten here.
        add(&accounts, 1, 1)
    });
    expect_ended(&outcome.unwrap_err(), &["longer than its lifetime", "begin a new one"]);
    assert_eq!((runs, sum(&accounts, 1)), (1, 11));
}

#[test]
fn a_transaction_that_an_error_of_its_own_has_ended_says_so_and_is_not_run_again() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let mut runs = 0;
    let outcome = session.with_transaction(|session| {
        runs += 1;
        let inside = session.collection(&accounts);
        add(&inside, 2, 7)?;
        let refused = inside.insert_one(doc! { "_id": 1 }).run();
        assert!(refused.unwrap_err().is_duplicate_key());
        Ok(())
    });
    expect_ended(&outcome.unwrap_err(), &["one of its calls", "E11000", "begin a new one"]);
    assert_eq!((runs, sum(&accounts, 2)), (1, 0));

    let outcome: Result<(), Error> = session.with_transaction(|session| {
        runs += 1;
        let inside = session.collection(&accounts);
        let refused = inside.update_one(doc! { "_id": 1 }, doc! { "$inc": { "_id": 1 } }).run();
        assert!(matches!(refused, Err(Error::Write(_) | Error::Command { .. })), "{refused:?}");
        add(&inside, 2, 7)
    });
    expect_ended(&outcome.unwrap_err(), &["one of its calls", "_id", "abort it"]);
    assert_eq!((runs, sum(&accounts, 2)), (2, 0));
}

#[test]
fn a_command_that_a_transaction_cannot_have_ends_it_with_its_own_error() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    let refused = session.database("bank").run_command(doc! { "count": "accounts" }).run();
    assert!(matches!(refused, Err(Error::Command { .. })), "{refused:?}");
    let later = add(&session.collection(&accounts), 1, 1).unwrap_err();
    expect_ended(&later, &["count", "abort it"]);
    session.abort_transaction().run().expect("an abort of a transaction that has ended is no error");
    session.with_transaction(|session| add(&session.collection(&accounts), 1, 1)).unwrap();
    assert_eq!(sum(&accounts, 1), 11);
}

#[test]
fn a_call_that_the_store_never_saw_leaves_the_transaction_as_it_was() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let inside = session.collection(&accounts);
    session.start_transaction().run().unwrap();
    let misnamed = inside.find_one(doc! { "a\0b": 1 }).run();
    assert!(matches!(misnamed, Err(Error::Bson(_))), "{misnamed:?}");
    add(&inside, 1, 1).unwrap();
    let misnamed = inside.find_one(doc! { "a\0b": 1 }).run();
    assert!(matches!(misnamed, Err(Error::Bson(_))), "{misnamed:?}");
    session.commit_transaction().run().unwrap();
    assert_eq!(sum(&accounts, 1), 11);
}

#[test]
fn a_conflict_that_the_work_passes_over_is_still_one_and_the_work_is_run_again() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let mut runs = 0;
    let outcome = session.with_transaction(|session| {
        runs += 1;
        let inside = session.collection(&accounts);
        sum(&inside, 1);
        if runs == 1 {
            add(&accounts, 1, 1)?;
        }
        let _ = add(&inside, 1, 1);
        add(&inside, 2, 1)
    });
    outcome.unwrap();
    assert_eq!((runs, sum(&accounts, 1), sum(&accounts, 2)), (2, 12, 1));
}

#[test]
fn work_that_has_committed_itself_is_not_run_again() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let mut runs = 0;
    let outcome = session.with_transaction(|session| {
        runs += 1;
        add(&session.collection(&accounts), 1, 1)?;
        session.commit_transaction().run()?;
        session.start_transaction().run()?;
        let inside = session.collection(&accounts);
        sum(&inside, 2);
        add(&accounts, 2, 1)?;
        add(&inside, 2, 1)?;
        session.commit_transaction().run()
    });
    assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
    assert_eq!((runs, sum(&accounts, 1), sum(&accounts, 2)), (1, 11, 1));
}

#[test]
fn a_panic_of_the_work_undoes_the_transaction_and_frees_its_keys() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        session.with_transaction(|session: &mut ClientSession| -> Result<(), Error> {
            add(&session.collection(&accounts), 1, 100)?;
            panic!("a defect of the caller");
        })
    }));
    assert!(panicked.is_err());
    add(&accounts, 1, 1).expect("the key is free");
    session.with_transaction(|session| add(&session.collection(&accounts), 1, 1)).unwrap();
    assert_eq!(sum(&accounts, 1), 12);
}

#[test]
fn a_session_of_another_store_is_refused_and_nothing_is_written() {
    let ((pando, accounts), (other, elsewhere)) = (store(), store());
    let mut session = pando.start_session().run().unwrap();
    let more = || doc! { "$inc": { "sum": 1 } };
    let refusals = [
        elsewhere.update_one(doc! { "_id": 1 }, more()).session(&mut session).run().err(),
        elsewhere.find_one_and_update(doc! { "_id": 1 }, more()).session(&mut session).run().err(),
        elsewhere.count_documents(doc! {}).session(&mut session).run().err(),
        add(&session.collection(&elsewhere), 1, 1).err(),
        other
            .bulk_write([elsewhere.insert_one_model(doc! { "_id": 3 }).unwrap()])
            .session(&mut session)
            .run()
            .err(),
    ];
    for refused in refusals {
        let Some(Error::InvalidArgument(message)) = refused else { panic!("{refused:?}") };
        assert!(message.contains("another store"), "{message}");
    }
    for accounts in [&accounts, &elsewhere] {
        assert_eq!((sum(accounts, 1), accounts.count_documents(doc! {}).run().unwrap()), (10, 2));
    }
}
