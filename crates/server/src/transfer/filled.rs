//! Collections of the target that have documents already, with which those of a copy or of a dump would mix.

use bson::doc;

use super::error::{Addable, Begun, TransferError};
use super::import_plan::Unit;
use super::target::Target;

/// Collections that the error names one by one.
const NAMES_SHOWN: usize = 5;

/// Refuses collections of the target that have documents.
///
/// # Errors
/// [`TransferError::Filled`], and those of the target.
pub(super) fn refuse_filled<'u>(
    units: impl Iterator<Item = &'u Unit>,
    target: &mut dyn Target,
) -> Result<(), TransferError> {
    let mut filled = Vec::new();
    let mut addable = Addable::No;
    for unit in units.filter(|unit| unit.content.is_some()) {
        let find = doc! { "find": &unit.collection, "limit": 1, "projection": { "_id": 1 } };
        let reply = target.run(&unit.database, find, None)?;
        let cursor = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        if cursor.is_ok_and(|batch| !batch.is_empty()) {
            filled.push(unit.namespace());
            if !unit.is_time_series() {
                addable = Addable::Yes;
            }
        }
    }
    if filled.is_empty() {
        return Ok(());
    }
    let more = filled.len().saturating_sub(NAMES_SHOWN);
    filled.truncate(NAMES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let namespaces = format!("{}{more}", filled.join(", "));
    Err(TransferError::Filled { namespaces, addable, begun: Begun::No })
}
