//! Sessions, and transactions of several calls in them.
//!
//! What a caller has to know of them stands at [`ClientSession`].
//!
//! The store answers a call of a transaction that has ended in the same way in all three cases. So the
//! session keeps the first error of the transaction, which tells them apart.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawBsonRef, RawDocument, doc};
use parking_lot::Mutex;

use crate::action::Action;
use crate::call::Call;
use crate::session_pool::SessionIdentity;
use crate::{Collection, Database, Error, Pando};

/// The time in which a transaction that loses conflicts is begun again, as in the official crates.
const RUN_FOR: Duration = Duration::from_secs(120);
/// The pause before the second run; each further one is twice as long, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// MongoDB's code for a call of a transaction that has ended.
const NO_SUCH_TRANSACTION: i32 = 251;

/// A session of a store. One thread at a time works with it. A transaction that is open when it is dropped is
/// undone.
///
/// A call is one of a session by its method `session`, as in the official crates, and all calls of a
/// collection by [`ClientSession::collection`]. They then belong to the transaction that the session has
/// open; before it and after its commit each call is one by itself.
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
///
/// # Ends of a transaction without a commit
/// | cause | error of the call, and of those behind it | [`ClientSession::with_transaction`] |
/// |---|---|---|
/// | it loses a conflict with another transaction | [`Error::Conflict`] | runs it again |
/// | the store refuses a call of it | the refusal, then [`Error::TransactionEnded`] | gives the error |
/// | its lifetime is over | [`Error::TransactionEnded`] | gives the error |
///
/// # Calls outside the session
/// A call that is not one of the session's waits for the keys that the transaction holds, until the
/// transaction expires (60 s), and then takes effect outside it; its `max_time` ends the wait with an error.
/// So a call between begin and commit should be one of the session's.
///
/// # Isolation
/// A transaction reads one snapshot, and the first of two that write a document wins: snapshot isolation, as
/// in MongoDB. It lets write skew pass: of two doctors on call, each of two transactions that see both can
/// send another one home. [`ClientSession::set_isolation`] with [`Isolation::Serializable`] prevents that, as
/// SQLite does, at the price of more conflicts.
///
/// # Cursors
/// A search in a transaction is read to its end in it, and one from before the transaction is not read in it.
/// The next batch of another one fails with [`Error::InvalidArgument`], and the transaction goes on.
///
/// # Errors
/// An error of a call that the store refuses, such as a duplicate key, ends the transaction. Unlike in
/// SQLite it cannot go on: later calls and the commit fail with [`Error::TransactionEnded`]. An error that
/// the library finds before it asks the store ([`Error::InvalidArgument`], [`Error::Bson`]), or in a found
/// document ([`Error::Misfit`]), ends nothing.
pub struct ClientSession {
    state: Arc<SessionState>,
}

/// The state of a session, which its collections share.
pub(crate) struct SessionState {
    store: Pando,
    /// `lsid` as a command has it.
    id: Bson,
    progress: Mutex<Progress>,
    /// Held while a call of a transaction is carried out: one at a time, whatever thread it comes from. Of
    /// two that come first, only one begins the transaction.
    turn: Mutex<()>,
}

/// What a transaction sees of others that commit meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Nothing: it reads one snapshot. Of two that write the same document one loses with
    /// [`Error::Conflict`]. Two that read the same documents and then write different ones both commit, so
    /// that a rule over several documents can break (write skew).
    #[default]
    Snapshot,
    /// Nothing, and nothing that it has read changes before it commits: transactions take effect as if one
    /// ran after another. A write of another one into what it has read fails with [`Error::Conflict`].
    Serializable,
}

struct Progress {
    /// The number of the newest transaction.
    number: i64,
    /// The number of the newest transaction that was committed; 0 before the first.
    committed: i64,
    stage: Stage,
    /// Of the transactions that begin from now on.
    isolation: Isolation,
    /// The first error of the newest transaction.
    failure: Option<Failure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No transaction.
    Idle,
    /// One that begins with the next call.
    Begun,
    /// One with calls.
    Open,
    /// The session itself has ended.
    Ended,
}

/// An error of a call, as far as it counts for the transaction.
enum Failure {
    /// A conflict with another transaction.
    Conflict,
    /// A refusal, in a sentence.
    Refusal(String),
}

impl SessionState {
    /// Whether calls belong to a transaction.
    fn has_transaction(&self) -> bool {
        self.transaction().is_some()
    }

    /// The number of the transaction that a call belongs to.
    pub(crate) fn transaction(&self) -> Option<i64> {
        let progress = self.progress.lock();
        matches!(progress.stage, Stage::Begun | Stage::Open).then_some(progress.number)
    }

