//! Aligned columns: one row per run.

use super::Figures;
use super::figures::{Costs, PressureShares};
use super::warnings::CEILING_SHARE_MAX;
use pando_measuring::table::{aligned, optional};

/// A column: its two lines of heading, and what stands in it.
pub struct Column {
    heading: [&'static str; 2],
    pub cell: fn(&Row<'_>) -> String,
}

impl Column {
    pub fn name(&self) -> String {
        self.heading.join(" ").trim_start().to_owned()
    }
}

#[derive(Debug)]
pub struct Row<'a> {
    pub clients: u32,
    pub figures: &'a Figures,
    /// The tool's own ceiling with as many clients.
    pub ceiling: Option<f64>,
}

/// The cost of an operation, after its rate and its latencies.
pub const COLUMNS: [Column; 22] = [
    Column { heading: ["", "clients"], cell: |row| row.clients.to_string() },
    Column { heading: ["", "ops/s"], cell: |row| format!("{:.0}", row.figures.rate) },
    Column { heading: ["p50", "us"], cell: |row| microseconds(row.figures.latency_us.p50) },
    Column { heading: ["p99", "us"], cell: |row| microseconds(row.figures.latency_us.p99) },
    Column { heading: ["p999", "us"], cell: |row| microseconds(row.figures.latency_us.p999) },
    Column { heading: ["max", "us"], cell: |row| microseconds(row.figures.latency_us.max) },
    Column { heading: ["disk r", "/op"], cell: |row| each(row.figures.per_operation.disk_reads) },
    Column { heading: ["rKB", "/op"], cell: |row| each(row.figures.per_operation.read_kb) },
    Column { heading: ["wKB", "/op"], cell: |row| each(row.figures.per_operation.written_kb) },
    Column { heading: ["cs/op", "server"], cell: |row| each(row.figures.per_operation.server_switches) },
    Column { heading: ["cs/op", "client"], cell: |row| each(row.figures.per_operation.client_switches) },
    Column { heading: ["cs/op", "all"], cell: |row| each(row.figures.per_operation.machine_switches) },
    Column { heading: ["cpu us/op", "server"], cell: |row| each(row.figures.per_operation.server_cpu_us) },
    Column { heading: ["cpu us/op", "client"], cell: |row| each(row.figures.per_operation.client_cpu_us) },
    Column {
        heading: ["idle", "%"],
        cell: |row| optional(row.figures.machine, |shares| format!("{:.1}", shares.idle * 100.0)),
    },
    Column { heading: ["RSS", "MB"], cell: |row| optional(row.figures.server_resident_bytes, megabytes) },
    Column { heading: ["", "missed"], cell: |row| row.figures.missed.to_string() },
    Column { heading: ["", "failed"], cell: |row| row.figures.failed.to_string() },
    Column { heading: ["", "retried"], cell: |row| row.figures.retried.to_string() },
    Column { heading: ["not", "begun"], cell: |row| row.figures.not_begun.to_string() },
    Column { heading: ["ceiling", "ops/s"], cell: |row| optional(row.ceiling, |rate| format!("{rate:.0}")) },
    Column { heading: ["of", "ceiling"], cell: |row| of_ceiling(row) },
];

/// The costs of a second: the sums of the columns by operation, and those that only a second has.
pub const PER_SECOND: [Column; 15] = [
    Column { heading: ["", "clients"], cell: |row| row.clients.to_string() },
    Column { heading: ["disk r", "/s"], cell: |row| each(row.figures.per_second.disk_reads) },
    Column { heading: ["disk w", "/s"], cell: |row| each(row.figures.per_second.disk_writes) },
    Column { heading: ["rKB", "/s"], cell: |row| each(row.figures.per_second.read_kb) },
    Column { heading: ["wKB", "/s"], cell: |row| each(row.figures.per_second.written_kb) },
    Column { heading: ["cs/s", "server"], cell: |row| each(row.figures.per_second.server_switches) },
    Column { heading: ["cs/s", "client"], cell: |row| each(row.figures.per_second.client_switches) },
    Column { heading: ["cs/s", "all"], cell: |row| each(row.figures.per_second.machine_switches) },
    Column { heading: ["server %", "user"], cell: |row| percent(row.figures.per_second.server_user_us) },
    Column { heading: ["server %", "system"], cell: |row| percent(system_us(&row.figures.per_second)) },
    Column { heading: ["client", "%"], cell: |row| percent(row.figures.per_second.client_cpu_us) },
    Column { heading: ["major", "faults/s"], cell: |row| each(row.figures.per_second.server_major_faults) },
    Column { heading: ["waiting %", "cpu"], cell: |row| waiting(row.figures, |share| share.cpu) },
    Column { heading: ["waiting %", "io"], cell: |row| waiting(row.figures, |share| share.io) },
    Column { heading: ["waiting %", "memory"], cell: |row| waiting(row.figures, |share| share.memory) },
];

fn system_us(costs: &Costs) -> Option<f64> {
    Some(costs.server_cpu_us? - costs.server_user_us?)
}

/// Microseconds of CPU in a second as percent of a core: 200 are two cores.
fn percent(us: Option<f64>) -> String {
    optional(us, |us| format!("{:.1}", us / 1e4))
}

/// The share of the time in which somebody on the machine waited.
fn waiting(figures: &Figures, of: fn(&PressureShares) -> Option<f64>) -> String {
    optional(figures.pressure.as_ref().and_then(of), |share| format!("{:.1}", share * 100.0))
}

pub fn render(rows: &[Row<'_>]) -> String {
    render_columns(&COLUMNS, rows)
}

/// The table of these runs, by second.
pub fn render_per_second(rows: &[Row<'_>]) -> String {
    render_columns(&PER_SECOND, rows)
}

fn render_columns(columns: &[Column], rows: &[Row<'_>]) -> String {
    let mut lines: Vec<Vec<String>> =
        (0..2).map(|line| columns.iter().map(|column| column.heading[line].to_owned()).collect()).collect();
    lines.extend(rows.iter().map(|row| columns.iter().map(|column| (column.cell)(row)).collect::<Vec<_>>()));
    aligned(&lines)
}

/// The kinds of statements of one run, with their latencies; nothing if there are none.
pub fn render_kinds(figures: &Figures) -> Option<String> {
    if figures.kinds.is_empty() {
        return None;
    }
    let heading =
        ["", "done", "missed", "failed", "mean us", "p50 us", "p95 us", "p99 us", "p999 us", "max us"];
    let mut lines: Vec<Vec<String>> = vec![heading.iter().map(|cell| (*cell).to_owned()).collect()];
    for kind in &figures.kinds {
        let latency = &kind.latency_us;
        let mut line = vec![kind.name.clone()];
        line.extend([kind.done, kind.missed, kind.failed].map(|count| count.to_string()));
        let latencies = [latency.mean, latency.p50, latency.p95, latency.p99, latency.p999, latency.max]
            .map(microseconds);
        line.extend(latencies);
        lines.push(line);
    }
    Some(aligned(&lines))
}

/// Bytes as megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn microseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn each(value: Option<f64>) -> String {
    optional(value, |value| match value {
        0.0 => "0".to_owned(),
        small if small < 0.01 => format!("{small:.4}"),
        middle if middle < 10.0 => format!("{middle:.2}"),
        large => format!("{large:.1}"),
    })
}

/// The share of the tool's own ceiling, marked where it says more about the tool than about the server.
fn of_ceiling(row: &Row<'_>) -> String {
    optional(row.ceiling.filter(|ceiling| *ceiling > 0.0), |ceiling| {
        let share = row.figures.rate / ceiling;
        format!("{:.0}%{}", share * 100.0, if share > CEILING_SHARE_MAX { "(!)" } else { "" })
    })
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{measured, tally};
    use super::*;

    #[test]
    fn columns_stand_under_their_headings_and_the_uncounted_is_a_dash() {
        let figures = Figures::new(&measured(tally(2), None), &[]);
        let table = render(&[Row { clients: 100, figures: &figures, ceiling: Some(4.0) }]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1].find("clients").map(|at| at + 7), lines[2].find("100").map(|at| at + 3));
        assert!(lines[2].contains(" - ") && lines[2].ends_with("25%"), "{table}");
        assert_eq!(render_kinds(&figures), None);
    }

    #[test]
    fn a_second_has_the_same_sums_in_percent_of_a_core() {
        let mut figures = Figures::new(&measured(tally(2), None), &[]);
        figures.per_second.server_cpu_us = Some(1_500_000.0);
        figures.per_second.server_user_us = Some(1_200_000.0);
        figures.pressure = Some(PressureShares { cpu: None, io: Some(0.25), memory: None });
        let table = render_per_second(&[Row { clients: 7, figures: &figures, ceiling: None }]);
        let cells: Vec<&str> = table.lines().nth(2).expect("a row").split_whitespace().collect();
        assert_eq!(cells.len(), PER_SECOND.len(), "{table}");
        assert_eq!(&cells[8..], ["120.0", "30.0", "0.0", "-", "-", "25.0", "-"], "{table}");
    }
}
