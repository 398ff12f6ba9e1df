//! Commands about a sharded cluster and its connections. The server is no member of one, and answers as a
//! member of MongoDB that is none.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The code of a server that was not told of its cluster.
const SHARDING_STATE_NOT_INITIALIZED: ErrorCode = ErrorCode::Location(203);

/// `getShardMap`.
pub(crate) fn run_shard_map(
    _context: &mut Context<'_>,
    _request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    Err(CommandError::failed(SHARDING_STATE_NOT_INITIALIZED, "Sharding is not enabled"))
}

/// `shardingState`.
pub(crate) fn run_sharding_state(
    _context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    reply.append_bool("enabled", false);
    Ok(())
}

/// `connPoolStats`: the connections to other members, of which there are none.
pub(crate) fn run_connection_pools(
    _context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    for name in ["numClientConnections", "numAScopedConnections"] {
        reply.append_i32(name, 0);
    }
    for name in
        ["totalInUse", "totalAvailable", "totalLeased", "totalCreated", "totalRefreshing", "totalRefreshed"]
    {
        reply.append_i64(name, 0);
    }
    reply.document("pools").finish();
    reply.document("hosts").finish();
    reply.append_i64("numReplicaSetMonitorsCreated", 0);
    reply.document("replicaSets").finish();
    Ok(())
}
