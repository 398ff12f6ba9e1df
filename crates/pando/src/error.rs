//! Errors of the embedded face.

use bson::Document;

/// One write of a batch that failed.
#[derive(Clone, Debug)]
pub struct WriteErrorDetail {
    /// Its place in the batch.
    pub index: i32,
    /// MongoDB's error code, 11000 for a duplicate key.
    pub code: i32,
    /// A sentence.
    pub message: String,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be opened: the message names the folder and says what to do.
    #[error("cannot open the store: {0}")]
    Open(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The backups cannot be restored.
    #[error("cannot restore: {0}")]
    Restore(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The command was refused.
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
    /// Some writes of a batch failed; the others were carried out as far as the batch's order allows.
    #[error("{} of the writes failed, the first: {}", .0.len(), .0.first().map_or("", |first| first.message.as_str()))]
    Write(Vec<WriteErrorDetail>),
    /// A value of the caller cannot become BSON, or a stored document cannot become the caller's type.
    #[error(transparent)]
    Bson(Box<bson::error::Error>),
    /// The write may not be on the device: the engine has stopped. Open the store again.
    #[error("the engine has stopped: {0}")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::Bson(Box::new(error))
    }
}
