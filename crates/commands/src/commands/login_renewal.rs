//! The renewal of a login after users or roles have changed, and the login of the user of a client's process.

use pando_access::UserName;

use super::Commands;
use crate::access::Login;
use crate::server_counters::TlsVersion;
use crate::{BlockingMode, CommandError, ConnectionState};

/// The database of users that log in without a password.
const EXTERNAL: &str = "$external";
/// The mechanism of the audit trail for them.
const BY_PROCESS: &str = "UNIX-PEER";

impl Commands {
    /// Counts a connection whose handshake of TLS is complete.
    pub fn count_tls(&self, connection: &ConnectionState, version: TlsVersion) {
        self.shared.counters.count_tls(connection.id(), version);
    }

    /// Whether a client may send requests of any size and in its own time: one that has logged in, or is
    /// logged in as the user of its process, and every one without access control.
    pub fn is_trusted(&self, connection: &ConnectionState) -> bool {
        !self.shared.access.is_on() || connection.login().is_some() || connection.process_user().is_some()
    }

    /// Makes the login of a connection again if users or roles have changed since. A user that is not there
    /// any more is logged out.
    #[inline]
    pub(super) fn renew_login(
        &self,
        connection: &mut ConnectionState,
        blocking: BlockingMode,
    ) -> Result<(), CommandError> {
        match connection.login() {
            Some(login) if login.generation != self.shared.access.generation() => {
                self.make_login_again(connection, blocking)
            }
            _ => Ok(()),
        }
    }

    /// Whether the user of the client's process can be logged in: nobody is, and the process is known.
    #[inline]
    pub(super) fn may_be_logged_in(&self, connection: &ConnectionState) -> bool {
        connection.login().is_none() && connection.process_user().is_some()
    }

    /// Logs the user of the client's process in, if there is such a user in `$external`. A client that is to
    /// be another user logs in before its first request.
    #[cold]
    pub(super) fn log_in_process_user(
        &self,
        connection: &mut ConnectionState,
        blocking: BlockingMode,
    ) -> Result<(), CommandError> {
        if blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        let generation = self.shared.access.generation();
        let Some(name) = connection.process_user() else { return Ok(()) };
        let user = UserName::new(name, EXTERNAL);
        match Login::of_known_name(&self.shared.catalog, &user, connection.ends(), generation)? {
            Ok(Some(login)) => {
                connection.set_login(Some(login));
                self.audit_login(connection, &user, BY_PROCESS);
            }
            // It stays a stranger, who may still log in.
            Ok(None) => {}
            Err(fault) => tracing::info!(
                user = %user.to_string().escape_debug(),
                "did not log in {}: {fault}",
                connection.peer()
            ),
        }
        Ok(())
    }

    #[cold]
    fn make_login_again(
        &self,
        connection: &mut ConnectionState,
        blocking: BlockingMode,
    ) -> Result<(), CommandError> {
        if blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        // Before the documents: a change that comes in between is seen by the next request.
        let generation = self.shared.access.generation();
        let Some(login) = connection.login() else { return Ok(()) };
        let renewed = login.renewed(&self.shared.catalog, connection.ends(), generation)?;
        let renewed = renewed
            .inspect_err(|fault| {
                tracing::info!(
                    user = %login.user.to_string().escape_debug(),
                    "logged out {}: {fault}",
                    connection.peer()
                );
            })
            .ok();
        connection.set_login(renewed);
        Ok(())
    }
}
