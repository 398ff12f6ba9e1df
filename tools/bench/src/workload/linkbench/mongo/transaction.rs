//! Transactions around a write of a link, and retries after transient errors.
//!
//! A transaction of a session names the session and its number in each command, and is ended by one more.
//! TokuMX's belongs to the connection: begun with isolation `mvcc`, ended by a commit.

use super::store::MongoStore;
use crate::error::BenchError;
use crate::workload::linkbench::store::Transactions;
use pando_document::{Document, doc};

/// Codes after which the same may work: LockTimeout, WriteConflict, NoSuchTransaction (it was aborted),
/// DuplicateKey, and TokuMX's lock that was not granted, deadlock, and collection that is younger than the
/// transaction.
const TRANSIENT: [i64; 7] = [24, 112, 251, 11_000, 16_759, 16_760, 16_768];
/// How often a write is tried at most.
const ATTEMPTS_MAX: u32 = 1000;

/// The transaction under way on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// No transaction.
    Nothing,
    /// A session's, with so many statements so far.
    Session(u32),
    TokuMx,
}

/// Whether the same may work if it is done once more.
pub fn is_transient(error: &BenchError) -> bool {
    matches!(error, BenchError::Refused { code, .. } if TRANSIENT.contains(code))
}

impl MongoStore {
    /// A command, which inside a session's transaction says so.
    pub(super) fn command(&mut self, mut command: Document) -> Result<Document, BenchError> {
        if let Inside::Session(statements) = &mut self.inside {
            command.push("lsid", self.session_id.clone());
            command.push("txnNumber", self.transaction);
            command.push("autocommit", false);
            if *statements == 0 {
                command.push("startTransaction", true);
            }
            *statements += 1;
        }
        self.session.command(&self.database, command)
    }

    /// A command that writes. Outside a transaction it is tried again by itself: a link that was changed
    /// already must not be looked at as if it had not been, only because its count was not free.
    pub(super) fn write(&mut self, mut command: Document) -> Result<Document, BenchError> {
        if self.inside != Inside::Nothing {
            // The commit has the write concern.
            return self.command(command);
        }
        command.push("writeConcern", self.write_concern.clone());
        self.while_transient(|store| store.command(command.clone()))
    }

    /// A command that writes outside any transaction, once.
    pub(super) fn write_once(&mut self, mut command: Document) -> Result<Document, BenchError> {
        command.push("writeConcern", self.write_concern.clone());
        self.command(command)
    }

    /// Does something that keeps a link and its count together.
    pub(super) fn atomically<T>(
        &mut self,
        work: impl Fn(&mut MongoStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        match self.transactions {
            Transactions::None | Transactions::TwoPhase => work(self),
            Transactions::Session | Transactions::TokuMx => {
                self.while_transient(|store| store.in_transaction(&work))
            }
        }
    }

    /// Again and again while the server says that it may work now.
    fn while_transient<T>(
        &mut self,
        work: impl Fn(&mut MongoStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        for _ in 1..ATTEMPTS_MAX {
            match work(self) {
                Err(error) if is_transient(&error) => self.retries += 1,
                outcome => return outcome,
            }
        }
        work(self)
    }

    /// A transaction that reads one node, to see whether the server does transactions of this kind.
    pub(super) fn try_transaction(&mut self) -> Result<(), BenchError> {
        self.in_transaction(|store| store.find_one("node", doc! { "_id": 0_i64 }, doc! {}).map(|_| ()))
    }

    fn in_transaction<T>(
        &mut self,
        work: impl Fn(&mut MongoStore) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.begin()?;
        let outcome = work(self);
        let inside = std::mem::replace(&mut self.inside, Inside::Nothing);
        if inside == Inside::Session(0) {
            return outcome;
        }
        match outcome {
            Ok(value) => self.end(inside, "commitTransaction").map(|()| value),
            Err(error) => {
                let how = if inside == Inside::TokuMx { "rollbackTransaction" } else { "abortTransaction" };
                // The server ends a transaction that failed by itself; that it is gone then is no second
                // failure.
                match self.end(inside, how) {
                    Err(lost @ (BenchError::Connection(_) | BenchError::Closed)) => Err(lost),
                    _ => Err(error),
                }
            }
        }
    }

    fn begin(&mut self) -> Result<(), BenchError> {
        if self.transactions == Transactions::TokuMx {
            self.command(doc! { "beginTransaction": 1, "isolation": "mvcc" })?;
            self.inside = Inside::TokuMx;
        } else {
            self.transaction += 1;
            self.inside = Inside::Session(0);
        }
        Ok(())
    }

    fn end(&mut self, inside: Inside, how: &str) -> Result<(), BenchError> {
        let mut command = doc! { (how.to_owned()): 1 };
        if inside == Inside::TokuMx {
            return self.session.command(&self.database, command).map(|_| ());
        }
        command.push("lsid", self.session_id.clone());
        command.push("txnNumber", self.transaction);
        command.push("autocommit", false);
        command.push("writeConcern", self.write_concern.clone());
        self.session.command("admin", command).map(|_| ())
    }
}
