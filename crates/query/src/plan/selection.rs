//! The selection of the cheapest candidate.
//!
//! 1. By assumed shares, which need no look at data, but for the number of groups whose documents are
//!    fetched.
//! 2. Where two or more indexes could serve, estimates decide between them. The collection takes part only if
//!    it is the cheapest by assumed shares: in a small collection its scan costs little, but users expect to
//!    see their index at work.
//! 3. The [intersection](super::intersection) of two indexes wins against that if it is far cheaper.

use std::collections::BTreeSet;

use super::candidate::{Candidate, Conjunction};
use super::cost::{DOCUMENTS_ASSUMED, Work};
use super::estimates::{self, Estimates};
use super::{Access, IndexFilterUse, Plan, PlanChoice, ScanBounds, ends, intersection};

/// The cheapest candidate, and the others. The last candidate is the collection.
pub(super) fn of(
    conjunction: &Conjunction<'_>,
    mut candidates: Vec<Candidate>,
    estimates: &dyn Estimates,
) -> PlanChoice {
    ends::sample(&mut candidates, estimates);
    let assumed: Vec<Work> = candidates.iter().map(|candidate| candidate.work).collect();
    let assumed = costs(&candidates, &assumed, DOCUMENTS_ASSUMED);
    let mut best = cheapest(&assumed, candidates.len());
    let indexes = candidates.len() - 1;
    if indexes > 1
        && candidates.iter().all(|candidate| !matches!(candidate.plan.access, Access::Nothing))
        // The documents of the collection are counted only if its scan is a choice.
        && let running = if best == indexes { candidates.len() } else { indexes }
        && let Some(measured) = estimates::of_candidates(&candidates[..running], estimates)
        && let Some(documents) = estimates.documents()
    {
        let documents = documents as f64;
        let measured_costs = costs(&candidates, &measured, documents);
        best = cheapest_measured(&measured_costs, &assumed);
        if let Some(both) = intersection::of(conjunction, &candidates, &measured, documents)
            && let matching = matching(&candidates, &measured, documents).min(both.work.found)
            && both.cost_of(both.work, matching) * intersection::GAIN_MIN < measured_costs[best]
        {
            let rejected = rejected(&both.plan, candidates);
            return PlanChoice { plan: both.plan, rejected, index_filter: IndexFilterUse::Absent };
        }
    }
    let plan = candidates.swap_remove(best).plan;
    let rejected = rejected(&plan, candidates);
    PlanChoice { plan, rejected, index_filter: IndexFilterUse::Absent }
}

/// The cheapest of the first candidates; the first of equal ones.
fn cheapest(costs: &[f64], running: usize) -> usize {
    (0..running).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0)
}

/// The cheapest of the first candidates by measured costs; assumed ones decide between equal ones.
fn cheapest_measured(measured: &[f64], assumed: &[f64]) -> usize {
    let order = |a: &usize, b: &usize| {
        measured[*a].total_cmp(&measured[*b]).then(assumed[*a].total_cmp(&assumed[*b]))
    };
    (0..measured.len()).min_by(order).unwrap_or(0)
}

/// The costs of the candidates that have works.
fn costs(candidates: &[Candidate], works: &[Work], documents: f64) -> Vec<f64> {
    let matching = matching(candidates, works, documents);
    // Those without numbers do not run.
    let pairs = candidates.iter().zip(works);
    pairs.map(|(candidate, work)| candidate.cost_of(*work, matching)).collect()
}

/// How many documents are thought to match the whole filter.
///
/// The most selective bounds count in full. Bounds of other fields make the matches fewer: they count the
/// less the more there are before them, because the values of fields often go together.
fn matching(candidates: &[Candidate], works: &[Work], documents: f64) -> f64 {
    let scans = candidates.iter().zip(works).filter(|(candidate, _)| !candidate.plan.is_distinct());
    let mut found: Vec<(f64, Option<BTreeSet<&str>>)> =
        scans.map(|(candidate, work)| (work.found, bounded_paths(&candidate.plan.access))).collect();
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let Some((fewest, _)) = found.first() else { return f64::INFINITY };
    let mut matching = *fewest;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut weight = 1.0;
    for (found, paths) in &found {
        let Some(paths) = paths.as_ref().filter(|paths| !paths.is_empty() && seen.is_disjoint(paths)) else {
            continue;
        };
        if weight < 1.0 {
            matching *= (found / documents.max(1.0)).min(1.0).powf(weight);
        }
        seen.extend(paths);
        weight /= 2.0;
    }
    matching
}

/// The paths that the bounds of a scan are about; `None` where they are those of several branches.
fn bounded_paths(access: &Access) -> Option<BTreeSet<&str>> {
    let scan = match access {
        Access::Index(scan) => scan,
        Access::Merge(merge) => merge.only_index()?,
        Access::Collection(_) => return Some(BTreeSet::new()),
        Access::Nothing
        | Access::Id(_)
        | Access::Union(_)
        | Access::Intersection(_)
        | Access::Text(_)
        | Access::Near(_) => return None,
    };
    let ScanBounds::Fields(fields) = &scan.bounds else { return None };
    let bounded = scan.index.fields.iter().zip(fields).filter(|(_, bounds)| !bounds.is_all());
    Some(bounded.map(|(field, _)| field.path.as_str()).collect())
}

/// The plans that lost, as far as they are a choice: the collection is none, and all of an index is one only
/// for the sake of its order, where no bounds give that order.
fn rejected(winner: &Plan, candidates: Vec<Candidate>) -> Vec<Plan> {
    let gives_order = |candidate: &Candidate| candidate.narrows && candidate.plan.sort.is_none();
    let has_order = winner.sort.is_none() || candidates.iter().any(gives_order);
    let of_indexes =
        candidates.into_iter().filter(|candidate| !matches!(candidate.plan.access, Access::Collection(_)));
    let choices =
        of_indexes.filter(|candidate| candidate.narrows || (!has_order && candidate.plan.sort.is_none()));
    choices.map(|candidate| candidate.plan).collect()
}
