//! The rights for writing documents.

use pando_access::{Action, Target};
use pando_document::{RawDocument, RawValue};

use super::{Claim, Denial, has_true_field};
use crate::arguments::check_named_once;

/// `insert`.
pub(crate) fn insert(claim: &Claim<'_>) -> Result<(), Denial> {
    let collection = claim.collection();
    claim.need_on(Action::Insert, collection)?;
    claim.need_bypass(claim.database, collection)
}

/// `delete`.
pub(crate) fn delete(claim: &Claim<'_>) -> Result<(), Denial> {
    let collection = claim.collection();
    claim.need_on(Action::Remove, collection)?;
    claim.need_bypass(claim.database, collection)
}

/// `update`. One that may insert needs the right to insert, too.
pub(crate) fn update(claim: &Claim<'_>) -> Result<(), Denial> {
    let collection = claim.collection();
    claim.need_on(Action::Update, collection)?;
    claim.need_bypass(claim.database, collection)?;
    for statement in claim.request.documents("update", "updates")?.into_iter().flatten() {
        if has_true_field(statement, "upsert")? {
            return claim.need_on(Action::Insert, collection);
        }
    }
    Ok(())
}

/// `findAndModify`, which gives a document away and therefore needs the right to find it.
pub(crate) fn find_and_modify(claim: &Claim<'_>) -> Result<(), Denial> {
    let collection = claim.collection();
    claim.need_on(Action::Find, collection)?;
    let (mut removes, mut updates) = (false, false);
    for field in claim.fields() {
        match field? {
            ("remove", value) => removes |= value.to_bool(),
            ("update", _) => updates = true,
            ("upsert", value) if value.to_bool() => claim.need_on(Action::Insert, collection)?,
            _ => {}
        }
    }
    if removes {
        claim.need_on(Action::Remove, collection)?;
    }
    if updates || !removes {
        claim.need_on(Action::Update, collection)?;
    }
    claim.need_bypass(claim.database, collection)
}

/// `bulkWrite`: the rights of each operation on the collection that it names by its place in `nsInfo`.
pub(crate) fn bulk_write(claim: &Claim<'_>) -> Result<(), Denial> {
    let parts = ["ops", "nsInfo"];
    let namespaces = claim.request.documents_beside("bulkWrite", "nsInfo", &parts)?.unwrap_or_default();
    let mut places = Vec::with_capacity(namespaces.len());
    for namespace in namespaces {
        check_named_once("bulkWrite.nsInfo", namespace, &["ns"])?;
        let Some(full_name) = namespace.get("ns")?.and_then(|name| name.as_str()) else { return Ok(()) };
        places.push(full_name.split_once('.').unwrap_or((full_name, "")));
    }
    let bypasses = claim.has_true_field("bypassDocumentValidation")?;
    for operation in claim.request.documents_beside("bulkWrite", "ops", &parts)?.into_iter().flatten() {
        let Some((kind, place)) = operation_of(operation)? else { continue };
        // A place that is not there is refused by the command.
        let Some((database, collection)) = places.get(place) else { continue };
        let target = Target::Collection { database, collection };
        claim.need(kind, target)?;
        if kind == Action::Update && has_true_field(operation, "upsert")? {
            claim.need(Action::Insert, target)?;
        }
        if bypasses && kind != Action::Remove {
            claim.need(Action::BypassDocumentValidation, target)?;
        }
    }
    Ok(())
}

/// The action of an operation, and the place of its collection.
fn operation_of(operation: &RawDocument) -> Result<Option<(Action, usize)>, Denial> {
    let Some((name, value)) = operation.iter().next().transpose()? else { return Ok(None) };
    let action = match name {
        "insert" => Action::Insert,
        "update" => Action::Update,
        "delete" => Action::Remove,
        _ => return Ok(None),
    };
    Ok(place_of(value).map(|place| (action, place)))
}

fn place_of(value: RawValue<'_>) -> Option<usize> {
    let number = if value.is_number() { crate::arguments::whole(value) } else { return None };
    usize::try_from(number).ok()
}
