//! `dropPartition`: TokuMX's command that drops partitions of a collection with their documents.
//!
//! `id` is the number of one partition. `max` drops all partitions whose bound is not above it. A partition
//! goes by range deletes. Cursors and transactions with older snapshots go on to see its documents.

use pando_catalog::PartitionChoice;
use pando_document::DocumentWriter;

use super::get_partition_info::partitioned;
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request, unit_of_work};

/// Drops partitions.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let (mut id, mut most) = (None, None);
    for argument in Arguments::of_command("dropPartition", request.body) {
        let argument = argument?;
        match argument.name {
            "id" => id = argument.integer()?,
            "max" => most = argument.document()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let choice = match (id, most) {
        (Some(id), None) => PartitionChoice::Id(id),
        (None, Some(most)) => PartitionChoice::UpTo(most),
        _ => {
            let sentence = "dropPartition needs either the 'id' of a partition or a 'max'";
            return Err(CommandError::failed(ErrorCode::BadValue, sentence));
        }
    };
    let namespace = context.writable(name)?;
    partitioned(context, &namespace)?;
    // A transaction that has written to the partition may be about to end.
    unit_of_work::run(context, |context| {
        context.catalog().drop_partitions(&namespace, choice, context.operation)?;
        Ok(())
    })
}
