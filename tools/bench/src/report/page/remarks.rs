//! The remarks on each run: its warnings, what was verified, its labels and its parameters.

use super::runs::Run;
use pando_measuring::chart::escape;
use std::fmt::Write as _;

/// A folded part for each run.
pub fn render(runs: &[Run<'_>]) -> String {
    let mut html = String::new();
    for Run { file, name, .. } in runs {
        let findings = file.findings.iter().map(|finding| format!("verified: {finding}"));
        let notes = file
            .figures
            .notes
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(note, count)| format!("{note}: {count}"));
        let source = file.figures.disk_source.iter().map(|source| format!("disk I/O from {source}"));
        let loop_kind = (file.plan.loop_kind == "closed")
            .then(|| "closed loop: a stall of the server shows once per client".to_owned());
        let labels = file.labels.iter().map(|(label, text)| format!("{label}: {text}"));
        let machine = &file.machine;
        let files = machine.open_files.map(|files| files.line());
        let all =
            file.warnings.iter().cloned().chain(findings).chain(file.lines.iter().cloned()).chain(notes);
        let _ = write!(html, "<details><summary>{}", escape(name));
        if file.flagged {
            html.push_str(" <b class=\"flag\">flagged</b>");
        }
        let warnings = match file.warnings.len() {
            0 => String::new(),
            1 => " (1 warning)".to_owned(),
            count => format!(" ({count} warnings)"),
        };
        let _ = write!(html, "{warnings}</summary><ul>");
        all.chain(labels).chain(files).chain(source).chain(loop_kind).for_each(|remark| {
            let _ = write!(html, "<li>{}</li>", escape(&remark));
        });
        let parameters = serde_json::to_string_pretty(&file.parameters).unwrap_or_default();
        let _ = write!(html, "</ul><pre>{}</pre></details>", escape(&parameters));
    }
    format!("<h3>What to know of each run</h3><div class=\"remarks\">{html}</div>")
}
