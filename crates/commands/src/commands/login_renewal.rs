//! The renewal of a login after users or roles have changed.

use super::Commands;
use crate::{BlockingMode, CommandError, ConnectionState};

impl Commands {
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
