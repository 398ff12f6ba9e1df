//! The tables: as a page of Markdown, and aligned for a terminal.

use std::fmt::Write as _;

use pando_measuring::table;

use crate::figures::Results;
use crate::report::CHART;
use crate::report::measures::{Measure, SECTIONS, figure, verdict, written};
use crate::setup::Setup;
use crate::workloads::inserts::multiple_of;

const NOTHING: &str = "–";
/// Below this share of the device's bytes, counts of reads are estimates.
const SHARE_MIN: f64 = 0.8;
/// Fewer KB read per operation are not worth counting.
const READ_KB_MIN: f64 = 0.5;

/// The cells of a section: a heading, and a line for each measure that anybody has a figure of.
fn cells(results: &Results, measures: &[Measure]) -> Vec<Vec<String>> {
    let peers = results.peers();
    let mut heading = vec![String::new()];
    heading.extend(peers.iter().map(|peer| peer.title().to_owned()));
    heading.push("wanted of betree".to_owned());
    let mut lines = vec![heading];
    for measure in measures {
        let found: Vec<Option<f64>> =
            peers.iter().map(|peer| figure(results, *peer, measure.figure)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let mut line = vec![measure.label.to_owned()];
        line.extend(
            found.iter().map(|value| {
                value.map_or_else(|| NOTHING.to_owned(), |value| written(value, measure.format))
            }),
        );
        let verdicts = measure.wanted.iter().filter_map(|wanted| verdict(results, measure, *wanted));
        let verdicts: Vec<String> = verdicts
            .map(|(text, reached)| if reached { text } else { format!("{text} **not reached**") })
            .collect();
        line.push(verdicts.join("; "));
        lines.push(line);
    }
    lines
}

pub fn render(results: &Results) -> String {
    let mut page = String::new();
    for line in preamble(results) {
        let _ = writeln!(page, "{line}\n");
    }
    if results.outcomes.iter().any(|outcome| !outcome.timeline.is_empty()) {
        let _ = writeln!(page, "![Inserts per second as the data grows]({CHART})\n");
    }
    for section in SECTIONS {
        let lines = cells(results, section.measures);
        if lines.len() == 1 {
            continue;
        }
        let _ = writeln!(page, "### {}\n\n{}", section.title, table::markdown(&lines[0], &lines[1..]));
    }
    for note in notes(results) {
        let _ = writeln!(page, "- {note}");
    }
    page
}

/// How it was measured.
fn preamble(results: &Results) -> Vec<String> {
    let setup = &results.setup;
    let mebibytes = |bytes: u64| bytes >> 20;
    let documents = setup.documents();
    let machine: Vec<String> =
        results.machine.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let durability: Vec<String> = results
        .peers()
        .iter()
        .map(|peer| {
            let io = if peer.reads_directly() { "direct I/O" } else { "through the kernel's page cache" };
            format!("{}: {}, {io}", peer.title(), peer.durability())
        })
        .collect();
    vec![
        format!(
            "{documents} documents of 308 bytes, each with three index entries; caches of {} MiB, of which the documents are \
             {:.1} times as much; processes capped at {} MiB where the data is larger than the cache; {:.0} s in all.",
            mebibytes(setup.cache_bytes),
            multiple_of(setup.cache_bytes, documents),
            mebibytes(setup.cache_bytes + setup.headroom_bytes),
            results.seconds,
        ),
        layout_of(setup),
        format!("Machine: {}.", machine.join(", ")),
        format!(
            "What an acknowledged batch of {} means, beside a sync every 100 ms: {}.",
            setup.batch,
            durability.join("; ")
        ),
    ]
}

fn layout_of(setup: &Setup) -> String {
    let options: Vec<String> = setup.layout.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match options.as_slice() {
        [] => "Trees of betree and btree as they are by default.".to_owned(),
        options => {
            format!("Trees of betree and btree with other options than the usual: {}.", options.join(", "))
        }
    }
}

fn notes(results: &Results) -> Vec<String> {
    let mut notes: Vec<String> = results.outcomes.iter().flat_map(|outcome| outcome.notes.clone()).collect();
    for outcome in &results.outcomes {
        let estimated: Vec<&str> = outcome
            .figures
            .iter()
            .filter_map(|(name, share)| Some((name.strip_suffix(".read_share")?, share)))
            .filter(|(name, share)| {
                let read_kb = outcome.figures.get(&format!("{name}.read_kb")).unwrap_or(0.0);
                *share < SHARE_MIN && read_kb > READ_KB_MIN
            })
            .map(|(name, _)| name)
            .collect();
        if !estimated.is_empty() {
            notes.push(format!(
                "{}: others read more than a fifth of the device's bytes during {}; counts of reads are estimates there",
                outcome.peer.title(),
                estimated.join(", ")
            ));
        }
    }
    notes.extend(results.failures.iter().map(|failure| format!("failed: {failure}")));
    notes.dedup();
    notes
}

pub fn aligned(results: &Results) -> String {
    let mut text = String::new();
    for line in preamble(results) {
        let _ = writeln!(text, "{line}");
    }
    for section in SECTIONS {
        let lines = cells(results, section.measures);
        if lines.len() == 1 {
            continue;
        }
        let _ = writeln!(text, "\n{}", section.title);
        let columns = lines[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        for line in &lines {
            let mut out = format!("  {:<width$}", line[0], width = widths[0]);
            for column in 1..columns - 1 {
                let _ = write!(out, "  {:>width$}", line[column], width = widths[column].max(7));
            }
            let _ = write!(out, "  {}", line[columns - 1].replace("**", ""));
            let _ = writeln!(text, "{}", out.trim_end());
        }
    }
    for note in notes(results) {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::measures::tests::results;

    #[test]
    fn a_missed_target_is_said_in_words() {
        let page = render(&results("updates.rate", 100.0, 100.0));
        assert!(
            page.contains("| updates/s | 100 | 100 | at least 2 × RocksDB: 1.00 **not reached** |"),
            "{page}"
        );
        assert!(!page.contains("Recovery"), "what nobody measured has no table");
        let text = aligned(&results("updates.rate", 250.0, 100.0));
        assert!(text.contains("at least 2 × RocksDB: 2.50\n"), "{text}");
    }

    #[test]
    fn estimates_of_reads_are_named() {
        let mut results = results("cold.points64.read_share", 0.5, 1.0);
        results.outcomes.iter_mut().for_each(|outcome| outcome.figures.set("cold.points64.read_kb", 5.0));
        let page = render(&results);
        assert!(page.contains("betree: others read") && !page.contains("RocksDB: others read"), "{page}");
    }
}
