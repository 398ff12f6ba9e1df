//! The rule on the width of comments: that of code, `max_width` of rustfmt.toml.
//!
//! A row of a table and a line of one word (a long link) cannot be broken, and may be wider.

use super::source::Source;
use crate::finding::{CheckError, Finding};
use serde::Deserialize;
use std::path::Path;

/// The file that holds the width of code.
const SETTINGS: &str = "rustfmt.toml";

/// The part of rustfmt.toml that matters here.
#[derive(Deserialize)]
struct Settings {
    max_width: usize,
}

/// The width of code in the tree whose root this is.
pub fn width_max(root: &Path) -> Result<usize, CheckError> {
    let path = root.join(SETTINGS);
    let text = super::read(&path)?;
    let settings: Settings = toml::from_str(&text).map_err(|source| CheckError::Toml { path, source })?;
    Ok(settings.max_width)
}

/// The findings of one file.
pub fn check(source: &Source, width_max: usize) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut findings = Vec::new();
    for comment in &source.comments {
        for line in comment.line..comment.line + comment.text.lines().count() {
            let text = lines.get(line - 1).copied().unwrap_or_default();
            let width = text.chars().count();
            if width > width_max && can_be_broken(text) {
                let message = format!("{width} columns, at most {width_max} as for code: break the line");
                findings.push(Finding::new(&source.path, line, "comment-width", message));
            }
        }
    }
    findings.dedup();
    findings
}

fn can_be_broken(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!', '*']).trim();
    !text.starts_with('|') && text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Source::scan("a.rs", text), 20).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_comment_may_be_as_wide_as_code_and_no_wider() {
        assert_eq!(lines("//! 345678 0123 56789\n// 45678 0123 567890\nlet a = 1; // 456 8901\n"), [1, 3]);
        assert_eq!(lines("/* one\n   two 9 1234567890123\n*/ let a = 1;\n"), [2]);
    }

    #[test]
    fn characters_count_and_not_bytes() {
        assert!(lines("// äöü äöü äöü äöü 9\n").is_empty());
    }

    #[test]
    fn rows_of_tables_links_and_code_may_be_wider() {
        let text = "//! | one | two | three |\n// https://example.org/a/long/link\nlet a = \"// no comment at all\";\n";
        assert!(lines(text).is_empty());
    }
}
