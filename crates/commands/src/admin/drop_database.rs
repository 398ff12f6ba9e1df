//! `dropDatabase`: every collection of a database.

use pando_catalog::CatalogError;
use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, missing, no_more};
use crate::context::Context;
use crate::system_profile;
use crate::{CommandError, ErrorCode, Request};

/// Drops one collection after the other. One that another client drops meanwhile is no error.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    check_value(request.command()?.1)?;
    no_more("dropDatabase", request.body)?;
    if context.database == "admin" {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            "Dropping the 'admin' database is prohibited.",
        ));
    }
    // As in MongoDB, a dropped database is not profiled any more.
    context.shared.profiler.settings.forget(context.database);
    system_profile::forget(context.shared, context.database);
    let collections = context.catalog().collections(context.database);
    for collection in &collections {
        context.check()?;
        match context.drop_collection(collection.namespace()) {
            Ok(_) | Err(CatalogError::CollectionNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn check_value(value: RawValue<'_>) -> Result<(), CommandError> {
    let argument = Argument::of_value("dropDatabase", "dropDatabase", value);
    match argument.integer()? {
        Some(1) => Ok(()),
        Some(_) => {
            Err(CommandError::failed(ErrorCode::Location(5_255_100), "Have to pass 1 as 'drop' parameter"))
        }
        None => Err(missing("dropDatabase", "dropDatabase")),
    }
}
