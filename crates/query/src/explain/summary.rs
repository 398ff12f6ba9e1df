//! The summary of a plan in a few words, as lists of operations and the log of slow requests show it:
//! `IDHACK`, `COLLSCAN`, `IXSCAN { a: 1 }`, `COUNT_SCAN { a: 1 }`.

use pando_catalog::IndexDescription;
use pando_document::{RawDocument, RawValue};

use super::scan::{near_name, stage_name};
use super::{FAST_COUNT, Purpose, count_scan};
use crate::plan::wildcard::shown_pattern;
use crate::plan::{Access, Coverage, IndexAccess, Plan};
use crate::shell_text::document_text;

/// A summary. Only that of an index takes memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlanSummary {
    /// There is no plan.
    #[default]
    None,
    /// No document can match.
    Nothing,
    /// One document by its `_id`.
    Id,
    /// All documents.
    Collection,
    /// The collection's counter.
    Counter,
    /// Scans of indexes.
    Indexes(String),
}

impl PlanSummary {
    /// The summary of a plan.
    pub fn of(plan: &Plan, purpose: Purpose) -> PlanSummary {
        match &plan.access {
            Access::Nothing => PlanSummary::Nothing,
            Access::Id(_) if plan.residual.is_none() => PlanSummary::Id,
            Access::Id(_) => PlanSummary::Indexes("IXSCAN { _id: 1 }".to_owned()),
            Access::Collection(_) if plan.coverage == Coverage::Counter => PlanSummary::Counter,
            Access::Collection(_) => PlanSummary::Collection,
            Access::Index(scan) => {
                let counts = purpose == Purpose::Count && count_scan(plan).is_some();
                PlanSummary::Indexes(scan_text(if counts { "COUNT_SCAN" } else { stage_name(scan) }, scan))
            }
            Access::Text(search) => {
                let pattern = match search.index.specification.get("key") {
                    Ok(Some(RawValue::Document(pattern))) => document_text(pattern),
                    _ => String::new(),
                };
                PlanSummary::Indexes(format!("IXSCAN {pattern}"))
            }
            Access::Near(near) => PlanSummary::Indexes(index_text(near_name(near), &near.index)),
            Access::Union(scans) => PlanSummary::of_scans(scans),
            Access::Intersection(scans) => PlanSummary::of_scans(&scans[..]),
            Access::Merge(merge) => PlanSummary::of_scans(&merge.scans),
        }
    }

    fn of_scans(scans: &[IndexAccess]) -> PlanSummary {
        let texts: Vec<String> = scans.iter().map(|scan| scan_text(stage_name(scan), scan)).collect();
        PlanSummary::Indexes(texts.join(", "))
    }

    /// The text; `None` without a plan.
    pub fn text(&self) -> Option<&str> {
        match self {
            PlanSummary::None => None,
            PlanSummary::Nothing => Some("EOF"),
            PlanSummary::Id => Some("IDHACK"),
            PlanSummary::Collection => Some("COLLSCAN"),
            PlanSummary::Counter => Some(FAST_COUNT),
            PlanSummary::Indexes(text) => Some(text),
        }
    }
}

fn scan_text(stage: &str, scan: &IndexAccess) -> String {
    if let Some(pattern) = shown_pattern(&scan.index) {
        return format!("{stage} {}", document_text(&pattern.to_raw()));
    }
    index_text(stage, &scan.index)
}

fn index_text(stage: &str, index: &IndexDescription) -> String {
    let pattern = match index.specification.get("key") {
        Ok(Some(RawValue::Document(pattern))) => pattern,
        _ => RawDocument::empty(),
    };
    format!("{stage} {}", document_text(pattern))
}
