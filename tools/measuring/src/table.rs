//! Tables: as HTML, as Markdown, and aligned for a terminal.

use crate::chart::escape;
use crate::number::number;
use std::fmt::Write as _;

/// A table of a page: headings, and rows whose first cell is their name. All cells are text.
pub fn html<H: AsRef<str>>(headings: &[H], rows: &[Vec<String>]) -> String {
    let escaped = |row: &Vec<String>| row.iter().map(|cell| escape(cell)).collect();
    of_markup(headings, &rows.iter().map(escaped).collect::<Vec<_>>())
}

/// The same with cells that are markup.
pub fn of_markup<H: AsRef<str>>(headings: &[H], rows: &[Vec<String>]) -> String {
    let headings: String =
        headings.iter().map(|heading| format!("<th>{}</th>", escape(heading.as_ref()))).collect();
    let mut html = format!("<div class=\"wide\"><table><thead><tr>{headings}</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let name = if place == 0 { "th" } else { "td" };
            let _ = write!(html, "<{name}>{cell}</{name}>");
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

/// A table of Markdown.
pub fn markdown<H: AsRef<str>>(headings: &[H], rows: &[Vec<String>]) -> String {
    let headings: Vec<&str> = headings.iter().map(AsRef::as_ref).collect();
    let mut text = format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(headings.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Cells under each other, to the right.
pub fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut table = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        table.push_str(cells.join("  ").trim_end());
        table.push('\n');
    }
    table
}

/// A number with three digits after the point, or a dash.
pub fn exact(value: Option<f64>) -> String {
    optional(value, |value| format!("{value:.3}"))
}

/// A number with as many digits as one reads, or a dash.
pub fn short(value: Option<f64>) -> String {
    optional(value, number)
}

/// A value as `show` writes it, or a dash.
pub fn optional<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}
