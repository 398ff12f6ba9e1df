//! The gate of access control: a client that has not logged in gets no further than to the commands by which
//! clients get to know a server and log in.

use super::Commands;
use crate::access::Standing;
use crate::context::Attempt;
use crate::registry::CommandRow;
use crate::{CommandError, ConnectionState, ErrorCode};

/// The commands that need no login, as in MongoDB.
const BEFORE_LOGIN: &[&str] = &[
    "authenticate",
    "buildInfo",
    "buildinfo",
    "connectionStatus",
    "getLastError",
    "getlasterror",
    "getnonce",
    "hello",
    "isMaster",
    "ismaster",
    "listCommands",
    "ping",
    "saslContinue",
    "saslStart",
    "whatsmyuri",
];
/// The commands that create the first user.
const FIRST: &[&str] = &["createRole", "createUser", "logout"];

impl Commands {
    /// Refuses a command whose client has to log in before.
    pub(super) fn check_login(
        &self,
        command: &CommandRow,
        connection: &ConnectionState,
        database: &str,
        attempt: Attempt<'_>,
    ) -> Result<(), CommandError> {
        if !self.shared.access.is_on() || BEFORE_LOGIN.contains(&command.name) {
            return Ok(());
        }
        let (login, ends) = (connection.login(), || connection.ends());
        match self.shared.access.standing(login, ends, &self.shared.catalog, attempt.blocking)? {
            Standing::Unrestricted | Standing::User(_) => Ok(()),
            Standing::First if database == "admin" && FIRST.contains(&command.name) => Ok(()),
            Standing::First | Standing::Stranger => Err(CommandError::failed(
                ErrorCode::Unauthorized,
                format!("command {} requires authentication", command.name),
            )),
        }
    }
}
