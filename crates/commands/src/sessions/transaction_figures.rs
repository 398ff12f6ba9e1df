//! The counters of transactions and retryable writes since the start, as `serverStatus` shows them.

use std::sync::atomic::{AtomicI64, Ordering};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct TransactionFigures {
    open: AtomicI64,
    started: AtomicI64,
    committed: AtomicI64,
    aborted: AtomicI64,
    conflicts: AtomicI64,
    retried_commands: AtomicI64,
    retried_statements: AtomicI64,
    record_writes: AtomicI64,
}

fn add(counter: &AtomicI64, more: i64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn get(counter: &AtomicI64) -> i64 {
    counter.load(Ordering::Relaxed)
}

impl TransactionFigures {
    pub fn count_start(&self) {
        add(&self.started, 1);
    }

    pub fn count_commit(&self) {
        add(&self.committed, 1);
    }

    pub fn count_abort(&self) {
        add(&self.aborted, 1);
    }

    /// Counts a transaction that has lost a conflict.
    pub fn count_conflict(&self) {
        add(&self.conflicts, 1);
    }

    /// Counts a command that has repeated so many statements.
    pub fn count_retried(&self, statements: usize) {
        add(&self.retried_commands, 1);
        add(&self.retried_statements, i64::try_from(statements).unwrap_or(i64::MAX));
    }

    /// Counts a record of a session that was written.
    pub fn count_record(&self) {
        add(&self.record_writes, 1);
    }

    /// Counts a transaction that is open from now on. It is not started before its first statement has ended.
    pub fn count_opened(&self) {
        add(&self.open, 1);
    }

    /// Counts a transaction that is not open any more.
    pub fn count_closed(&self) {
        add(&self.open, -1);
    }

    /// Transactions that are open.
    pub fn open(&self) -> i64 {
        get(&self.open)
    }

    /// All counters, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> {
        [
            ("retriedCommandsCount", get(&self.retried_commands)),
            ("retriedStatementsCount", get(&self.retried_statements)),
            ("transactionsCollectionWriteCount", get(&self.record_writes)),
            ("totalAborted", get(&self.aborted)),
            ("totalCommitted", get(&self.committed)),
            ("totalStarted", get(&self.started)),
            ("totalConflicts", get(&self.conflicts)),
        ]
        .into_iter()
    }
}
