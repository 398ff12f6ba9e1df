//! `replSetInitiate` and `replSetReconfig`: changes of a replica set that has one member from its first start
//! on, and no other. Scripts and test runners begin with them, and go on where the set is there already.

use pando_document::{DocumentWriter, RawDocument, RawValue};

use super::replica_set::{CONFIGURATION_VERSION, set_name};
use crate::context::Context;
use crate::error::Failure;
use crate::{CommandError, ErrorCode, Request};

/// `replSetInitiate`: the set is there already. With access control it succeeds until there is a user. One of
/// several members is refused by another error: test runners go on behind the usual one, and each member
/// would be a set of its own.
pub(crate) fn run_initiate(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    set_name(context).map_err(|_| {
        let reason = "This node was not started with replication enabled.";
        CommandError::failed(ErrorCode::NoReplicationEnabled, reason)
    })?;
    if let RawValue::Document(wanted) = request.command()?.1
        && let Some(RawValue::Array(members)) = wanted.get("members")?
        && members.iter().count() > 1
    {
        return Err(only_member(&context.address()));
    }
    // Test runners make the first user only behind an initiation that succeeds.
    let access = &context.shared.access;
    if access.is_on() && access.is_vacant(context.catalog(), context.blocking)? {
        return Ok(());
    }
    Err(CommandError::failed(ErrorCode::AlreadyInitialized, "already initialized"))
}

/// `replSetReconfig`: takes the configuration that there is, and changes nothing.
pub(crate) fn run_reconfigure(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let set_name = set_name(context)?;
    let RawValue::Document(wanted) = request.command()?.1 else {
        return Err(invalid("no configuration specified".to_owned()));
    };
    match wanted.get("_id")? {
        Some(RawValue::String(name)) if name == set_name => {}
        Some(RawValue::String(name)) => {
            return Err(invalid(format!(
                "Rejecting reconfig where new config set name differs from command line set name, new config set name: {name}, \
                 old config set name: {set_name}"
            )));
        }
        _ => {
            return Err(invalid("BSON field 'ReplSetConfig._id' is missing but a required field".to_owned()));
        }
    }
    let is_forced = request.body.get("force")?.is_some_and(|forced| forced.to_bool());
    let version = wanted.get("version")?.and_then(|version| version.as_i64_exact()).unwrap_or(1);
    if !is_forced && version <= i64::from(CONFIGURATION_VERSION) {
        return Err(incompatible(format!(
            "New replica set configuration version and term must be greater than old, but version {version} is not greater than \
             version {CONFIGURATION_VERSION} for replica set {set_name}"
        )));
    }
    let address = context.address();
    if is_only_member(wanted, &address)? {
        return Ok(());
    }
    Err(only_member(&address))
}

fn is_only_member(wanted: &RawDocument, address: &str) -> Result<bool, CommandError> {
    let Some(RawValue::Array(members)) = wanted.get("members")? else { return Ok(false) };
    let mut members = members.iter();
    let (Some(member), None) = (members.next().transpose()?, members.next()) else { return Ok(false) };
    let Some(member) = member.as_document() else { return Ok(false) };
    Ok(matches!(member.get("host")?, Some(RawValue::String(host)) if host == address))
}

fn invalid(reason: String) -> CommandError {
    Failure::new(ErrorCode::InvalidReplicaSetConfig, reason).into()
}

fn incompatible(reason: String) -> CommandError {
    Failure::new(ErrorCode::NewReplicaSetConfigurationIncompatible, reason).into()
}

fn only_member(address: &str) -> CommandError {
    incompatible(format!(
        "one server holds the data, as the only member of its replica set: the members can only be [{{_id: 0, host: \"{address}\"}}]"
    ))
}
