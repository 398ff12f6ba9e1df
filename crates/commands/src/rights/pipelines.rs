//! The rights for a pipeline: those on its collection, and those of each stage that reads or writes another
//! one.
//!
//! The walk goes through all stages, also within `$lookup`, `$unionWith` and `$facet`, before any of them is
//! parsed.

use pando_access::{Action, Target};
use pando_document::{RawArray, RawDocument, RawValue};

use super::{Claim, Denial};
use crate::arguments::check_named_once;

/// The collection in the place of none.
const COLLECTIONLESS: &str = "$cmd.aggregate";
/// Pipelines within pipelines. MongoDB and this server refuse far fewer.
const DEPTH_MAX: usize = 100;

/// `aggregate`.
pub(crate) fn aggregate(claim: &Claim<'_>) -> Result<(), Denial> {
    let collection = match claim.request.command() {
        Ok((_, RawValue::String(collection))) => collection,
        _ => COLLECTIONLESS,
    };
    let mut has_pipeline = false;
    for field in claim.fields() {
        if let ("pipeline", RawValue::Array(stages)) = field? {
            has_pipeline = true;
            need_source(claim, collection, stages)?;
            need_stages(claim, collection, stages, 0)?;
        }
    }
    match has_pipeline {
        true => Ok(()),
        false => claim.need_on(Action::Find, collection),
    }
}

/// Needs the rights to read what a view is to show: its collection, and those that its stages read.
pub(super) fn need_view(claim: &Claim<'_>, on: &str, stages: Option<&RawArray>) -> Result<(), Denial> {
    claim.need_on(Action::Find, on)?;
    match stages {
        Some(stages) => need_stages(claim, on, stages, 0),
        None => Ok(()),
    }
}

/// The right to read the collection of a pipeline, unless its first stage makes documents otherwise.
fn need_source(claim: &Claim<'_>, collection: &str, stages: &RawArray) -> Result<(), Denial> {
    match makes_documents(stages)? {
        // Their own rights are needed by `need_stages`.
        true => Ok(()),
        false => claim.need_on(Action::Find, collection),
    }
}

/// Whether the first stage of a pipeline makes its documents, so that it reads none of the collection.
fn makes_documents(stages: &RawArray) -> Result<bool, Denial> {
    let first = stages.iter().next().transpose()?.and_then(|stage| stage.as_document());
    let name = match first.and_then(|stage| stage.iter().next()) {
        Some(field) => field?.0,
        None => "",
    };
    Ok(matches!(
        name,
        "$collStats"
            | "$indexStats"
            | "$planCacheStats"
            | "$currentOp"
            | "$listSessions"
            | "$listLocalSessions"
            | "$documents"
    ))
}

fn need_stages(claim: &Claim<'_>, collection: &str, stages: &RawArray, depth: usize) -> Result<(), Denial> {
    if depth > DEPTH_MAX {
        return Err(Denial::Rights);
    }
    for stage in stages.iter() {
        let Some(stage) = stage?.as_document() else { continue };
        for field in stage.iter() {
            let (name, value) = field?;
            need_stage(claim, collection, (name, value), depth)?;
        }
    }
    Ok(())
}

