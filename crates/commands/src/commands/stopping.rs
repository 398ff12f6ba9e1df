//! The answers of a server that is about to stop: requests that come now are refused, with the code and the
//! label by which drivers try them again.
//!
//! A connection that is closed instead tells its driver less. The first error of a network marks the server
//! as unknown to a driver, and one that has several requests on their way then takes the next ones for
//! requests that cannot be tried again.

use std::sync::atomic::Ordering;

use pando_environment::Monotonic;

use super::Commands;
use super::fail_point_effect::labelled_as;
use crate::registry;
use crate::sessions::labels;
use crate::{CommandError, ErrorCode, Request};

impl Commands {
    /// Refuses the requests that come from now on: the server is about to stop. Those under way go on, also
    /// where they are handled again.
    pub fn refuse_requests(&self) {
        self.shared.stopping_since.get_or_init(|| self.shared.environment.clock().monotonic());
    }

    /// The number of requests that were refused for it so far.
    pub fn refused_at_stop(&self) -> u64 {
        self.shared.refused_at_stop.load(Ordering::Relaxed)
    }

    /// Fails for a request that began since the server is about to stop. `command` is the place of the
    /// command in the registry.
    pub(super) fn check_not_stopping(
        &self,
        request: &Request<'_>,
        command: Option<usize>,
        began: Monotonic,
    ) -> Result<(), CommandError> {
        if self.shared.stopping_since.get().is_none_or(|since| began < *since) {
            return Ok(());
        }
        self.shared.refused_at_stop.fetch_add(1, Ordering::Relaxed);
        let error = CommandError::failed(
            ErrorCode::InterruptedAtShutdown,
            "interrupted at shutdown: try again when the server is there again",
        );
        let kind = command.and_then(|command| labelled_as(&registry::COMMANDS[command], request));
        Err(match kind {
            Some(kind) => labels::labelled(error, kind),
            None => error,
        })
    }
}
