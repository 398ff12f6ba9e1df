//! `pando copy`: collections of one store into another, which may be running servers or data folders, and of
//! any engine.
//!
//! # Steps
//! 1. The source is opened, never made, and its collections are listed ([`stored_collections`]). A folder
//!    that a server has open is read through the server.
//! 2. The target is opened. It has to be another store, and without documents in these collections, unless
//!    the user says how to treat them.
//! 3. Settings that the target's engine would refuse are left out ([`engine_settings`]).
//! 4. Collections that the target has keep their options; those that differ are named ([`target_options`]).
//!    Documents go in past the validator that they have at the source ([`rule_bypass`]).
//! 5. A copy that goes on asks the target how far an earlier one has come ([`Continuation`]). A time series
//!    of which the target has a part is held back.
//! 6. The run of [`import`](super::import) writes the collections: options, documents, indexes; views last.
//! 7. The documents of each collection are counted and hashed on both sides ([`comparison`]).
//!
//! [`stored_collections`]: super::stored_collections
//! [`engine_settings`]: super::engine_settings
//! [`target_options`]: super::target_options
//! [`rule_bypass`]: super::rule_bypass
//! [`comparison`]: super::comparison

use std::collections::BTreeMap;

use bson::doc;
use pandodb::EngineName;

use super::comparison::{Check, Compared, Ends, is_refusal};
use super::engine_settings::{engine_of, fit_to};
use super::error::{Addable, Begun, TransferError};
use super::filled::refuse_filled;
use super::import::{End, Existing, ImportOptions, Imported, Talk, import_into};
use super::import_plan::{Arrived, ImportPlan, Unit};
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::resume_point::ResumePoint;
use super::rule_bypass::bypass_rules;
use super::shared_store::SharedStore;
use super::stored_collections::{Selection, plan_of};
use super::target::{Target, TargetChoice};
use super::target_options::{OtherOptions, compare_options};
use super::write_mode::WriteMode;

use crate::error_text::tell_line;

/// The parameters of a copy.
#[derive(Clone, Debug)]
pub struct StoreCopy {
    /// The store to read.
    pub from: TargetChoice,
    /// The store to write to.
    pub to: TargetChoice,
    /// One database; all if not given.
    pub database: Option<String>,
    /// One collection of it.
    pub collection: Option<String>,
    /// The engine of the target, for a folder; that of its files, or the default one, if not given.
    pub engine: Option<EngineName>,
    /// Options of that engine, by name.
    pub engine_options: Vec<(String, String)>,
    /// How documents go in.
    pub options: ImportOptions,
    /// The way in which it goes on.
    pub continuation: Continuation,
    /// How both sides are compared at the end.
    pub check: Check,
}

/// The way in which a copy goes on that was interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continuation {
    /// The copy is a first one, or goes on at the point that its options name.
    #[default]
    None,
    /// Each collection goes on behind the documents that the target has. So a copy goes on that was killed
    /// and has named no point.
    FromTarget,
}

/// The result of a copy.
#[derive(Debug)]
pub struct Copied {
    /// The run.
    pub imported: Imported,
    /// Collections that keep other options at the target.
    pub other_options: Vec<OtherOptions>,
    /// The counts of both sides; none for a copy that did not come to its end.
    pub compared: Vec<Compared>,
}

/// Copies. Documents that are refused are printed to standard error, and counted.
///
/// # Errors
/// A store cannot be opened, or the copy is refused, so that nothing was done. An error after that is part of
/// the result.
pub fn copy(copy: &StoreCopy) -> Result<Copied, TransferError> {
    if is_same_place(&copy.from, &copy.to) {
        return Err(TransferError::SameStore);
    }
    let interrupt = Interrupt::watch().map_err(TransferError::System)?;
    let of_source = |error| TransferError::Source { place: copy.from.place(), source: Box::new(error) };
    let source = copy.from.open_to_read(&interrupt).map_err(of_source)?;
    let source = SharedStore::over(source, &copy.from.place());
    let selection = Selection { database: copy.database.as_deref(), collection: copy.collection.as_deref() };
    let plan = plan_of(&source, selection)?;
    let target = copy.to.open_for_engine(copy.engine, &copy.engine_options, &interrupt)?;
    let ends = Ends { source, target: SharedStore::over(target, &copy.to.place()) };
    if is_same_server(copy, &ends) {
        return Err(TransferError::SameStore);
    }
    copy_into(copy, plan, ends, interrupt)
}

