//! `rolesInfo`.

use pando_access::{RoleName, built_in_roles, role};
use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value, doc};

use super::account_names::{read_list, read_one, roles_value};
use super::role_edit::find;
use super::role_fields::privileges_value;
use crate::accounts::store::{self, ROLES};
use crate::accounts::{ResolvedAccount, RoleRecord, resolve_roles};
use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The roles that a request asks for.
enum Asked {
    OfDatabase,
    These(Vec<RoleName>),
}

/// The form of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Roles,
    /// One document, as if a user had all these roles.
    UserFragment,
}

/// The fields of a request.
#[derive(Clone, Copy)]
struct Shown {
    form: Form,
    privileges: bool,
    restrictions: bool,
    built_in: bool,
}

/// Lists the roles.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let shown = Shown::read(request.body)?;
    let asked = match request.command()?.1 {
        value if value.is_number() && value.as_i64_exact() == Some(1) => Asked::OfDatabase,
        RawValue::Array(list) => Asked::These(read_list(list, context.database, OTHER)?),
        value => Asked::These(vec![read_one(value, context.database, OTHER)?]),
    };
    if shown.form == Form::UserFragment {
        let Asked::These(names) = asked else {
            return Err(CommandError::failed(
                ErrorCode::IllegalOperation,
                "Cannot get user fragment for all roles in a database",
            ));
        };
        reply.append_document("userFragment", &fragment(context, &names, shown)?);
        return Ok(());
    }
    let found = match asked {
        Asked::OfDatabase => of_database(context, shown)?,
        Asked::These(names) => these(context, &names, shown)?,
    };
    let mut roles = reply.array("roles");
    for role in &found {
        roles.push_value(&Value::Document(role.clone()));
    }
    roles.finish();
    Ok(())
}

const OTHER: &str = "RoleName must be either a string or an object";

impl Shown {
    fn read(body: &RawDocument) -> Result<Shown, CommandError> {
        let mut shown = Shown { form: Form::Roles, privileges: false, restrictions: false, built_in: false };
        for argument in Arguments::of_command("rolesInfo", body) {
            let argument = argument?;
            match argument.name {
                "showPrivileges" => match argument.value {
                    RawValue::String("asUserFragment") => {
                        shown.form = Form::UserFragment;
                        shown.privileges = true;
                    }
                    RawValue::Boolean(value) => shown.privileges = value,
                    value if value.is_number() => shown.privileges = value.to_bool(),
                    _ if argument.is_absent() => {}
                    value => {
                        let text = pando_query::shell_text::value_text(value);
                        return Err(CommandError::failed(
                            ErrorCode::BadValue,
                            format!(
                                "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string \
                                 'asUserFragment', given: showPrivileges: {text}"
                            ),
                        ));
                    }
                },
                "showAuthenticationRestrictions" => {
                    shown.restrictions = argument.lenient_boolean()? == Some(true);
                }
                "showBuiltinRoles" => shown.built_in = argument.lenient_boolean()? == Some(true),
                _ => argument.refuse_unless_generic()?,
            }
        }
        Ok(shown)
    }
}

/// The roles of the database of the request.
fn of_database(context: &Context<'_>, shown: Shown) -> Result<Vec<Document>, CommandError> {
    let mut found = Vec::new();
    for (_, stored) in store::all(context.catalog(), ROLES, context.operation)? {
        let Some(record) = RoleRecord::read(&stored)? else { continue };
        if record.name.database != context.database {
            continue;
        }
        let mut role = stored_fields(&stored, &record, shown)?;
        role.push("isBuiltin", false);
        complete(context, &mut role, &record, shown)?;
        found.push(role);
    }
    if shown.built_in {
        for name in built_in_roles::of_database(context.database) {
            let mut role = doc! {
                "role": name.name.as_str(), "db": name.database.as_str(), "isBuiltin": true, "roles": [],
                "inheritedRoles": []
            };
            complete_built_in(&mut role, &name, shown)?;
            found.push(role);
        }
    }
    Ok(found)
}

