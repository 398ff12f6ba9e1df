//! The driver for the lab: its errors in the lab's terms, quoted names, counts of rows.

use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::error::BenchError;

/// MySQL's codes: a table or a database that is not there, a duplicate key.
pub const NO_SUCH_TABLE: u16 = 1146;
const NO_SUCH_DATABASE: u16 = 1049;
pub const DUPLICATE_KEY: u16 = 1062;
/// A lock timeout, a deadlock (also MyRocks' conflict of a snapshot), a changed row of MariaDB's snapshot
/// isolation, and what NDB calls temporary.
const TRANSIENT: [u16; 4] = [1205, 1213, 1020, 1297];

/// An error of the driver as ours.
pub fn of_sql(source: mysql::Error) -> BenchError {
    BenchError::Driver { source: Box::new(source) }
}

/// An error of the driver: what the server refused is a refusal, after which the connection goes on; all else
/// is not.
pub fn of_statement(statement: &str, error: mysql::Error) -> BenchError {
    match error {
        mysql::Error::MySqlError(error) => BenchError::Refused {
            command: statement.to_owned(),
            code: error.code.into(),
            message: error.message,
        },
        error => of_sql(error),
    }
}

/// Whether the same may work if it is done once more.
pub fn is_transient(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if TRANSIENT.contains(&error.code))
}

/// A name in the quotes that it cannot leave.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The rows of a table, 0 if it is not there.
pub fn count_rows(connection: &mut Conn, table: &str) -> Result<u64, BenchError> {
    count_where(connection, table, "")
}

/// The rows of a table that are counted with this addition, such as an index to go by; 0 if the table is not
/// there.
pub fn count_where(connection: &mut Conn, table: &str, addition: &str) -> Result<u64, BenchError> {
    match connection.query_first::<u64, _>(format!("SELECT COUNT(*) FROM {table} {addition}")) {
        Ok(count) => Ok(count.unwrap_or(0)),
        Err(mysql::Error::MySqlError(error)) if [NO_SUCH_TABLE, NO_SUCH_DATABASE].contains(&error.code) => {
            Ok(0)
        }
        Err(error) => Err(of_sql(error)),
    }
}
