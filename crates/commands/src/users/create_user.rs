//! `createUser`.

use pando_access::UserName;
use pando_document::{Binary, Document, DocumentWriter, Value, doc};

use super::account_change::{AccountChange, carry_out};
use super::account_names::{check_roles, own_name, roles_value};
use super::user_fields::UserFields;
use crate::accounts::store::{self, USERS};
use crate::accounts::{UserRecord, credentials_document};
use crate::arguments::missing;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Creates the user.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    const COMMAND: &str = "createUser";
    context.require_may_block()?;
    let refused = |sentence: &str| Err(CommandError::failed(ErrorCode::BadValue, sentence));
    let user = own_name(COMMAND, request)?;
    let fields = UserFields::read(COMMAND, request.body, context.database)?;
    let Some(roles) = &fields.roles else { return Err(missing(COMMAND, "roles")) };
    if context.database == "local" {
        return refused("Cannot create users in the local database");
    }
    let is_external = context.database == "$external";
    if fields.password.is_none() && !is_external {
        return refused(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db",
        );
    }
    let credentials = fields.credentials(context, user)?;
    if user.is_empty() {
        return refused("User document needs 'user' field to be non-empty");
    }
    let name = UserName::new(user, context.database);
    let key = UserRecord::key(&name);
    let id = Value::Binary(Binary { subtype: 4, bytes: context.shared.new_uuid().to_vec() });
    let mut document = doc! {
        "_id": key.as_str(), "userId": id, "user": user, "db": context.database,
        "credentials": credentials.map_or_else(|| doc! { "external": true }, |all| credentials_document(&all))
    };
    complete(&mut document, &fields)?;
    document.push("roles", roles_value(roles));
    carry_out(context, |context| {
        check_roles(context.catalog(), roles)?;
        if store::document(context.catalog(), USERS, &key)?.is_some() {
            let sentence = format!("User \"{name}\" already exists");
            return Err(CommandError::failed(ErrorCode::Location(51_003), sentence));
        }
        let after = Some(document.clone());
        let change = AccountChange { collection: USERS, key: key.clone(), before: None, after };
        Ok((vec![change], ()))
    })
}

fn complete(document: &mut Document, fields: &UserFields<'_>) -> Result<(), CommandError> {
    if let Some(list) = fields.restrictions.filter(|list| list.iter().next().is_some()) {
        document.push("authenticationRestrictions", Value::from(pando_document::RawValue::Array(list)));
    }
    if let Some(custom) = fields.custom {
        document.push("customData", Document::from_raw(custom)?);
    }
    Ok(())
}