    /// Refuses the next batch of a cursor that was opened in another transaction than the session has now, or
    /// on the other side of its begin or end. The store would end the transaction with it.
    pub(crate) fn check_cursor(&self, opened_in: Option<i64>) -> Result<(), Error> {
        let progress = self.progress.lock();
        let message = match (progress.stage, opened_in) {
            (Stage::Open, Some(number)) if number == progress.number => return Ok(()),
            // The store knows of no transaction yet.
            (Stage::Idle | Stage::Begun, None) => return Ok(()),
            (Stage::Open, None) => {
                "the search began before the transaction that its session has now: read it to its end \
                 before, or search again in the transaction"
            }
            (Stage::Idle | Stage::Begun | Stage::Open, Some(_)) => {
                "the search belongs to a transaction that has ended: read it to its end before that"
            }
            (Stage::Ended, _) => "the session of the search has ended: read it to its end before that",
        };
        Err(Error::InvalidArgument(message.to_owned()))
    }

    /// Sends a command as one of the session, and of its transaction.
    pub(crate) fn send(&self, database: &Database, mut call: Call<'_>) -> Result<Vec<u8>, Error> {
        if !self.store.is_same(database.store()) {
            let message = "the session belongs to another store: start one of the store of this call";
            return Err(Error::InvalidArgument(message.to_owned()));
        }
        let turn = self.turn.lock();
        if !self.join(&mut call.command)? {
            drop(turn);
            return self.store.run_for_bytes(database.name(), call);
        }
        let outcome = self.store.run_for_bytes(database.name(), call);
        let mut progress = self.progress.lock();
        // A command that the store has not seen has not begun the transaction.
        if !matches!(outcome, Err(Error::InvalidArgument(_) | Error::Bson(_) | Error::Closed)) {
            // The session may have been dropped meanwhile.
            if progress.stage == Stage::Begun {
                progress.stage = Stage::Open;
            }
        }
        match outcome {
            Ok(reply) => {
                if progress.failure.is_none() {
                    progress.failure = refused_write(&reply).map(Failure::Refusal);
                }
                Ok(reply)
            }
            Err(error) => Err(progress.told(error, "abort it, and begin a new one")),
        }
    }

    /// Makes a command one of the session, and gives whether it is one of its transaction.
    ///
    /// # Errors
    /// A session that was dropped: what was meant to belong to a transaction is not carried out outside it.
    fn join(&self, command: &mut Document) -> Result<bool, Error> {
        let progress = self.progress.lock();
        command.insert("lsid", self.id.clone());
        // A cursor that is older than the transaction does not begin it.
        let goes_on = command.keys().next().is_some_and(|name| name == "getMore" || name == "killCursors");
        if progress.stage == Stage::Ended {
            let message = "the session of this collection has ended: start another one, or use the collection without it";
            return Err(Error::InvalidArgument(message.to_owned()));
        }
        if progress.stage == Stage::Idle || (goes_on && progress.stage == Stage::Begun) {
            return Ok(false);
        }
        command.insert("txnNumber", progress.number);
        command.insert("autocommit", false);
        if progress.stage == Stage::Begun {
            command.insert("startTransaction", true);
            if progress.isolation == Isolation::Serializable {
                command.insert("readConcern", doc! { "level": "serializable" });
            }
        }
        Ok(true)
    }
}

impl Progress {
    /// The error of a call, or of the commit, as the caller is told it. `advice` says what to do once the
    /// transaction has ended.
    fn told(&mut self, error: Error, advice: &str) -> Error {
        match (&self.failure, error) {
            (Some(Failure::Conflict), error) => error,
            (Some(Failure::Refusal(first)), Error::Conflict { reply, .. }) if is_ended(&reply) => {
                let reason = format!("it was ended by an error of one of its calls ({first}): {advice}");
                Error::TransactionEnded { reason, reply }
            }
            (None, Error::Conflict { reply, .. }) if is_ended(&reply) => {
                let reason = format!("it took longer than its lifetime, or its session was ended: {advice}");
                Error::TransactionEnded { reason, reply }
            }
            (None, error) => {
                self.failure = match &error {
                    Error::Conflict { .. } => Some(Failure::Conflict),
                    Error::Command { .. } => Some(Failure::Refusal(error.to_string())),
                    _ => None,
                };
                error
            }
            (Some(Failure::Refusal(_)), error) => error,
        }
    }
}

/// Whether a reply says that the transaction had ended before.
fn is_ended(reply: &Document) -> bool {
    matches!(reply.get_i32("code"), Ok(NO_SUCH_TRANSACTION))
}

