//! Sessions, and transactions of several calls in them.
//!
//! A call is one of a session by its method `session`, as in the official crates, and all calls of a
//! collection by [`ClientSession::collection`]. They then belong to the transaction that the session has
//! open; without one each call is one by itself.
//!
//! A transaction that loses a conflict with another one ends with [`Error::Conflict`]. It has changed
//! nothing, and may be run again; [`ClientSession::with_transaction`] does so.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, doc};
use parking_lot::Mutex;

use crate::action::Action;
use crate::{Collection, Database, Error, Pando};

/// Runs of a transaction that loses conflicts. With the pauses between them that is about two minutes, as in
/// the official crates.
const RUNS_MAX: u32 = 1200;
/// The pause before the second run; each further one is twice as long, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A session of a store. One thread at a time works with it. A transaction that is open when it is dropped is
/// undone.
///
/// ```
/// # use pandodb::{Error, Pando, bson::Document, doc};
/// # fn main() -> Result<(), Error> {
/// # let pando = Pando::open_in_memory()?;
/// let accounts = pando.database("bank").collection::<Document>("accounts");
/// accounts.insert_many([doc! { "_id": "Ada", "sum": 10 }, doc! { "_id": "Bob", "sum": 0 }]).run()?;
/// let mut session = pando.start_session().run()?;
/// session.with_transaction(|session| {
///     let accounts = session.collection(&accounts);
///     accounts.update_one(doc! { "_id": "Ada" }, doc! { "$inc": { "sum": -5 } }).run()?;
///     accounts.update_one(doc! { "_id": "Bob" }, doc! { "$inc": { "sum": 5 } }).run()?;
///     Ok(())
/// })?;
/// # assert_eq!(accounts.count_documents(doc! { "sum": 5 }).run()?, 2);
/// # Ok(())
/// # }
/// ```
pub struct ClientSession {
    store: Pando,
    state: Arc<SessionState>,
}

/// The state of a session, which its collections share.
pub(crate) struct SessionState {
    /// `lsid` as a command has it.
    id: Bson,
    progress: Mutex<Progress>,
}

#[derive(Clone, Copy)]
struct Progress {
    /// The number of the newest transaction.
    number: i64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No transaction.
    Idle,
    /// One that begins with the next call.
    Begun,
    /// One with calls.
    Open,
}

impl SessionState {
    /// Whether calls belong to a transaction.
    pub(crate) fn has_transaction(&self) -> bool {
        self.progress.lock().stage != Stage::Idle
    }

    /// Makes a command one of the session, and of its transaction.
    pub(crate) fn join(&self, command: &mut Document) {
        let mut progress = self.progress.lock();
        command.insert("lsid", self.id.clone());
        // A cursor that is older than the transaction does not begin it.
        let goes_on = command.keys().next().is_some_and(|name| name == "getMore" || name == "killCursors");
        if progress.stage == Stage::Idle || (goes_on && progress.stage == Stage::Begun) {
            return;
        }
        command.insert("txnNumber", progress.number);
        command.insert("autocommit", false);
        if progress.stage == Stage::Begun {
            command.insert("startTransaction", true);
            progress.stage = Stage::Open;
        }
    }
}

impl ClientSession {
    pub(crate) fn begin(store: &Pando) -> Result<ClientSession, Error> {
        let mut reply = store.run("admin", doc! { "startSession": 1 })?;
        let id = reply.remove("id").unwrap_or(Bson::Null);
        let progress = Mutex::new(Progress { number: 0, stage: Stage::Idle });
        Ok(ClientSession { store: store.clone(), state: Arc::new(SessionState { id, progress }) })
    }

    /// Its state, for calls that belong to it.
    pub(crate) fn state(&self) -> Arc<SessionState> {
        Arc::clone(&self.state)
    }

    /// A database whose collections belong to the session.
    pub fn database(&self, name: &str) -> Database {
        self.store.database(name).in_session(Arc::clone(&self.state))
    }

    /// A collection as one of the session: its calls belong to the open transaction.
    pub fn collection<T>(&self, collection: &Collection<T>) -> Collection<T> {
        self.database(collection.database().name()).collection(collection.name())
    }

