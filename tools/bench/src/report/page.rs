//! The report of a folder of runs: one HTML page with nothing from outside, for screens light and dark,
//! phones and paper.
//!
//! 1. The suite, the time, the tool and the machine ([`heading`]).
//! 2. The verdict: a sentence and a chart ([`verdict`]). Behind it, what makes figures of this page not
//!    comparable ([`caveats`]).
//! 3. For each workload: rates by clients, the post's tables with ours beside them ([`posts`]), the engine by
//!    cache matrix ([`matrix`]), all figures, I/O per operation, throughput over time with dips marked and
//!    latencies ([`timeline`]), and why ([`why`]).
//!    The runs of a section have names and looks of their own ([`runs`]).
//! 4. Doubts about a figure stand with its run ([`remarks`]).
//! 5. The machine ([`machine`]).
//!
//! All numbers have one format (`pando_measuring::number`), except those of the posts, which stand as they
//! were published.

use super::failed_cells::FailedCell;
use super::figures::KindFigures;
use super::file::RunFile;
use super::settings::Apart;
use super::table::{COLUMNS, Column, PER_SECOND, Row};
use super::{FLAGGED, clients_in_words, flagged_in_words, median_in_words};
use pando_measuring::chart::escape;
use pando_measuring::number::{median, number, size, time};
use pando_measuring::table::{self, optional};
use runs::{Colours, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

mod caveats;
mod heading;
mod machine;
mod matrix;
mod posts;
mod remarks;
mod runs;
mod timeline;
mod verdict;
mod why;

const STYLE: &str = include_str!("page.css");

/// The page of some runs; of a suite, with its cells that failed.
pub fn render(files: &[RunFile], failed: &[FailedCell]) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{}</title><style>{STYLE}</style></head><body><main>{}",
        escape(&heading::title(files)),
        heading::render(files)
    );
    let colours = Colours::of(files);
    html.push_str(&verdict::render(files, &colours));
    html.push_str(&caveats::render(files, failed));
    let mut workloads: BTreeMap<&str, Vec<&RunFile>> = BTreeMap::new();
    files.iter().for_each(|file| workloads.entry(&file.workload).or_default().push(file));
    for (workload, files) in workloads {
        html.push_str(&section(workload, &files, &colours));
    }
    html.push_str(&machine::render(files));
    html.push_str("</main></body></html>\n");
    html
}

/// A server by the name that its suite gives it, or by what it says of itself and where it listens.
pub fn plain_server_name(file: &RunFile) -> String {
    if let Some(name) = file.labels.get("server") {
        return name.clone();
    }
    let version = file.server.version.as_deref().unwrap_or("unknown version");
    format!("{version} at {}", file.server_address)
}