/// Copies between stores that are open, and closes them.
pub(super) fn copy_into(
    copy: &StoreCopy,
    mut plan: ImportPlan,
    ends: Ends,
    interrupt: Interrupt,
) -> Result<Copied, TransferError> {
    let options = &copy.options;
    if let Some(engine) = engine_of(&ends.target)? {
        fit_to(&mut plan, &engine);
    }
    let other_options = match options.existing {
        Existing::Kept => compare_options(&plan, &ends.target)?,
        Existing::Dropped => Vec::new(),
    };
    let adds = options.writing.mode != WriteMode::Insert || options.resume.is_some();
    if copy.continuation == Continuation::FromTarget {
        find_arrived(&mut plan, &ends)?;
    } else if !adds && options.existing == Existing::Kept {
        let refused = refuse_filled(plan.units.iter(), &mut ends.target.clone());
        refused.map_err(|error| naming_resume(error, &plan, &ends))?;
    }
    if options.existing == Existing::Kept && (adds || copy.continuation == Continuation::FromTarget) {
        hold_back_time_series(&mut plan, &ends, options.resume.as_ref())?;
    }
    // Told before the documents, so that the user can stop a long copy.
    for one in &other_options {
        tell_line!("{one}");
    }
    bypass_rules(&mut plan, &other_options, &ends.target)?;
    let mut imported = import_into(options, &plan, Box::new(ends.target.clone()), interrupt.clone());
    let mut compared = Vec::new();
    if matches!(imported.end, End::Complete) {
        match compare(copy, &plan, &imported.left_out, &ends, &interrupt) {
            Ok(Comparison { collections, remark, is_interrupted }) => {
                compared = collections;
                imported.remarks.extend(remark);
                if is_interrupted {
                    imported.end = End::Interrupted;
                }
            }
            Err(error) => imported.end = End::Failed(error),
        }
    }
    let Ends { source, target } = ends;
    if let (Err(error), End::Complete) = (target.end(), &imported.end) {
        imported.end = End::Failed(error);
    }
    // It was only read.
    let _ = source.end();
    Ok(Copied { imported, other_options, compared })
}

/// The refusal of a target that has documents, with `--resume` where an interrupted copy has left them.
fn naming_resume(error: TransferError, plan: &ImportPlan, ends: &Ends) -> TransferError {
    let TransferError::Filled { namespaces, addable, .. } = error else { return error };
    let mut units = plan.units.iter().filter(|unit| unit.content.is_some() && !unit.is_time_series());
    // Where a side does not answer, `--resume` is only not named.
    let is_begun = addable == Addable::Yes && units.all(|unit| ends.is_begun(unit).unwrap_or(false));
    let begun = if is_begun { Begun::Yes } else { Begun::No };
    TransferError::Filled { namespaces, addable, begun }
}

/// Notes how many documents of each collection the target has. An earlier copy has written them in the order
/// of the source, so they are the first ones there.
fn find_arrived(plan: &mut ImportPlan, ends: &Ends) -> Result<(), TransferError> {
    for unit in plan.units.iter_mut().filter(|unit| unit.content.is_some()) {
        let counts = ends.count(unit)?;
        unit.arrived = if counts.source == counts.target {
            Arrived::All(counts.target)
        } else {
            Arrived::Front(counts.target)
        };
    }
    Ok(())
}

