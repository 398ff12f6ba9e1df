//! `dropRole`.

use pando_access::RoleName;
use pando_document::DocumentWriter;

use super::account_change::{AccountChange, carry_out};
use super::account_names::own_name;
use super::role_edit::{find, refuse_built_in, revocations};
use crate::accounts::RoleRecord;
use crate::accounts::store::ROLES;
use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Removes the role, also from the users and roles that have it.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = RoleName::new(own_name("dropRole", request)?, context.database);
    no_more("dropRole", request.body)?;
    refuse_built_in(&name)?;
    carry_out(context, |context| {
        let Some(found) = find(context, &name)? else {
            let sentence = format!("Could not find role: {name}");
            return Err(CommandError::failed(ErrorCode::RoleNotFound, sentence));
        };
        let mut changes = revocations(context, |role| *role == name)?;
        let key = RoleRecord::key(&name);
        changes.retain(|change| change.collection != ROLES || change.key != key);
        changes.push(AccountChange::removal(ROLES, key, found.document));
        Ok((changes, ()))
    })
}
