//! The rights for commands that describe, create and change collections.

use pando_access::{Action, Target};
use pando_document::{RawArray, RawValue};

use super::pipelines::need_view;
use super::{Claim, Denial};
use crate::grid_fs::chunks_of;
use crate::{CommandError, ErrorCode};

/// The view that a `create` or a `collMod` defines.
struct DefinedView<'a> {
    on: &'a str,
    stages: Option<&'a RawArray>,
}

/// The two parts of the definition of a view, as far as a command has them.
type ViewParts<'a> = (Option<&'a str>, Option<&'a RawArray>);

fn view_parts<'a>(claim: &Claim<'a>) -> Result<ViewParts<'a>, Denial> {
    let (mut on, mut stages) = (None, None);
    for field in claim.fields() {
        match field? {
            ("viewOn", RawValue::String(name)) => on = Some(name),
            ("pipeline", RawValue::Array(array)) => stages = Some(array),
            _ => {}
        }
    }
    Ok((on, stages))
}

/// A client that may read a view has to be allowed to read all that it shows. One that may not read it may
/// define it all the same.
fn need_definition(claim: &Claim<'_>, view: &DefinedView<'_>) -> Result<(), Denial> {
    let target = Target::Collection { database: claim.database, collection: claim.collection() };
    match claim.authority.allows(Action::Find, target) {
        true => need_view(claim, view.on, view.stages),
        false => Ok(()),
    }
}

/// `create`. The right to insert is enough for a plain collection, because an insert would create it, too.
pub(crate) fn create(claim: &Claim<'_>) -> Result<(), Denial> {
    let collection = claim.collection();
    let (on, stages) = view_parts(claim)?;
    let view = on.map(|on| DefinedView { on, stages });
    let may_create = claim.need_on(Action::CreateCollection, collection);
    match &view {
        Some(view) => {
            may_create?;
            need_definition(claim, view)?;
        }
        None => may_create.or_else(|_| claim.need_on(Action::Insert, collection))?,
    }
    if claim.has_true_field("capped")? {
        claim.need_on(Action::ConvertToCapped, collection)?;
    }
    Ok(())
}

/// `collMod`. It changes a view as a whole only: the rights on a part that it does not name could not be
/// told here.
pub(crate) fn change_collection(claim: &Claim<'_>) -> Result<(), Denial> {
    claim.need_on(Action::CollMod, claim.collection())?;
    match view_parts(claim)? {
        (Some(on), stages @ Some(_)) => need_definition(claim, &DefinedView { on, stages }),
        (None, None) => Ok(()),
        (Some(_), None) | (None, Some(_)) => Err(Denial::Malformed(CommandError::failed(
            ErrorCode::InvalidOptions,
            "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled",
        ))),
    }
}

/// `listCollections`. A client without the right may ask for the names of those that it may use.
pub(crate) fn list_collections(claim: &Claim<'_>) -> Result<(), Denial> {
    let may_list = claim.need(Action::ListCollections, Target::Database(claim.database));
    let asks_for_own = claim.has_true_field("nameOnly")? && claim.has_true_field("authorizedCollections")?;
    match asks_for_own && claim.authority.reaches_database(claim.database) {
        true => Ok(()),
        false => may_list,
    }
}

/// `profile`. The settings may be read by those who may read the profile.
pub(crate) fn profile(claim: &Claim<'_>) -> Result<(), Denial> {
    let mut asks_only = matches!(claim.request.command(), Ok((_, level)) if level.as_i64_exact() == Some(-1));
    for field in claim.fields() {
        asks_only &= !matches!(field?.0, "slowms" | "sampleRate" | "filter");
    }
    if asks_only && claim.need_on(Action::Find, "system.profile").is_ok() {
        return Ok(());
    }
    claim.need(Action::EnableProfiler, Target::Database(claim.database))
}

/// `dataSize`, whose value is a whole namespace.
pub(crate) fn data_size(claim: &Claim<'_>) -> Result<(), Denial> {
    match claim.collection().split_once('.') {
        Some((database, collection)) => claim.need(Action::Find, Target::Collection { database, collection }),
        // Refused by the command.
        None => Ok(()),
    }
}

/// `filemd5`, which names a bucket of GridFS and reads its chunks.
pub(crate) fn file_md5(claim: &Claim<'_>) -> Result<(), Denial> {
    let mut is_default = true;
    for field in claim.fields() {
        if let ("root", root) = field? {
            is_default = false;
            claim.need_on(Action::Find, &chunks_of(Some(root)))?;
        }
    }
    if is_default { claim.need_on(Action::Find, &chunks_of(None)) } else { Ok(()) }
}

/// `beginLoad`: a new collection with its indexes and documents.
pub(crate) fn begin_load(claim: &Claim<'_>) -> Result<(), Denial> {
    for field in claim.fields() {
        if let ("ns", RawValue::String(collection)) = field? {
            for action in [Action::CreateCollection, Action::CreateIndex, Action::Insert] {
                claim.need_on(action, collection)?;
            }
        }
    }
    Ok(())
}

/// `renameCollection`. There are two ways to be allowed to:
///
/// 1. The right to rename within a database, if no collection becomes readable by its new name.
/// 2. The rights to read and drop the source, and to make the target with its indexes.
pub(crate) fn rename_collection(claim: &Claim<'_>) -> Result<(), Denial> {
    let (source, mut target, mut drops) = (claim.collection(), "", false);
    for field in claim.fields() {
        match field? {
            ("to", RawValue::String(name)) => target = name,
            ("dropTarget", value) => drops |= value.to_bool(),
            _ => {}
        }
    }
    let place = |name: &str, action: Action| {
        let (database, collection) = name.split_once('.').unwrap_or((name, ""));
        claim.authority.allows(action, Target::Collection { database, collection })
    };
    let database_of = |name: &'_ str| name.split_once('.').map_or(name.len(), |(database, _)| database.len());
    let (database, other) = (&source[..database_of(source)], &target[..database_of(target)]);
    let may_drop = !drops || place(target, Action::DropCollection);
    let is_plain = |name: &str| !name[database_of(name)..].starts_with(".system.");
    if database == other
        && is_plain(source)
        && is_plain(target)
        && may_drop
        && claim.authority.allows(Action::RenameCollectionSameDb, Target::Database(database))
        && (place(source, Action::Find) || !place(target, Action::Find))
    {
        return Ok(());
    }
    let is_allowed = place(source, Action::Find)
        && place(source, Action::DropCollection)
        && place(target, Action::Insert)
        && place(target, Action::CreateIndex)
        && may_drop;
    if is_allowed { Ok(()) } else { Err(Denial::Rights) }
}

/// `cloneCollectionAsCapped`: reads one collection, and makes another one.
pub(crate) fn clone_as_capped(claim: &Claim<'_>) -> Result<(), Denial> {
    claim.need_on(Action::Find, claim.collection())?;
    for field in claim.fields() {
        if let ("toCollection", RawValue::String(target)) = field? {
            for action in [Action::Insert, Action::CreateIndex, Action::ConvertToCapped] {
                claim.need_on(action, target)?;
            }
        }
    }
    Ok(())
}
