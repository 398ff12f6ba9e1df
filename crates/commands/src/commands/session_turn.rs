//! The session of a request: it is taken before the command runs, and put back afterwards.

use std::sync::Arc;

use pando_catalog::{BlockingMode, Interruption};
use pando_environment::Monotonic;
use pando_query::QueryError;

use super::{Commands, load_rules};
use crate::connection_transaction::{ConnectionTransaction, Isolation, JoiningCommand};
use crate::context::Attempt;
use crate::generic_arguments::{
    ClusterTimes, GenericArguments, Participation, ReadConcern, Start, StatementIds, TransactionSupport,
    WriteConcern,
};
use crate::operations::ConnectionRecord;
use crate::session_id::SessionId;
use crate::sessions::labels::{self, Labelled};
use crate::sessions::{Begun, EndOfRequest, Entry, OpenTransaction, SessionUse};
use crate::{CommandError, ConnectionState, DefaultDurability, Request};

/// The part of a request in a transaction, and its session: those of the connection's transaction, where the
/// request joins that. Refuses a request that cannot come while the connection has a load open.
pub(super) fn joined(
    connection: &ConnectionState,
    command: JoiningCommand<'_>,
    session: Option<SessionId>,
) -> Result<(Participation, Option<SessionId>), CommandError> {
    if let Some(load) = connection.load() {
        load_rules::check(load, command)?;
    }
    let Some(bound) = connection.transaction() else { return Ok((command.participation, session)) };
    match bound.participation(command)? {
        Participation::Alone => Ok((Participation::Alone, session)),
        joined => Ok((joined, Some(bound.session()))),
    }
}

/// The kind of statement whose error is labelled, which follows from what the error ends.
fn labelled_as(support: TransactionSupport, is_write: bool) -> Labelled {
    match support {
        TransactionSupport::End => Labelled::End,
        _ if is_write => Labelled::Write,
        _ => Labelled::Statement,
    }
}

/// Fails where a request has begun a transaction that its client does not wait for any more: it would keep
/// its keys for its whole lifetime.
pub(super) fn check_begun(session: &SessionUse, record: &ConnectionRecord) -> Result<(), CommandError> {
    if !session.begins() || session.open().is_none() {
        return Ok(());
    }
    if record.is_client_gone() {
        record.operation().interrupt(Interruption::ClientGone);
    }
    Ok(record.operation().check_now().map_err(QueryError::from)?)
}

impl Commands {
    /// Reads the fields that every command may have, with what the server assumes where they are missing. Its
    /// session belongs to the client's user.
    pub(super) fn read_generic_arguments<'r>(
        &self,
        request: &Request<'r>,
        connection: &ConnectionState,
    ) -> Result<GenericArguments<'r>, CommandError> {
        let (access, login) = (&self.shared.access, connection.login());
        let mut generic = GenericArguments::read(request, access.session_owner(login))?;
        if let (Some(named), Some(session)) = (generic.named_owner, &mut generic.session) {
            *session = access.session_of_named_owner(login, *session, named)?;
        }
        generic.cluster_times =
            self.shared.cluster_clock.as_ref().map_or(ClusterTimes::Unknown, |_| ClusterTimes::Known);
        generic.default_concern = match connection.default_durability() {
            DefaultDurability::OfStore => self.shared.default_concerns.load().concern,
            DefaultDurability::Synced => WriteConcern::SYNCED,
        };
        Ok(generic)
    }

    /// The entry of a request into its session.
    pub(super) fn entry<'e>(
        &'e self,
        participation: Participation,
        support: TransactionSupport,
        statement_ids: StatementIds<'e>,
        blocking: BlockingMode,
    ) -> Entry<'e> {
        let (catalog, cached_reads) = (&self.shared.catalog, self.shared.cached_reads);
        Entry { participation, support, statement_ids, catalog, blocking, cached_reads }
    }

    /// Takes the session of a request, and begins or finds its transaction.
    #[inline(never)]
    pub(super) fn enter_session(
        &self,
        session: SessionId,
        entry: &Entry<'_>,
        attempt: Attempt<'_>,
        read: ReadConcern,
    ) -> Result<Box<SessionUse>, CommandError> {
        let shared = &self.shared;
        let past = match entry.participation {
            Participation::Transaction(_, Start::Begins) => self.begin_at(read, attempt)?,
            _ => None,
        };
        let mut session = shared.sessions.take(session, &shared.catalog, attempt.caller())?;
        let begun = || Begun {
            at: shared.environment.clock().monotonic(),
            ms: shared.now_ms(),
            level: read.level,
            past,
            connection: Arc::clone(attempt.record),
        };
        let ends_elsewhere = |session: &SessionUse, number: i64| {
            shared.catalog.is_shared()
                && entry.support == TransactionSupport::End
                && number > session.number()
        };
        if let Participation::Transaction(number, Start::Continues) = entry.participation
            && ends_elsewhere(&session, number)
        {
            session.end_elsewhere(number, &shared.catalog, shared.now_ms())?;
        }
        match session.enter(entry, begun) {
            Ok(()) => Ok(Box::new(session)),
            Err(error) => {
                let kind = labelled_as(
                    entry.support,
                    matches!(entry.participation, Participation::RetryableWrite(_)),
                );
                let ended = session.leave(EndOfRequest::Again, entry.support, shared.now_ms());
                self.close_cursors(&ended);
                Err(labels::labelled(error, kind))
            }
        }
    }

    /// Puts the session of a request back. A failure ends its transaction, and gets the labels by which
    /// drivers decide whether to try again.
    #[inline(never)]
    pub(super) fn leave_session(
        &self,
        session: SessionUse,
        support: TransactionSupport,
        began: Monotonic,
        outcome: Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let kind = labelled_as(support, session.is_write());
        if let Some(open) = session.open() {
            open.add_active(self.shared.environment.clock().monotonic().since(began));
        }
        let end = match &outcome {
            Ok(()) => EndOfRequest::Answered,
            Err(CommandError::WouldBlock(_)) => EndOfRequest::Again,
            Err(CommandError::Failed(_)) => EndOfRequest::Failed,
        };
        let ended = session.leave(end, support, self.shared.now_ms());
        self.close_cursors(&ended);
        outcome.map_err(|error| labels::labelled(error, kind))
    }

    /// Closes the cursors of transactions that have ended.
    fn close_cursors(&self, ended: &[Arc<OpenTransaction>]) {
        for open in ended.iter().filter(|open| open.has_cursors()) {
            self.shared.cursors.end_transaction(open.session, open.number);
        }
    }

    /// Moves the transaction of a connection to the newest snapshot, where its isolation says so.
    pub(super) fn renew_snapshot(
        &self,
        bound: Option<&ConnectionTransaction>,
        session: &SessionUse,
    ) -> Result<(), CommandError> {
        match (bound, session.open()) {
            (Some(bound), Some(open)) if bound.isolation() == Isolation::NewestCommitted => {
                open.renew(&self.shared.catalog)
            }
            _ => Ok(()),
        }
    }
}
