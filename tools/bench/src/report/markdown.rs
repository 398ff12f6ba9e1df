//! The runs of a folder as tables for a text file: a row per run of the suite, a column per server, and what
//! the posts concluded with what is found of it here.

use super::durability::NO_WRITES;
use super::failed_cells::{self, FailedCell};
use super::file::RunFile;
use super::page::{plain_server_name, state};
use super::posts::posts;
use super::settings::Apart;
use super::{FLAGGED, clients_in_words, differences, flagged_in_words, median_in_words, runs_in_words};
use pando_measuring::number::number;
use pando_measuring::table;
use std::fmt::Write as _;

/// A table: its heading, and a cell of it.
type Table = (&'static str, fn(&[&RunFile]) -> String);

const TABLES: [Table; 6] = [
    ("Operations per second", rate_with_marks),
    ("CPU of the server an operation, us", |files| {
        median_in_words(files, |file| file.figures.per_operation.server_cpu_us)
    }),
    ("Disk reads an operation", |files| median_in_words(files, |file| file.figures.per_operation.disk_reads)),
    ("KB written an operation", |files| median_in_words(files, |file| file.figures.per_operation.written_kb)),
    ("Context switches of the server an operation", |files| {
        median_in_words(files, |file| file.figures.per_operation.server_switches)
    }),
    ("99th percentile of the latency of a unit, us", |files| {
        median_in_words(files, |file| Some(file.figures.latency_us.p99))
    }),
];

pub fn render(files: &[RunFile], failed: &[FailedCell]) -> String {
    let mut text = environment(files);
    if let Some(caveat) = failed_cells::caveat(failed) {
        let _ = writeln!(text, "\n**Caveat**: {caveat}.");
    }
    let servers = in_order(files.iter().map(plain_server_name));
    let rows = in_order(files.iter().map(row_name));
    for (heading, cell) in TABLES {
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let of = |server: &String| -> Vec<&RunFile> {
                    let is_it =
                        |file: &&RunFile| row_name(file) == *row && plain_server_name(file) == *server;
                    files.iter().filter(is_it).collect()
                };
                std::iter::once(row.clone()).chain(servers.iter().map(|server| cell(&of(server)))).collect()
            })
            .collect();
        if lines.iter().flat_map(|line| &line[1..]).all(|cell| cell == "-") {
            continue;
        }
        let headings: Vec<&str> =
            std::iter::once(heading).chain(servers.iter().map(String::as_str)).collect();
        let _ = write!(text, "\n{}", table::markdown(&headings, &lines));
    }
    text + &conclusions(files) + &doubts(files)
}

fn environment(files: &[RunFile]) -> String {
    let Some(first) = files.first() else { return "There are no runs.\n".to_owned() };
    let machine = &first.machine;
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut text = format!(
        "{} cores ({}), kernel {}, file system {}, pando-bench {}.\n",
        machine.cores,
        known(&machine.cpu_model),
        known(&machine.kernel),
        known(&machine.file_system),
        first.tool_version
    );
    text.push_str("Figures are medians of the runs of a row; one without a number of runs is of one run.\n");
    for scaled in in_order(files.iter().filter_map(|file| file.labels.get("scaled").cloned())) {
        let _ = writeln!(text, "Scaled down: {scaled}.");
    }
    let promises = files.iter().map(|file| format!("{}: {}", plain_server_name(file), file.durability));
    let writing: Vec<String> =
        in_order(promises).into_iter().filter(|line| !line.ends_with(NO_WRITES)).collect();
    if !writing.is_empty() {
        let _ = writeln!(text, "Durability: {}.", writing.join("; "));
    }
    for difference in differences::within(files) {
        let _ = writeln!(text, "**Caveat**: {difference}.");
    }
    text
}

