//! The cluster times of requests and replies: the clock, the times of read concerns, and the snapshots that
//! they select.

use std::sync::Arc;

use pando_catalog::{BlockingMode, Catalog, ReadClaiming};
use pando_document::{DocumentWriter, RawDocument, RawValue, Timestamp};

use super::Commands;
use crate::cluster_clock::{self, moment_of};
use crate::context::{Attempt, Context};
use crate::generic_arguments::{CheckedArguments, ReadConcern, ReadLevel, WriteConcernSupport};
use crate::held_snapshots::{HeldSnapshot, SnapshotWanted};
use crate::pipeline_references::add_references;
use crate::registry::CommandRow;
use crate::{CommandError, ErrorCode, Request};

/// What a command may read.
#[derive(Clone, Copy)]
pub(super) struct CommandReads<'r> {
    pub database: &'r str,
    pub collection: &'r str,
    /// The request, which may name other collections.
    pub request: &'r Request<'r>,
}

impl Commands {
    /// The past snapshot at which a transaction begins, if it names one. Refuses a level that the engine
    /// lacks.
    #[inline]
    pub(super) fn begin_at(
        &self,
        read: ReadConcern,
        attempt: Attempt<'_>,
    ) -> Result<Option<Arc<HeldSnapshot>>, CommandError> {
        if read.level == ReadLevel::Serializable {
            check_serializable(&self.shared.catalog)?;
            if attempt.blocking == BlockingMode::CachedOnly {
                // It may wait for commits under way.
                return Err(CommandError::WouldBlock(None));
            }
        }
        match read.at {
            Some(_) => self.hold_snapshot(read, attempt).map(Some),
            None => Ok(None),
        }
    }

    /// Has a read with read concern `snapshot` outside of transactions read the snapshot that it names, or
    /// the newest.
    pub(super) fn select_snapshot(
        &self,
        context: &mut Context<'_>,
        collection: Option<&str>,
        attempt: Attempt<'_>,
    ) -> Result<(), CommandError> {
        if context.read.level != ReadLevel::Snapshot || context.open_transaction().is_some() {
            return Ok(());
        }
        if context.database == "config" && collection == Some("transactions") {
            return Err(CommandError::failed(
                ErrorCode::Location(5_557_800),
                "Snapshot reads and causal consistent majority reads on config.transactions are not supported",
            ));
        }
        context.past = Some(self.hold_snapshot(context.read, attempt)?);
        Ok(())
    }

    /// Runs a command, unless `fsync` keeps it away, and confirms a linearizable read.
    pub(super) fn carry_out(
        &self,
        command: &CommandRow,
        context: &mut Context<'_>,
        request: &Request<'_>,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let _pass = self.pass_gate(command, context)?;
        let outcome = (command.run)(context, request, writer);
        if context.changes_accounts() {
            // Also after a failure: a part of its writes may have been committed.
            self.note_account_change();
            context.audit_direct_change(command.name, &outcome);
        }
        outcome?;
        if context.read.level == ReadLevel::Linearizable {
            context.confirm_read()?;
        }
        Ok(())
    }

    /// Users or roles have changed, or may have: here, and for the other servers of a shared store.
    fn note_account_change(&self) {
        self.shared.access.note_change();
        if let Err(error) = self.shared.catalog.announce_change() {
            tracing::warn!(%error, "other servers of the store take over a change of users or roles later");
        }
    }

    /// The snapshot of a read with read concern `snapshot` outside of transactions.
    #[cold]
    fn hold_snapshot(
        &self,
        read: ReadConcern,
        attempt: Attempt<'_>,
    ) -> Result<Arc<HeldSnapshot>, CommandError> {
        let shared = &self.shared;
        let Some(clock) = &shared.cluster_clock else {
            return Err(CommandError::failed(
                ErrorCode::NotAReplicaSet,
                "node needs to be a replica set member to use readConcern: snapshot",
            ));
        };
        let may_block = attempt.blocking == BlockingMode::MayBlock;
        if !may_block && (read.at.is_none() || shared.catalog.is_shared()) {
            // An attempt that lacks a page would leave its snapshot behind. A shared store is asked.
            return Err(CommandError::WouldBlock(None));
        }
        let wanted = SnapshotWanted {
            catalog: &shared.catalog,
            clock,
            wall_ms: shared.now_ms(),
            now: shared.environment.clock().monotonic(),
            connection: attempt.record,
        };
        match read.at {
            None => shared.held_snapshots.newest(&wanted),
            Some(time) => shared.held_snapshots.at(time, &wanted),
        }
    }

    /// Meets the times that a request brings: the server knows all that was answered before them, and they
    /// lie in no future.
    pub(super) fn meet_times(
        &self,
        arguments: &CheckedArguments,
        reads: CommandReads<'_>,
        attempt: Attempt<'_>,
    ) -> Result<(), CommandError> {
        if self.shared.catalog.is_shared() {
            self.catch_up_with(arguments, reads, attempt)?;
        }
        self.check_read_times(arguments.read)
    }

