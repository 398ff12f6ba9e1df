//! Errors of the query crate: MongoDB's code and MongoDB's words, or an error of the engine.
//!
//! # Terms
//! - *Named code*: a code that MongoDB gives a name, such as `BadValue`, because many causes share it: a row
//!   of [`ErrorCode`].
//! - *Fault*: a cause of an error that has a code of its own, without a name. Each room of the crate declares
//!   its faults in its file `fault.rs` by [`faults!`], a row each: the description, the name, the number.
//!
//! # Invariants
//! - Every number stands once in the crate: in the table of names, or in the row of its fault.
//! - Message texts follow MongoDB's wording where drivers, object mappers or their users read them.
//!
//! # Not here
//! The code of an error of the engine: `commands` chooses it by what the client must do.

mod code;

use std::fmt;

use pando_catalog::{Interruption, StorageError};
use pando_document::DocumentError;

pub use self::code::ErrorCode;

/// Declares the faults of one room as an enum whose discriminants are MongoDB's codes.
///
/// The compiler refuses a number that stands twice in one enum, and a number that has a name.
macro_rules! faults {
    (
        $(#[$attribute:meta])*
        $Fault:ident {
            $($(#[$doc:meta])+ $name:ident = $number:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum $Fault {
            $($(#[$doc])+ $name = $number,)+
        }

        impl $Fault {
            /// MongoDB's code.
            pub const fn code(self) -> $crate::ErrorCode {
                $crate::ErrorCode::Location(self as i32)
            }

            /// An error of this cause, in MongoDB's words.
            pub fn error(self, message: impl Into<String>) -> $crate::QueryError {
                $crate::QueryError::new(self.code(), message)
            }
        }

        $(const _: () = assert!(!$crate::ErrorCode::is_named($number), "a named code is no fault: see ErrorCode");)+
    };
}
pub(crate) use faults;

/// An error of parsing, planning or executing.
#[derive(Clone)]
pub enum QueryError {
    /// The request is wrong, or cannot be carried out.
    Refused {
        /// MongoDB's code of the cause.
        code: ErrorCode,
        /// A sentence for people.
        message: String,
    },
    /// The engine said no, or `WouldBlock`.
    Storage(StorageError),
}

impl QueryError {
    /// An error with this code, in MongoDB's words. A fault makes its own errors.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> QueryError {
        QueryError::Refused { code, message: message.into() }
    }

    /// [`ErrorCode::BadValue`], by far the commonest.
    pub fn bad_value(message: impl Into<String>) -> QueryError {
        QueryError::new(ErrorCode::BadValue, message)
    }

    /// [`ErrorCode::TypeMismatch`].
    pub fn type_mismatch(message: impl Into<String>) -> QueryError {
        QueryError::new(ErrorCode::TypeMismatch, message)
    }

    /// [`ErrorCode::FailedToParse`].
    pub fn failed_to_parse(message: impl Into<String>) -> QueryError {
        QueryError::new(ErrorCode::FailedToParse, message)
    }

    /// [`ErrorCode::NotImplemented`]: MongoDB knows `what`, Pando does not yet.
    pub fn not_implemented(what: &str) -> QueryError {
        QueryError::new(ErrorCode::NotImplemented, format!("{what} is not implemented yet"))
    }

    /// [`ErrorCode::NotImplemented`]: of a collection, a database or the whole server.
    pub fn no_change_streams() -> QueryError {
        QueryError::new(ErrorCode::NotImplemented, "there are no change streams yet")
    }

    /// [`ErrorCode::NotImplemented`]: an operator whose argument is a program in JavaScript.
    pub fn no_javascript(name: &str, instead: &str) -> QueryError {
        let message = format!("{name} is refused: Pando runs no JavaScript; say it with {instead}");
        QueryError::new(ErrorCode::NotImplemented, message)
    }

    /// MongoDB's code; none of an error of the engine.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            QueryError::Refused { code, .. } => Some(*code),
            QueryError::Storage(_) => None,
        }
    }

    /// The sentence for people; empty for an error of the engine, which prints itself.
    pub fn message(&self) -> &str {
        match self {
            QueryError::Refused { message, .. } => message,
            QueryError::Storage(_) => "",
        }
    }

    /// The same error with these words before its message. An error of the engine stays as it is.
    pub(crate) fn prefixed(self, words: impl fmt::Display) -> QueryError {
        match self {
            QueryError::Refused { code, message } => QueryError::new(code, format!("{words}{message}")),
            QueryError::Storage(_) => self,
        }
    }

    /// Whether the call may be repeated where waiting for the device is allowed.
    pub fn is_would_block(&self) -> bool {
        matches!(self, QueryError::Storage(error) if error.is_would_block())
    }
}

impl From<StorageError> for QueryError {
    fn from(error: StorageError) -> QueryError {
        // No allocation: `WouldBlock` is an answer, and comes often.
        QueryError::Storage(error)
    }
}

impl From<Interruption> for QueryError {
    fn from(interruption: Interruption) -> QueryError {
        let code = match interruption {
            Interruption::TimeLimit => ErrorCode::MaxTimeMsExpired,
            Interruption::Killed => ErrorCode::Interrupted,
            Interruption::ClientGone => ErrorCode::ClientDisconnect,
            Interruption::Shutdown => ErrorCode::InterruptedAtShutdown,
            Interruption::CollectionDropped => ErrorCode::QueryPlanKilled,
            Interruption::CursorKilled => ErrorCode::CursorKilled,
        };
        QueryError::new(code, interruption.to_string())
    }
}

impl From<DocumentError> for QueryError {
    fn from(error: DocumentError) -> QueryError {
        QueryError::new(ErrorCode::InvalidBson, error.to_string())
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Refused { message, .. } => f.write_str(message),
            QueryError::Storage(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Refused { code, message } => write!(f, "{}: {message}", code.name()),
            QueryError::Storage(error) => write!(f, "{error:?}"),
        }
    }
}

impl std::error::Error for QueryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            QueryError::Refused { .. } => None,
            QueryError::Storage(error) => Some(error),
        }
    }
}