/// The run's name, its state, its clients, its cache where that is known, and the settings that tell it from
/// others. A load has a row of its own for each of its caches, as on the page.
fn row_name(file: &RunFile) -> String {
    let Apart { cache, run, settings } = Apart::of(file);
    let mut name = run.unwrap_or(&file.workload).to_owned();
    let is_load = file.workload.ends_with(" load");
    if is_load && run.is_some() {
        name.push_str(", load");
    }
    let state = state(file);
    let is_said = settings.is_some_and(|settings| settings.split(", ").any(|setting| setting == state));
    // The state of a load is that it loads.
    let says_state = is_load || is_said;
    if state != "-" && !says_state {
        let _ = write!(name, ", {state}");
    }
    let _ = write!(name, ", {}", clients_in_words(file.plan.clients));
    for part in [cache, settings].into_iter().flatten() {
        let _ = write!(name, ", {part}");
    }
    name
}

fn in_order(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    values.for_each(|value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
    });
    seen
}

/// The rates of several runs from the lowest to the highest, and their number; nothing of one run.
fn spread(files: &[&RunFile]) -> Option<String> {
    let rates = files.iter().filter(|file| !file.flagged).map(|file| file.figures.rate);
    let (mut least, mut most, mut runs) = (f64::INFINITY, 0.0_f64, 0);
    for rate in rates {
        (least, most, runs) = (least.min(rate), most.max(rate), runs + 1);
    }
    let in_words = || format!("{} to {}, {}", number(least), number(most), runs_in_words(runs));
    (runs > 1).then(in_words)
}

/// The median rate, and marks behind it: its spread and runs, client-bound, and how many runs are flagged and
/// have no part in it.
fn rate_with_marks(files: &[&RunFile]) -> String {
    let mut text = median_in_words(files, |file| Some(file.figures.rate));
    if text == FLAGGED {
        return format!("**{FLAGGED}**");
    }
    if let Some(spread) = spread(files) {
        let _ = write!(text, " ({spread})");
    }
    if files.iter().any(|file| file.is_client_bound()) {
        text.push_str(" (client-bound)");
    }
    if let Some(flagged) = flagged_in_words(files) {
        let _ = write!(text, " (**{flagged}**)");
    }
    text
}

fn conclusions(files: &[RunFile]) -> String {
    let all: Vec<&RunFile> = files.iter().collect();
    let mut rows = String::new();
    for (post, verdict) in
        posts().iter().flat_map(|post| post.verdicts.iter().map(move |verdict| (post, verdict)))
    {
        let Some(judged) = verdict.judge(post, &all) else { continue };
        let (says, figures, holds) = (&verdict.says, &judged.figures, judged.verdict());
        let _ = writeln!(rows, "| {} | {says} | {figures} | {holds} |", post.letter);
    }
    if rows.is_empty() {
        return rows;
    }
    let titles = posts().iter().map(|post| format!("{}: {}", post.letter, post.title)).collect::<Vec<_>>();
    format!("\n{}.\n\n| post | says | here | direction |\n|---|---|---|---|\n{rows}", titles.join("; "))
}

