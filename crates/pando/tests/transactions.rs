//! Sessions and transactions of the library: what a transaction shows to itself and to others, and those that
//! end otherwise than by a commit: which error the caller is told, and whether the work is run again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pandodb::bson::Document;
use pandodb::{ClientSession, Collection, Cursor, Error, Isolation, Pando, doc};

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

fn sums(accounts: &Collection<Document>) -> Vec<i32> {
    let found = accounts.find(Document::new()).sort(doc! { "_id": 1 }).run().unwrap();
    found.map(|one| one.unwrap().get_i32("sum").unwrap()).collect()
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
    assert_eq!(error.code(), Some(251), "{error:?}");
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
fn forty_threads_wait_until_the_transaction_ends() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    let first = || doc! { "_id": 1 };
    accounts.update_one(first(), doc! { "$inc": { "sum": 100 } }).session(&mut session).run().unwrap();
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let accounts = accounts.clone();
            std::thread::spawn(move || add(&accounts, 1, 1))
        })
        .collect();
    // A server has those beyond the 32nd give up after five seconds, since they hold its threads.
    std::thread::sleep(std::time::Duration::from_millis(5_500));
    session.commit_transaction().run().unwrap();
    for thread in waiting {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(sum(&accounts, 1), 150);
}

#[test]
fn a_write_that_waits_for_a_transaction_ends_at_its_own_time() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    let new = || doc! { "_id": 9, "sum": 9 };
    accounts
        .update_one(doc! { "_id": 1 }, doc! { "$inc": { "sum": 1 } })
        .session(&mut session)
        .run()
        .unwrap();
    accounts.insert_one(new()).session(&mut session).run().unwrap();
    let short = std::time::Duration::from_millis(50);
    let first = doc! { "_id": 1 };
    let refused = [
        accounts.update_one(first.clone(), doc! { "$inc": { "sum": 1 } }).max_time(short).run().map(drop),
        accounts.replace_one(first.clone(), doc! { "sum": 1 }).max_time(short).run().map(drop),
        accounts.delete_one(first).max_time(short).run().map(drop),
        accounts.insert_one(new()).max_time(short).run().map(drop),
        accounts.insert_many([new()]).max_time(short).run().map(drop),
        pando.bulk_write([accounts.insert_one_model(new()).unwrap()]).max_time(short).run().map(drop),
    ];
    for (place, outcome) in refused.into_iter().enumerate() {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("exceeded time limit"), "{place}: {error}");
    }
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

#[test]
fn a_transaction_shows_its_writes_to_itself_until_the_commit_and_an_abort_undoes_them() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let inside = session.collection(&accounts);
    session.start_transaction().run().unwrap();
    add(&inside, 1, -5).unwrap();
    inside.insert_one(doc! { "_id": 3, "sum": 5 }).run().unwrap();
    assert_eq!((sums(&inside), sums(&accounts)), (vec![5, 0, 5], vec![10, 0]));
    assert_eq!(inside.count_documents(doc! { "sum": 5 }).run().unwrap(), 2);
    session.commit_transaction().run().unwrap();
    assert_eq!(sums(&accounts), [5, 0, 5]);

    session.start_transaction().run().unwrap();
    inside.delete_many(Document::new()).run().unwrap();
    assert_eq!(inside.find_one(Document::new()).run().unwrap(), None);
    session.abort_transaction().run().unwrap();
    assert_eq!(sums(&accounts), [5, 0, 5]);
    assert!(matches!(session.abort_transaction().run(), Err(Error::InvalidArgument(_))));
    // Without a transaction each call is one by itself.
    add(&inside, 2, 1).unwrap();
    assert_eq!(sums(&accounts), [5, 1, 5]);
}

