//! The figures of runs in columns, one row a run: aligned for a terminal, and as a table of a page.
//!
//! A column has a value and the unit of it. The terminal shows values in the unit of the heading, the page in
//! the unit that fits each.

use super::Figures;
use super::figures::{Costs, PressureShares};
use super::warnings::CEILING_SHARE_MAX;
use pando_measuring::number::{number, size, time};
use pando_measuring::table::{aligned, optional};

/// A column: the two lines of its heading, its unit, its meaning, and the value of a run.
pub struct Column {
    heading: [&'static str; 2],
    unit: Unit,
    /// Its meaning in words.
    pub meaning: &'static str,
    value: fn(&Row<'_>) -> Option<f64>,
}

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Whole ones.
    Count,
    /// Any number.
    Amount,
    Microseconds,
    Percent,
    /// Shown as megabytes by the terminal.
    Bytes,
    /// A share of the tool's own ceiling.
    OfCeiling,
}

impl Unit {
    /// A word of a heading without the unit, where the cells of a page name it.
    fn without(self, word: &str) -> String {
        match self {
            Unit::Microseconds => word.replace("us/op", "/op").replace("us", ""),
            Unit::Bytes => word.replace("MB", ""),
            Unit::Count | Unit::Amount | Unit::Percent | Unit::OfCeiling => word.to_owned(),
        }
    }

    fn on_terminal(self, value: f64) -> String {
        match self {
            Unit::Count => format!("{value:.0}"),
            Unit::Amount => amount(value),
            Unit::Microseconds => microseconds(value),
            Unit::Percent => format!("{value:.1}"),
            Unit::Bytes => format!("{:.1}", value / 1e6),
            Unit::OfCeiling => of_ceiling(value),
        }
    }

