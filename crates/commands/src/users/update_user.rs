//! `updateUser`.

use pando_access::UserName;
use pando_access::scram::Credential;
use pando_document::{Document, DocumentWriter, RawValue, Value};

use super::account_change::{AccountChange, carry_out};
use super::account_names::{check_roles, own_name, roles_value};
use super::user_fields::UserFields;
use crate::accounts::store::{self, USERS};
use crate::accounts::{UserRecord, credentials_document};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Changes the fields that the request has. The password's mechanisms can be made fewer without a new one.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "updateUser";
    context.require_may_block()?;
    let user = own_name(COMMAND, request)?;
    let fields = UserFields::read(COMMAND, request.body, context.database)?;
    let is_idle = fields.password.is_none()
        && fields.mechanisms.is_none()
        && fields.roles.is_none()
        && fields.custom.is_none()
        && fields.restrictions.is_none();
    if is_idle {
        return Err(CommandError::failed(
            ErrorCode::BadValue,
            "Must specify at least one field to update in updateUser",
        ));
    }
    let credentials = fields.credentials(context, user)?;
    let name = UserName::new(user, context.database);
    let key = UserRecord::key(&name);
    carry_out(context, |context| {
        if let Some(roles) = &fields.roles {
            check_roles(context.catalog(), roles)?;
        }
        let Some(before) = store::document(context.catalog(), USERS, &key)? else {
            let sentence = format!("User {name} not found");
            return Err(CommandError::failed(ErrorCode::UserNotFound, sentence));
        };
        let mut after = Document::from_raw(&before)?;
        change(&mut after, &fields, credentials.as_deref())?;
        Ok((vec![AccountChange::of_user(key.clone(), before, after)], ()))
    })
}

fn change(
    document: &mut Document,
    fields: &UserFields<'_>,
    credentials: Option<&[Credential]>,
) -> Result<(), CommandError> {
    match (credentials, &fields.mechanisms) {
        (Some(credentials), _) => {
            document.insert("credentials", credentials_document(credentials));
        }
        (None, Some(mechanisms)) => {
            let Some(Value::Document(stored)) = document.get_mut("credentials") else {
                return Err(no_subset());
            };
            if mechanisms.iter().any(|mechanism| !stored.contains(mechanism.name())) {
                return Err(no_subset());
            }
            let names: Vec<String> = stored.names().map(str::to_owned).collect();
            for name in names {
                if mechanisms.iter().all(|mechanism| mechanism.name() != name) {
                    stored.remove(&name);
                }
            }
        }
        (None, None) => {}
    }
    if let Some(custom) = fields.custom {
        document.insert("customData", Document::from_raw(custom)?);
    }
    if let Some(roles) = &fields.roles {
        document.insert("roles", roles_value(roles));
    }
    if let Some(list) = fields.restrictions {
        if list.iter().next().is_some() {
            document.insert("authenticationRestrictions", Value::from(RawValue::Array(list)));
        } else {
            document.remove("authenticationRestrictions");
        }
    }
    Ok(())
}

fn no_subset() -> CommandError {
    CommandError::failed(
        ErrorCode::BadValue,
        "mechanisms field must be a subset of previously set mechanisms",
    )
}