/// The first write that a command has not carried out, in a sentence. The command itself succeeds then.
fn refused_write(reply: &[u8]) -> Option<String> {
    let reply = RawDocument::from_bytes(reply).ok()?;
    let places = match reply.get("writeErrors").ok()? {
        Some(RawBsonRef::Array(errors)) => errors,
        // Those of the command `bulkWrite` stand among the outcomes of all its writes.
        _ if matches!(reply.get("nErrors"), Ok(Some(count)) if count != RawBsonRef::Int32(0)) => {
            reply.get_document("cursor").ok()?.get_array("firstBatch").ok()?
        }
        _ => return None,
    };
    let sentence = |place: RawBsonRef<'_>| place.as_document()?.get_str("errmsg").map(str::to_owned).ok();
    places.into_iter().filter_map(Result::ok).find_map(sentence)
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_transaction = self.state.has_transaction();
        f.debug_struct("ClientSession").field("has_transaction", &has_transaction).finish_non_exhaustive()
    }
}

impl ClientSession {
    pub(crate) fn begin(store: &Pando) -> Result<ClientSession, Error> {
        store.check_open()?;
        let SessionIdentity { id, number } = match store.ended_sessions().take() {
            Some(identity) => identity,
            None => {
                let mut reply = store.run("admin", doc! { "startSession": 1 })?;
                SessionIdentity { id: reply.remove("id").unwrap_or(Bson::Null), number: 0 }
            }
        };
        let isolation = Isolation::default();
        let progress = Progress { number, committed: 0, stage: Stage::Idle, isolation, failure: None };
        let state =
            SessionState { store: store.clone(), id, progress: Mutex::new(progress), turn: Mutex::new(()) };
        Ok(ClientSession { state: Arc::new(state) })
    }

    /// Its state, for calls that belong to it.
    pub(crate) fn state(&self) -> Arc<SessionState> {
        Arc::clone(&self.state)
    }

    /// A database whose collections belong to the session.
    pub fn database(&self, name: &str) -> Database {
        self.state.store.database(name).in_session(self.state())
    }

    /// A collection as one of the session: its calls belong to the transaction that is open then. They fail
    /// once the session is dropped, and so do those of a collection of another store.
    pub fn collection<T>(&self, collection: &Collection<T>) -> Collection<T> {
        collection.database().clone().in_session(self.state()).collection(collection.name())
    }

