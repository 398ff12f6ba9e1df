//! An attempt to handle a request: the connection, the form and the blocking mode.

use std::sync::Arc;

use pando_catalog::{BlockingMode, Caller};
use pando_environment::Monotonic;

use crate::operations::ConnectionRecord;

/// An attempt to handle a request.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub blocking: BlockingMode,
    pub record: &'a Arc<ConnectionRecord>,
    /// The first attempt of the same request, from which its time counts.
    pub began: Monotonic,
    pub form: RequestForm,
}

/// Whether the writes of a request keep the rules of their collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validation {
    /// They do.
    Checked,
    /// The request has `bypassDocumentValidation`.
    Bypassed,
}

/// The form in which a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestForm {
    /// A message of today, or a call in the same process.
    Message,
    /// A query of an older operation.
    LegacyQuery,
    /// A write of an older operation, which has no reply.
    LegacyWrite,
}

impl<'a> Attempt<'a> {
    /// One of the server itself, which no client waits for.
    pub fn of_server(record: &'a Arc<ConnectionRecord>, began: Monotonic) -> Attempt<'a> {
        Attempt { blocking: BlockingMode::MayBlock, record, began, form: RequestForm::Message }
    }

    /// The operation with its blocking mode.
    pub fn caller(&self) -> Caller<'a> {
        Caller { blocking: self.blocking, operation: self.record.operation() }
    }
}
