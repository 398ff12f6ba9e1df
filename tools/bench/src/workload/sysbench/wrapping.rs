//! A transaction around the statements over MongoDB's protocol, where that is asked for: the original never
//! wraps them for MongoDB, and did for TokuMX.
//!
//! # A session's transaction
//! 1. Each statement names the session and the transaction's number; the first one begins it.
//! 2. `commitTransaction` ends it, and has the write concern. A statement that failed aborts it.
//! 3. The server has aborted it when it says that there was a conflict: all statements are done again, under
//!    the next number.
//!
//! # TokuMX's transaction
//! 1. `beginTransaction` on the connection, with isolation `mvcc`.
//! 2. `commitTransaction`, also after a statement that failed: the original commits what was done before.
//! 3. After a lock that was not granted `rollbackTransaction`, and all statements are done again.

use crate::client::session_id;
use crate::workload::linkbench::store::Transactions;
use pando_document::{Document, DocumentWriter};

/// Where a client is in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before the statements: a command of its own begins it.
    Begin,
    Statement,
    /// After them.
    Commit,
    /// After a failure: it has not been.
    Abort,
    /// After a conflict: it has not been, and is done again.
    Again,
}

/// The commands of a client beside its statements.
#[derive(Clone, Debug)]
pub struct Wrapping {
    level: Transactions,
    stage: Stage,
    session: Document,
    number: i64,
    sent: u32,
    /// Why it failed, until it is ended.
    failure: Option<String>,
}

impl Wrapping {
    pub fn new(level: Transactions) -> Wrapping {
        Wrapping { level, stage: Stage::Statement, session: session_id(), number: 0, sent: 0, failure: None }
    }

    /// Whether each statement stands alone.
    pub fn is_none(&self) -> bool {
        self.level == Transactions::None
    }

    /// Where the client is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// A transaction begins, for the first time or once more.
    pub fn begin(&mut self) {
        self.stage = if self.level == Transactions::TokuMx { Stage::Begin } else { Stage::Statement };
        self.number += 1;
        self.sent = 0;
        self.failure = None;
    }

    pub fn begun(&mut self) {
        self.stage = Stage::Statement;
    }

    /// The last statement was done, or one failed so.
    pub fn statements_are_over(&mut self, failure: Option<String>) {
        let aborts = failure.is_some() && self.level == Transactions::Session;
        self.stage = if aborts { Stage::Abort } else { Stage::Commit };
        self.failure = failure;
    }

    pub fn conflict(&mut self) {
        match self.level {
            Transactions::TokuMx => self.stage = Stage::Again,
            _ => self.begin(),
        }
    }

    /// Why the transaction failed, if it did.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Writes what the stage sends that is no statement; gives the database that it is for.
    pub fn write(
        &self,
        command: &mut DocumentWriter<'_>,
        database: &str,
        write_concern: &Document,
    ) -> String {
        let is_tokumx = self.level == Transactions::TokuMx;
        let name = match self.stage {
            Stage::Begin | Stage::Statement => "beginTransaction",
            Stage::Commit => "commitTransaction",
            Stage::Abort | Stage::Again if is_tokumx => "rollbackTransaction",
            Stage::Abort | Stage::Again => "abortTransaction",
        };
        command.append_i32(name, 1);
        if is_tokumx {
            if self.stage == Stage::Begin {
                command.append_str("isolation", "mvcc");
            }
            return database.to_owned();
        }
        self.write_number(command);
        command.append_document("writeConcern", write_concern);
        "admin".to_owned()
    }

    /// Adds to a statement what makes it one of the transaction's.
    pub fn write_into_statement(&mut self, command: &mut DocumentWriter<'_>) {
        if self.level != Transactions::Session {
            return;
        }
        self.write_number(command);
        if self.sent == 0 {
            command.append_bool("startTransaction", true);
        }
        self.sent += 1;
    }

    fn write_number(&self, command: &mut DocumentWriter<'_>) {
        command.append_document("lsid", &self.session);
        command.append_i64("txnNumber", self.number);
        command.append_bool("autocommit", false);
    }
}
