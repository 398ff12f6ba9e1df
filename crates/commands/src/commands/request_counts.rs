//! Counts of a request that has ended, by the server and by its collection, and the line of the log where it
//! has met damage on the device.

use std::time::Duration;

use pando_catalog::ActivityKind;
use pando_query::explain::PlanSummary;

use super::{Aftermath, Commands};
use crate::error::Failure;
use crate::operations::ConnectionRecord;
use crate::server_counters::EndedRequest;
use crate::{ErrorCode, registry};

impl Commands {
    /// Logs the damage that a request has met, and notes it for the counters.
    pub(super) fn tell_of_damage(&self, aftermath: &mut Aftermath<'_>) {
        let of_device = [ErrorCode::DataCorruptionDetected, ErrorCode::FileStreamFailed];
        let is_damage = |failure: &&Failure| of_device.contains(&failure.code);
        if let Some(failure) = aftermath.failure.as_ref().filter(is_damage) {
            aftermath.notes.damage = Some(failure.message.clone());
        }
        let Some(error) = &aftermath.notes.damage else { return };
        let namespace =
            aftermath.place.map_or(String::new(), |(database, name)| format!("{database}.{name}"));
        self.shared.damage_log.tell(self.shared.now_ms(), &namespace, error);
    }

    /// Counts a request that has ended.
    pub(super) fn count(&self, record: &ConnectionRecord, took: Duration, aftermath: &Aftermath<'_>) {
        let command = aftermath.command;
        let activity =
            command.map_or(ActivityKind::OtherCommand, |command| registry::COMMANDS[command].activity);
        self.shared.counters.count(&EndedRequest {
            connection: record.id(),
            command,
            activity,
            took,
            has_failed: aftermath.failure.is_some(),
            usage: record.operation().usage().figures(),
            notes: &aftermath.notes,
        });
        if let Some((database, collection)) = aftermath.place
            && let Some(collection) = self.shared.catalog.collection(database, collection)
        {
            collection.activity().add(activity, took);
            match aftermath.notes.plan {
                PlanSummary::Collection => collection.activity().add_scan(),
                // The executor counts the other uses of indexes.
                PlanSummary::Id => collection.activity().add_primary_use(),
                _ => {}
            }
        }
    }
}