    /// Sets the isolation of the transactions of this session that start from now on. It is
    /// [`Isolation::Snapshot`] before.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.state.progress.lock().isolation = isolation;
    }

    /// Starts a transaction. Its snapshot is that of its first call.
    pub fn start_transaction(&mut self) -> Action<'_, ()> {
        Action::new(|| {
            let mut progress = self.state.progress.lock();
            if progress.stage != Stage::Idle {
                let message = "the session has a transaction already: commit or abort it first";
                return Err(Error::InvalidArgument(message.to_owned()));
            }
            progress.number += 1;
            progress.stage = Stage::Begun;
            progress.failure = None;
            Ok(())
        })
    }

    /// Commits the transaction: all of its writes come into effect at once, as durably as the options of the
    /// store say.
    ///
    /// [`Error::Conflict`] and [`Error::TransactionEnded`] mean that none of them did.
    pub fn commit_transaction(&mut self) -> Action<'_, ()> {
        Action::new(|| {
            let concern = doc! { "writeConcern": self.state.store.write_concern() };
            // A call of another thread that is under way belongs to the transaction.
            let _turn = self.state.turn.lock();
            self.end("commitTransaction", concern)?;
            let mut progress = self.state.progress.lock();
            progress.committed = progress.number;
            Ok(())
        })
    }

    /// Ends the transaction without its writes. One that an error has ended is no error here.
    pub fn abort_transaction(&mut self) -> Action<'_, ()> {
        Action::new(|| match self.end("abortTransaction", Document::new()) {
            Err(Error::Conflict { reply, .. } | Error::TransactionEnded { reply, .. })
                if is_ended(&reply) =>
            {
                Ok(())
            }
            outcome => outcome,
        })
    }

    /// Runs `work` in a transaction and commits it. Where the transaction loses a conflict with another one,
    /// both are done again; no run begins after two minutes. So `work` should change nothing else. Any other
    /// error of `work` or of the commit, such as [`Error::TransactionEnded`], undoes the transaction and is
    /// given at once; [`Error::custom`] makes one of the caller's own. A panic of `work` undoes it, too.
    /// Where `work` has ended the transaction itself, its result is given as it is.
    ///
    /// `work` makes its calls by [`ClientSession::collection`] or with `.session(session)`; see
    /// [`ClientSession`] about calls that are not.
    ///
    /// # Errors
    /// The error of `work`, and those of the commit.
    pub fn with_transaction<R>(
        &mut self,
        work: impl FnMut(&mut ClientSession) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.run_again_for(RUN_FOR, work)
    }

    fn run_again_for<R>(
        &mut self,
        limit: Duration,
        mut work: impl FnMut(&mut ClientSession) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let store = self.state.store.clone();
        let began = store.now();
        let mut pause = PAUSE_FIRST;
        loop {
            let committed = self.state.progress.lock().committed;
            let outcome = self.run_once(&mut work);
            // `work` may have committed itself, and met the conflict later.
            let is_undone = self.state.progress.lock().committed == committed;
            match outcome {
                Err(Error::Conflict { .. }) if is_undone && store.now().since(began) + pause < limit => {}
                outcome => return outcome,
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn run_once<R>(
        &mut self,
        work: &mut impl FnMut(&mut ClientSession) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.start_transaction().run()?;
        let running = RunningTransaction { session: self };
        let result = work(running.session)?;
        // `work` may have ended it itself.
        if running.session.state.has_transaction() {
            running.session.commit_transaction().run()?;
        }
        Ok(result)
    }

    /// Ends the transaction by this command.
    fn end(&self, command: &str, fields: Document) -> Result<(), Error> {
        self.end_into(Stage::Idle, command, fields)
    }

    /// The same; calls of other threads find the session in this stage from here on.
    fn end_into(&self, next: Stage, command: &str, fields: Document) -> Result<(), Error> {
        let (number, stage) = {
            let mut progress = self.state.progress.lock();
            (progress.number, std::mem::replace(&mut progress.stage, next))
        };
        match stage {
            Stage::Idle | Stage::Ended => {
                let message = "the session has no transaction: start one first";
                Err(Error::InvalidArgument(message.to_owned()))
            }
            // The store knows of none yet.
            Stage::Begun => Ok(()),
            Stage::Open => {
                let mut whole = doc! { command: 1, "lsid": self.state.id.clone(), "txnNumber": number };
                whole.insert("autocommit", false);
                whole.extend(fields);
                let outcome = self.state.store.run("admin", whole);
                outcome.map(drop).map_err(|error| self.state.progress.lock().told(error, "begin a new one"))
            }
        }
    }
}

/// A transaction while the caller's work runs in it. Dropping it undoes the transaction, unless that has
/// ended: so neither an error nor a panic of the work leaves locks behind.
struct RunningTransaction<'s> {
    session: &'s mut ClientSession,
}

impl Drop for RunningTransaction<'_> {
    fn drop(&mut self) {
        if self.session.state.has_transaction() {
            // The transaction may have ended by itself.
            let _ = self.session.abort_transaction().run();
        }
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        // An error has no effect: there may be no transaction, and the end of the session ends it, too.
        let _ = self.end_into(Stage::Ended, "abortTransaction", Document::new());
        let SessionState { store, id, progress, turn: _ } = &*self.state;
        let number = progress.lock().number;
        // A session that the store has not ended times out by itself, and its id is not used again.
        if store.run("admin", doc! { "endSessions": vec![id.clone()] }).is_ok() {
            store.ended_sessions().give_back(SessionIdentity { id: id.clone(), number });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_of_a_session_that_has_ended_writes_nothing() {
        let pando = Pando::open_in_memory().unwrap();
        let accounts = pando.database("bank").collection::<Document>("accounts");
        accounts.insert_one(doc! { "_id": 1, "sum": 0 }).run().unwrap();
        let mut session = pando.start_session().run().unwrap();
        let inside = session.collection(&accounts);
        session.start_transaction().run().unwrap();
        let add =
            |on: &Collection<Document>| on.update_one(doc! { "_id": 1 }, doc! { "$inc": { "sum": 1 } }).run();
        add(&inside).unwrap();
        drop(session);
        let refused = add(&inside);
        assert!(
            matches!(&refused, Err(Error::InvalidArgument(text)) if text.contains("has ended")),
            "{refused:?}"
        );
        assert_eq!(accounts.count_documents(doc! { "sum": 0 }).run().unwrap(), 1);
    }

    #[test]
    fn a_transaction_that_loses_again_and_again_is_run_until_its_time_is_over() {
        let pando = Pando::open_in_memory().unwrap();
        let accounts = pando.database("bank").collection::<Document>("accounts");
        let add = |accounts: &Collection<Document>| {
            accounts.update_one(doc! { "_id": 1 }, doc! { "$inc": { "sum": 1 } }).run()
        };
        accounts.insert_one(doc! { "_id": 1, "sum": 0 }).run().unwrap();
        let mut session = pando.start_session().run().unwrap();
        let mut runs = 0;
        let outcome = session.run_again_for(Duration::from_millis(50), |session| {
            runs += 1;
            let inside = session.collection(&accounts);
            inside.find_one(doc! { "_id": 1 }).run()?;
            add(&accounts)?;
            std::thread::sleep(Duration::from_millis(15));
            add(&inside)
        });
        assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
        // The first run takes effect outside the transaction as often as it is run.
        let sum = accounts.find_one(doc! { "_id": 1 }).run().unwrap().unwrap().get_i32("sum").unwrap();
        assert!((2..=4).contains(&runs) && sum == runs, "{runs}");
    }
}
