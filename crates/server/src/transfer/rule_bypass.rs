//! Documents of a copy that the validator of their own collection refuses: those that are older than it.
//!
//! They are valid at the source, so that the copy writes them with `bypassDocumentValidation`. It does so
//! only for a collection whose validator comes from the source. A validator that the target has of its own
//! stays in force.
//!
//! A server asks for the right `bypassDocumentValidation`, which the role `readWrite` lacks. For such a user
//! the copy leaves the field out, and says so.

use bson::{Bson, Document, doc};

use super::error::TransferError;
use super::import_plan::{ImportPlan, Unit};
use super::shared_store::SharedStore;
use super::target::Target;
use super::target_options::OtherOptions;

const FIELD: &str = "bypassDocumentValidation";

/// Has the documents of collections with a validator of the source written past it.
pub(super) fn bypass_rules(
    plan: &mut ImportPlan,
    other_options: &[OtherOptions],
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
        if may_bypass(unit, target)? {
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

/// Whether the user has the right, by the privileges that the server lists. A store without logins, or one
/// that does not list them, refuses nobody by this right; the writes meet another refusal again, and tell it.
fn may_bypass(unit: &Unit, target: &SharedStore) -> Result<bool, TransferError> {
    let command = doc! { "connectionStatus": 1, "showPrivileges": true };
    let status = match target.clone().run("admin", command, None) {
        Err(TransferError::Refused { .. }) => return Ok(true),
        status => status?,
    };
    let listed = |name| status.get_document("authInfo").and_then(|info| info.get_array(name));
    let (Ok(users), Ok(privileges)) = (listed("authenticatedUsers"), listed("authenticatedUserPrivileges"))
    else {
        return Ok(true);
    };
    let grants = |privilege: &Bson| privilege.as_document().is_some_and(|privilege| grants(privilege, unit));
    Ok(users.is_empty() || privileges.iter().any(grants))
}

/// Whether a privilege is of the right, for a collection. An empty name stands for all.
fn grants(privilege: &Document, unit: &Unit) -> bool {
    let (Ok(resource), Ok(actions)) = (privilege.get_document("resource"), privilege.get_array("actions"))
    else {
        return false;
    };
    let names = |field, name: &str| resource.get_str(field).is_ok_and(|text| text.is_empty() || text == name);
    let is_of_any = resource.get_bool("anyResource").unwrap_or(false);
    let is_of_unit = names("db", &unit.database) && names("collection", &unit.collection);
    (is_of_any || is_of_unit) && actions.iter().any(|action| action.as_str() == Some(FIELD))
}
