//! Commands about the replica set. Under any other persona the server is no member of one. Drivers and tools
//! ask to find that out.

use md5::{Digest, Md5};
use pando_document::{DocumentWriter, ObjectId, RawValue, Timestamp};

use crate::context::Context;
use crate::persona::Persona;
use crate::{CommandError, ErrorCode, Request};

/// The term and the version of the configuration: the set has had one election, and no change since.
const TERM: i64 = 1;
pub(super) const CONFIGURATION_VERSION: i32 = 1;
/// The interval of heartbeats that a replica set has where it is not told any.
const HEARTBEAT_MS: i64 = 2000;

/// `replSetGetStatus`.
pub(crate) fn run_status(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    write_status(context, set_name(context)?, reply);
    Ok(())
}

/// Writes the status of the set and of its only member.
pub(super) fn write_status(context: &Context<'_>, set_name: &str, reply: &mut DocumentWriter<'_>) {
    let now = context.shared.now_ms();
    let operation_time = context.shared.operation_time();
    let wall = i64::from(operation_time.time) * 1000;
    reply.append_str("set", set_name);
    reply.append_date_time("date", now);
    reply.append_i32("myState", 1);
    reply.append_i64("term", TERM);
    reply.append_str("syncSourceHost", "");
    reply.append_i32("syncSourceId", -1);
    reply.append_i64("heartbeatIntervalMillis", HEARTBEAT_MS);
    for name in
        ["majorityVoteCount", "writeMajorityCount", "votingMembersCount", "writableVotingMembersCount"]
    {
        reply.append_i32(name, 1);
    }
    let mut times = reply.document("optimes");
    for (name, wall_name) in [
        ("lastCommittedOpTime", Some("lastCommittedWallTime")),
        ("readConcernMajorityOpTime", None),
        ("appliedOpTime", Some("lastAppliedWallTime")),
        ("durableOpTime", Some("lastDurableWallTime")),
    ] {
        write_operation_time(name, operation_time, &mut times);
        if let Some(wall_name) = wall_name {
            times.append_date_time(wall_name, wall);
        }
    }
    times.finish();
    reply.append("lastStableRecoveryTimestamp", RawValue::Timestamp(operation_time));
    let mut members = reply.array("members");
    let mut member = members.document();
    member.append_i32("_id", 0);
    member.append_str("name", &context.address());
    member.append_f64("health", 1.0);
    member.append_i32("state", 1);
    member.append_str("stateStr", "PRIMARY");
    let uptime = context.shared.uptime_ms() / 1000;
    member.append_i32("uptime", i32::try_from(uptime).unwrap_or(i32::MAX));
    write_operation_time("optime", operation_time, &mut member);
    member.append_date_time("optimeDate", wall);
    member.append_date_time("lastAppliedWallTime", wall);
    member.append_date_time("lastDurableWallTime", wall);
    member.append_str("syncSourceHost", "");
    member.append_i32("syncSourceId", -1);
    member.append_str("infoMessage", "");
    let elected = context.shared.started_ms;
    let elected_at = Timestamp { time: u32::try_from(elected / 1000).unwrap_or(0), increment: 1 };
    member.append("electionTime", RawValue::Timestamp(elected_at));
    member.append_date_time("electionDate", elected);
    member.append_i32("configVersion", CONFIGURATION_VERSION);
    member.append_i64("configTerm", TERM);
    member.append_bool("self", true);
    member.append_str("lastHeartbeatMessage", "");
    member.finish();
    members.finish();
}

/// `replSetGetRBID`: the number of rollbacks, which are never any. MongoDB counts from 1.
pub(crate) fn run_rollback_id(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    set_name(context)?;
    reply.append_i32("rbid", 1);
    Ok(())
}

/// `replSetGetConfig`.
pub(crate) fn run_configuration(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let set_name = set_name(context)?;
    let mut configuration = reply.document("config");
    configuration.append_str("_id", set_name);
    configuration.append_i32("version", CONFIGURATION_VERSION);
    configuration.append_i64("term", TERM);
    let mut members = configuration.array("members");
    let mut member = members.document();
    member.append_i32("_id", 0);
    member.append_str("host", &context.address());
    member.append_bool("arbiterOnly", false);
    member.append_bool("buildIndexes", true);
    member.append_bool("hidden", false);
    member.append_f64("priority", 1.0);
    member.document("tags").finish();
    member.append_i64("secondaryDelaySecs", 0);
    member.append_i32("votes", 1);
    member.finish();
    members.finish();
    configuration.append_i64("protocolVersion", 1);
    configuration.append_bool("writeConcernMajorityJournalDefault", true);
    let mut settings = configuration.document("settings");
    settings.append_bool("chainingAllowed", true);
    settings.append_i64("heartbeatIntervalMillis", HEARTBEAT_MS);
    settings.append_i32("heartbeatTimeoutSecs", 10);
    settings.append_i64("electionTimeoutMillis", 10_000);
    settings.append_i32("catchUpTimeoutMillis", -1);
    settings.append_i32("catchUpTakeoverDelayMillis", 30_000);
    settings.document("getLastErrorModes").finish();
    let mut defaults = settings.document("getLastErrorDefaults");
    defaults.append_i32("w", 1);
    defaults.append_i32("wtimeout", 0);
    defaults.finish();
    settings.append_object_id("replicaSetId", set_id(context, set_name));
    settings.finish();
    configuration.finish();
    Ok(())
}

/// The id of the set, by which monitoring programs tell sets apart. It follows from the name and the
/// folder of the store, so that it is the same after each start.
fn set_id(context: &Context<'_>, set_name: &str) -> ObjectId {
    let folder = context.shared.options.folder.as_deref().map(|folder| folder.as_os_str().as_encoded_bytes());
    let digest = Md5::new().chain_update(set_name).chain_update([0]).chain_update(folder.unwrap_or_default());
    let mut id = [0; 12];
    id.copy_from_slice(&digest.finalize()[..12]);
    ObjectId::from_bytes(id)
}

/// The name of the set, under the persona that has one.
pub(super) fn set_name<'c>(context: &Context<'c>) -> Result<&'c str, CommandError> {
    let options = &context.shared.options.persona;
    match options.persona {
        Persona::ReplicaSet => Ok(&options.set_name),
        Persona::Standalone | Persona::Mongos => {
            Err(CommandError::failed(ErrorCode::NoReplicationEnabled, "not running with --replSet"))
        }
    }
}

/// Appends an operation time: the time, and the term.
pub(super) fn write_operation_time(name: &str, time: Timestamp, into: &mut DocumentWriter<'_>) {
    let mut operation_time = into.document(name);
    operation_time.append("ts", RawValue::Timestamp(time));
    operation_time.append_i64("t", TERM);
    operation_time.finish();
}
