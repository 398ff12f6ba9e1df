//! The posts' tables with ours beside them, in the same shape.

use super::{clients_table, marked_name, median_rate, plain_server_name};
use crate::report::FLAGGED;
use crate::report::figures::{Costs, cpu_percent_by_rate};
use crate::report::file::RunFile;
use crate::report::median_of;
use crate::report::posts::{Post, posts};
use crate::report::verdicts::Verdict;
use pando_measuring::chart::escape;
use pando_measuring::number::{number, size};
use pando_measuring::table::{self, optional, short};
use std::fmt::Write as _;

/// Costs of inserts are given per so many documents, as post E's table turns out to be.
const NORM_DOCUMENTS: f64 = 200.0;

/// The tables that the post of a workload published, with ours beside them; empty without a post. They are
/// folded away beside runs that have only the workload in common with it.
pub fn render(workload: &str, files: &[&RunFile]) -> String {
    let Some(post) = posts().iter().find(|post| post.workload == workload) else { return String::new() };
    let title = format!("Post {}: {}", post.letter, escape(&post.title));
    let told = told(post, workload, files);
    match files.iter().any(|file| is_of_post(file)) {
        true => format!("<h3>{title}</h3>{told}"),
        false => format!("<details><summary>The post about this workload. {title}</summary>{told}</details>"),
    }
}

/// Whether a run is one of a suite that re-runs a post.
fn is_of_post(file: &RunFile) -> bool {
    file.labels.get("suite").is_some_and(|suite| suite.starts_with("post ") || suite.contains("five posts"))
}

fn told(post: &Post, workload: &str, files: &[&RunFile]) -> String {
    let mut html = "<p>Its conclusions:</p><ul>".to_owned();
    post.conclusions.iter().for_each(|conclusion| {
        let _ = write!(html, "<li>{}</li>", escape(conclusion));
    });
    html.push_str("</ul>");
    let ours = match workload {
        "point" => vec![by_clients(files), cpu_by_clients(files)],
        "sysbench" => vec![by_cache(files)],
        "iibench" => vec![per_documents(files)],
        "linkbench" => vec![by_clients(files)],
        _ => vec![reads(files)],
    };
    let mut ours = ours.into_iter();
    for theirs in &post.tables {
        let _ = write!(
            html,
            "<div class=\"beside\"><div class=\"elsewhere\"><h4>Another machine: {}</h4>{}<p><small>From the post “{}”: {}. \
             Its rates do not compare with those of this machine, the order of its engines does.</small></p></div>\
             <div><h4>This machine</h4>{}</div></div>",
            escape(&theirs.title),
            table::html(&theirs.headings, &theirs.rows),
            escape(&post.title),
            escape(&theirs.note),
            ours.next().unwrap_or_default()
        );
    }
    html + &verdicts(post, files)
}

/// The post's conclusions, with our figures and whether they still hold.
fn verdicts(post: &Post, files: &[&RunFile]) -> String {
    let row = |verdict: &Verdict| {
        let judged = verdict.judge(post, files)?;
        Some(vec![verdict.says.clone(), judged.figures.clone(), judged.verdict().to_owned()])
    };
    let rows: Vec<Vec<String>> = post.verdicts.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h4>Whether it still holds</h4><div class=\"words\">{}</div>",
        table::html(&["the post says", "here", "direction"], &rows)
    )
}

fn most_clients(files: &[&RunFile]) -> u32 {
    files.iter().map(|file| file.plan.clients).max().unwrap_or(0)
}

/// Post A's first table, and post D's series.
fn by_clients(files: &[&RunFile]) -> String {
    let most = most_clients(files);
    let further = [format!("disk reads/op @{most}"), format!("switches/s @{most}")];
    clients_table(files, median_rate, further, |runs| {
        let last = runs.get(&most).map_or(&[][..], Vec::as_slice);
        let switches =
            median_of(last, |file| Some(file.figures.per_operation.machine_switches? * file.figures.rate));
        [
            short(median_of(last, |file| file.figures.per_operation.disk_reads)),
            optional(switches, |switches| format!("{switches:.0}")),
        ]
    })
}

