//! The retry of a statement that has lost a conflict with another transaction.
//!
//! The statement is rolled back, so none of its changes was visible, and begins again on a newer snapshot. On
//! an event loop it tries three times at once and then answers `WouldBlock`. On a thread that may wait it
//! pauses a little longer each time, so that the other transaction can finish.

use std::time::Duration;

use pando_catalog::{BlockingMode, OperationWait};
use pando_query::QueryError;

use crate::CommandError;
use crate::context::Context;

/// Tries without waiting before the request moves to a thread that may wait.
const QUICK_TRIES: u32 = 3;
/// Tries in all before the client is told of the conflict.
const TRIES_MAX: u32 = 2_000;
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// Runs `statement` until it ends in something other than a conflict.
pub(super) fn on_conflict<T>(
    context: &mut Context<'_>,
    mut statement: impl FnMut(&mut Context<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let mut tries = 0;
    loop {
        match statement(context) {
            Err(error) if error.is_conflict() => {
                tries += 1;
                context.operation.usage().add_conflict();
                context.check()?;
                if tries >= QUICK_TRIES && context.blocking == BlockingMode::CachedOnly {
                    return Err(CommandError::WouldBlock(None));
                }
                if tries >= TRIES_MAX {
                    return Err(error);
                }
                pause(context, tries)?;
            }
            other => return other,
        }
    }
}

fn pause(context: &Context<'_>, tries: u32) -> Result<(), CommandError> {
    if tries < QUICK_TRIES {
        std::thread::yield_now();
        return Ok(());
    }
    let time = (Duration::from_micros(50) * (tries - QUICK_TRIES + 1)).min(PAUSE_MAX);
    Ok(context.operation.pause(OperationWait::Conflict, time).map_err(QueryError::from)?)
}
