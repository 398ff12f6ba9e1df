//! `currentOp`: the operations under way. The aggregation stage `$currentOp` gives the same documents.
//!
//! In a shared store they are those of all its servers, as a mongos lists those of all shards. The stage with
//! `localOps: true` lists those of this server.
//!
//! Fields of the command beside `$all`, `$ownOps` and `$truncateOps` are a filter over the documents.

use pando_access::UserName;
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf};
use pando_query::filter::Filter;

use crate::arguments::is_generic;
use crate::context::Context;
use crate::diagnostic::idle_session::session_document;
use crate::diagnostic::key_rewriting::KeyRewriting;
use crate::diagnostic::other_servers;
use crate::operations::{OperationNames, Surroundings, connection_document, cursor_document};
use crate::session_id::SessionOwner;
use crate::shared_state::SharedState;
use crate::{CommandError, Request};

/// Answers the list.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // On a thread that may wait, where the command lists itself as MongoDB does.
    context.require_may_block()?;
    let mut wanted = WantedOperations::default();
    let mut fields = Vec::new();
    let mut filter = DocumentWriter::begin(&mut fields);
    for field in request.body.iter().skip(1) {
        match field? {
            ("$all", value) => wanted.idle_connections = value.to_bool(),
            ("$ownOps", value) if value.to_bool() => wanted.of_users = UsersOfOperations::Own,
            ("$ownOps", _) => wanted.of_users = UsersOfOperations::All,
            ("$truncateOps", _) => {}
            (name, _) if is_generic(name) => {}
            (name, value) => filter.append(name, value),
        }
    }
    filter.finish();
    let filter = Filter::parse(RawDocument::from_bytes(&fields)?, &context.parse_scope())?;
    let mut list = reply.array("inprog");
    for document in wanted.list(context)? {
        if filter.matches(&document)? {
            list.push_document(&document);
        }
    }
    list.finish();
    if context.shared.write_gate.locks() > 0 {
        reply.append_bool("fsyncLock", true);
        reply.append_str("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock");
    }
    Ok(())
}

/// Which connections, cursors and sessions are listed beside the operations under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedOperations {
    pub of_users: UsersOfOperations,
    pub idle_connections: bool,
    pub idle_cursors: bool,
    /// Sessions with an open transaction.
    pub idle_sessions: bool,
    pub servers: WantedServers,
}

impl Default for WantedOperations {
    fn default() -> WantedOperations {
        WantedOperations {
            of_users: UsersOfOperations::All,
            idle_connections: false,
            idle_cursors: false,
            idle_sessions: true,
            servers: WantedServers::All,
        }
    }
}

/// The servers whose operations are listed. In a store of one server there is no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedServers {
    All,
    /// The one that is asked.
    This,
}

/// The users whose operations are listed. Without access control there is no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsersOfOperations {
    All,
    /// The client's own user.
    Own,
}

impl WantedOperations {
    /// The documents. Blocks where other servers are asked.
    pub fn list(self, context: &Context<'_>) -> Result<Vec<RawDocumentBuf>, CommandError> {
        let own = context.limiting_login().filter(|_| self.of_users == UsersOfOperations::Own);
        let own = own.map(|login| &login.user);
        let mut documents = self.list_here(context.shared, own);
        if self.servers == WantedServers::All && context.catalog().is_shared() {
            context.require_may_block()?;
            documents.extend(other_servers::operations(context, self, own)?);
        }
        Ok(documents)
    }

    /// The documents of this server; only those of a user, if one is given.
    pub fn list_here(self, shared: &SharedState, own: Option<&UserName>) -> Vec<RawDocumentBuf> {
        let server = shared.server_name();
        let surroundings = Surroundings {
            host: &server,
            names: match shared.catalog.is_shared() {
                true => OperationNames::WithServer,
                false => OperationNames::Numbers,
            },
            now: shared.environment.clock().monotonic(),
            now_ms: shared.now_ms(),
        };
        let connections = shared.running.connections();
        let is_own = |user: Option<&UserName>| own.is_none_or(|own| user == Some(own));
        let wanted = connections
            .iter()
            .filter(|connection| is_own(connection.user.as_deref()))
            .filter(|connection| self.idle_connections || connection.running.is_some())
            .map(|connection| connection_document(connection, &surroundings));
        let mut documents: Vec<RawDocumentBuf> = wanted.collect();
        if own.is_none() {
            documents
                .extend(KeyRewriting::of(&shared.catalog).and_then(|work| work.operation(surroundings.host)));
        }
        if self.idle_cursors {
            let mut idle = shared.cursors.idle();
            idle.retain(|cursor| own.is_none_or(|own| cursor.is_of(own)));
            documents.extend(idle.iter().map(|cursor| cursor_document(cursor, &surroundings)));
        }
        if self.idle_sessions {
            let lifetime = shared.sessions.lifetime();
            let mut idle = shared.sessions.idle();
            let waiting = shared.running.waiting_sessions();
            let owner = own.map(|own| SessionOwner::of_digest(own.digest()));
            idle.retain(|open| {
                let is_own = owner.is_none_or(|owner| open.session.owner() == owner);
                is_own && !waiting.contains(&open.session)
            });
            documents.extend(idle.iter().map(|open| session_document(open, lifetime, &surroundings)));
        }
        documents
    }
}