    fn on_page(self, value: f64) -> String {
        match self {
            Unit::Count | Unit::Amount => number(value),
            Unit::Microseconds => time(value),
            Unit::Percent => format!("{value:.1}"),
            Unit::Bytes => size(value),
            Unit::OfCeiling => of_ceiling(value),
        }
    }
}

impl Column {
    /// Its heading on a page.
    pub fn name(&self) -> String {
        let words = self.heading.iter().flat_map(|line| line.split(' ')).map(|word| self.unit.without(word));
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The cell of a run on a page.
    pub fn cell(&self, row: &Row<'_>) -> String {
        optional((self.value)(row), |value| self.unit.on_page(value))
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
    Column {
        heading: ["", "clients"],
        unit: Unit::Count,
        meaning: "connections that send operations, each one at a time",
        value: |row| Some(row.clients.into()),
    },
    Column {
        heading: ["", "ops/s"],
        unit: Unit::Count,
        meaning: "operations that were done, by the seconds of the window",
        value: |row| Some(row.figures.rate),
    },
    Column {
        heading: ["p50", "us"],
        unit: Unit::Microseconds,
        meaning: "half of all units took at most so long",
        value: |row| Some(row.figures.latency_us.p50),
    },
    Column {
        heading: ["p99", "us"],
        unit: Unit::Microseconds,
        meaning: "99 of 100 units took at most so long",
        value: |row| Some(row.figures.latency_us.p99),
    },
    Column {
        heading: ["p999", "us"],
        unit: Unit::Microseconds,
        meaning: "999 of 1,000 units took at most so long",
        value: |row| Some(row.figures.latency_us.p999),
    },
    Column {
        heading: ["max", "us"],
        unit: Unit::Microseconds,
        meaning: "the longest unit",
        value: |row| Some(row.figures.latency_us.max),
    },
    Column {
        heading: ["disk r", "/op"],
        unit: Unit::Amount,
        meaning: "reads of the device an operation, as the kernel counts them",
        value: |row| row.figures.per_operation.disk_reads,
    },
    Column {
        heading: ["rKB", "/op"],
        unit: Unit::Amount,
        meaning: "kilobytes (of 1,024 bytes) read from the device an operation",
        value: |row| row.figures.per_operation.read_kb,
    },
    Column {
        heading: ["wKB", "/op"],
        unit: Unit::Amount,
        meaning: "kilobytes (of 1,024 bytes) written to the device an operation",
        value: |row| row.figures.per_operation.written_kb,
    },
    Column {
        heading: ["cs/op", "server"],
        unit: Unit::Amount,
        meaning: "context switches of the server an operation",
        value: |row| row.figures.per_operation.server_switches,
    },
    Column {
        heading: ["cs/op", "client"],
        unit: Unit::Amount,
        meaning: "context switches of the client an operation",
        value: |row| row.figures.per_operation.client_switches,
    },
    Column {
        heading: ["cs/op", "all"],
        unit: Unit::Amount,
        meaning: "context switches of the whole machine an operation",
        value: |row| row.figures.per_operation.machine_switches,
    },
    Column {
        heading: ["cpu us/op", "server"],
        unit: Unit::Microseconds,
        meaning: "processor time of the server an operation",
        value: |row| row.figures.per_operation.server_cpu_us,
    },
    Column {
        heading: ["cpu us/op", "client"],
        unit: Unit::Microseconds,
        meaning: "processor time of the client an operation",
        value: |row| row.figures.per_operation.client_cpu_us,
    },
    Column {
        heading: ["idle", "%"],
        unit: Unit::Percent,
        meaning: "share of the processors that had nothing to do",
        value: |row| row.figures.machine.map(|shares| shares.idle * 100.0),
    },
    Column {
        heading: ["RSS", "MB"],
        unit: Unit::Bytes,
        meaning: "memory of the server at the end",
        value: |row| row.figures.server_resident_bytes.map(|bytes| bytes as f64),
    },
    Column {
        heading: ["", "missed"],
        unit: Unit::Count,
        meaning: "operations that found nothing",
        value: |row| Some(row.figures.missed as f64),
    },
    Column {
        heading: ["", "failed"],
        unit: Unit::Count,
        meaning: "operations that ended with an error",
        value: |row| Some(row.figures.failed as f64),
    },
    Column {
        heading: ["", "retried"],
        unit: Unit::Count,
        meaning: "tries beyond the first",
        value: |row| Some(row.figures.retried as f64),
    },
    Column {
        heading: ["not", "begun"],
        unit: Unit::Count,
        meaning: "operations of an open loop that came too late to begin",
        value: |row| Some(row.figures.not_begun as f64),
    },
    Column {
        heading: ["ceiling", "ops/s"],
        unit: Unit::Count,
        meaning: "the rate of this client against a server that does nothing",
        value: |row| row.ceiling,
    },
    Column {
        heading: ["of", "ceiling"],
        unit: Unit::OfCeiling,
        meaning: "the rate by that ceiling; (!) where the client may be what is measured",
        value: |row| row.ceiling.filter(|ceiling| *ceiling > 0.0).map(|ceiling| row.figures.rate / ceiling),
    },
];

/// The costs of a second: the sums of the columns by operation, and those that only a second has.
pub const PER_SECOND: [Column; 15] = [
    Column {
        heading: ["", "clients"],
        unit: Unit::Count,
        meaning: "connections that send operations, each one at a time",
        value: |row| Some(row.clients.into()),
    },
    Column {
        heading: ["disk r", "/s"],
        unit: Unit::Amount,
        meaning: "reads of the device",
        value: |row| row.figures.per_second.disk_reads,
    },
    Column {
        heading: ["disk w", "/s"],
        unit: Unit::Amount,
        meaning: "writes of the device",
        value: |row| row.figures.per_second.disk_writes,
    },
    Column {
        heading: ["rKB", "/s"],
        unit: Unit::Amount,
        meaning: "kilobytes (of 1,024 bytes) read from the device",
        value: |row| row.figures.per_second.read_kb,
    },
    Column {
        heading: ["wKB", "/s"],
        unit: Unit::Amount,
        meaning: "kilobytes (of 1,024 bytes) written to the device",
        value: |row| row.figures.per_second.written_kb,
    },
    Column {
        heading: ["cs/s", "server"],
        unit: Unit::Amount,
        meaning: "context switches of the server",
        value: |row| row.figures.per_second.server_switches,
    },
    Column {
        heading: ["cs/s", "client"],
        unit: Unit::Amount,
        meaning: "context switches of the client",
        value: |row| row.figures.per_second.client_switches,
    },
    Column {
        heading: ["cs/s", "all"],
        unit: Unit::Amount,
        meaning: "context switches of the whole machine",
        value: |row| row.figures.per_second.machine_switches,
    },
    Column {
        heading: ["server %", "user"],
        unit: Unit::Percent,
        meaning: "processor time of the server in its own code, of one core",
        value: |row| percent(row.figures.per_second.server_user_us),
    },
    Column {
        heading: ["server %", "system"],
        unit: Unit::Percent,
        meaning: "processor time of the server in the kernel, of one core",
        value: |row| percent(system_us(&row.figures.per_second)),
    },
    Column {
        heading: ["client", "%"],
        unit: Unit::Percent,
        meaning: "processor time of the client, of one core",
        value: |row| percent(row.figures.per_second.client_cpu_us),
    },
    Column {
        heading: ["major", "faults/s"],
        unit: Unit::Amount,
        meaning: "pages of memory that the server had to read from the device",
        value: |row| row.figures.per_second.server_major_faults,
    },
    Column {
        heading: ["waiting %", "cpu"],
        unit: Unit::Percent,
        meaning: "share of the time in which some task waited for a processor",
        value: |row| waiting(row.figures, |share| share.cpu),
    },
    Column {
        heading: ["waiting %", "io"],
        unit: Unit::Percent,
        meaning: "share of the time in which some task waited for the device",
        value: |row| waiting(row.figures, |share| share.io),
    },
    Column {
        heading: ["waiting %", "memory"],
        unit: Unit::Percent,
        meaning: "share of the time in which some task waited for memory",
        value: |row| waiting(row.figures, |share| share.memory),
    },
];

fn system_us(costs: &Costs) -> Option<f64> {
    Some(costs.server_cpu_us? - costs.server_user_us?)
}

/// Microseconds of CPU in a second as percent of a core: 200 are two cores.
fn percent(us: Option<f64>) -> Option<f64> {
    us.map(|us| us / 1e4)
}

/// The share of the time in which somebody on the machine waited.
fn waiting(figures: &Figures, of: fn(&PressureShares) -> Option<f64>) -> Option<f64> {
    figures.pressure.as_ref().and_then(of).map(|share| share * 100.0)
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
    let cell = |row, column: &Column| optional((column.value)(row), |value| column.unit.on_terminal(value));
    lines.extend(rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect::<Vec<_>>()));
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
            .map(|us| if kind.is_used() { microseconds(us) } else { "-".to_owned() });
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

fn amount(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        small if small < 0.01 => format!("{small:.4}"),
        middle if middle < 10.0 => format!("{middle:.2}"),
        large => format!("{large:.1}"),
    }
}

/// A share of the tool's own ceiling, marked where it says more about the tool than about the server.
fn of_ceiling(share: f64) -> String {
    format!("{:.0}%{}", share * 100.0, if share > CEILING_SHARE_MAX { "(!)" } else { "" })
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

    #[test]
    fn a_page_names_units_in_its_cells_and_every_column_has_a_meaning() {
        let mut figures = Figures::new(&measured(tally(2), None), &[]);
        figures.latency_us.p99 = 12_345.0;
        figures.server_resident_bytes = Some(64_000_000);
        let row = Row { clients: 100, figures: &figures, ceiling: None };
        let shown = |name: &str| {
            let column = COLUMNS.iter().find(|column| column.name() == name).expect("a column of this name");
            column.cell(&row)
        };
        assert_eq!((shown("p99").as_str(), shown("RSS").as_str()), ("12.3 ms", "64 MB"));
        assert!(COLUMNS.iter().chain(&PER_SECOND).all(|column| !column.meaning.is_empty()));
        let mut names: Vec<String> = COLUMNS.iter().map(Column::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len(), "no two columns of a page have one heading");
    }
}
