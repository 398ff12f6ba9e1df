//! The driver for the lab: its errors in the lab's terms, transactions, quoted names, counts of rows.

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

/// A client whose statements can be one transaction.
pub trait Transacting {
    /// Says BEGIN, COMMIT or ROLLBACK.
    fn control(&mut self, statement: &'static str) -> Result<(), mysql::Error>;
}

impl Transacting for Conn {
    fn control(&mut self, statement: &'static str) -> Result<(), mysql::Error> {
        self.query_drop(statement)
    }
}

/// How a transaction is to end whose statements the server has not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Commit,
    /// Something in it was wrong all the same.
    Rollback,
}

/// Does work as one transaction: all of it, or nothing. After an error it is rolled back before anything else
/// is said: a statement that the server refuses does not end the transaction, and the next BEGIN would commit
/// what was done before.
pub fn in_transaction<C: Transacting, T>(
    client: &mut C,
    work: impl FnOnce(&mut C) -> Result<(T, Ending), mysql::Error>,
) -> Result<T, mysql::Error> {
    client.control("BEGIN")?;
    let ended = work(client).and_then(|(value, ending)| {
        let statement = if ending == Ending::Commit { "COMMIT" } else { "ROLLBACK" };
        client.control(statement).map(|()| value)
    });
    if let Err(mysql::Error::MySqlError(_)) = &ended {
        client.control("ROLLBACK")?;
    }
    ended
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    /// A client that records each statement and refuses one of them.
    #[derive(Default)]
    struct Recorder {
        said: Vec<&'static str>,
        refused: &'static str,
    }

    impl Recorder {
        fn say(&mut self, statement: &'static str) -> Result<(), mysql::Error> {
            self.said.push(statement);
            if self.refused == statement { Err(refusal()) } else { Ok(()) }
        }
    }

    impl Transacting for Recorder {
        fn control(&mut self, statement: &'static str) -> Result<(), mysql::Error> {
            self.say(statement)
        }
    }

    fn refusal() -> mysql::Error {
        let message = "Lock wait timeout exceeded".to_owned();
        mysql::Error::MySqlError(mysql::MySqlError { state: "HY000".to_owned(), message, code: TRANSIENT[0] })
    }

    fn said(refused: &'static str, ending: Ending) -> (Vec<&'static str>, bool) {
        let mut client = Recorder { refused, ..Recorder::default() };
        let outcome = in_transaction(&mut client, |client| {
            client.say("DELETE")?;
            client.say("INSERT")?;
            Ok(((), ending))
        });
        (client.said, outcome.is_ok())
    }

    #[test]
    fn a_transaction_that_the_server_refuses_in_its_middle_is_rolled_back_before_anything_else() {
        assert_eq!(said("", Ending::Commit), (vec!["BEGIN", "DELETE", "INSERT", "COMMIT"], true));
        assert_eq!(said("INSERT", Ending::Commit), (vec!["BEGIN", "DELETE", "INSERT", "ROLLBACK"], false));
        let of_commit = vec!["BEGIN", "DELETE", "INSERT", "COMMIT", "ROLLBACK"];
        assert_eq!(said("COMMIT", Ending::Commit), (of_commit, false));
        assert_eq!(said("BEGIN", Ending::Commit), (vec!["BEGIN"], false));
    }

    #[test]
    fn a_transaction_with_a_wrong_answer_in_it_is_rolled_back() {
        assert_eq!(said("", Ending::Rollback), (vec!["BEGIN", "DELETE", "INSERT", "ROLLBACK"], true));
    }

    #[test]
    fn a_connection_that_is_lost_is_told_nothing() {
        let mut client = Recorder::default();
        let lost = |_: &mut Recorder| -> Result<((), Ending), mysql::Error> {
            Err(mysql::Error::IoError(ErrorKind::ConnectionReset.into()))
        };
        assert!(in_transaction(&mut client, lost).is_err());
        assert_eq!(client.said, ["BEGIN"]);
    }
}
