//! The stages `$listLocalSessions` and `$listSessions`: one document about each session, with the moment of
//! its last use.
//!
//! The server knows the sessions that have begun a transaction or a retryable write; of the others it keeps
//! nothing. There is one server, so both stages list the same sessions.

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawValue};

use super::current_op_stage::COLLECTIONLESS;
use crate::arguments::{missing, unknown_field, wrong_type};
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// The stage over a database.
pub(super) const LOCAL: &str = "$listLocalSessions";
/// The stage over the collection in which a MongoDB keeps its sessions.
pub(super) const STORED: &str = "$listSessions";

/// The documents of one of the stages.
pub(super) fn documents(
    context: &Context<'_>,
    collection: &str,
    name: &'static str,
    argument: RawValue<'_>,
) -> Result<Vec<Bytes>, CommandError> {
    let wanted = read(name, argument)?;
    if name == STORED && (context.database, collection) != ("config", "system.sessions") {
        return Err(misplaced());
    }
    if name == LOCAL && collection != COLLECTIONLESS {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection",
        ));
    }
    if wanted == Wanted::OfUsers {
        // No session belongs to a user with a name.
        return Ok(Vec::new());
    }
    let sessions = context.shared.sessions.last_uses().into_iter().map(|(session, used_ms)| {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        session.write("_id", &mut writer);
        writer.append_date_time("lastUse", used_ms);
        writer.finish();
        Bytes::from(bytes)
    });
    Ok(sessions.collect())
}

/// The error of `$listSessions` over something else than its collection.
pub(super) fn misplaced() -> CommandError {
    CommandError::failed(
        ErrorCode::InvalidNamespace,
        "$listSessions may only be run against config.system.sessions",
    )
}

/// The sessions that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Those without a user, which are all.
    All,
    /// Those of users with names.
    OfUsers,
}

fn read(name: &'static str, argument: RawValue<'_>) -> Result<Wanted, CommandError> {
    let RawValue::Document(options) = argument else {
        let found = argument.element_type().alias();
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!("{name} options must be specified in an object, but found: {found}"),
        ));
    };
    let (mut is_all, mut wanted) = (false, Wanted::All);
    for option in options.iter() {
        match option? {
            ("allUsers", RawValue::Boolean(flag)) => is_all = flag,
            ("allUsers", other) => return Err(wrong_type(&format!("{name}.allUsers"), other, "bool")),
            ("users", RawValue::Array(users)) => {
                for user in users.iter() {
                    check_user(name, user?)?;
                    wanted = Wanted::OfUsers;
                }
            }
            ("users", other) => return Err(wrong_type(&format!("{name}.users"), other, "array")),
            (other, _) => return Err(unknown_field(name, other)),
        }
    }
    if is_all && wanted == Wanted::OfUsers {
        return Err(CommandError::failed(
            ErrorCode::UnsupportedFormat,
            format!("{name} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"),
        ));
    }
    Ok(wanted)
}

fn check_user(name: &str, user: RawValue<'_>) -> Result<(), CommandError> {
    let RawValue::Document(user) = user else {
        return Err(wrong_type(&format!("{name}.users.0"), user, "object"));
    };
    for field in ["user", "db"] {
        match user.get(field)? {
            Some(RawValue::String(_)) => {}
            Some(other) => return Err(wrong_type(&format!("{name}.users.{field}"), other, "string")),
            None => return Err(missing(&format!("{name}.users"), field)),
        }
    }
    Ok(())
}