    /// Takes over the changes of collections that other servers have answered for at or before the times that
    /// the client has seen. Documents need no such care, because each statement begins at a new moment of the
    /// shared clock.
    ///
    /// A read concern names the time of what the client wants to see. A collection that is not known here, be
    /// it one that a stage names, may be new whatever times the client names: some drivers send each server
    /// only its own times. So each such request looks, as those do that list names. What known views refer to
    /// is not looked at.
    #[cold]
    fn catch_up_with(
        &self,
        arguments: &CheckedArguments,
        CommandReads { database, collection, request }: CommandReads<'_>,
        attempt: Attempt<'_>,
    ) -> Result<(), CommandError> {
        let catalog = &self.shared.catalog;
        let is_ahead = |time: &Timestamp| catalog.is_behind(moment_of(*time));
        let is_known = |database: &str, name: &str| {
            name.is_empty()
                || matches!(database, "admin" | "config" | "local")
                || catalog.collection(database, name).is_some()
        };
        let names_unknown = || {
            let mut named = vec![collection.to_owned()];
            add_collections_of_stages(request.body, &mut named);
            if let Some(explained) = explained(request) {
                named.extend(explained.iter().next().and_then(|it| Some(it.ok()?.1.as_str()?.to_owned())));
                add_collections_of_stages(explained, &mut named);
            }
            named.iter().any(|name| !is_known(database, name))
                || namespaces_in(request).any(|(database, name)| !is_known(database, name))
                || namespaces_of_bulk_write(request).any(|(database, name)| !is_known(database, name))
        };
        let ReadConcern { at, after, .. } = arguments.read;
        let is_behind =
            at.max(after).as_ref().is_some_and(is_ahead) || lists_names(request) || names_unknown();
        match attempt.blocking {
            _ if !is_behind => Ok(()),
            BlockingMode::CachedOnly => Err(CommandError::WouldBlock(None)),
            BlockingMode::MayBlock => Ok(catalog.catch_up()?),
        }
    }

    /// Refuses times that no operation has been answered with yet.
    fn check_read_times(&self, read: ReadConcern) -> Result<(), CommandError> {
        let (ReadConcern { at, after, .. }, Some(clock)) = (read, &self.shared.cluster_clock) else {
            return Ok(());
        };
        for (name, wanted) in [("afterClusterTime", after), ("atClusterTime", at)] {
            let Some(wanted) = wanted else { continue };
            if self.shared.catalog.is_shared() {
                // Another server may have given it out.
                clock.catch_up(wanted, self.shared.now_ms());
            }
            let now = clock.now(self.shared.now_ms());
            if wanted > now {
                let shown =
                    |time: Timestamp| format!("{{ ts: Timestamp({}, {}) }}", time.time, time.increment);
                return Err(CommandError::failed(
                    ErrorCode::InvalidOptions,
                    format!(
                        "readConcern {name} value must not be greater than the current clusterTime. Requested clusterTime: {}; current clusterTime: {}",
                        shown(wanted),
                        shown(now)
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Moves the cluster clock after a command that writes.
    pub(super) fn move_clock(&self, writes: WriteConcernSupport) {
        if let (Some(clock), WriteConcernSupport::Accepted) = (&self.shared.cluster_clock, writes) {
            clock.note_write(self.shared.now_ms());
        }
    }

    /// Writes the cluster's times, where the persona has them.
    pub(super) fn write_times(&self, reply: &mut DocumentWriter<'_>) {
        if let Some(clock) = &self.shared.cluster_clock {
            cluster_clock::write_times(clock.now(self.shared.now_ms()), reply);
        }
    }
}

/// Whether a command is about all databases or collections that there are.
fn lists_names(request: &Request<'_>) -> bool {
    let lists =
        |name| matches!(name, "listDatabases" | "listCollections" | "dropDatabase" | "dbStats" | "dbHash");
    request.command().is_ok_and(|(name, _)| lists(name))
}

/// The command that another one explains.
fn explained<'r>(request: &Request<'r>) -> Option<&'r RawDocument> {
    match request.command() {
        Ok(("explain", RawValue::Document(command))) => Some(command),
        _ => None,
    }
}

/// Adds the collections that stages of a pipeline name, if the command has one. A pipeline that makes no
/// sense is refused where it is parsed.
fn add_collections_of_stages(command: &RawDocument, named: &mut Vec<String>) {
    if let Ok(Some(RawValue::Array(stages))) = command.get("pipeline") {
        let _refused_later = add_references(stages, named);
    }
}

/// The collections that fields of commands name with their databases.
fn namespaces_in<'r>(request: &Request<'r>) -> impl Iterator<Item = (&'r str, &'r str)> {
    let fields = match request.command() {
        Ok(("renameCollection", _)) => &["renameCollection"][..],
        Ok(("dataSize" | "datasize", _)) => &["dataSize", "datasize"],
        _ => &[],
    };
    fields.iter().filter_map(|field| request.body.get(field).ok()??.as_str()?.split_once('.'))
}

/// The databases and collections of the command `bulkWrite`; one that makes no sense is refused where it is
/// parsed.
fn namespaces_of_bulk_write<'r>(request: &Request<'r>) -> impl Iterator<Item = (&'r str, &'r str)> {
    let listed = match request.command() {
        Ok(("bulkWrite", _)) => request.documents_beside("bulkWrite", "nsInfo", &["ops", "nsInfo"]),
        _ => Ok(None),
    };
    let entries = listed.ok().flatten().unwrap_or_default();
    entries.into_iter().filter_map(|entry| entry.get("ns").ok()??.as_str()?.split_once('.'))
}

/// Refuses serializable transactions where the engine has none.
fn check_serializable(catalog: &Catalog) -> Result<(), CommandError> {
    let engine = catalog.engine();
    match engine.capabilities().read_claims {
        ReadClaiming::Ranges => Ok(()),
        ReadClaiming::None => Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            format!(
                "the engine {} has no serializable transactions; use read concern snapshot, or the engine betree",
                engine.name()
            ),
        )),
    }
}
