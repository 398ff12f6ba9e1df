//! `dropAllUsersFromDatabase`.

use pando_document::DocumentWriter;

use super::account_change::{AccountChange, carry_out};
use crate::accounts::store::{self, USERS};
use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Removes the users of the database, and tells how many there were.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    no_more("dropAllUsersFromDatabase", request.body)?;
    let number = carry_out(context, |context| {
        let mut changes = Vec::new();
        for (key, before) in store::all(context.catalog(), USERS, context.operation)? {
            if store::is_of_database(&before, context.database)? {
                changes.push(AccountChange::removal(USERS, key, before));
            }
        }
        let number = changes.len();
        Ok((changes, number))
    })?;
    reply.append_i32("n", i32::try_from(number).unwrap_or(i32::MAX));
    Ok(())
}
