//! OP_QUERY: a command, a query of a collection, or a query of the catalog.

use super::{Exchange, LegacyQuery, Reply, WouldBlock, catalog_query, command_query, find_query};
use super::{split_namespace, write_query_failure};

/// Answers by the namespace.
pub(super) fn run(
    exchange: &mut Exchange<'_>,
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    let (database, collection) = match split_namespace(query.namespace) {
        Ok(names) => names,
        Err(failure) => return Ok(write_query_failure(&failure, out).into()),
    };
    match collection {
        "$cmd" => command_query::run(exchange, database, query, out),
        "$cmd.sys.inprog" => command_query::run_pseudo(exchange, "currentOp", query, out),
        "$cmd.sys.killop" => command_query::run_pseudo(exchange, "killOp", query, out),
        "$cmd.sys.unlock" => command_query::run_pseudo(exchange, "fsyncUnlock", query, out),
        "system.indexes" => catalog_query::run_indexes(exchange, database, query, out),
        "system.namespaces" => catalog_query::run_namespaces(exchange, database, query, out),
        _ => find_query::run(exchange, (database, collection), query, out),
    }
}
