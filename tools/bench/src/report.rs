//! The output: a table for people, a file per run for programs, a page for both.
//!
//! - [`Figures`]: every number of a run, rates and costs per operation; table, file and page are faces of it.
//! - [`warnings`]: what makes a figure doubtful.
//! - [`table`]: aligned columns.
//! - [`file`]: one self-describing JSON document per run.
//! - [`page`]: all runs of a folder as one HTML page.
//! - [`markdown`]: the same as tables for a text file.
//! - [`posts`]: what the posts published and concluded. [`verdicts`]: whether that is so here.
//! - [`compare`]: two sets of runs beside each other.
//! - [`durability`]: what an acknowledged write means.
//! - [`failed_cells`]: runs of a suite that are missing.
//! - [`settings`]: what tells runs apart that are no repeats of each other. [`differences`]: conditions in
//!   which runs differ that stand beside each other. [`cache`]: the cache of a run by its labels.
//! - [`intervals`]: a run by intervals. [`csv`]: files in columns, those of the original tools among them.

mod cache;
pub mod compare;
pub mod csv;
mod differences;
pub mod dips;
pub mod durability;
pub mod failed_cells;
pub mod figures;
pub mod file;
mod finding;
pub mod intervals;
pub mod markdown;
pub mod page;
pub mod posts;
mod settings;
pub mod table;
pub mod verdicts;
pub mod warnings;

pub use figures::{Figures, LatencyFigures};
pub use finding::Finding;

/// The median of a figure over the runs that have it. A flagged run is no measurement and is left out.
pub(crate) fn median_of(
    files: &[&file::RunFile],
    figure: impl Fn(&file::RunFile) -> Option<f64>,
) -> Option<f64> {
    let measurements = files.iter().filter(|file| !file.flagged);
    pando_measuring::number::median(measurements.filter_map(|file| figure(file)).collect())
}

/// The same as text: [`FLAGGED`] where all runs that have the figure are flagged.
pub(crate) fn median_in_words(
    files: &[&file::RunFile],
    figure: impl Fn(&file::RunFile) -> Option<f64>,
) -> String {
    let median = median_of(files, &figure);
    if median.is_none() && files.iter().any(|file| figure(file).is_some()) {
        return FLAGGED.to_owned();
    }
    pando_measuring::table::short(median)
}

/// Stands where a figure would, if no run is left that is a measurement.
pub(crate) const FLAGGED: &str = "flagged";

/// How many of some runs are flagged, and so left out of their median: `1 of 3 flagged`; nothing if none or
/// all are.
pub(crate) fn flagged_in_words(files: &[&file::RunFile]) -> Option<String> {
    let flagged = files.iter().filter(|file| file.flagged).count();
    (flagged > 0 && flagged < files.len()).then(|| format!("{flagged} of {} {FLAGGED}", files.len()))
}

/// A number of clients in words: `1 client`, `8 clients`.
pub(crate) fn clients_in_words(clients: u32) -> String {
    if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") }
}

/// A number of runs in words: `1 run`, `8 runs`.
pub(crate) fn runs_in_words(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}
