//! Every decision record is linked from the list of decision records.

use crate::finding::{CheckError, Finding};
use std::path::Path;

/// Where the records are.
const FOLDER: &str = "docs/decisions/";
/// The list.
const LIST: &str = "docs/decisions/README.md";

/// Checks the records among these files.
pub fn check(root: &Path, paths: &[String]) -> Result<Vec<Finding>, CheckError> {
    let list =
        if paths.iter().any(|path| path == LIST) { super::read(&root.join(LIST))? } else { String::new() };
    Ok(unlinked(paths, &list))
}

fn unlinked(paths: &[String], list: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in paths.iter().filter(|path| path.as_str() != LIST) {
        let Some(name) = path.strip_prefix(FOLDER).filter(|name| name.ends_with(".md")) else { continue };
        if !list.contains(&format!("({name})")) && !list.contains(&format!("(./{name})")) {
            findings.push(Finding::new(
                path,
                1,
                "decisions",
                format!("not linked from {LIST}: add a line for it"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_link_is_found() {
        let paths = ["docs/decisions/0001-a.md", "docs/decisions/0002-b.md", LIST, "docs/glossary.md"];
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let found = unlinked(&paths, "- [A](0001-a.md)\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "docs/decisions/0002-b.md");
    }
}