fn need_stage(
    claim: &Claim<'_>,
    collection: &str,
    (name, value): (&str, RawValue<'_>),
    depth: usize,
) -> Result<(), Denial> {
    match (name, value) {
        ("$collStats", _) => claim.need_on(Action::CollStats, collection),
        ("$indexStats", _) => claim.need_on(Action::IndexStats, collection),
        ("$planCacheStats", _) => claim.need_on(Action::PlanCacheRead, collection),
        ("$changeStream", _) => claim.need_on(Action::ChangeStream, collection),
        ("$currentOp", RawValue::Document(options)) => need_of_all_users(claim, options, Action::Inprog),
        ("$listSessions" | "$listLocalSessions", RawValue::Document(options)) => {
            need_of_all_users(claim, options, Action::ListSessions)
        }
        ("$lookup" | "$unionWith", RawValue::Document(options)) => {
            need_foreign(claim, options, reads_foreign(options)?, depth)
        }
        ("$graphLookup", RawValue::Document(options)) => need_foreign(claim, options, Foreign::Read, depth),
        ("$unionWith", RawValue::String(other)) => claim.need_on(Action::Find, other),
        ("$facet", RawValue::Document(facets)) => {
            for facet in facets.iter() {
                if let (_, RawValue::Array(stages)) = facet? {
                    need_stages(claim, collection, stages, depth + 1)?;
                }
            }
            Ok(())
        }
        ("$out", place) => need_write(claim, place, &[Action::Insert, Action::Remove]),
        ("$merge", RawValue::Document(options)) => need_merge(claim, options),
        ("$merge", place) => need_write(claim, place, &[Action::Insert, Action::Update]),
        _ => Ok(()),
    }
}

/// Needs an action on the cluster for a stage that shows what other users do.
fn need_of_all_users(claim: &Claim<'_>, options: &RawDocument, action: Action) -> Result<(), Denial> {
    for field in options.iter() {
        match field? {
            ("allUsers", value) if value.to_bool() => claim.need(action, Target::Cluster)?,
            ("users", _) => claim.need(action, Target::Cluster)?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether a stage reads the documents of another collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Read,
    /// It has pipelines, and all of them make their documents.
    Unread,
}

fn reads_foreign(options: &RawDocument) -> Result<Foreign, Denial> {
    let mut foreign = Foreign::Read;
    for field in options.iter() {
        match field? {
            ("pipeline", RawValue::Array(stages)) if makes_documents(stages)? => foreign = Foreign::Unread,
            // One of two pipelines is enough to read.
            ("pipeline", _) => return Ok(Foreign::Read),
            _ => {}
        }
    }
    Ok(foreign)
}

/// A stage that names another collection, and its pipeline there.
fn need_foreign(
    claim: &Claim<'_>,
    options: &RawDocument,
    reading: Foreign,
    depth: usize,
) -> Result<(), Denial> {
    let mut foreign = COLLECTIONLESS;
    for field in options.iter() {
        match field? {
            ("from" | "coll", RawValue::String(name)) => {
                foreign = name;
                if reading == Foreign::Read {
                    claim.need_on(Action::Find, name)?;
                }
            }
            ("from", RawValue::Document(place)) => {
                let (database, name) = place_of(claim, place)?;
                claim.need(Action::Find, Target::Collection { database, collection: name })?;
            }
            _ => {}
        }
    }
    for field in options.iter() {
        if let ("pipeline", RawValue::Array(stages)) = field? {
            need_stages(claim, foreign, stages, depth + 1)?;
        }
    }
    Ok(())
}

/// `$merge`: inserts, updates, or both, as its two modes say.
fn need_merge(claim: &Claim<'_>, options: &RawDocument) -> Result<(), Denial> {
    check_named_once("$merge", options, &["into", "whenMatched", "whenNotMatched"])?;
    let (mut updates, mut inserts) = (true, true);
    for field in options.iter() {
        match field? {
            ("whenMatched", RawValue::String("fail")) => updates = false,
            ("whenNotMatched", RawValue::String("fail" | "discard")) => inserts = false,
            _ => {}
        }
    }
    // No such pair of modes is carried out.
    if !updates && !inserts {
        (updates, inserts) = (true, true);
    }
    let actions: &[Action] = match (updates, inserts) {
        (true, true) => &[Action::Insert, Action::Update],
        (false, _) => &[Action::Insert],
        (true, false) => &[Action::Update],
    };
    for field in options.iter() {
        if let ("into", place) = field? {
            need_write(claim, place, actions)?;
        }
    }
    Ok(())
}

/// Needs actions on the target of a stage that writes.
fn need_write(claim: &Claim<'_>, place: RawValue<'_>, actions: &[Action]) -> Result<(), Denial> {
    let (database, collection) = match place {
        RawValue::String(collection) => (claim.database, collection),
        RawValue::Document(place) => place_of(claim, place)?,
        _ => return Ok(()),
    };
    for action in actions {
        claim.need(*action, Target::Collection { database, collection })?;
    }
    claim.need_bypass(database, collection)
}

/// The database and the collection of `{db, coll}`. An empty database is that of the request, as `$merge` has
/// it.
fn place_of<'v>(claim: &Claim<'v>, place: &'v RawDocument) -> Result<(&'v str, &'v str), Denial> {
    check_named_once("into", place, &["db", "coll"])?;
    let (mut database, mut collection) = (claim.database, "");
    for field in place.iter() {
        match field? {
            ("db", RawValue::String("")) => {}
            ("db", RawValue::String(name)) => database = name,
            ("coll", RawValue::String(name)) => collection = name,
            _ => {}
        }
    }
    Ok((database, collection))
}
