//! `addPartition`: a bound for the last partition of a collection, and a new one behind it.
//!
//! `newMax` is the bound: a value for each field of the primary key. Without it, the last document's key is.

use pando_document::DocumentWriter;

use super::get_partition_info::partitioned;
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Adds a partition.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let mut values = None;
    for argument in Arguments::of_command("addPartition", request.body) {
        let argument = argument?;
        match argument.name {
            "newMax" => values = argument.document()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let namespace = context.writable(name)?;
    if partitioned(context, &namespace)?.schedule().is_some() {
        let sentence = format!("the partitions of {namespace} are made by time: it has 'partitionBy'");
        return Err(CommandError::failed(ErrorCode::IllegalOperation, sentence));
    }
    let now_ms = context.shared.now_ms();
    Ok(context.catalog().add_partition(&namespace, values, now_ms, context.operation)?)
}