/// The same, and its cache where that is known, which run of the suite it was where a workload has several,
/// and the settings that tell it from runs that are no repeats of it.
fn server_name(file: &RunFile) -> String {
    let server = plain_server_name(file);
    let Apart { cache, run, settings } = Apart::of(file);
    let parts = [Some(server.as_str()), cache, run, settings];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The name of a run's server, marked if the run is no measurement.
fn marked_name(file: &RunFile) -> String {
    let name = server_name(file);
    if file.flagged { format!("{name}, {FLAGGED}") } else { name }
}

/// The median of some rates, as text: of the runs that are measurements.
fn median_rate(files: &[&RunFile]) -> String {
    let median = median_in_words(files, |file| Some(file.figures.rate));
    flagged_in_words(files).map_or_else(|| median.clone(), |flagged| format!("{median} ({flagged})"))
}

/// A part of a page under its heading; nothing if it is empty.
fn under(heading: &str, html: String) -> String {
    if html.is_empty() { html } else { format!("<h3>{heading}</h3>{html}") }
}

/// Parts in boxes of their own: below each other on a screen, two beside each other on paper.
fn pairs(boxes: String) -> String {
    if boxes.is_empty() { boxes } else { format!("<div class=\"pairs\">{boxes}</div>") }
}

fn section(workload: &str, files: &[&RunFile], colours: &Colours) -> String {
    let runs = runs::runs(files, colours);
    let mut html = format!("<section class=\"workload\"><h2>{}</h2>", escape(workload));
    let mut summaries: Vec<&str> = files.iter().map(|file| file.summary.as_str()).collect();
    summaries.sort_unstable();
    summaries.dedup();
    summaries.iter().for_each(|summary| {
        let _ = write!(html, "<p>{}</p>", escape(summary));
    });
    html.push_str(&by_clients(files));
    html.push_str(&posts::render(workload, files));
    html.push_str(&matrix::engines_by_cache(files));
    html.push_str(&all_figures(files));
    html.push_str(&per_second(files));
    html.push_str(&matrix::io_per_operation(&runs));
    if workload == "iibench" || workload.ends_with(" load") {
        html.push_str(&matrix::rate_by_size(&runs));
    }
    html.push_str(&timeline::throughput(&runs));
    html.push_str(&timeline::latencies(&runs));
    html.push_str(&kinds(&runs));
    html.push_str(&why::render(&runs));
    html.push_str(&remarks::render(&runs));
    html.push_str("</section>");
    html
}

/// Runs of one server by their number of clients.
type ByClients<'a> = BTreeMap<u32, Vec<&'a RunFile>>;

/// The posts' shape: a row per server, a column per number of clients.
fn by_clients(files: &[&RunFile]) -> String {
    let operations = files.first().map_or("operations", |file| file.operations.as_str());
    format!("<h3>{operations} per second by clients</h3>{}", clients_table(files, rates, [], |_| []))
}

/// A table in the posts' shape, whose cells are markup, with further columns behind.
fn clients_table<const N: usize>(
    files: &[&RunFile],
    cell: fn(&[&RunFile]) -> String,
    further: [String; N],
    further_cells: impl Fn(&ByClients<'_>) -> [String; N],
) -> String {
    let clients: BTreeSet<u32> = files.iter().map(|file| file.plan.clients).collect();
    let mut servers: BTreeMap<String, ByClients<'_>> = BTreeMap::new();
    for file in files {
        servers.entry(server_name(file)).or_default().entry(file.plan.clients).or_default().push(file);
    }
    let mut headings = vec!["server".to_owned()];
    headings.extend(clients.iter().map(|count| format!("@{count}")));
    headings.extend(further);
    let row = |(server, runs): (&String, &ByClients<'_>)| {
        let mut row = vec![escape(server)];
        row.extend(clients.iter().map(|count| optional(runs.get(count), |files| cell(files))));
        row.extend(further_cells(runs));
        row
    };
    table::of_markup(&headings, &servers.iter().map(row).collect::<Vec<_>>())
}

/// The median of some rates, and from where to where they go: of the runs that are measurements.
fn rates(files: &[&RunFile]) -> String {
    let flag = |text: &str| format!("<b class=\"flag\">{text}</b>");
    let rates: Vec<f64> = files.iter().filter(|file| !file.flagged).map(|file| file.figures.rate).collect();
    if rates.is_empty() {
        return flag(FLAGGED);
    }
    let (least, most) =
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
    let spread = if rates.len() > 1 {
        format!(" <small>{} to {}</small>", number(least), number(most))
    } else {
        String::new()
    };
    let flagged = flagged_in_words(files).map_or_else(String::new, |text| format!(" {}", flag(&text)));
    format!("{}{spread}{flagged}", table::short(median(rates)))
}

/// A column that only the page has.
type PageColumn = (&'static str, fn(&RunFile) -> String);

/// Those before the columns of the terminal's table.
const BEFORE: [PageColumn; 3] = [
    ("server", marked_name),
    ("loop", |file| file.plan.rate.map_or_else(|| "closed".to_owned(), |rate| format!("open, {rate}/s"))),
    ("state", state_with_mark),
];

/// Those behind them.
const BEHIND: [PageColumn; 4] = [
    ("data", |file| bytes(file.why.comparable_sizes().and_then(|sizes| sizes.data))),
    ("indexes", |file| bytes(file.why.comparable_sizes().and_then(|sizes| sizes.indexes))),
    ("log", |file| bytes(file.why.comparable_sizes().and_then(|sizes| sizes.log))),
    ("durability", |file| file.durability.clone()),
];

fn all_figures(files: &[&RunFile]) -> String {
    let table = figures_table(&BEFORE, &COLUMNS, &BEHIND, files);
    format!("<h3>All figures</h3>{table}{}{}", remark_on_sizes(files), meanings(&COLUMNS))
}

/// MongoDB's sizes are of its last checkpoint: without one, thousands of documents have a data size of 8 KB.
fn remark_on_sizes(files: &[&RunFile]) -> &'static str {
    let is_unwritten = |file: &&RunFile| {
        let has_data = file.why.sizes.is_some_and(|sizes| sizes.data.is_some());
        has_data && file.why.sizes_written.is_none()
    };
    if !files.iter().any(is_unwritten) {
        return "";
    }
    "<p>Data and indexes without a forced checkpoint: what a server still has to write is not in them \
     (<code>--force-checkpoint</code> measures them after one).</p>"
}

/// The same costs by second; CPU in percent of a core.
fn per_second(files: &[&RunFile]) -> String {
    format!(
        "<h3>Per second</h3>{}{}",
        figures_table(&BEFORE[..1], &PER_SECOND, &[], files),
        meanings(&PER_SECOND)
    )
}

/// The meanings of columns, in words.
fn meanings(columns: &[Column]) -> String {
    let mut html = "<details class=\"meanings\"><summary>What the columns count</summary><dl>".to_owned();
    for column in columns {
        let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", escape(&column.name()), escape(column.meaning));
    }
    html + "</dl></details>"
}

/// The columns of the terminal between those of the page.
fn figures_table(
    before: &[PageColumn],
    columns: &[Column],
    behind: &[PageColumn],
    files: &[&RunFile],
) -> String {
    let own = |columns: &[PageColumn]| columns.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    let headings = [own(before), columns.iter().map(Column::name).collect(), own(behind)].concat();
    let row = |file: &&RunFile| {
        let run = Row { clients: file.plan.clients, figures: &file.figures, ceiling: file.ceiling };
        let before = before.iter().map(|(_, cell)| cell(file));
        let behind = behind.iter().map(|(_, cell)| cell(file));
        before.chain(columns.iter().map(|column| column.cell(&run))).chain(behind).collect()
    };
    table::html(&headings, &files.iter().map(row).collect::<Vec<Vec<String>>>())
}

/// Stands in the state of a warm run whose server was started for it.
pub const STARTED_RIGHT_BEFORE: &str = "started right before";

/// Whether a run was warm, and its server had just been started: nothing but the warm-up has filled its
/// cache.
pub fn is_just_started(file: &RunFile) -> bool {
    let said = file.labels.get("state").map_or("", String::as_str);
    said.starts_with("warm") && said.contains(STARTED_RIGHT_BEFORE)
}

/// The state, and whether the server of a warm run was just started.
fn state_with_mark(file: &RunFile) -> String {
    if is_just_started(file) { format!("{}, server just started", state(file)) } else { state(file) }
}

/// The first word of what the suite says: fresh, cold, warm.
pub fn state(file: &RunFile) -> String {
    let state = file.labels.get("state").map_or("-", String::as_str);
    state.split(':').next().unwrap_or(state).to_owned()
}

fn bytes(bytes: Option<u64>) -> String {
    optional(bytes, |bytes| size(bytes as f64))
}

fn run_name(file: &RunFile) -> String {
    format!("{}, {}", server_name(file), clients_in_words(file.plan.clients))
}

fn kinds(runs: &[Run<'_>]) -> String {
    const HEADINGS: [&str; 9] = ["statement", "done", "missed", "failed", "mean", "p50", "p95", "p99", "max"];
    let row = |kind: &KindFigures| {
        let latency = &kind.latency_us;
        let counts = [kind.done, kind.missed, kind.failed].map(|count| number(count as f64));
        let latencies = [latency.mean, latency.p50, latency.p95, latency.p99, latency.max]
            .map(|us| if kind.is_used() { time(us) } else { "-".to_owned() });
        [vec![kind.name.clone()], counts.to_vec(), latencies.to_vec()].concat()
    };
    let mut html = String::new();
    for Run { file, name, .. } in runs.iter().filter(|run| !run.file.figures.kinds.is_empty()) {
        let rows: Vec<Vec<String>> = file.figures.kinds.iter().map(row).collect();
        let _ = write!(html, "<div><h4>{}</h4>{}</div>", escape(name), table::html(&HEADINGS, &rows));
    }
    under("By kind of statement", pairs(html))
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::file;
    use super::super::settings::tell_apart;
    use super::*;

    fn render(files: &[RunFile]) -> String {
        super::render(files, &[])
    }

    #[test]
    fn a_page_has_every_workload_and_client_number_and_needs_nothing_from_outside() {
        let mut files = vec![file("point", 8, 1000.0), file("point", 32, 2000.0), file("kv", 1, 5.0)];
        files[0].server.version = Some("<script>alert(1)</script>".into());
        files[0].flagged = true;
        let page = render(&files);
        for part in ["<h2>point</h2>", "<h2>kv</h2>", "@32", "2000", "flagged", "a summary"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<script"), "what a server says is text");
        for outside in ["http://", "https://", "src=\"http", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_posts_tables_stand_beside_ours_and_caches_make_a_matrix() {
        let with_cache = |workload: &str, cache: &str, rate: f64| {
            let mut file = file(workload, 64, rate);
            file.labels.insert("server".into(), "an engine".into());
            file.labels.insert("cache".into(), cache.into());
            file.labels.insert("state".into(), "cold: all of it".into());
            file.figures.per_operation.read_kb = Some(2.0);
            file.figures.per_operation.written_kb = Some(1.0);
            file
        };
        let page = render(&[
            with_cache("sysbench", "8/16", 33.0),
            with_cache("sysbench", "16/32", 44.0),
            with_cache("iibench", "8", 1000.0),
            with_cache("point", "8", 1.0),
            with_cache("kv", "8", 1.0),
            with_cache("linkbench", "8", 1.0),
        ]);
        for part in [
            "Post B",
            "<td>107</td>",
            "8/16, 64 clients",
            "Engine by cache",
            "Disk I/O per operation",
            "Post E",
            "2524",
            "Post A",
            "432390",
            "Post C",
            "Post D",
            "<td>cold</td>",
            "no writes",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn a_statement_that_was_never_done_has_no_latency() {
        let mut file = file("sysbench", 8, 90.0);
        let never = KindFigures {
            name: "delete".into(),
            done: 0,
            missed: 0,
            failed: 0,
            latency_us: file.figures.latency_us,
            last_s: None,
            timeline: Vec::new(),
            histogram_us: Vec::new(),
        };
        file.figures.kinds = vec![KindFigures { name: "find".into(), done: 3, ..never.clone() }, never];
        let page = render(&[file]);
        assert!(page.contains("<th>delete</th><td>0</td><td>0</td><td>0</td><td>-</td>"), "{page}");
        assert!(!page.contains("<th>find</th><td>3</td><td>0</td><td>0</td><td>-</td>"), "{page}");
    }

    #[test]
    fn sizes_before_a_checkpoint_are_said_to_be_so() {
        let sizes = crate::why::sizes::Sizes { data: Some(8192), ..Default::default() };
        let mut file = file("point", 8, 90.0);
        assert!(!render(std::slice::from_ref(&file)).contains("without a forced checkpoint"));
        file.why.sizes = Some(sizes);
        assert!(render(std::slice::from_ref(&file)).contains("without a forced checkpoint"));
        file.why.sizes_written = Some(sizes);
        assert!(!render(&[file]).contains("without a forced checkpoint"));
    }

    #[test]
    fn a_profile_is_a_picture_of_its_own_and_changed_numbers_are_a_table() {
        let mut with = file("point", 8, 90.0);
        with.why.status.insert("opcounters.query".into(), 77.0);
        with.extras =
            serde_json::json!({ "waits": [{ "name": "wait/synch/x", "waits": 3, "seconds": 0.5 }] });
        with.why.profile = Some(crate::why::profile::Profile {
            samples: 5,
            symbols: vec![("read<u8>".into(), 0.5)],
            flame_graph: "<svg/>".into(),
        });
        let page = render(&[with]);
        for part in [
            "wait/synch/x",
            "0.250",
            "read&lt;u8&gt;",
            "50.0 %",
            "opcounters.query",
            "data:image/svg+xml;base64,PHN2Zy8+",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn two_runs_of_a_workload_in_one_suite_are_not_taken_for_repeats() {
        let of_run = |run: &str, rate| {
            let mut file = file("linkbench", 8, rate);
            file.labels.insert("server".into(), "one".into());
            file.labels.insert("run".into(), run.into());
            file
        };
        let mut files = [of_run("10 M nodes", 100.0), of_run("100 M nodes", 20.0)];
        let page = render(&files);
        assert!(page.contains("<th>one, 10 M nodes</th><td>100</td>"), "{page}");
        assert!(!page.contains("<small>20 to 100</small>"));
        for (file, cache) in files.iter_mut().zip(["1 GB", "2 GB"]) {
            file.labels.insert("cache".into(), cache.into());
        }
        let page = render(&files);
        assert!(
            page.contains("10 M nodes, 1 GB, 8 clients") && page.contains("100 M nodes, 2 GB, 8 clients"),
            "{page}"
        );
    }

    #[test]
    fn runs_of_different_loops_or_data_are_not_taken_for_repeats() {
        let mut files = vec![file("point", 2, 17_300.0), file("point", 2, 100.0), file("point", 2, 17_500.0)];
        (files[1].plan.rate, files[1].plan.spacing) = (Some(100.0), Some("even".to_owned()));
        tell_apart(&mut files);
        let page = render(&files);
        for part in [
            "127.0.0.1:1, closed loop</th><td>17.4k <small>17.3k to 17.5k</small></td>",
            "127.0.0.1:1, open loop of 100/s (even)</th><td>100</td>",
            "does 17.4k queries per second (point, closed loop, 2 clients)",
            "Another measurement is below.",
            "<h4>point, open loop of 100/s (even), 2 clients, queries per second</h4>",
            "closed loop, 2 clients, repeat 2",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<small>100 to"), "{page}");
        let tables = super::super::markdown::render(&files, &[]);
        assert!(tables.contains("| point, 2 clients, open loop of 100/s (even) | 100 |"), "{tables}");
    }

    #[test]
    fn repeats_are_shown_with_their_spread() {
        let files = [file("point", 8, 90.0), file("point", 8, 100.0), file("point", 8, 120.0)];
        assert!(render(&files).contains("100 <small>90 to 120</small>"));
    }

    #[test]
    fn a_flagged_run_is_marked_and_has_no_part_in_the_figures_of_its_repeats() {
        let mut files = [file("point", 8, 90.0), file("point", 8, 7000.0), file("point", 8, 110.0)];
        files[1].flagged = true;
        let page = render(&files);
        let part = "100 <small>90 to 110</small> <b class=\"flag\">1 of 3 flagged</b>";
        assert!(page.contains(part), "{page}");
        assert_eq!(page.matches("127.0.0.1:1, flagged</th>").count(), 2, "in both tables of runs: {page}");
        files.iter_mut().for_each(|file| file.flagged = true);
        assert!(render(&files).contains("<td><b class=\"flag\">flagged</b></td>"));
    }

    #[test]
    fn every_opened_element_is_closed() {
        let page = render(&[file("point", 8, 90.0)]);
        for name in [
            "section", "table", "tr", "td", "th", "div", "details", "ul", "li", "svg", "figure", "dl",
            "main", "body",
        ] {
            let opened =
                page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
            assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
        }
    }
}
