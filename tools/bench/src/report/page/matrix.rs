//! The engine × cache matrix, I/O per operation, and the insert rate against the size of the data.

use super::runs::Run;
use super::{median_rate, plain_server_name, under};
use crate::report::cache::bytes;
use crate::report::clients_in_words;
use crate::report::file::RunFile;
use pando_measuring::chart::{Axis, Chart, Line, escape};
use pando_measuring::number::number;
use pando_measuring::table::{self, optional};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The run and its settings, the size of its cache, the cache, and the clients.
type CacheRow = (String, u64, String, u32);

/// Rates by cache (rows) and server (columns), for each number of clients; nothing unless there are two
/// caches.
pub fn engines_by_cache(files: &[&RunFile]) -> String {
    let cache = |file: &RunFile| file.labels.get("cache").cloned();
    let caches: BTreeSet<String> = files.iter().filter_map(|file| cache(file)).collect();
    if caches.len() < 2 {
        return String::new();
    }
    let servers: BTreeSet<String> = files.iter().map(|file| plain_server_name(file)).collect();
    let mut headings = vec!["cache, clients".to_owned()];
    headings.extend(servers.iter().cloned());
    let mut cells: BTreeMap<CacheRow, BTreeMap<String, Vec<&RunFile>>> = BTreeMap::new();
    for file in files {
        let Some(cache) = cache(file) else { continue };
        // Sizes stand in order of their numbers.
        let digits = || cache.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
        let size = bytes(file).or_else(digits).unwrap_or(0);
        let apart = [file.run_label(), file.settings_apart.as_deref()];
        let run: String = apart.into_iter().flatten().map(|part| format!("{part}, ")).collect();
        let row = cells.entry((run, size, cache, file.plan.clients)).or_default();
        row.entry(plain_server_name(file)).or_default().push(file);
    }
    let row = |((run, _, cache, clients), by_server): (CacheRow, BTreeMap<String, Vec<&RunFile>>)| {
        let cell = |name| optional(by_server.get(name), |files| median_rate(files));
        std::iter::once(format!("{run}{cache}, {}", clients_in_words(clients)))
            .chain(servers.iter().map(cell))
            .collect()
    };
    let rows: Vec<Vec<String>> = cells.into_iter().map(row).collect();
    let what = files.first().map_or("operations", |file| file.operations.as_str());
    format!("<h3>Engine by cache: {} per second</h3>{}", escape(what), table::html(&headings, &rows))
}

/// Kilobytes read (to the left) and written (to the right) per operation, a bar for each run. Colours belong
/// to servers, so these bars are grey: read ones plain, written ones striped.
pub fn io_per_operation(runs: &[Run<'_>]) -> String {
    let values: Vec<(&str, f64, f64)> = runs
        .iter()
        .filter_map(|run| {
            let each = &run.file.figures.per_operation;
            Some((run.name.as_str(), each.read_kb?, each.written_kb?))
        })
        .collect();
    let most = values.iter().map(|(_, read, written)| read.max(*written)).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let bar = |value: f64, kind: &str| {
        let width = value / most * 100.0;
        format!(
            "<span class=\"track\"><span class=\"bar key {kind}\" style=\"width:{width:.1}%\"></span></span>"
        )
    };
    let mut bars = String::new();
    for (name, read, written) in &values {
        let _ = write!(
            bars,
            "<span>{}</span><span>{}</span>{}{}<span>{}</span>",
            escape(name),
            number(*read),
            bar(*read, "read"),
            bar(*written, "written"),
            number(*written)
        );
    }
    format!(
        "<h3>Disk I/O per operation</h3><figure><div class=\"bars both\">{bars}</div><figcaption>\
         <span class=\"entry\"><span class=\"key read\"></span>KB read</span> \
         <span class=\"entry\"><span class=\"key written\"></span>KB written</span></figcaption></figure>"
    )
}

/// Documents per second over documents that are in: the curve that shows when indexes do not fit in the cache
/// any more.
pub fn rate_by_size(runs: &[Run<'_>]) -> String {
    let line = |run: &Run<'_>| {
        let mut sum = 0.0;
        let points = run.file.figures.whole_seconds().iter().map(|second| {
            sum += second.operations as f64;
            (sum, second.operations as f64)
        });
        run.line(points.collect())
    };
    let lines: Vec<Line> = runs.iter().map(line).filter(|line| line.points.len() > 2).collect();
    let title = "documents per second by documents that are in".to_owned();
    let heading = format!("Insert rate: {title}");
    let chart =
        Chart { title, x_name: "documents", x_axis: Axis::Linear, lines, marks: Vec::new(), y_least: 0.0 };
    under(&heading, chart.render())
}
