//! `dropUser`.

use pando_access::UserName;
use pando_document::DocumentWriter;

use super::account_change::{AccountChange, carry_out};
use super::account_names::own_name;
use crate::accounts::UserRecord;
use crate::accounts::store::{self, USERS};
use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Removes the user. His connections are logged out.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = UserName::new(own_name("dropUser", request)?, context.database);
    no_more("dropUser", request.body)?;
    let key = UserRecord::key(&name);
    carry_out(context, |context| match store::document(context.catalog(), USERS, &key)? {
        Some(before) => Ok((vec![AccountChange::removal(USERS, key.clone(), before)], ())),
        None => {
            let sentence = format!("User '{name}' not found");
            Err(CommandError::failed(ErrorCode::UserNotFound, sentence))
        }
    })
}