/// The roles of these names that there are.
fn these(context: &Context<'_>, names: &[RoleName], shown: Shown) -> Result<Vec<Document>, CommandError> {
    let mut found = Vec::new();
    for name in names {
        context.check()?;
        if built_in_roles::is_built_in(name) {
            found.push(built_in(name, shown)?);
        } else if let Some(stored) = find(context, name)? {
            let mut role = stored_fields(&stored.document, &stored.record, shown)?;
            complete(context, &mut role, &stored.record, shown)?;
            role.push("isBuiltin", false);
            found.push(role);
        }
    }
    Ok(found)
}

/// The fields of a stored role.
fn stored_fields(stored: &RawDocument, record: &RoleRecord, shown: Shown) -> Result<Document, CommandError> {
    let mut role = Document::from_raw(stored)?;
    role.remove("authenticationRestrictions");
    if !shown.privileges {
        role.remove("privileges");
    }
    if shown.restrictions {
        let own = record.shown_restrictions.iter().cloned().collect();
        role.push("authenticationRestrictions", Value::Array(own));
    }
    Ok(role)
}

/// Adds all that a stored role leads to.
fn complete(
    context: &Context<'_>,
    role: &mut Document,
    record: &RoleRecord,
    shown: Shown,
) -> Result<(), CommandError> {
    let inherited = resolve_roles(context.catalog(), &record.role.roles)?;
    let names: Vec<RoleName> = inherited.granted.roles.iter().cloned().collect();
    role.push("inheritedRoles", roles_value(&names));
    if shown.privileges {
        let mut privileges = record.role.privileges.clone();
        privileges.add_all(&inherited.granted.privileges);
        role.push("inheritedPrivileges", privileges_value(&privileges)?);
    }
    if shown.restrictions {
        let own = record.shown_restrictions.iter().cloned();
        let all = own.chain(inherited.shown_restrictions()).collect();
        role.push("inheritedAuthenticationRestrictions", Value::Array(all));
    }
    Ok(())
}

fn built_in(name: &RoleName, shown: Shown) -> Result<Document, CommandError> {
    let mut role = doc! { "db": name.database.as_str(), "role": name.name.as_str(), "roles": [] };
    let privileges = built_in_roles::role(name).map(|role| role.privileges).unwrap_or_default();
    if shown.privileges {
        role.push("privileges", privileges_value(&privileges)?);
    }
    if shown.restrictions {
        role.push("authenticationRestrictions", Value::Array(Vec::new()));
    }
    role.push("inheritedRoles", Value::Array(Vec::new()));
    if shown.privileges {
        role.push("inheritedPrivileges", privileges_value(&privileges)?);
    }
    if shown.restrictions {
        role.push("inheritedAuthenticationRestrictions", Value::Array(Vec::new()));
    }
    role.push("isBuiltin", true);
    Ok(role)
}

fn complete_built_in(role: &mut Document, name: &RoleName, shown: Shown) -> Result<(), CommandError> {
    if shown.privileges {
        let privileges = built_in_roles::role(name).map(|role| role.privileges).unwrap_or_default();
        role.push("privileges", privileges_value(&privileges)?);
        role.push("inheritedPrivileges", privileges_value(&privileges)?);
    }
    if shown.restrictions {
        role.push("authenticationRestrictions", Value::Array(Vec::new()));
        role.push("inheritedAuthenticationRestrictions", Value::Array(Vec::new()));
    }
    Ok(())
}

/// The reply as if a user had these roles. A role that there is not stands among them, and gives nothing.
fn fragment(context: &Context<'_>, names: &[RoleName], shown: Shown) -> Result<Document, CommandError> {
    let resolved: ResolvedAccount = resolve_roles(context.catalog(), names)?;
    let role::ResolvedRoles { roles, privileges, unknown } = &resolved.granted;
    let inherited: Vec<RoleName> = roles.iter().chain(unknown).cloned().collect();
    let mut fragment = doc! {
        "roles": roles_value(names), "inheritedRoles": roles_value(&inherited),
        "inheritedPrivileges": privileges_value(privileges)?
    };
    if shown.restrictions {
        let restrictions = resolved.shown_restrictions();
        fragment.push("inheritedAuthenticationRestrictions", Value::Array(restrictions));
    }
    Ok(fragment)
}