#[test]
fn each_call_joins_the_session_that_it_names() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    let all = Document::new;
    accounts.insert_one(doc! { "_id": 3, "sum": 1 }).session(&mut session).run().unwrap();
    accounts.insert_many([doc! { "_id": 4, "sum": 1 }]).session(&mut session).run().unwrap();
    let more = doc! { "$inc": { "sum": 1 } };
    accounts.update_one(doc! { "_id": 3 }, more.clone()).session(&mut session).run().unwrap();
    accounts.replace_one(doc! { "_id": 4 }, doc! { "sum": 7 }).session(&mut session).run().unwrap();
    accounts.delete_one(doc! { "_id": 1 }).session(&mut session).run().unwrap();
    let one = accounts.insert_one_model(doc! { "_id": 5, "sum": 9 }).unwrap();
    pando.bulk_write([one]).session(&mut session).run().unwrap();
    accounts.find_one_and_update(doc! { "_id": 5 }, more).session(&mut session).run().unwrap();
    accounts.find_one_and_replace(doc! { "_id": 2 }, doc! { "sum": 3 }).session(&mut session).run().unwrap();
    accounts.find_one_and_delete(doc! { "_id": 3 }).session(&mut session).run().unwrap();
    let found = accounts.find(all()).sort(doc! { "_id": 1 }).session(&mut session).run().unwrap();
    assert_eq!(found.map(|one| one.unwrap().get_i32("sum").unwrap()).collect::<Vec<_>>(), [3, 7, 10]);
    assert!(accounts.find_one(doc! { "_id": 5 }).session(&mut session).run().unwrap().is_some());
    assert_eq!(accounts.count_documents(all()).session(&mut session).run().unwrap(), 3);
    assert_eq!(accounts.distinct("sum", all()).session(&mut session).run().unwrap().len(), 3);
    let total = [doc! { "$group": { "_id": 1, "sum": { "$sum": "$sum" } } }];
    let sum = accounts.aggregate(total).session(&mut session).run().unwrap().next().unwrap().unwrap();
    assert_eq!(sum.get_i32("sum").unwrap(), 20);
    let fresh = pando.database("bank").collection::<Document>("fresh");
    fresh.create_index(doc! { "a": 1 }).session(&mut session).run().unwrap();
    assert_eq!(sums(&accounts), [10, 0]);
    session.abort_transaction().run().unwrap();
    assert_eq!(sums(&accounts), [10, 0]);
    assert_eq!(pando.database("bank").list_collection_names().run().unwrap(), ["accounts"]);
}

#[test]
fn a_conflict_says_to_run_it_again_and_with_transaction_does() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let inside = session.collection(&accounts);
    session.start_transaction().run().unwrap();
    assert_eq!(inside.find_one(doc! { "_id": 1 }).run().unwrap().unwrap().get_i32("sum").unwrap(), 10);
    add(&accounts, 1, 1).unwrap();
    let lost = add(&inside, 1, 1).and_then(|()| session.commit_transaction().run()).unwrap_err();
    assert!(matches!(lost, Error::Conflict { .. }) && lost.to_string().contains("run it again"), "{lost}");
    // A transaction that has ended by itself is ended for the session by an abort.
    let _ = session.abort_transaction().run();

    let mut runs = 0;
    let outcome = session.with_transaction(|session| {
        runs += 1;
        let inside = session.collection(&accounts);
        let sum = inside.find_one(doc! { "_id": 1 }).run()?.unwrap().get_i32("sum").unwrap();
        if runs == 1 {
            add(&accounts, 1, 1)?;
        }
        add(&inside, 1, 1)?;
        Ok(sum)
    });
    assert_eq!((outcome.unwrap(), runs), (12, 2));
    assert_eq!(sums(&accounts), [13, 0]);
}

#[test]
fn an_error_of_the_work_and_a_dropped_session_undo_the_transaction() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let outcome = session.with_transaction(|session| {
        add(&session.collection(&accounts), 1, 1)?;
        session.collection(&accounts).insert_one(doc! { "_id": 2 }).run()
    });
    assert!(outcome.unwrap_err().is_duplicate_key());
    session.start_transaction().run().unwrap();
    add(&session.collection(&accounts), 2, 7).unwrap();
    drop(session);
    assert_eq!(sums(&accounts), [10, 0]);
    add(&accounts, 2, 1).unwrap();
}

#[test]
fn an_error_of_the_callers_own_undoes_the_transaction_once_and_comes_back_as_it_was() {
    let (pando, accounts) = store();
    let mut runs = 0;
    let outcome: Result<(), Error> = pando.start_session().run().unwrap().with_transaction(|session| {
        runs += 1;
        add(&session.collection(&accounts), 1, -20)?;
        let number: u8 = "300".parse().map_err(Error::custom)?;
        add(&session.collection(&accounts), 2, i32::from(number))
    });
    let Err(Error::Custom(reason)) = outcome else { panic!("{outcome:?}") };
    assert!(reason.downcast_ref::<std::num::ParseIntError>().is_some(), "{reason:?}");
    assert_eq!((sums(&accounts), runs), (vec![10, 0], 1));
}

