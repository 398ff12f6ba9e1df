//! The fields by which a request takes part in a transaction of its session, or says that it may repeat an
//! earlier write: `txnNumber`, `autocommit`, `startTransaction`, `stmtId`, `stmtIds`.

use pando_document::{RawArray, RawValue};

use crate::arguments::wrong_type;
use crate::{CommandError, ErrorCode};

/// How a command goes together with transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionSupport {
    /// It has no session.
    WithoutSession,
    /// It cannot run in a transaction.
    Refused,
    /// It can.
    Statement,
    /// It can only follow another statement.
    LaterStatement,
    /// It can, and outside of one it may repeat an earlier write.
    RetryableWrite,
    /// It ends one.
    End,
}

/// How a request takes part in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participation {
    /// It does not.
    Alone,
    /// It is a statement of the transaction of this number, or its end.
    Transaction(i64, Start),
    /// It is a write that may repeat an earlier one of the same number.
    RetryableWrite(i64),
}

/// Whether a statement begins its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It does.
    Begins,
    /// It is a later one.
    Continues,
}

/// The numbers of the statements of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatementIds<'a> {
    first: Option<i32>,
    each: Option<&'a RawArray>,
}

impl StatementIds<'_> {
    /// The number of the first statement, where the request says it.
    pub fn first(&self) -> Option<i32> {
        self.first
    }

    /// The numbers of all statements, where the request lists them.
    pub fn listed(&self) -> Option<Vec<i32>> {
        let each = self.each?.iter().map(|id| match id {
            Ok(RawValue::Int32(id)) => id,
            _ => -1,
        });
        Some(each.collect())
    }
}

/// The fields, read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransactionFields<'a> {
    number: Option<i64>,
    autocommit: Option<bool>,
    start: Option<bool>,
    pub statement_ids: StatementIds<'a>,
}

/// The command that the fields stand in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldsOwner<'a> {
    pub command: &'static str,
    pub support: TransactionSupport,
    pub database: &'a str,
    /// The value of the command, if it is a name.
    pub collection: &'a str,
    pub has_session: bool,
}

impl<'a> TransactionFields<'a> {
    /// Takes one of the fields.
    pub fn take(&mut self, name: &str, value: RawValue<'a>) -> Result<(), CommandError> {
        match (name, value) {
            ("txnNumber", RawValue::Int64(number)) => self.number = Some(number),
            ("txnNumber", other) => return Err(wrong(name, other, "type 'long'")),
            ("autocommit", RawValue::Boolean(flag)) => self.autocommit = Some(flag),
            ("startTransaction", RawValue::Boolean(flag)) => self.start = Some(flag),
            ("autocommit" | "startTransaction", other) => return Err(wrong(name, other, "type 'bool'")),
            ("stmtId", RawValue::Int32(id)) => self.statement_ids.first = Some(id),
            ("stmtIds", RawValue::Array(ids)) => {
                for id in ids.iter() {
                    match id? {
                        RawValue::Int32(_) => {}
                        other => return Err(wrong(name, other, "type 'int'")),
                    }
                }
                self.statement_ids.each = Some(ids);
            }
            (_, RawValue::Null | RawValue::Undefined) => {}
            ("stmtId", other) => return Err(wrong(name, other, "type 'int'")),
            (_, other) => return Err(wrong(name, other, "type 'array'")),
        }
        Ok(())
    }

    /// Checks the fields against each other and the command.
    pub fn participation(&self, owner: &FieldsOwner<'_>) -> Result<Participation, CommandError> {
        if self.number.is_none() && self.autocommit.is_none() && self.start.is_none() {
            return Ok(Participation::Alone);
        }
        let number = self.checked_number(owner)?;
        match (self.autocommit, owner.support) {
            (None, TransactionSupport::RetryableWrite) => Ok(Participation::RetryableWrite(number)),
            (None, TransactionSupport::WithoutSession) => Err(CommandError::failed(
                ErrorCode::Location(50_889),
                "It is illegal to provide a txnNumber for this command",
            )),
            (None, _) => Err(CommandError::failed(
                ErrorCode::NotARetryableWriteCommand,
                format!(
                    "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and {} is not a retryable write command.",
                    owner.command
                ),
            )),
            (Some(_), _) => {
                let start = if self.start.is_some() { Start::Begins } else { Start::Continues };
                check_command(owner, start)?;
                Ok(Participation::Transaction(number, start))
            }
        }
    }

    fn checked_number(&self, owner: &FieldsOwner<'_>) -> Result<i64, CommandError> {
        if self.start.is_some() && self.autocommit.is_none() {
            return Err(invalid("'startTransaction' field requires 'autocommit' field to also be specified"));
        }
        let Some(number) = self.number else {
            return Err(invalid("'autocommit' field requires a transaction number to also be specified"));
        };
        if !owner.has_session {
            return Err(invalid("Transaction number requires a session ID to also be specified"));
        }
        if number < 0 {
            return Err(invalid("Transaction number cannot be negative"));
        }
        if self.autocommit == Some(true) {
            return Err(invalid("Specifying autocommit=true is not allowed."));
        }
        if self.start == Some(false) {
            return Err(invalid("Specifying startTransaction=false is not allowed."));
        }
        Ok(number)
    }
}

/// Refuses commands and namespaces that a transaction may not have.
fn check_command(owner: &FieldsOwner<'_>, start: Start) -> Result<(), CommandError> {
    let FieldsOwner { command, database, collection, .. } = *owner;
    let refused =
        |reason: String| Err(CommandError::failed(ErrorCode::OperationNotSupportedInTransaction, reason));
    match (owner.support, start) {
        (TransactionSupport::WithoutSession, _) => {
            return refused("This command is not supported in transactions".to_owned());
        }
        (TransactionSupport::Refused, _) if command == "count" => {
            return refused(
                "Cannot run 'count' in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.".to_owned(),
            );
        }
        (TransactionSupport::Refused, _) => {
            return refused(format!("Cannot run '{command}' in a multi-document transaction."));
        }
        (TransactionSupport::End, Start::Begins) => {
            let end = if command == "commitTransaction" { "a commit" } else { "an abort" };
            return refused(format!("Cannot start a transaction with {end}"));
        }
        (TransactionSupport::LaterStatement, Start::Begins) => {
            return refused(format!(
                "Cannot run {command} as the first operation in a multi-document transaction."
            ));
        }
        _ => {}
    }
    check_namespace(database, collection)
}

/// Refuses namespaces that a transaction may not read or write.
pub(crate) fn check_namespace(database: &str, collection: &str) -> Result<(), CommandError> {
    let refused =
        |reason: String| Err(CommandError::failed(ErrorCode::OperationNotSupportedInTransaction, reason));
    match (database, collection) {
        ("config", _) => {
            refused("Cannot run command against the config database in a transaction.".to_owned())
        }
        ("local", _) => {
            refused("Cannot run command against the 'local' database in a transaction.".to_owned())
        }
        (_, "system.profile") => refused(format!(
            "Cannot run command against the '{database}.system.profile' collection in a transaction."
        )),
        _ => Ok(()),
    }
}

fn wrong(name: &str, value: RawValue<'_>, expected: &str) -> CommandError {
    wrong_type(&format!("OperationSessionInfo.{name}"), value, expected)
}

fn invalid(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}
