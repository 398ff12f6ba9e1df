//! `dropAllRolesFromDatabase`.

use pando_access::built_in_roles;
use pando_document::DocumentWriter;

use super::account_change::{AccountChange, carry_out};
use super::role_edit::revocations;
use crate::accounts::store::{self, ROLES};
use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Removes the roles of the database, also from the users and roles that have them, and tells how many there
/// were. Its built-in roles stay.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    no_more("dropAllRolesFromDatabase", request.body)?;
    let number = carry_out(context, |context| {
        let database = context.database;
        let mut gone = Vec::new();
        for (key, before) in store::all(context.catalog(), ROLES, context.operation)? {
            if store::is_of_database(&before, database)? {
                gone.push(AccountChange::removal(ROLES, key, before));
            }
        }
        let number = gone.len();
        let is_gone =
            |role: &pando_access::RoleName| role.database == database && !built_in_roles::is_built_in(role);
        let mut changes = revocations(context, is_gone)?;
        let is_removed = |change: &AccountChange| {
            change.collection == ROLES && gone.iter().any(|removal| removal.key == change.key)
        };
        changes.retain(|change| !is_removed(change));
        changes.append(&mut gone);
        Ok((changes, number))
    })?;
    reply.append_i32("n", i32::try_from(number).unwrap_or(i32::MAX));
    Ok(())
}
