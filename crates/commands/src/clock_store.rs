//! The store of the cluster clock: one document in `local.system.clusterClock`, with the last time that was
//! given out.

use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, CatalogError, Direction, Durability, KeyRange, Namespace, Operation,
};
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Timestamp, doc};
use pando_environment::Environment;

use crate::CommandError;
use crate::cluster_clock::ClusterClock;
use crate::error::write_failure;
use crate::persona::Persona;
use crate::shared_state::{CommandsOptions, SharedState};

/// The period of the chore.
pub(crate) const STORE_PERIOD: Duration = Duration::from_secs(5);

/// A clock that is further ahead is told, in seconds.
const AHEAD_SECONDS_TOLD: i64 = 86_400;

const DATABASE: &str = "local";
const COLLECTION: &str = "system.clusterClock";

/// The time that was stored last. Blocks.
fn stored_time(catalog: &Catalog) -> Result<Option<Timestamp>, CommandError> {
    let Some(collection) = catalog.collection(DATABASE, COLLECTION) else { return Ok(None) };
    let transaction = catalog.begin(Begin::READ)?;
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let mut stored = None;
    while let Some((_, document)) = scan.next(&*transaction, BlockingMode::MayBlock)? {
        if let Some(RawValue::Timestamp(time)) = RawDocument::from_bytes(document)?.get("time")? {
            stored = stored.max(Some(time));
        }
    }
    Ok(stored)
}

/// Stores the clock if it has moved. Blocks. A failure is logged, and the next run tries again.
pub(crate) fn store(shared: &SharedState) {
    let Some(clock) = &shared.cluster_clock else { return };
    let Some(time) = clock.unstored() else { return };
    if !shared.catalog.keeps_house() {
        // One server of a store keeps the document.
        return;
    }
    match try_store(shared, time) {
        Ok(()) => clock.note_stored(time),
        Err(error) => tracing::warn!(%error, "cannot store the cluster clock; trying again"),
    }
}

fn try_store(shared: &SharedState, time: Timestamp) -> Result<(), CommandError> {
    let operation = Operation::default();
    let namespace = Namespace::new(DATABASE, COLLECTION)?;
    let options = doc! {}.to_raw();
    match shared.catalog.create_collection_of_server(&namespace, options, shared.new_uuid()) {
        Ok(_) | Err(CatalogError::CollectionExists { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(lease) = shared.catalog.lease(DATABASE, COLLECTION, Caller::may_block(&operation))? else {
        return Ok(());
    };
    let mut transaction = shared.catalog.begin_write()?;
    let mut before = Vec::new();
    let mut scan = lease.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((key, document)) = scan.next(&*transaction, BlockingMode::MayBlock)? {
        before.push((key.to_vec(), document.to_vec()));
    }
    for (key, document) in before {
        lease
            .remove(&mut transaction, &key, RawDocument::from_bytes(&document)?, BlockingMode::MayBlock)
            .map_err(|error| write_failure(error, lease.full_name()))?;
    }
    lease
        .insert(&mut transaction, &stored_document(time), BlockingMode::MayBlock)
        .map_err(|error| write_failure(error, lease.full_name()))?;
    transaction.commit(Durability::None)?;
    Ok(())
}

fn stored_document(time: Timestamp) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append_str("_id", "clusterClock");
    writer.append("time", RawValue::Timestamp(time));
    writer.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

/// The clock of the replies, where the persona has one. Where its last time cannot be read it begins with the
/// wall clock.
pub(crate) fn open(
    catalog: &Catalog,
    environment: &Environment,
    options: &CommandsOptions,
) -> Option<ClusterClock> {
    if options.persona.persona == Persona::Standalone {
        return None;
    }
    let stored = stored_time(catalog).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the cluster clock; it begins anew");
        None
    });
    let wall_ms = environment.clock().wall().millis().cast_signed();
    if let Some(time) = stored {
        warn_of_time_ahead(time, wall_ms);
    }
    if catalog.shared_time().is_some() {
        return Some(ClusterClock::of_shared(stored, Arc::clone(catalog.engine())));
    }
    Some(ClusterClock::new(stored, wall_ms))
}

/// Logs that the clock has run ahead of the machine's, whose clock was set back, or was wrong for a while.
fn warn_of_time_ahead(time: Timestamp, wall_ms: i64) {
    let ahead = i64::from(time.time) - wall_ms / 1_000;
    if ahead > AHEAD_SECONDS_TOLD {
        let days = ahead / 86_400;
        tracing::warn!(
            "the times of writes (operationTime) go on from a moment {days} days ahead of this machine's clock, which was set \
             back since the last write; they never run backwards"
        );
    }
}
