//! The rights for commands of the server as a whole.

use pando_access::{Action, Target};
use pando_document::RawValue;

use super::{Claim, Denial};

/// `listDatabases`. Only who wants to see all of them needs a right.
pub(crate) fn list_databases(claim: &Claim<'_>) -> Result<(), Denial> {
    for field in claim.fields() {
        if let ("authorizedDatabases", RawValue::Boolean(false)) = field? {
            claim.need(Action::ListDatabases, Target::Cluster)?;
        }
    }
    Ok(())
}

/// `currentOp`. Everybody may see the own operations.
pub(crate) fn current_op(claim: &Claim<'_>) -> Result<(), Denial> {
    match claim.has_true_field("$ownOps")? {
        true => Ok(()),
        false => claim.need(Action::Inprog, Target::Cluster),
    }
}

/// `getDiagnosticData`: the rights for each of its parts.
pub(crate) fn diagnostic_data(claim: &Claim<'_>) -> Result<(), Denial> {
    for action in [Action::ServerStatus, Action::ReplSetGetStatus, Action::ConnPoolStats] {
        claim.need(action, Target::Cluster)?;
    }
    let oplog = Target::Collection { database: "local", collection: "oplog.rs" };
    claim.need(Action::CollStats, oplog)
}

/// `killAllSessionsByPattern`. A pattern of users or roles acts in their place.
pub(crate) fn kill_sessions_by_pattern(claim: &Claim<'_>) -> Result<(), Denial> {
    claim.need(Action::KillAnySession, Target::Cluster)?;
    let Ok((_, RawValue::Array(patterns))) = claim.request.command() else { return Ok(()) };
    for pattern in patterns.iter() {
        for field in pattern?.as_document().into_iter().flat_map(|pattern| pattern.iter()) {
            if matches!(field?.0, "users" | "roles") {
                claim.need(Action::Impersonate, Target::Cluster)?;
            }
        }
    }
    Ok(())
}

/// `pandoBackup`: the rights to read all that a backup holds, users and passwords included.
pub(crate) fn backup(claim: &Claim<'_>) -> Result<(), Denial> {
    claim.need(Action::Find, Target::Normal)?;
    for collection in ["system.users", "system.roles"] {
        claim.need(Action::Find, Target::Collection { database: "admin", collection })?;
    }
    for database in ["config", "local"] {
        claim.need(Action::Find, Target::Collection { database, collection: "all" })?;
    }
    Ok(())
}

/// `pandoVerify`, which reads every collection and tells only whether it is sound.
pub(crate) fn verify(claim: &Claim<'_>) -> Result<(), Denial> {
    claim.need(Action::Validate, Target::Normal)
}