/// Post A's second table: percent of a core, server and client.
fn cpu_by_clients(files: &[&RunFile]) -> String {
    let cell = |files: &[&RunFile]| {
        let percent = |us: fn(&Costs) -> Option<f64>| {
            let share =
                median_of(files, |file| Some(us(&file.figures.per_operation)? * file.figures.rate / 1e4));
            optional(share, |share| format!("{share:.0}"))
        };
        format!("{}+{}", percent(|each| each.server_cpu_us), percent(|each| each.client_cpu_us))
    };
    let most = most_clients(files);
    let further = [format!("server us/query @{most}"), format!("client us/query @{most}")];
    clients_table(files, cell, further, |runs| {
        let last = runs.get(&most).map_or(&[][..], Vec::as_slice);
        [
            short(median_of(last, |file| file.figures.per_operation.server_cpu_us)),
            short(median_of(last, |file| file.figures.per_operation.client_cpu_us)),
        ]
    })
}

/// Post B's matrix, with its chart of I/O per operation as columns.
fn by_cache(files: &[&RunFile]) -> String {
    let headings = ["server", "cache", "clients", "tps", "rKB/op", "wKB/op", "dips", "checkpoints"];
    let row = |file: &&RunFile| {
        let each = &file.figures.per_operation;
        let server = plain_server_name(file);
        let flag = file.flagged.then_some(FLAGGED);
        // The cache has a column of its own.
        let parts: Vec<&str> = std::iter::once(server.as_str()).chain(file.run_label()).chain(flag).collect();
        vec![
            parts.join(", "),
            optional(file.labels.get("cache"), String::clone),
            file.plan.clients.to_string(),
            number(file.figures.rate),
            short(each.read_kb),
            short(each.written_kb),
            crate::report::dips::steadiness(&file.figures).dips.len().to_string(),
            optional(file.figures.checkpoints.as_ref(), |all| all.len().to_string()),
        ]
    };
    table::html(&headings, &files.iter().map(row).collect::<Vec<_>>())
}

fn reads(files: &[&RunFile]) -> String {
    let row = |file: &&RunFile| {
        let rounds: Vec<f64> = file.figures.kinds.iter().map(|kind| kind.done as f64).collect();
        vec![
            marked_name(file),
            number(file.figures.rate),
            rounds.len().to_string(),
            short(file.figures.per_operation.disk_reads),
        ]
    };
    table::html(&["system", "reads/s", "rounds", "disk reads/op"], &files.iter().map(row).collect::<Vec<_>>())
}

/// Post E's table: costs per 200 documents, in its units.
fn per_documents(files: &[&RunFile]) -> String {
    let headings = [
        "engine, cache",
        "docs/s",
        "switches",
        "(us+sy %) x 10^6",
        "KB written",
        "KB read",
        "reads",
        "whole data folder",
    ];
    let row = |file: &&RunFile| {
        let (figures, each) = (&file.figures, &file.figures.per_operation);
        let norm = |value: Option<f64>| short(value.map(|value| value * NORM_DOCUMENTS));
        // vmstat's percent, by the rate: of a second, so many documents cost that part.
        let cpu = figures.machine.map(|shares| cpu_percent_by_rate(shares, figures.rate));
        let folder = file.why.sizes.and_then(|sizes| sizes.folder);
        vec![
            marked_name(file),
            number(figures.rate),
            norm(each.machine_switches),
            norm(cpu),
            norm(each.written_kb),
            norm(each.read_kb),
            norm(each.disk_reads),
            optional(folder, |bytes| size(bytes as f64)),
        ]
    };
    table::html(&headings, &files.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file::tests::file;

    #[test]
    fn every_cell_of_post_as_tables_is_a_median_over_the_repeats() {
        let run = |clients, rate, us, switches| {
            let mut file = file("point", clients, rate);
            let each = &mut file.figures.per_operation;
            (each.server_cpu_us, each.client_cpu_us) = (Some(us), Some(us / 2.0));
            (each.disk_reads, each.machine_switches) = (Some(us / 10.0), Some(switches));
            file
        };
        let files = [
            run(8, 900.0, 90.0, 9.0),
            run(32, 1000.0, 10.0, 2.0),
            run(32, 1000.0, 30.0, 6.0),
            run(32, 1000.0, 20.0, 4.0),
        ];
        let files: Vec<&RunFile> = files.iter().collect();
        let rates = by_clients(&files);
        assert!(rates.contains("<td>2</td><td>4000</td>"), "{rates}");
        let cpu = cpu_by_clients(&files);
        assert!(cpu.contains("server us/query @32") && cpu.contains("<td>20</td><td>10</td>"), "{cpu}");
        assert!(cpu.contains("<td>2+1</td>"), "{cpu}");
    }
}
