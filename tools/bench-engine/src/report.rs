//! The results, set side by side: a table for the terminal, a page of Markdown, and a chart.

mod chart;
mod measures;
mod page;

use std::path::Path;

use crate::error::{BenchError, on_file};
use crate::figures::{Outcome, Results};

/// The page, in the folder of a run.
pub const PAGE: &str = "engines.md";
/// The chart beside it.
pub const CHART: &str = "engines.svg";

pub fn write_files(results: &Results, folder: &Path) -> Result<(), BenchError> {
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(on_file("write", path))
    };
    write(PAGE, page::render(results))?;
    match chart::render(results) {
        Some(svg) => write(CHART, svg),
        None => Ok(()),
    }
}

pub fn text(results: &Results) -> String {
    page::aligned(results)
}

/// The most telling figure of a phase, for the line of progress.
pub fn headline(outcome: &Outcome) -> String {
    let candidates = [
        ("capped.inserts.late.rate", "documents/s inserted"),
        ("cached.inserts.late.rate", "documents/s inserted"),
        ("updates.rate", "updates/s"),
        ("trees.open_s", "s to open"),
        ("trees.create_s", "s to make"),
        ("recovery.open_s", "s to recover"),
    ];
    let found = candidates.iter().find_map(|(name, unit)| Some((outcome.figures.get(name)?, unit)));
    let growing = || {
        let (name, value) = outcome.figures.iter().find(|(name, _)| name.ends_with(".rate"))?;
        name.starts_with("growing").then(|| format!(", {value:.0} reads/s"))
    };
    match found {
        Some((value, unit)) => format!(", {value:.*} {unit}", if value < 100.0 { 2 } else { 0 }),
        None => growing().unwrap_or_default(),
    }
}

/// An error with what caused it, in one line.
pub fn with_causes(error: &BenchError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}; because: {cause}"))
}
