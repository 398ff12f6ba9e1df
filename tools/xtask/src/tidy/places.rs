//! The rule on places: no absolute path of somebody's machine in any text file.

use crate::finding::Finding;

/// Folders in which people work, each cut in two so that this file does not contain them.
const PLACES: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Endings of the files that people write.
const TEXT_ENDINGS: [&str; 14] = [
    ".rs", ".toml", ".md", ".sh", ".py", ".js", ".mjs", ".ts", ".go", ".java", ".yml", ".yaml", ".txt",
    ".json",
];

/// Whether the file is text that people write.
pub fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    // Written by package managers.
    let is_generated = name == "package-lock.json";
    !is_generated
        && (TEXT_ENDINGS.iter().any(|ending| name.ends_with(ending))
            || name == "Makefile"
            || path == ".ci/run")
}

/// The findings of one file.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in PLACES.into_iter().filter(|place| stands_absolute(line, place)) {
            let message = format!("`{place}…` is a place on one machine: make it relative or configurable");
            findings.push(Finding::new(path, index + 1, "machine-path", message));
        }
    }
    findings
}

/// Whether the path begins here, rather than going on from something before it.
fn stands_absolute(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-' | '}' | '/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_places_are_found_and_relative_ones_are_not() {
        let count = |line: &str| check("a.md", line).len();
        assert_eq!(count(&format!("cd {}main", PLACES[0])), 1);
        assert_eq!(count(&format!("\"{}x\"", PLACES[1])), 1);
        assert_eq!(count("https://example.org/work/x"), 0);
        assert_eq!(count("target/work/x and $HOME/x"), 0);
    }

    #[test]
    fn text_is_known_by_its_ending() {
        assert!(is_text("crates/x/src/lib.rs") && is_text("Makefile") && is_text(".ci/run"));
        assert!(!is_text("a.gz") && !is_text("tests/node/package-lock.json"));
    }
}
