//! `pandoVerify`: reads every used block of the store, at a limited rate, while the server goes on. Pando's
//! own command.
//!
//! `{pandoVerify: 1, bytesPerSecond: 50000000}`; without the limit, as fast as possible. The reply names the
//! collection or index, the tree and the keys of every damage.
//!
//! 1. A checkpoint, so that the blocks hold what was written until now. Where it fails, that is a problem of
//!    the reply, and the blocks are those of the last one.
//! 2. The blocks.

use std::num::NonZeroU64;

use pando_catalog::{CheckRequest, ErrorKind, StorageError, TreeOwners};
use pando_document::{DocumentWriter, RawValue};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::error::code_of_device;
use crate::{CommandError, ErrorCode, Request};

/// Reads the blocks and reports the damage.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let mut bytes_per_second = None;
    for argument in Arguments::of_command("pandoVerify", request.body) {
        let argument = argument?;
        match argument.name {
            "bytesPerSecond" => {
                bytes_per_second =
                    argument.at_least(1)?.and_then(|bytes| NonZeroU64::new(bytes.unsigned_abs()));
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    let operation = Some(context.operation);
    let checkpoint = context.catalog().engine().checkpoint();
    let failed = match checkpoint {
        // A full device is no damage, and the last checkpoint may have none of the blocks.
        Err(error) if is_full(&error) => return Err(unchecked(error)),
        ended => ended.err(),
    };
    let mut report =
        context.catalog().engine().check(&CheckRequest { trees: &[], bytes_per_second, operation })?;
    if let Some(error) = failed {
        report.problems.push(format!(
            "the checkpoint before the check failed: {error}; the figures are those of the last one"
        ));
    }
    for (name, number) in [("trees", report.trees), ("entries", report.entries), ("bytes", report.bytes)] {
        reply.append_i64(name, i64::try_from(number).unwrap_or(i64::MAX));
    }
    reply.append_bool("valid", report.is_sound());
    let owners = TreeOwners::of_catalog(context.catalog());
    let found: Vec<String> = report.problems.iter().map(|problem| owners.name_in(problem)).collect();
    if let Some(first) = found.first() {
        tracing::error!(problems = found.len(), "pandoVerify has found problems; the first is: {first}");
    }
    let mut problems = reply.array("problems");
    for problem in &found {
        problems.push(RawValue::String(problem));
    }
    problems.finish();
    Ok(())
}

/// The error of a check that did not begin.
fn unchecked(error: StorageError) -> CommandError {
    let mut error = CommandError::from(error);
    if let CommandError::Failed(failure) = &mut error {
        failure.message =
            format!("nothing was checked: the checkpoint before the check failed: {}", failure.message);
    }
    error
}

fn is_full(error: &StorageError) -> bool {
    error.kind() == ErrorKind::Io && code_of_device(error) == ErrorCode::OutOfDiskSpace
}
