//! The reasons behind figures: profiles, and the numbers that servers count of themselves.

use super::runs::Run;
use super::under;
use crate::report::file::RunFile;
use crate::why::StatusSpan;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_measuring::chart::escape;
use pando_measuring::number::number;
use pando_measuring::table;
use std::fmt::Write as _;

/// So many symbols and numbers are shown; all are in the files.
const SHOWN: usize = 25;

/// The profiles of some runs, and the numbers of their servers that changed most.
pub fn render(runs: &[Run<'_>]) -> String {
    let mut html = String::new();
    for Run { file, name, .. } in runs {
        let parts = profile(file) + &waits(file) + &status(file);
        if !parts.is_empty() {
            let _ = write!(html, "<h4>{}</h4>{parts}", escape(name));
        }
    }
    if html.is_empty() {
        return html;
    }
    // Each run has a table as long as a page.
    format!(
        "<div class=\"why\">{}</div><p class=\"paper\">What the servers counted of themselves stands on the page on a screen, \
         and in the files of the runs.</p>",
        under("Why", html)
    )
}

fn profile(file: &RunFile) -> String {
    let Some(profile) = &file.why.profile else { return String::new() };
    let rows: Vec<Vec<String>> = profile
        .symbols
        .iter()
        .take(SHOWN)
        .map(|(symbol, share)| vec![symbol.clone(), format!("{:.1} %", share * 100.0)])
        .collect();
    let mut html = format!(
        "<details><summary>Top symbols of {} samples of the server</summary>{}</details>",
        profile.samples,
        table::html(&["symbol", "share"], &rows)
    );
    if !profile.flame_graph.is_empty() {
        // As a picture, its style is its own and does not reach the page.
        let _ = write!(
            html,
            "<details><summary>Flame graph</summary><div class=\"wide\"><img class=\"flame\" alt=\"flame graph of the server\" \
             src=\"data:image/svg+xml;base64,{}\"></div></details>",
            STANDARD.encode(&profile.flame_graph)
        );
    }
    html
}

/// The longest waits of a MySQL server's threads.
fn waits(file: &RunFile) -> String {
    let Some(waits) = file.extras.get("waits").and_then(|waits| waits.as_array()) else {
        return String::new();
    };
    let seconds = file.figures.seconds.max(1e-6);
    let row = |wait: &serde_json::Value| {
        let (name, count, waited) =
            (wait["name"].as_str()?, wait["waits"].as_f64()?, wait["seconds"].as_f64()?);
        Some(vec![name.to_owned(), number(count), format!("{waited:.3}"), format!("{:.3}", waited / seconds)])
    };
    let rows: Vec<Vec<String>> = waits.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<details open><summary>Top waits of the server</summary>{}</details>",
        table::html(&["name", "waits", "seconds", "seconds a second"], &rows)
    )
}

/// The numbers of serverStatus that changed, those first that changed most. A change by operation needs a
/// change of the window alone, because the operations of the warm-up are not counted.
fn status(file: &RunFile) -> String {
    let mut changes: Vec<(&String, f64)> =
        file.why.status.iter().map(|(path, change)| (path, *change)).collect();
    if changes.is_empty() {
        return String::new();
    }
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let is_of_window = file.why.status_span == StatusSpan::Window || file.plan.warmup_s == 0;
    let operations = file.figures.operations.max(1) as f64;
    let row = |(path, change): &(&String, f64)| {
        let each = is_of_window.then(|| number(change / operations));
        [(*path).clone(), number(*change)].into_iter().chain(each).collect()
    };
    let rows: Vec<Vec<String>> = changes.iter().take(SHOWN).map(row).collect();
    let headings: &[&str] = match is_of_window {
        true => &["number", "change in the window", "per operation"],
        false => &["number", "change, warm-up included"],
    };
    format!(
        "<details><summary>{} numbers of serverStatus changed</summary>{}</details>",
        changes.len(),
        table::html(headings, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file::tests::file;

    #[test]
    fn a_change_is_divided_by_the_operations_of_its_own_span() {
        let mut file = file("point", 1, 5.0);
        file.figures.operations = 10;
        file.why.status.insert("opcounters.query".into(), 30.0);
        file.why.status_span = StatusSpan::Window;
        file.plan.warmup_s = 3;
        assert!(status(&file).contains("<td>30</td><td>3</td>"), "{}", status(&file));
        // A file of an earlier tool.
        file.why.status_span = StatusSpan::Run;
        assert!(!status(&file).contains("per operation"), "{}", status(&file));
        assert!(status(&file).contains("change, warm-up included"), "{}", status(&file));
        file.plan.warmup_s = 0;
        assert!(status(&file).contains("per operation"), "{}", status(&file));
    }
}
