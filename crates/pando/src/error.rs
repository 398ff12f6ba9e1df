//! Errors of the library.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bson::{Bson, Document};
use pando_environment::EnvironmentError;

use crate::results::SummaryBulkWriteResult;

/// MongoDB's code for a key that a unique index has already.
const DUPLICATE_KEY: i32 = 11_000;

/// One write of a call that failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WriteErrorDetail {
    /// Its place in the caller's list, from 0.
    pub index: usize,
    /// MongoDB's error code, 11000 for a duplicate key.
    pub code: i32,
    /// A sentence.
    pub message: String,
    /// What the store tells beside it: of a document that a validator refuses MongoDB's `errInfo`, with the
    /// rules that it breaks; of a duplicate key `keyPattern` and `keyValue`, with `hexEncoded` and
    /// `collation` where the key is that of a collation. `None` where there is no more.
    pub details: Option<Document>,
}

/// The reason of a failed call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store is open already: in another process, or in this one through another handle.
    #[error("cannot open the store: {source}")]
    InUse {
        /// The folder of the store, from the root on.
        folder: PathBuf,
        /// The number of the process that has it open, where that is known.
        process: Option<u32>,
        /// The error of the engine.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store could not be opened: the message names the folder and says what to do.
    #[error("cannot open the store: {0}")]
    Open(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The backups cannot be restored.
    #[error("cannot restore: {0}")]
    Restore(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An argument that cannot be meant. The store was not asked.
    #[error("{0}")]
    InvalidArgument(String),
    /// The store refused the call.
    #[error("{message} (code {code}, {code_name})")]
    Command {
        /// MongoDB's error code.
        code: i32,
        /// Its name.
        code_name: String,
        /// A sentence.
        message: String,
        /// The whole reply.
        reply: Box<Document>,
    },
    /// The transaction has lost a conflict with another one. It has changed nothing.
    #[error("the transaction has changed nothing, because of another one: run it again ({message})")]
    Conflict {
        /// The reason, in a sentence.
        message: String,
        /// The whole reply.
        reply: Box<Document>,
    },
    /// The transaction had ended before this call: by an error of one of its earlier calls, or because it
    /// took longer than its lifetime. It has changed nothing. No other transaction is the cause, so the same
    /// calls are likely to fail again.
    #[error("the transaction has changed nothing: {reason}")]
    TransactionEnded {
        /// The cause and the advice, in a sentence.
        reason: String,
        /// The whole reply.
        reply: Box<Document>,
    },
    /// Some writes of the call failed. Where the order counts, those behind the first failure were not tried.
    #[error("{}", sentence(.0))]
    Write(Vec<WriteErrorDetail>),
    /// Some documents of an `insert_many` were not inserted. Where the order counts, and in a transaction,
    /// those behind the first failure were not tried.
    ///
    /// The documents go to the store in parts of up to 1,000. A refusal of a whole part, such as that of
    /// `max_time`, is that of its first document, or of each of them with `ordered(false)`. Some documents of
    /// a part that was refused in its middle may be in the collection, though no id tells so.
    #[error("{}", sentence(.errors))]
    InsertMany {
        /// The documents that were refused.
        errors: Vec<WriteErrorDetail>,
        /// The `_id` of each document that is in the collection, by its place in the list. In a transaction
        /// none is, because the failure has ended it.
        inserted_ids: BTreeMap<usize, Bson>,
    },
    /// Some writes of a bulk write failed. Where the order counts, and in a transaction, those behind the
    /// first failure were not tried. A refusal of neighbours that go to the store together is told as in
    /// [`Error::InsertMany`].
    #[error("{}", sentence(.errors))]
    BulkWrite {
        /// The writes that failed.
        errors: Vec<WriteErrorDetail>,
        /// The effect of the others. In a transaction there is none, because the failure has ended it.
        done: SummaryBulkWriteResult,
    },
    /// A value of the caller cannot become BSON.
    #[error(transparent)]
    Bson(Box<bson::error::Error>),
    /// A stored document cannot become the caller's type.
    #[error(
        "a document of {collection}{} does not fit the type {type_name}{}: {source}",
        id_text(.id),
        field_text(.field)
    )]
    Misfit {
        /// The full name of its collection.
        collection: String,
        /// Its `_id`, if it has one.
        id: Option<Box<Bson>>,
        /// The field that does not fit, if it is one and a field of the document itself.
        field: Option<String>,
        /// The caller's type.
        type_name: &'static str,
        /// The difference.
        source: Box<bson::error::Error>,
    },
    /// The device refused what a clean close writes: it is full, or has an error. No write is lost: the log
    /// has them all, and the next opening replays it.
    #[error(
        "the store was not closed cleanly, and the next opening replays its log, which has every write: {0}"
    )]
    NotClosed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store was closed by [`Pando::close`](crate::Pando::close).
    #[error("the store is closed: open it again to use it")]
    Closed,
    /// The write may not be on the device: the store has stopped after an error of the device. Open it again.
    #[error("the store has stopped, and its last writes may be lost: {0}; open it again")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An error of the caller's own, with which the work of a transaction undoes it: see [`Error::custom`].
    #[error("{0}")]
    Custom(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error of the caller's own: a sentence, or any error. The work of
    /// [`with_transaction`](crate::ClientSession::with_transaction) returns it to undo the transaction, and
    /// gets it back.
    ///
    /// ```
    /// # use pandodb::{Error, Pando, bson::Document, doc};
    /// # fn main() -> Result<(), Error> {
    /// # let pando = Pando::open_in_memory()?;
    /// # let accounts = pando.database("bank").collection::<Document>("accounts");
    /// let outcome = pando.start_session().run()?.with_transaction(|session| {
    ///     let rich = doc! { "_id": "Ada", "sum": { "$gte": 5 } };
    ///     let paid = session.collection(&accounts).update_one(rich, doc! { "$inc": { "sum": -5 } }).run()?;
    ///     if paid.matched_count == 0 {
    ///         return Err(Error::custom("Ada cannot pay 5"));
    ///     }
    ///     Ok(())
    /// });
    /// assert_eq!(outcome.unwrap_err().to_string(), "Ada cannot pay 5");
    /// # Ok(())
    /// # }
    /// ```
    pub fn custom(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Custom(reason.into())
    }

    /// The error of an opening: of a store in use where that is the cause.
    pub(crate) fn of_opening(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        let error = error.into();
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
        while let Some(one) = cause {
            if let Some(EnvironmentError::Locked { path, pid }) = one.downcast_ref() {
                let (folder, process) = (path.clone(), *pid);
                return Error::InUse { folder, process, source: error };
            }
            cause = one.source();
        }
        Error::Open(error)
    }

    /// The code of the error, as MongoDB has it, of a command or of the first write that was refused: 11000
    /// for a duplicate key, 121 for a document that a validator refuses, 50 for a call that took longer than
    /// its `max_time`, 14031 for a full device. `None` for errors of the library itself.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::Command { code, .. } => Some(*code),
            Error::Conflict { reply, .. } | Error::TransactionEnded { reply, .. } => {
                reply.get_i32("code").ok()
            }
            Error::Write(errors) | Error::InsertMany { errors, .. } | Error::BulkWrite { errors, .. } => {
                errors.first().map(|error| error.code)
            }
            _ => None,
        }
    }

    /// Whether a write failed because its `_id`, or its key of a unique index, is taken.
    pub fn is_duplicate_key(&self) -> bool {
        match self {
            Error::Command { code, .. } => *code == DUPLICATE_KEY,
            Error::Write(errors) | Error::InsertMany { errors, .. } | Error::BulkWrite { errors, .. } => {
                errors.iter().any(|error| error.code == DUPLICATE_KEY)
            }
            _ => false,
        }
    }
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::Bson(Box::new(error))
    }
}

/// Says which writes failed, and why the first did.
fn sentence(errors: &[WriteErrorDetail]) -> String {
    match errors {
        [] => "no write failed".to_owned(),
        [one] if one.index == 0 => one.message.clone(),
        [one] => format!("the write at index {} of the list failed: {}", one.index, one.message),
        [first, ..] => {
            format!(
                "{} writes of the list failed; the first is at index {}: {}",
                errors.len(),
                first.index,
                first.message
            )
        }
    }
}

fn id_text(id: &Option<Box<Bson>>) -> String {
    id.as_ref().map_or_else(String::new, |id| format!(" (_id: {id})"))
}

fn field_text(field: &Option<String>) -> String {
    field.as_ref().map_or_else(String::new, |field| format!(" in the field '{field}'"))
}
