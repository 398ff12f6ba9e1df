//! `usersInfo`.
//!
//! Without details the reply has the stored documents without secrets, and the mechanisms of each. With
//! `showPrivileges` or `showAuthenticationRestrictions` it has all that the roles of a user lead to as well;
//! such a request names its users.

use pando_access::UserName;
use pando_document::{Document, DocumentWriter, Limits, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::filter::Filter;

use super::account_names::{part, roles_value};
use super::role_fields::privileges_value;
use crate::accounts::store::{self, USERS};
use crate::accounts::{UserRecord, resolve_roles, stored_roles};
use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The users that a request asks for.
enum Asked {
    OfDatabase,
    Everywhere,
    These(Vec<UserName>),
}

/// The fields of a request.
struct Shown<'a> {
    credentials: bool,
    custom: bool,
    privileges: bool,
    restrictions: bool,
    filter: Option<&'a RawDocument>,
}

/// Lists the users.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let shown = Shown::read(request.body)?;
    let asked = Asked::read(request.command()?.1, context.database)?;
    let has_details = shown.privileges || shown.restrictions;
    let found = match (&asked, has_details) {
        (Asked::These(names), true) if shown.filter.is_none() => with_details(context, names, &shown)?,
        (_, true) => {
            return Err(CommandError::failed(
                ErrorCode::IllegalOperation,
                "Privilege or restriction details require exact-match usersInfo queries",
            ));
        }
        (asked, false) => without_details(context, asked, &shown)?,
    };
    let mut users = reply.array("users");
    for user in &found {
        users.push_document(user);
    }
    users.finish();
    Ok(())
}

impl<'a> Shown<'a> {
    fn read(body: &'a RawDocument) -> Result<Shown<'a>, CommandError> {
        let mut shown =
            Shown { credentials: false, custom: true, privileges: false, restrictions: false, filter: None };
        for argument in Arguments::of_command("usersInfo", body) {
            let argument = argument?;
            match argument.name {
                "showCredentials" => shown.credentials = argument.lenient_boolean()? == Some(true),
                "showCustomData" => shown.custom = argument.lenient_boolean()? != Some(false),
                "showPrivileges" => shown.privileges = argument.lenient_boolean()? == Some(true),
                "showAuthenticationRestrictions" => {
                    shown.restrictions = argument.lenient_boolean()? == Some(true);
                }
                "filter" => shown.filter = argument.document()?,
                _ => argument.refuse_unless_generic()?,
            }
        }
        Ok(shown)
    }
}

impl Asked {
    fn read(value: RawValue<'_>, database: &str) -> Result<Asked, CommandError> {
        match value {
            value if value.is_number() && value.as_i64_exact() == Some(1) => Ok(Asked::OfDatabase),
            RawValue::Document(document)
                if document.get("forAllDBs")?.is_some_and(|value| value.to_bool()) =>
            {
                Ok(Asked::Everywhere)
            }
            RawValue::Array(list) => {
                let names = list.iter().map(|element| user_name(element?, database));
                let names: Vec<UserName> = names.collect::<Result<_, _>>()?;
                if names.is_empty() {
                    return Err(CommandError::failed(
                        ErrorCode::BadValue,
                        "$and/$or/$nor must be a nonempty array",
                    ));
                }
                Ok(Asked::These(names))
            }
            value => Ok(Asked::These(vec![user_name(value, database)?])),
        }
    }

    fn has(&self, name: &UserName, database: &str) -> bool {
        match self {
            Asked::OfDatabase => name.database == database,
            Asked::Everywhere => true,
            Asked::These(names) => names.contains(name),
        }
    }
}

fn user_name(value: RawValue<'_>, database: &str) -> Result<UserName, CommandError> {
    let refused = |sentence: String| Err(CommandError::failed(ErrorCode::BadValue, sentence));
    match value {
        RawValue::String(name) => Ok(UserName::new(name, database)),
        RawValue::Document(document) => {
            for field in document.iter() {
                let (name, _) = field?;
                if !matches!(name, "user" | "db") {
                    return refused(format!("UserName contains an unknown field named: '{name}"));
                }
            }
            let name = part(document, "UserName", "user")?;
            Ok(UserName::new(name, part(document, "UserName", "db")?))
        }
        _ => refused("UserName must be either a string or an object".to_owned()),
    }
}

/// The stored documents, sorted by name.
fn without_details(
    context: &Context<'_>,
    asked: &Asked,
    shown: &Shown<'_>,
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let filter = shown.filter.map(|filter| Filter::parse(filter, &context.parse_scope())).transpose()?;
    let mut found = Vec::new();
    for (_, stored) in store::all(context.catalog(), USERS, context.operation)? {
        let Some(record) = UserRecord::read(&stored)? else { continue };
        if !asked.has(&record.name, context.database) {
            continue;
        }
        let mut user = Document::from_raw(&stored)?;
        let mechanisms = mechanisms_value(&record);
        if !shown.credentials {
            user.remove("credentials");
        }
        if !shown.custom {
            user.remove("customData");
        }
        user.remove("authenticationRestrictions");
        user.push("mechanisms", mechanisms);
        let user = user.to_raw();
        let is_wanted = match &filter {
            None => true,
            Some(filter) => filter.matches(&user)?,
        };
        if is_wanted {
            found.push(((record.name.name, record.name.database), user));
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found.into_iter().map(|(_, user)| user).collect())
}

fn mechanisms_value(record: &UserRecord) -> Value {
    let names = record.credentials.iter().map(|credential| credential.mechanism.name());
    Value::Array(names.map(Value::from).collect())
}

/// The users of these names, with all that their roles lead to, in the order of the request.
fn with_details(
    context: &Context<'_>,
    names: &[UserName],
    shown: &Shown<'_>,
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for name in names {
        context.check()?;
        let Some(stored) = store::document(context.catalog(), USERS, &UserRecord::key(name))? else {
            continue;
        };
        let Some(record) = UserRecord::read(&stored)? else { continue };
        let mut user = Document::new();
        for (field, value) in Document::from_raw(&stored)?.iter() {
            let is_shown = match field {
                "credentials" => shown.credentials,
                "customData" => shown.custom,
                "authenticationRestrictions" => shown.restrictions,
                _ => true,
            };
            if is_shown {
                user.push(field, value.clone());
            }
            if field == "db" {
                user.push("mechanisms", mechanisms_value(&record));
            }
        }
        if shown.restrictions && !user.contains("authenticationRestrictions") {
            user.push("authenticationRestrictions", Value::Array(Vec::new()));
        }
        let resolved = resolve_roles(context.catalog(), &stored_roles(&stored)?)?;
        let inherited: Vec<_> = resolved.granted.roles.iter().cloned().collect();
        user.push("inheritedRoles", roles_value(&inherited));
        user.push("inheritedPrivileges", privileges_value(&resolved.granted.privileges)?);
        user.push("inheritedAuthenticationRestrictions", Value::Array(resolved.shown_restrictions()));
        let user = user.to_raw();
        // A request may name one user very often.
        bytes += user.as_bytes().len();
        let most = Limits::STORED.bytes_max;
        if bytes > most {
            let sentence = format!("the users with their details take more than {most} bytes; ask for fewer");
            return Err(CommandError::failed(ErrorCode::BsonObjectTooLarge, sentence));
        }
        found.push(user);
    }
    Ok(found)
}
