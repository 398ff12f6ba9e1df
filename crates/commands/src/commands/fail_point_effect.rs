//! The effect of the fail point on a request: before its command runs, and in its reply.

use pando_catalog::{BlockingMode, DurabilityWaker, ErrorKind, OperationWait, StorageError};
use pando_document::{DocumentWriter, RawValue, Value};
use pando_query::QueryError;

use super::{Aftermath, Commands, Delivery};
use crate::context::Attempt;
use crate::generic_arguments::TransactionSupport;
use crate::registry::{self, CommandRow};
use crate::reply_wait::ReplyWait;
use crate::sessions::SessionUse;
use crate::sessions::labels::{self, Labelled};
use crate::{CommandError, ErrorCode, Request, topology_version};

impl Commands {
    /// Has a request wait or fail, if it is hit.
    pub(super) fn meet_fail_point(
        &self,
        request: &Request<'_>,
        attempt: Attempt<'_>,
        aftermath: &mut Aftermath<'_>,
    ) -> Result<(), CommandError> {
        match aftermath.command {
            Some(position) if self.shared.fail_points.is_armed() => {
                self.meet_armed_point(&registry::COMMANDS[position], request, attempt, aftermath)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn meet_armed_point(
        &self,
        command: &CommandRow,
        request: &Request<'_>,
        attempt: Attempt<'_>,
        aftermath: &mut Aftermath<'_>,
    ) -> Result<(), CommandError> {
        let points = &self.shared.fail_points;
        let is_write = points.write.is_armed() && labelled_as(command, request) == Some(Labelled::Write);
        // The first request of a connection names the application itself.
        let application = attempt.record.application().or_else(|| greeting_application(request));
        let is_named = points.command.is_met(command.name, application);
        // A request that is handled again counts once.
        if (is_write || is_named) && attempt.blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        if let Some(code) =
            points.write.effect().filter(|_| is_write).and_then(|effect| effect.code_before_commit)
            && let Some(effect) = points.write.hit()
        {
            if effect.closes_connection {
                aftermath.delivery = Delivery::ConnectionClosed;
            }
            let reason = "Failing write before its commit via 'onPrimaryTransactionalWrite' failpoint";
            let error = CommandError::failed(ErrorCode::of(code), reason);
            return Err(labels::labelled(error, Labelled::Write));
        }
        if !is_named {
            return Ok(());
        }
        let Some(effect) = points.command.hit() else { return Ok(()) };
        if let Some(time) = effect.wait {
            attempt.record.operation().pause(OperationWait::FailPoint, time).map_err(QueryError::from)?;
        }
        if effect.closes_connection {
            aftermath.delivery = Delivery::ConnectionClosed;
        }
        match (effect.code, effect.closes_connection) {
            (None, false) => {
                aftermath.fail_point = effect.concern_error.is_some().then_some(effect);
                Ok(())
            }
            (code, _) => {
                let error = CommandError::from(effect.failure(code.unwrap_or(0)));
                match labelled_as(command, request).filter(|_| effect.labels.is_none()) {
                    Some(kind) => Err(labels::labelled(error, kind)),
                    None => Err(error),
                }
            }
        }
    }

    /// Closes the connection of a write whose commits hit the fail point. A repetition commits nothing. Where
    /// the point fails writes before their commit, they were counted then.
    pub(super) fn meet_write_point(
        &self,
        command: &CommandRow,
        session: Option<&SessionUse>,
        aftermath: &mut Aftermath<'_>,
    ) {
        let points = &self.shared.fail_points;
        let Some(session) = session.filter(|_| points.write.is_armed()) else { return };
        if points.write.effect().is_none_or(|effect| effect.code_before_commit.is_some()) {
            return;
        }
        // The documents of an insert commit together.
        let commits = if command.name == "insert" {
            session.committed_statements().min(1)
        } else {
            session.committed_statements()
        };
        for _ in 0..commits {
            if points.write.hit().is_some_and(|effect| effect.closes_connection) {
                aftermath.delivery = Delivery::ConnectionClosed;
            }
        }
    }

    /// Tells the client of the write concern error that the fail point makes.
    pub(super) fn write_fail_point(
        &self,
        command: &CommandRow,
        request: &Request<'_>,
        aftermath: &Aftermath<'_>,
        reply: &mut DocumentWriter<'_>,
    ) {
        let Some(effect) = &aftermath.fail_point else { return };
        let Some(error) = &effect.concern_error else { return };
        reply.append_value("writeConcernError", &Value::Document(error.clone()));
        let persona = self.shared.options.persona.persona;
        if let Some(Value::Int32(code)) = error.get("code")
            && topology_version::is_carried_by(*code, persona)
        {
            topology_version::write(self.shared.process_id, reply);
        }
        if let Some(labels) = effect.label_list() {
            reply.append_value("errorLabels", &labels);
        } else if let (Some(Value::Int32(code)), Some(kind)) =
            (error.get("code"), labelled_as(command, request))
            && labels::is_retryable(*code, kind)
        {
            let mut labels = reply.array("errorLabels");
            labels.push(RawValue::String(labels::RETRYABLE));
            labels.finish();
        }
    }
}

/// The application that a greeting names.
fn greeting_application<'r>(request: &Request<'r>) -> Option<&'r str> {
    let client = request.body.get("client").ok()??.as_document()?;
    client.get("application").ok()??.as_document()?.get("name").ok()??.as_str()
}

/// The kind of request whose failure gets labels.
pub(super) fn labelled_as(command: &CommandRow, request: &Request<'_>) -> Option<Labelled> {
    let has = |name: &str| matches!(request.body.get(name), Ok(Some(_)));
    match (has("txnNumber"), has("autocommit"), command.generic.transactions) {
        (true, true, TransactionSupport::End) => Some(Labelled::End),
        (true, true, _) => Some(Labelled::Statement),
        (true, false, TransactionSupport::RetryableWrite) => Some(Labelled::Write),
        _ => None,
    }
}

/// The wait of a reply that is never sent: its connection is closed instead.
pub(super) struct ClosedConnection;

impl ReplyWait for ClosedConnection {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        waker(Err(closed()));
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        Err(closed())
    }
}

fn closed() -> StorageError {
    StorageError::new(ErrorKind::Closed, "the fail point failCommand closes the connection")
}
