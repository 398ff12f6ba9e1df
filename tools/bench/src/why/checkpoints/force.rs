//! A checkpoint that is asked for (`--force-checkpoint`), so that a run begins with nothing put off, and sizes are of what the server
//! has written: `fsync` over MongoDB's protocol, of MySQL's engines what each has for it.

use crate::client::Session;
use crate::error::BenchError;
use crate::target::Target;
use pando_document::doc;
use std::time::{Duration, Instant};

/// What a server says that does not know a command, or has not built it.
const UNKNOWN: [i64; 2] = [59, 115];

/// Asks a server of MongoDB's protocol, and waits; gives how long it took.
pub fn of_target(target: &Target) -> Result<Duration, BenchError> {
    let began = Instant::now();
    match Session::open(target.address())?.command("admin", doc! { "fsync": 1 }) {
        Ok(_) => Ok(began.elapsed()),
        Err(BenchError::Refused { code, message, .. }) if UNKNOWN.contains(&code) => {
            Err(cannot(&format!("the server has no fsync: {message}")))
        }
        Err(error) => Err(error),
    }
}

/// The same of MySQL's servers: the first of them is asked.
#[cfg(feature = "mysql")]
pub fn of_sql(server: &crate::sql::SqlServer) -> Result<Duration, BenchError> {
    use mysql::prelude::Queryable;
    let Some(statement) = server.engine().checkpoint_statement() else {
        return Err(cannot(&format!("the engine {} has no statement for it", server.engine().name())));
    };
    let began = Instant::now();
    match server.connect()?.query_drop(statement) {
        Ok(()) => Ok(began.elapsed()),
        Err(mysql::Error::MySqlError(error)) => {
            Err(cannot(&format!("`{statement}` is refused: {}", error.message)))
        }
        Err(error) => Err(crate::sql::of_sql(error)),
    }
}

fn cannot(cause: &str) -> BenchError {
    BenchError::Option { option: "force-checkpoint", cause: cause.to_owned() }
}