/// Warnings by how many runs have them, without the figures in them.
fn doubts(files: &[RunFile]) -> String {
    let noted: Vec<&RunFile> = files.iter().filter(|file| !file.warnings.is_empty()).collect();
    if noted.is_empty() {
        return String::new();
    }
    let mut text = "\nWarnings:\n\n".to_owned();
    for file in noted {
        let _ =
            writeln!(text, "- {}, {}: {}", plain_server_name(file), row_name(file), file.warnings.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::failed_cells::tests::failed;
    use super::super::settings::tell_apart;
    use super::super::verdicts::tests::run;
    use super::*;

    fn render(files: &[RunFile]) -> String {
        super::render(files, &[])
    }

    #[test]
    fn cells_that_failed_stand_above_the_tables() {
        let text = super::render(&[run("kv", "InnoDB", "512 MB", 100.0)], &[failed("InnoDB", "point")]);
        let (caveat, table) = (text.find("**Caveat**: 1 run of the suite failed"), text.find("| Operations"));
        assert!(caveat.is_some() && caveat < table && text.contains("InnoDB, point (1)"), "{text}");
    }

    #[test]
    fn rows_are_runs_columns_are_servers_and_conclusions_stand_behind() {
        let mut runs = vec![
            run("kv", "WiredTiger B-tree", "512 MB", 50.0),
            run("kv", "InnoDB", "512 MB", 100.0),
            run("point", "InnoDB", "64 MB", 700.0),
        ];
        runs[2].ceiling = Some(1000.0);
        runs[1].flagged = true;
        let text = render(&runs);
        assert!(
            text.contains("| Operations per second | WiredTiger B-tree | InnoDB |\n|---|---|---|"),
            "{text}"
        );
        assert!(text.contains("| kv, 4 clients, 512 MB | 50 | **flagged** |"), "{text}");
        assert!(text.contains("| point, 4 clients, 64 MB | - | 700 (client-bound) |"), "{text}");
        assert!(!text.contains("| C |"), "a flagged run is no measurement: {text}");
        runs[1].flagged = false;
        let text = render(&runs);
        assert!(text.contains("MongoDB 50, InnoDB 100 reads/s: 0.50 times | does not hold |"), "{text}");
        assert!(!text.contains("Disk reads"), "a table without figures is left out: {text}");
    }

    #[test]
    fn flagged_runs_have_no_part_in_a_median() {
        let mut runs: Vec<RunFile> =
            [100.0, 110.0, 9000.0].map(|rate| run("kv", "InnoDB", "512 MB", rate)).to_vec();
        runs[2].flagged = true;
        runs[2].figures.per_operation.server_cpu_us = Some(5.0);
        let text = render(&runs);
        assert!(
            text.contains("| kv, 4 clients, 512 MB | 105 (100 to 110, 2 runs) (**1 of 3 flagged**) |"),
            "{text}"
        );
        assert!(
            text.contains("| kv, 4 clients, 512 MB | flagged |"),
            "the only run with such a figure: {text}"
        );
        assert!(!text.contains("9000"), "{text}");
    }

    #[test]
    fn states_runs_and_spreads_are_told_as_on_the_page() {
        let mut runs = [100.0, 110.0, 90.0, 500.0].map(|rate| run("kv", "InnoDB", "512 MB", rate)).to_vec();
        runs[..3]
            .iter_mut()
            .for_each(|run| drop(run.labels.insert("state".into(), "cold: all of it".into())));
        runs[3].labels.insert("state".into(), "warm: a warm-up before the window".into());
        let text = render(&runs);
        assert!(text.contains("| kv, cold, 4 clients, 512 MB | 100 (90 to 110, 3 runs) |"), "{text}");
        assert!(text.contains("| kv, warm, 4 clients, 512 MB | 500 |"), "{text}");
        tell_apart(&mut runs);
        let text = render(&runs);
        assert!(text.contains("| kv, 4 clients, 512 MB, cold | 100"), "said once: {text}");
    }

    #[test]
    fn loads_of_different_caches_have_a_row_each_and_one_grouping_is_that_of_the_page() {
        let of = |workload: &str, cache: &str, label: Option<&str>, rate: f64| {
            let mut run = run(workload, "InnoDB", cache, rate);
            run.labels.extend(label.map(|label| ("run".to_owned(), label.to_owned())));
            run
        };
        let mut runs = Vec::new();
        for (place, label) in [None, Some("100 M nodes")].into_iter().enumerate() {
            for (number, cache) in ["64 MB", "256 MB"].into_iter().enumerate() {
                let rate = 100.0 * (1 + 2 * place + number) as f64;
                runs.extend(["linkbench load", "linkbench"].map(|workload| of(workload, cache, label, rate)));
            }
        }
        tell_apart(&mut runs);
        let text = render(&runs);
        for row in [
            "| linkbench load, 4 clients, 64 MB | 100 |",
            "| linkbench load, 4 clients, 256 MB | 200 |",
            "| 100 M nodes, load, 4 clients, 256 MB | 400 |",
            "| 100 M nodes, 4 clients, 256 MB | 400 |",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
        assert!(!text.contains("2 runs)"), "no two of them are repeats: {text}");
        let page = super::super::page::render(&runs, &[]);
        assert!(!page.contains(" to 400</small>") && page.contains("<th>InnoDB, 256 MB, 100 M nodes</th>"));
    }

    #[test]
    fn no_runs_are_said_to_be_none() {
        assert!(render(&[]).contains("no runs"));
    }
}
