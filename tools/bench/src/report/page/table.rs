//! Tables of the page.

use crate::report::chart::escape;
use std::fmt::Write as _;

/// A table with headings; cells are text, and a cell that begins with `<` is markup of the page's own.
pub fn render<H: AsRef<str>>(headings: &[H], rows: &[Vec<String>]) -> String {
    let mut html = "<div class=\"wide\"><table><thead><tr>".to_owned();
    headings.iter().for_each(|heading| {
        let _ = write!(html, "<th>{}</th>", escape(heading.as_ref()));
    });
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let name = if place == 0 { "th" } else { "td" };
            let _ = write!(html, "<{name}>{}</{name}>", escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// A number with three digits after the point, or a dash.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// The same with as many digits as one reads.
pub fn short(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), crate::report::chart::number)
}
