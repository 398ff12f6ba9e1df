//! The frame around a command that writes: the gate in front of it, and the write concern behind it.

use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};

use super::Commands;
use crate::context::Context;
use crate::generic_arguments::{Promise, WriteConcern, write_concern_error};
use crate::registry::{CommandRow, GatePassage};
use crate::write_gate::{Pass, WriterKind};
use crate::{CommandError, Request};

impl Commands {
    /// Lets a command that writes through the gate of writers.
    pub(super) fn pass_gate(
        &self,
        command: &CommandRow,
        context: &Context<'_>,
    ) -> Result<Option<Pass<'_>>, CommandError> {
        if command.gate == GatePassage::Free {
            return Ok(None);
        }
        let kind = match context.open_transaction() {
            None => WriterKind::Alone,
            Some(_) => WriterKind::InTransaction,
        };
        let clock = self.shared.environment.clock();
        self.shared.write_gate.enter(kind, context.caller(), &**clock).map(Some)
    }

    /// Tells the client of a write concern that one node cannot keep, beside the outcome of its write.
    pub(super) fn tell_broken_promise(
        &self,
        request: &Request<'_>,
        concern: WriteConcern,
        outcome: Result<(), CommandError>,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        if concern.promise == Promise::Kept {
            return outcome;
        }
        let error = self.broken_promise(request, concern.promise)?;
        match outcome {
            Ok(()) => {
                reply.append_value("writeConcernError", &Value::Document(error));
                Ok(())
            }
            Err(CommandError::Failed(mut failure)) => {
                failure.details.push("writeConcernError", error);
                Err(CommandError::Failed(failure))
            }
            would_block @ Err(CommandError::WouldBlock(_)) => would_block,
        }
    }

    #[cold]
    fn broken_promise(&self, request: &Request<'_>, promise: Promise) -> Result<Document, CommandError> {
        if let Some(RawValue::Document(given)) = request.body.get("writeConcern")? {
            return Ok(write_concern_error(&promise.failure(given), given, "clientSupplied"));
        }
        let defaults = self.shared.default_concerns.load();
        let given = defaults.write.as_ref().map(Document::to_raw).unwrap_or_default();
        let given: &RawDocument = &given;
        Ok(write_concern_error(&promise.failure(given), given, "customDefault"))
    }
}