/// Holds back each time series of which the target has other documents than those that this copy expects
/// there. No key tells them apart, so that a document would be in twice. Of a copy that goes on at a point,
/// the target has the documents before the point; of another one, none or all.
fn hold_back_time_series(
    plan: &mut ImportPlan,
    ends: &Ends,
    resume: Option<&ResumePoint>,
) -> Result<(), TransferError> {
    if !plan.units.iter().any(Unit::is_time_series) {
        return Ok(());
    }
    let done = resume.map_or(0, |point| point.records);
    let mut records = 0;
    for unit in plan.units.iter_mut().filter(|unit| unit.content.is_some()) {
        let is_time_series = unit.is_time_series();
        // The point counts the documents of all collections.
        if !is_time_series && done == 0 {
            continue;
        }
        let counts = ends.count(unit)?;
        let expected = done.saturating_sub(records).min(counts.source);
        records += counts.source;
        if !is_time_series {
            continue;
        }
        unit.arrived = if counts.source == counts.target {
            Arrived::All(counts.target)
        } else if counts.target == expected {
            Arrived::NotAsked
        } else {
            plan.remarks.push(format!(
                "left as it is: {}, a time series that has {} documents at the target and {} at the source, and no key \
                 that tells which are missing; copy it anew with --db {} --collection {} --drop",
                unit.namespace(),
                counts.target,
                counts.source,
                unit.database,
                unit.collection
            ));
            Arrived::Unclear { of_source: counts.source }
        };
    }
    Ok(())
}

/// Both sides of all collections.
#[derive(Default)]
struct Comparison {
    collections: Vec<Compared>,
    /// Why documents were only counted.
    remark: Option<String>,
    is_interrupted: bool,
}

/// Compares all collections. Those of equal counts are hashed, unless fields were merged into the documents
/// of the target, which then may have further ones.
fn compare(
    copy: &StoreCopy,
    plan: &ImportPlan,
    left_out: &BTreeMap<String, u64>,
    ends: &Ends,
    interrupt: &Interrupt,
) -> Result<Comparison, TransferError> {
    let mut comparison = Comparison::default();
    let mut hashes = copy.check == Check::Hash && copy.options.writing.mode != WriteMode::Merge;
    let mut progress = if copy.options.talk == Talk::Quiet { Progress::hidden() } else { Progress::new() };
    for unit in plan.units.iter().filter(|unit| unit.content.is_some()) {
        if interrupt.is_asked() {
            comparison.is_interrupted = true;
            break;
        }
        progress.show_words(&format!("comparing {} on both sides", unit.namespace()));
        let mut one = ends.count(unit)?;
        one.left_out = left_out.get(&one.namespace).copied().unwrap_or(0);
        if let Arrived::Unclear { .. } = unit.arrived {
            one.left_out = one.source.max(1);
        }
        if hashes && one.source == one.target {
            match ends.digests(unit) {
                Ok(digests) => one.digests = digests,
                Err(error) if is_refusal(&error) => {
                    hashes = false;
                    let reason = crate::error_text::error_text(&error);
                    comparison.remark = Some(format!("documents are counted and not hashed: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
        comparison.collections.push(one);
    }
    progress.clear();
    Ok(comparison)
}

fn is_same_place(from: &TargetChoice, to: &TargetChoice) -> bool {
    match (from, to) {
        (TargetChoice::Data(from), TargetChoice::Data(to)) => {
            from.canonicalize().ok().is_some_and(|from| to.canonicalize().is_ok_and(|to| from == to))
        }
        (TargetChoice::Cluster(from), TargetChoice::Cluster(to)) => from.is_same_keyspace(to),
        _ => false,
    }
}

/// Whether both are one server, which may have several addresses: the number of its process tells.
/// With `--drop` such a copy would delete what it is to read.
fn is_same_server(copy: &StoreCopy, ends: &Ends) -> bool {
    let process = |store: &SharedStore| {
        let reply = store.clone().run("admin", doc! { "hello": 1 }, None).ok()?;
        reply.get_document("topologyVersion").ok()?.get("processId").cloned()
    };
    copy.from == copy.to
        || process(&ends.source).is_some_and(|process_id| process(&ends.target) == Some(process_id))
}