    /// Starts a transaction. Its snapshot is that of its first call.
    pub fn start_transaction(&mut self) -> Action<'_, ()> {
        Action::new(|| {
            let mut progress = self.state.progress.lock();
            if progress.stage != Stage::Idle {
                let message = "the session has a transaction already: commit or abort it first";
                return Err(Error::InvalidArgument(message.to_owned()));
            }
            *progress = Progress { number: progress.number + 1, stage: Stage::Begun };
            Ok(())
        })
    }

    /// Commits the transaction: all of its writes come into effect at once, as durably as the options of the
    /// store say.
    ///
    /// [`Error::Conflict`] means that none of them did.
    pub fn commit_transaction(&mut self) -> Action<'_, ()> {
        Action::new(|| {
            let concern = doc! { "writeConcern": self.store.write_concern() };
            self.end("commitTransaction", concern)
        })
    }

    /// Ends the transaction without its writes.
    pub fn abort_transaction(&mut self) -> Action<'_, ()> {
        Action::new(|| self.end("abortTransaction", Document::new()))
    }

    /// Runs `work` in a transaction and commits it. Both are done again as long as the transaction loses
    /// conflicts, for about two minutes: `work` should change nothing else. An error of `work` undoes the
    /// transaction; [`Error::custom`] makes one of the caller's own.
    ///
    /// # Errors
    /// The error of `work`, and those of the commit.
    pub fn with_transaction<R>(
        &mut self,
        mut work: impl FnMut(&mut ClientSession) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut runs = 0;
        let mut pause = PAUSE_FIRST;
        loop {
            runs += 1;
            self.start_transaction().run()?;
            let outcome = work(self);
            let ended = match outcome {
                Ok(result) => self.commit_transaction().run().map(|()| result),
                Err(error) => {
                    // The transaction may have ended by itself, and `work` may have ended it.
                    let _ = self.abort_transaction().run();
                    Err(error)
                }
            };
            match ended {
                Err(Error::Conflict { .. }) if runs < RUNS_MAX => {}
                ended => return ended,
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Ends the transaction by this command.
    fn end(&self, command: &str, fields: Document) -> Result<(), Error> {
        let Progress { number, stage } = *self.state.progress.lock();
        self.state.progress.lock().stage = Stage::Idle;
        match stage {
            Stage::Idle => {
                let message = "the session has no transaction: start one first";
                Err(Error::InvalidArgument(message.to_owned()))
            }
            // The store knows of none yet.
            Stage::Begun => Ok(()),
            Stage::Open => {
                let mut whole = doc! { command: 1, "lsid": self.state.id.clone(), "txnNumber": number };
                whole.insert("autocommit", false);
                whole.extend(fields);
                self.store.run("admin", whole).map(|_| ())
            }
        }
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        // A session times out by itself, so that an error here has no effect.
        if self.state.has_transaction() {
            let _ = self.end("abortTransaction", Document::new());
        }
        let sessions = vec![self.state.id.clone()];
        let _ = self.store.run("admin", doc! { "endSessions": sessions });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(accounts: &Collection<Document>) -> Vec<i32> {
        let found = accounts.find(Document::new()).sort(doc! { "_id": 1 }).run().unwrap();
        found.map(|one| one.unwrap().get_i32("sum").unwrap()).collect()
    }

    fn store() -> (Pando, Collection<Document>) {
        let pando = Pando::open_in_memory().unwrap();
        let accounts = pando.database("bank").collection::<Document>("accounts");
        accounts.insert_many([doc! { "_id": 1, "sum": 10 }, doc! { "_id": 2, "sum": 0 }]).run().unwrap();
        (pando, accounts)
    }

    fn add(accounts: &Collection<Document>, id: i32, sum: i32) -> Result<(), Error> {
        accounts.update_one(doc! { "_id": id }, doc! { "$inc": { "sum": sum } }).run().map(|_| ())
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
        accounts
            .find_one_and_replace(doc! { "_id": 2 }, doc! { "sum": 3 })
            .session(&mut session)
            .run()
            .unwrap();
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
        assert!(
            matches!(lost, Error::Conflict { .. }) && lost.to_string().contains("run it again"),
            "{lost}"
        );
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
}
