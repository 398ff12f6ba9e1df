//! The machine on which the runs of a page were made.

use crate::report::file::RunFile;
use pando_measuring::chart::escape;
use std::fmt::Write as _;

/// Its section; nothing without runs.
pub fn render(files: &[RunFile]) -> String {
    let Some(first) = files.first() else { return String::new() };
    let machine = &first.machine;
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let memory = machine
        .memory_kb
        .map_or_else(|| "unknown".to_owned(), |kb| format!("{:.1} GB", kb as f64 * 1024.0 / 1e9));
    let readahead = machine.read_ahead_kb.map_or_else(|| "unknown".to_owned(), |kb| format!("{kb} KB"));
    let rows = [
        ("cores", format!("{} x {}", machine.cores, known(&machine.cpu_model))),
        ("memory", memory),
        ("kernel", known(&machine.kernel)),
        ("governor", known(&machine.governor)),
        ("huge pages", known(&machine.huge_pages)),
        ("file system", known(&machine.file_system)),
        ("scheduler", known(&machine.scheduler)),
        ("readahead", readahead),
    ];
    let mut html = "<section><h2>Machine</h2><dl>".to_owned();
    for (name, value) in rows {
        let _ = write!(html, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    html.push_str("</dl></section>");
    html
}
