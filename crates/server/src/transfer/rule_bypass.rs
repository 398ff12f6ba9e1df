//! Documents of a copy that the validator of their own collection refuses: those that are older than it.
//!
//! They are valid at the source, so that the copy writes them with `bypassDocumentValidation`. It does so
//! only for a collection whose validator comes from the source. A validator that the target has of its own
//! stays in force.
//!
//! A server asks for the right `bypassDocumentValidation`, which the role `readWrite` lacks. For such a user
//! the copy leaves the field out, and says so.

use bson::doc;
use bson::oid::ObjectId;

use super::error::{TransferError, UNAUTHORIZED};
use super::import_plan::{ImportPlan, Unit};
use super::shared_store::SharedStore;
use super::target::Target;
use super::target_options::OtherOptions;
use super::write_mode::WriteMode;

const FIELD: &str = "bypassDocumentValidation";

/// Has the documents of collections with a validator of the source written past it.
pub(super) fn bypass_rules(
    plan: &mut ImportPlan,
    other_options: &[OtherOptions],
    mode: WriteMode,
    target: &SharedStore,
) -> Result<(), TransferError> {
    for unit in &mut plan.units {
        if unit.content.is_none() || !unit.description.options.contains_key("validator") {
            continue;
        }
        let namespace = unit.namespace();
        if other_options.iter().any(|other| other.namespace == namespace && other.has("validator")) {
            continue;
        }
        if may_bypass(unit, mode, target)? {
            unit.command_fields.insert(FIELD, true);
        } else {
            plan.remarks.push(format!(
                "{namespace}: the user at the target has no right {FIELD} (the roles dbAdmin and restore have it), so that documents \
                 which are older than the validator are refused"
            ));
        }
    }
    Ok(())
}

/// Whether the user has the right, by a write of the kind that the copy makes. It changes nothing: no
/// document has the new `_id`, and no server takes an array as one.
fn may_bypass(unit: &Unit, mode: WriteMode, target: &SharedStore) -> Result<bool, TransferError> {
    let command = match mode {
        WriteMode::Insert => {
            let nowhere = doc! { "_id": [1] };
            doc! { "insert": &unit.collection, "documents": [nowhere], FIELD: true }
        }
        WriteMode::Upsert | WriteMode::Merge | WriteMode::Delete => {
            let nobody = doc! { "q": { "_id": ObjectId::new() }, "u": { "$set": { "a": 1 } } };
            doc! { "update": &unit.collection, "updates": [nobody], FIELD: true }
        }
    };
    match target.clone().run(&unit.database, command, None) {
        Err(TransferError::Refused { code: UNAUTHORIZED, .. }) => Ok(false),
        // Another refusal says nothing of the right. The writes meet it again, and tell it.
        Ok(_) | Err(TransferError::Refused { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
