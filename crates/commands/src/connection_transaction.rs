//! A transaction that belongs to a connection: TokuMX's `beginTransaction`.
//!
//! It is the transaction of a session of its own, which no client knows. Each statement of the connection
//! joins it, as a statement with `lsid` and `txnNumber` joins that of its session.
//!
//! # Invariants
//! - A connection has one such transaction at most. It ends with the connection.
//! - A statement with a transaction number of its own is refused meanwhile: it would belong to two.
//! - A command that changes the catalog and cannot be part of a transaction is refused. Commands that only
//!   look at the server run outside of it.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::generic_arguments::{
    GenericSupport, Participation, ReadLevel, Start, TransactionSupport, WriteConcernSupport, check_namespace,
};
use crate::session_id::SessionId;
use crate::sessions::Begun;
use crate::shared_state::SharedState;
use crate::{CommandError, ErrorCode};

/// The number of the transaction in its session.
const NUMBER: i64 = 1;

/// The changes of others that a transaction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Those before its begin.
    Snapshot,
    /// The same, and nothing that it has read changes before it commits.
    Serializable,
    /// Those before its statement, until it writes or opens a cursor. From then on it keeps its snapshot.
    /// Changes that are not committed are private to their transaction, so that no level shows them.
    NewestCommitted,
}

impl Isolation {
    /// The isolation that TokuMX calls by this name. The one place that knows which levels there are.
    pub fn named(name: &str) -> Result<Isolation, CommandError> {
        match name {
            "mvcc" => Ok(Isolation::Snapshot),
            "readUncommitted" => Ok(Isolation::NewestCommitted),
            "serializable" => Ok(Isolation::Serializable),
            other => Err(CommandError::failed(
                ErrorCode::Location(16_739),
                format!("isolation has to be 'mvcc', 'serializable' or 'readUncommitted', and not '{other}'"),
            )),
        }
    }

    /// The level of read concern that comes nearest, as lists of operations show it.
    pub fn read_level(self) -> ReadLevel {
        match self {
            Isolation::Snapshot => ReadLevel::Snapshot,
            Isolation::Serializable => ReadLevel::Serializable,
            Isolation::NewestCommitted => ReadLevel::Local,
        }
    }
}

/// See the module's head. Dropping it rolls the transaction back.
pub(crate) struct ConnectionTransaction {
    session: SessionId,
    isolation: Isolation,
    shared: Weak<SharedState>,
}

/// A command that a connection with a transaction gets.
#[derive(Clone, Copy)]
pub(crate) struct JoiningCommand<'r> {
    pub name: &'static str,
    pub support: &'r GenericSupport,
    pub database: &'r str,
    /// The value of the command, if it is a name.
    pub collection: &'r str,
    /// Its part in a transaction of its session.
    pub participation: Participation,
}

impl ConnectionTransaction {
    /// Begins a transaction at the newest snapshot.
    pub fn begin(
        shared: &Arc<SharedState>,
        isolation: Isolation,
        begun: Begun,
    ) -> Result<ConnectionTransaction, CommandError> {
        let session = SessionId::from_bytes(shared.new_uuid());
        shared.sessions.begin_unrecorded(session, NUMBER, &shared.catalog, begun)?;
        Ok(ConnectionTransaction { session, isolation, shared: Arc::downgrade(shared) })
    }

    /// The session whose transaction it is.
    pub fn session(&self) -> SessionId {
        self.session
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// The part of a command in this transaction.
    pub fn participation(&self, command: JoiningCommand<'_>) -> Result<Participation, CommandError> {
        let JoiningCommand { name, support, .. } = command;
        if command.participation != Participation::Alone {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "the connection has a transaction that beginTransaction has begun: end it first, or send the command without a transaction number (retryWrites=false)",
            ));
        }
        match support.transactions {
            TransactionSupport::End => {}
            TransactionSupport::Statement
            | TransactionSupport::LaterStatement
            | TransactionSupport::RetryableWrite => check_namespace(command.database, command.collection)?,
            TransactionSupport::Refused if name == "count" => {
                check_namespace(command.database, command.collection)?;
            }
            TransactionSupport::Refused if support.writes == WriteConcernSupport::Accepted => {
                return Err(CommandError::failed(
                    ErrorCode::OperationNotSupportedInTransaction,
                    format!("Cannot run '{name}' in a multi-document transaction."),
                ));
            }
            TransactionSupport::Refused | TransactionSupport::WithoutSession => {
                return Ok(Participation::Alone);
            }
        }
        Ok(Participation::Transaction(NUMBER, Start::Continues))
    }
}

impl Drop for ConnectionTransaction {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.sessions.remove(self.session);
            shared.cursors.end_transaction(self.session, NUMBER);
        }
    }
}

impl fmt::Debug for ConnectionTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a transaction of isolation {:?}", self.isolation)
    }
}
