//! The requests of a connection that has a load open: inserts into the collection of the load, the ends of
//! the load and of the connection's transaction, and commands that only look at the server.

use crate::connection_transaction::JoiningCommand;
use crate::generic_arguments::{Participation, TransactionSupport, WriteConcernSupport};
use crate::open_load::OpenLoad;
use crate::{CommandError, ErrorCode};

/// Refuses a request that a connection with this load may not send.
pub(super) fn check(load: &OpenLoad, command: JoiningCommand<'_>) -> Result<(), CommandError> {
    let JoiningCommand { name, support, database, collection, participation } = command;
    let own = load.namespace();
    let is_own = database == own.database() && collection == own.collection();
    match (name, support.transactions) {
        ("insert", _) if is_own && participation != Participation::Alone => Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "a load takes no inserts with a transaction number: use retryWrites=false and no session transaction",
        )),
        ("insert", _) if is_own => Ok(()),
        _ if !load.is_open() => Ok(()),
        ("commitLoad" | "abortLoad", _) => Ok(()),
        ("commitTransaction", _) => Err(CommandError::failed(
            ErrorCode::Location(16_889),
            "the connection has a load open: end it with commitLoad or abortLoad before the transaction commits",
        )),
        ("beginTransaction", _)
        | (_, TransactionSupport::Statement | TransactionSupport::RetryableWrite)
        | ("count", _) => Err(refused(name, load)),
        (_, TransactionSupport::Refused) if support.writes == WriteConcernSupport::Accepted => {
            Err(refused(name, load))
        }
        _ => Ok(()),
    }
}

fn refused(name: &str, load: &OpenLoad) -> CommandError {
    CommandError::failed(
        ErrorCode::ConflictingOperationInProgress,
        format!(
            "cannot run '{name}' while this connection loads {}: it may insert there, and send commitLoad or abortLoad",
            load.namespace()
        ),
    )
}