#[test]
fn a_cursor_goes_on_within_its_transaction() {
    let (pando, accounts) = store();
    accounts.insert_many((3..500).map(|id| doc! { "_id": id, "sum": 0 })).run().unwrap();
    let mut session = pando.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    let inside = session.collection(&accounts);
    let mut found = inside.find(Document::new()).batch_size(100).run().unwrap();
    found.next().unwrap().unwrap();
    accounts.delete_many(doc! { "_id": { "$gt": 400 } }).run().unwrap();
    assert_eq!(found.by_ref().filter(Result::is_ok).count(), 498);
    session.commit_transaction().run().unwrap();
}

#[test]
fn a_cursor_from_before_a_begin_or_an_end_is_refused_and_the_transaction_goes_on() {
    let (pando, accounts) = store();
    accounts.insert_many((3..50).map(|id| doc! { "_id": id, "sum": 0 })).run().unwrap();
    let mut session = pando.start_session().run().unwrap();
    let inside = session.collection(&accounts);
    let search = || inside.find(Document::new()).batch_size(2).run().unwrap();
    let expect_refused = |mut found: Cursor<Document>, words: &str| {
        let error = found.nth(2).unwrap().unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument(text) if text.contains(words)), "{error:?}");
        assert!(found.next().is_none());
    };
    let (before, until_first_call) = (search(), search());
    session.start_transaction().run().unwrap();
    assert_eq!(until_first_call.filter(Result::is_ok).count(), 49);
    add(&inside, 1, 1).unwrap();
    expect_refused(before, "began before the transaction");
    let (within, of_former) = (search(), search());
    session.commit_transaction().run().unwrap();
    assert_eq!(sum(&accounts, 1), 11);
    expect_refused(within, "a transaction that has ended");
    session.start_transaction().run().unwrap();
    add(&inside, 1, 1).unwrap();
    expect_refused(of_former, "a transaction that has ended");
    session.commit_transaction().run().unwrap();
    assert_eq!(sum(&accounts, 1), 12);
    let outside = search();
    drop(session);
    expect_refused(outside, "the session of the search has ended");
}

#[test]
fn work_that_has_ended_its_transaction_itself_is_a_success() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let committed = session.with_transaction(|session| {
        add(&session.collection(&accounts), 1, 1)?;
        session.commit_transaction().run()?;
        Ok("committed")
    });
    assert_eq!(committed.unwrap(), "committed");
    let aborted = session.with_transaction(|session| {
        add(&session.collection(&accounts), 1, 100)?;
        session.abort_transaction().run()
    });
    aborted.unwrap();
    assert_eq!(sum(&accounts, 1), 11);
}

#[test]
fn sessions_that_follow_each_other_share_an_id_and_those_at_once_do_not() {
    let (pando, accounts) = store();
    let pay = || {
        let mut session = pando.start_session().run().unwrap();
        session.with_transaction(|session| add(&session.collection(&accounts), 1, 1)).unwrap();
        session
    };
    let records = || {
        let records = pando.database("config").collection::<Document>("transactions");
        records.find(doc! {}).run().unwrap().filter(Result::is_ok).count()
    };
    (0..50).for_each(|_| drop(pay()));
    assert_eq!((sum(&accounts, 1), records()), (60, 1));
    drop([pay(), pay()]);
    assert_eq!((sum(&accounts, 1), records()), (62, 2));
    (0..50).for_each(|_| drop([pay(), pay()]));
    assert_eq!((sum(&accounts, 1), records()), (162, 2));
}

#[test]
fn a_session_with_the_id_of_one_that_was_dropped_has_nothing_of_its_transaction() {
    let (pando, accounts) = store();
    let mut dropped = pando.start_session().run().unwrap();
    dropped.start_transaction().run().unwrap();
    add(&dropped.collection(&accounts), 1, 100).unwrap();
    drop(dropped);
    let mut session = pando.start_session().run().unwrap();
    session.start_transaction().run().unwrap();
    add(&session.collection(&accounts), 2, 1).unwrap();
    session.commit_transaction().run().unwrap();
    assert_eq!(sums(&accounts), [10, 1]);
}

