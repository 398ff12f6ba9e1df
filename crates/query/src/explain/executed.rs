//! The stages of a plan with the figures of its execution, as `explain("executionStats")` and the profiler
//! show them.
//!
//! The executor counts for the whole plan. The documents that a stage gives follow from that: a stage behind
//! the sort or the skip gives the rows of the answer, one in front of it all that match.

use pando_document::{Document, Value};

use super::{FAST_COUNT, number};
use crate::execute::ExecutionFigures;

/// The effect of an update beyond its search, where there was one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Documents that were changed.
    pub modified: Option<u64>,
    /// Documents that were inserted.
    pub upserted: Option<u64>,
}

/// The stages with their figures.
pub fn executed(stages: &Document, figures: &ExecutionFigures, effect: Effect) -> Document {
    let walk = Walk { figures, effect };
    walk.stage(stages, figures.counters.returned)
}

struct Walk<'w> {
    figures: &'w ExecutionFigures,
    effect: Effect,
}

impl Walk<'_> {
    /// A stage that gives so many documents, and its inputs.
    fn stage(&self, stage: &Document, given: u64) -> Document {
        let name = stage.get("stage").and_then(Value::as_str).unwrap_or_default();
        let is_effect = matches!(name, "COUNT" | "UPDATE" | "DELETE" | FAST_COUNT);
        let mut shown = Document::new();
        let (head, rest): (Vec<_>, Vec<_>) =
            stage.iter().partition(|(name, _)| matches!(*name, "stage" | "filter"));
        head.into_iter().for_each(|(name, value)| shown.push(name, value.clone()));
        shown.push("nReturned", number(if is_effect { 0 } else { given }));
        let is_input = |name: &str| matches!(name, "inputStage" | "inputStages");
        for (name, value) in rest.iter().filter(|(name, _)| !is_input(name)) {
            shown.push(*name, (*value).clone());
        }
        self.push_figures(&mut shown, name, given);
        let below = self.given_below(name, given);
        for (name, value) in rest.iter().filter(|(name, _)| is_input(name)) {
            match value {
                Value::Document(input) => shown.push(*name, self.stage(input, below)),
                // The branches of a union are not counted apart.
                other => shown.push(*name, (*other).clone()),
            }
        }
        shown
    }

    fn push_figures(&self, shown: &mut Document, name: &str, given: u64) {
        let figures = self.figures;
        let counters = figures.counters;
        match name {
            "SORT" => {
                shown.push("totalDataSizeSorted", number(figures.sorted_bytes));
                shown.push("usedDisk", figures.spills > 0);
                shown.push("spills", number(figures.spills));
                if figures.spills > 0 {
                    shown.push("spilledBytes", number(figures.spilled_bytes));
                }
            }
            "COUNT" | FAST_COUNT => {
                shown.push("nCounted", number(given));
                shown.push("nSkipped", number(figures.skipped));
            }
            "UPDATE" => {
                shown.push("nMatched", number(given));
                let effect = [("nWouldModify", self.effect.modified), ("nWouldUpsert", self.effect.upserted)];
                for (name, count) in effect {
                    count.into_iter().for_each(|count| shown.push(name, number(count)));
                }
            }
            "DELETE" => shown.push("nWouldDelete", number(given)),
            "FETCH" | "COLLSCAN" | "TEXT_OR" => {
                shown.push("docsExamined", number(counters.documents_examined))
            }
            "IXSCAN" | "COUNT_SCAN" | "DISTINCT_SCAN" => {
                shown.push("keysExamined", number(counters.keys_examined));
            }
            "IDHACK" => {
                shown.push("keysExamined", number(counters.keys_examined));
                shown.push("docsExamined", number(counters.documents_examined));
            }
            _ => {}
        }
    }

    /// The documents that the input of a stage gives.
    fn given_below(&self, name: &str, given: u64) -> u64 {
        match name {
            "SORT" => self.figures.sorted,
            "SKIP" | "COUNT" => given + self.figures.skipped,
            "FETCH" => self.figures.counters.documents_examined,
            _ => given,
        }
    }
}
