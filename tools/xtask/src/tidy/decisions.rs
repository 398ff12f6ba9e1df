//! The rules on decision records: a page each, numbered without gaps, and linked from their list.

use crate::finding::{CheckError, Finding};
use std::collections::BTreeMap;
use std::path::Path;

const RULE: &str = "decisions";

/// The folder of the records.
const FOLDER: &str = "docs/decisions/";
/// The list.
const LIST: &str = "docs/decisions/README.md";
/// The most characters of a record, which fits a page: some 40 lines of 110 columns.
const CHARACTERS_MAX: usize = 4_500;

/// Checks the records among these files.
pub fn check(root: &Path, paths: &[String]) -> Result<Vec<Finding>, CheckError> {
    let list =
        if paths.iter().any(|path| path == LIST) { super::read(&root.join(LIST))? } else { String::new() };
    let mut findings = unlinked(paths, &list);
    findings.extend(misnumbered(paths));
    for (path, _) in records(paths) {
        findings.extend(too_long(path, &super::read(&root.join(path))?));
    }
    Ok(findings)
}

/// The records: path and file name.
fn records(paths: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let paths = paths.iter().map(String::as_str).filter(|path| *path != LIST && path.ends_with(".md"));
    paths.filter_map(|path| path.strip_prefix(FOLDER).map(|name| (path, name)))
}

fn unlinked(paths: &[String], list: &str) -> Vec<Finding> {
    let is_linked = |name: &str| list.contains(&format!("({name})")) || list.contains(&format!("(./{name})"));
    let unlinked = records(paths).filter(|(_, name)| !is_linked(name));
    unlinked
        .map(|(path, _)| Finding::new(path, 1, RULE, format!("not linked from {LIST}: add a line for it")))
        .collect()
}

/// The numbers are 0001, 0002 and so on, each once.
fn misnumbered(paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbered: BTreeMap<usize, &str> = BTreeMap::new();
    for (path, name) in records(paths) {
        let number = name.split_once('-').map(|(number, _)| number).filter(|number| number.len() == 4);
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            let message = "the name does not begin with a number of four digits and `-`: rename it";
            findings.push(Finding::new(path, 1, RULE, message));
            continue;
        };
        if let Some(other) = numbered.insert(number, path) {
            findings.push(Finding::new(
                path,
                1,
                RULE,
                format!("{other} has the same number: give it the next"),
            ));
        }
    }
    let mut expected = 1;
    for (number, path) in numbered {
        if number > expected {
            let missing: Vec<String> = (expected..number).map(|number| format!("{number:04}")).collect();
            let message =
                format!("there is no {} before it: close the gap in the numbers", missing.join(", "));
            findings.push(Finding::new(path, 1, RULE, message));
        }
        expected = number + 1;
    }
    findings
}

fn too_long(path: &str, text: &str) -> Option<Finding> {
    let characters = text.chars().count();
    (characters > CHARACTERS_MAX).then(|| {
        let message = format!(
            "{characters} characters, at most {CHARACTERS_MAX}: keep context, decision, what was refused and the \
             consequence; move measurements to docs/experiments"
        );
        Finding::new(path, 1, RULE, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("{FOLDER}{name}")).collect()
    }

    #[test]
    fn a_record_without_a_link_is_found() {
        let paths = paths(&["0001-a.md", "0002-b.md", "README.md"]);
        let found = unlinked(&paths, "- [A](0001-a.md)\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "docs/decisions/0002-b.md");
    }

    #[test]
    fn numbers_have_no_gap_and_stand_once() {
        assert!(misnumbered(&paths(&["0001-a.md", "0002-b.md", "README.md"])).is_empty());
        let found = misnumbered(&paths(&["0002-a.md", "0003-b.md", "0006-c.md"]));
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains("0001") && found[1].message.contains("0004, 0005"), "{found:?}");
        assert_eq!(misnumbered(&paths(&["0001-a.md", "0001-b.md", "2-c.md", "notes.md"])).len(), 3);
    }

    #[test]
    fn a_record_fits_a_page() {
        assert!(too_long("a.md", &"ä".repeat(CHARACTERS_MAX)).is_none());
        assert!(too_long("a.md", &"a".repeat(CHARACTERS_MAX + 1)).is_some());
    }
}
