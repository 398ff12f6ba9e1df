//! A checkpoint that is asked for (`--force-checkpoint`), by `fsync`. A run then begins with no work put off,
//! and sizes are those of what the server has written.

use crate::client::Session;
use crate::error::BenchError;
use crate::target::Target;
use pando_document::doc;
use std::time::{Duration, Instant};

/// Codes of a server that does not know a command, or has not built it.
const UNKNOWN: [i64; 2] = [59, 115];

/// Has a server write a checkpoint; gives how long it took.
pub fn force(target: &Target) -> Result<Duration, BenchError> {
    let began = Instant::now();
    match Session::open(target.address())?.command("admin", doc! { "fsync": 1 }) {
        Ok(_) => Ok(began.elapsed()),
        Err(BenchError::Refused { code, message, .. }) if UNKNOWN.contains(&code) => {
            Err(cannot_be_forced(format!("the server has no fsync: {message}")))
        }
        Err(error) => Err(error),
    }
}

/// A checkpoint that this server cannot be asked for.
pub fn cannot_be_forced(cause: String) -> BenchError {
    BenchError::Option { option: "force-checkpoint", cause }
}
