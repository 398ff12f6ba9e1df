//! The stages `$listLocalSessions` and `$listSessions`: one document about each session, with the moment of
//! its last use. Under access control those of other users are shown to clients with the right alone.
//!
//! The server knows the sessions that have begun a transaction or a retryable write; of the others it keeps
//! nothing. There is one server, so both stages list the same sessions.

use pando_access::UserName;
use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawValue};

use super::current_op_stage::COLLECTIONLESS;
use crate::arguments::{missing, unknown_field, wrong_type};
use crate::context::Context;
use crate::session_id::{SessionId, SessionOwner};
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
    let own = context.session_owner();
    let mut uses: Vec<(SessionId, i64)> = context.shared.sessions.last_uses().into_iter().collect();
    uses.retain(|(session, _)| match &wanted {
        Wanted::All => true,
        Wanted::Own => session.owner() == own,
        Wanted::Of(owners) => owners.contains(&session.owner()),
    });
    let sessions = uses.into_iter().map(|(session, used_ms)| {
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
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// Those of all users.
    All,
    /// Those of the client's user. Without access control these are all.
    Own,
    /// Those of some users.
    Of(Vec<SessionOwner>),
}

fn read(name: &'static str, argument: RawValue<'_>) -> Result<Wanted, CommandError> {
    let RawValue::Document(options) = argument else {
        let found = argument.element_type().alias();
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!("{name} options must be specified in an object, but found: {found}"),
        ));
    };
    let (mut is_all, mut owners) = (false, Vec::new());
    for option in options.iter() {
        match option? {
            ("allUsers", RawValue::Boolean(flag)) => is_all = flag,
            ("allUsers", other) => return Err(wrong_type(&format!("{name}.allUsers"), other, "bool")),
            ("users", RawValue::Array(users)) => {
                for user in users.iter() {
                    owners.push(owner_of(name, user?)?);
                }
            }
            ("users", other) => return Err(wrong_type(&format!("{name}.users"), other, "array")),
            (other, _) => return Err(unknown_field(name, other)),
        }
    }
    if is_all && !owners.is_empty() {
        return Err(CommandError::failed(
            ErrorCode::UnsupportedFormat,
            format!("{name} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"),
        ));
    }
    Ok(match (is_all, owners.is_empty()) {
        (true, _) => Wanted::All,
        (false, true) => Wanted::Own,
        (false, false) => Wanted::Of(owners),
    })
}

/// The owner of the sessions of a user.
fn owner_of(name: &str, user: RawValue<'_>) -> Result<SessionOwner, CommandError> {
    let RawValue::Document(user) = user else {
        return Err(wrong_type(&format!("{name}.users.0"), user, "object"));
    };
    let part = |field: &'static str| match user.get(field)? {
        Some(RawValue::String(text)) => Ok(text),
        Some(other) => Err(wrong_type(&format!("{name}.users.{field}"), other, "string")),
        None => Err(missing(&format!("{name}.users"), field)),
    };
    Ok(SessionOwner::of_digest(UserName::new(part("user")?, part("db")?).digest()))
}