#[test]
fn a_closed_store_starts_no_session() {
    let (pando, _accounts) = store();
    drop(pando.start_session().run().unwrap());
    pando.clone().close().unwrap();
    assert!(matches!(pando.start_session().run(), Err(Error::Closed)));
}

#[test]
fn a_list_of_writes_that_fails_in_a_transaction_has_no_effect_and_tells_none() {
    let (pando, accounts) = store();
    let mut session = pando.start_session().run().unwrap();
    let documents = [doc! { "_id": 8 }, doc! { "_id": 1 }, doc! { "_id": 9 }];
    session.start_transaction().run().unwrap();
    match accounts.insert_many(&documents).ordered(false).session(&mut session).run() {
        Err(Error::InsertMany { errors, inserted_ids }) => {
            assert_eq!((errors.len(), errors[0].index, inserted_ids.len()), (1, 1, 0));
        }
        other => panic!("a duplicate was not refused: {other:?}"),
    }
    session.abort_transaction().run().unwrap();
    session.start_transaction().run().unwrap();
    let models = documents.map(|document| accounts.insert_one_model(document).unwrap());
    match pando.bulk_write(models).ordered(false).session(&mut session).run() {
        Err(Error::BulkWrite { errors, done }) => {
            assert_eq!((errors.len(), errors[0].index, done.inserted_count), (1, 1, 0));
        }
        other => panic!("a duplicate was not refused: {other:?}"),
    }
    session.abort_transaction().run().unwrap();
    assert_eq!(accounts.count_documents(doc! {}).run().unwrap(), 2);
}

#[test]
fn threads_that_make_the_first_calls_of_a_transaction_take_turns() {
    let (pando, accounts) = store();
    for round in 1..=20 {
        let mut session = pando.start_session().run().unwrap();
        session.start_transaction().run().unwrap();
        let inside = session.collection(&accounts);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| add(&inside, 1, 1).unwrap());
            }
        });
        session.commit_transaction().run().unwrap();
        assert_eq!(sum(&accounts, 1), 10 + 4 * round);
    }
}

/// Two transactions see both accounts and empty one each. Gives the outcome of both.
fn skew(pando: &Pando, accounts: &Collection<Document>, isolation: Isolation) -> [Result<(), Error>; 2] {
    let mut sessions = [1, 2].map(|_| pando.start_session().run().unwrap());
    for session in &mut sessions {
        session.set_isolation(isolation);
        session.start_transaction().run().unwrap();
        assert_eq!(sums(&session.collection(accounts)), [5, 5]);
    }
    let [first, second] = &mut sessions;
    let empty = |session: &mut ClientSession, id: i32| {
        add(&session.collection(accounts), id, -5)?;
        session.commit_transaction().run()
    };
    [empty(first, 1), empty(second, 2)]
}

#[test]
fn write_skew_passes_a_snapshot_and_is_a_conflict_of_serializable_transactions() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let (pando, accounts) = store();
        add(&accounts, 1, -5).and_then(|()| add(&accounts, 2, 5)).unwrap();
        let outcomes = skew(&pando, &accounts, isolation);
        match isolation {
            Isolation::Snapshot => {
                assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
                assert_eq!(sums(&accounts), [0, 0]);
            }
            _ => {
                let lost = outcomes.iter().filter(|one| matches!(one, Err(Error::Conflict { .. }))).count();
                assert_eq!((lost, sums(&accounts).iter().sum::<i32>()), (1, 5), "{outcomes:?}");
            }
        }
    }
}

#[test]
fn a_commit_waits_for_the_call_of_another_thread_that_begins_the_transaction() {
    let pando = Pando::open_in_memory().unwrap();
    let notes = pando.database("d").collection::<Document>("notes");
    for round in 1..=20 {
        let mut session = pando.start_session().run().unwrap();
        session.start_transaction().run().unwrap();
        let inside = session.collection(&notes);
        std::thread::scope(|scope| {
            let many: Vec<_> = (0..500).map(|n| doc! { "round": round, "n": n }).collect();
            let inserting = scope.spawn(move || inside.insert_many(many).run().map(drop));
            std::thread::sleep(std::time::Duration::from_millis(round as u64 % 4));
            session.commit_transaction().run().unwrap();
            inserting.join().unwrap().unwrap();
        });
        // Before or behind the commit, but never lost with it.
        assert_eq!(notes.count_documents(doc! {}).run().unwrap(), 500 * round as u64);
    }
}
