//! The selection of the cheapest candidate.
//!
//! 1. By assumed shares, which need no look at data.
//! 2. Where two or more indexes could serve, estimates decide between them. The collection takes part only if
//!    it is the cheapest by assumed shares: in a small collection its scan costs little, but users expect to
//!    see their index at work.

use super::candidate::Candidate;
use super::cost::Work;
use super::estimates::{self, Estimates};
use super::{Access, IndexFilterUse, Plan, PlanChoice};

/// The cheapest candidate, and the others. The last candidate is the collection.
pub(super) fn of(mut candidates: Vec<Candidate>, estimates: &dyn Estimates) -> PlanChoice {
    let assumed: Vec<Work> = candidates.iter().map(|candidate| candidate.work).collect();
    let mut best = cheapest(&candidates, &assumed, candidates.len());
    let indexes = candidates.len() - 1;
    if indexes > 1
        && candidates.iter().all(|candidate| !matches!(candidate.plan.access, Access::Nothing))
        // The documents of the collection are counted only if its scan is a choice.
        && let running = if best == indexes { candidates.len() } else { indexes }
        && let Some(measured) = estimates::of_candidates(&candidates[..running], estimates)
    {
        best = cheapest_measured(&candidates, (&measured, &assumed), running);
    }
    let plan = candidates.swap_remove(best).plan;
    let rejected = rejected(&plan, candidates);
    PlanChoice { plan, rejected, index_filter: IndexFilterUse::Absent }
}

/// The cheapest of the first candidates; the first of equal ones.
fn cheapest(candidates: &[Candidate], works: &[Work], running: usize) -> usize {
    let costs = costs(candidates, works);
    (0..running).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0)
}

/// The cheapest of the first candidates by measured work; assumed work decides between equal ones.
fn cheapest_measured(
    candidates: &[Candidate],
    (measured, assumed): (&[Work], &[Work]),
    running: usize,
) -> usize {
    let (measured, assumed) = (costs(candidates, measured), costs(candidates, assumed));
    let order = |a: &usize, b: &usize| {
        measured[*a].total_cmp(&measured[*b]).then(assumed[*a].total_cmp(&assumed[*b]))
    };
    (0..running).min_by(order).unwrap_or(0)
}

fn costs(candidates: &[Candidate], works: &[Work]) -> Vec<f64> {
    // The most selective of all bounds is the best guess of how many documents match.
    let matching = works.iter().map(|work| work.found).fold(f64::INFINITY, f64::min);
    // Those without numbers do not run.
    let pairs = candidates.iter().zip(works);
    pairs.map(|(candidate, work)| candidate.cost_of(*work, matching)).collect()
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
