//! The rules on length: files of at most 600 production lines and never over 1,000 lines; functions of at
//! most 70 lines.

use super::functions::functions;
use super::ratchet::Ratchet;
use super::source::Source;
use crate::finding::Finding;

/// A file may have this many lines, tests included, and there is no exception.
const FILE_LINES_MAX: usize = 1_000;
/// Over this many production lines a file must be listed with a reason.
const PRODUCTION_LINES_MAX: usize = 600;
/// Over this many lines a function must be listed with a reason.
const FUNCTION_LINES_MAX: usize = 70;

/// The findings of one file.
pub fn check(source: &Source, ratchet: &Ratchet, ratchet_path: &str) -> Vec<Finding> {
    let mut findings = check_file(source, ratchet, ratchet_path);
    findings.extend(check_functions(source, ratchet, ratchet_path));
    findings
}

fn check_file(source: &Source, ratchet: &Ratchet, ratchet_path: &str) -> Vec<Finding> {
    let path = &source.path;
    let (lines, production) = (source.lines(), source.production_lines());
    let mut findings = Vec::new();
    let mut find =
        |at: &str, line, message: String| findings.push(Finding::new(at, line, "file-length", message));
    if lines > FILE_LINES_MAX {
        find(path, lines, format!("{lines} lines, at most {FILE_LINES_MAX}: split it by noun"));
    }
    match ratchet.file_lines(path) {
        None if production > PRODUCTION_LINES_MAX => {
            find(
                path,
                production,
                format!(
                    "{production} production lines, at most {PRODUCTION_LINES_MAX}: split it by noun, or list it in \
                 {ratchet_path} with a reason"
                ),
            );
        }
        Some(listed) if production > listed => {
            find(
                path,
                production,
                format!("{production} production lines, {ratchet_path} allows it {listed}: split it"),
            );
        }
        Some(_) if production <= PRODUCTION_LINES_MAX => {
            find(ratchet_path, 1, format!("{path} has {production} production lines: remove its entry"));
        }
        _ => {}
    }
    findings
}

fn check_functions(source: &Source, ratchet: &Ratchet, ratchet_path: &str) -> Vec<Finding> {
    let path = &source.path;
    let (listed, _) = ratchet.functions_of(path);
    let mut needed: Vec<String> = Vec::new();
    let mut findings = Vec::new();
    for function in functions(source).into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX) {
        let (name, lines) = (&function.name, function.lines);
        let message = match ratchet.function_lines(path, name) {
            None => format!(
                "`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}: give its parts names, or list it in \
                 {ratchet_path} with a reason"
            ),
            Some(allowed) if lines > allowed => {
                format!(
                    "`{name}` has {lines} lines, {ratchet_path} allows it {allowed}: give its parts names"
                )
            }
            Some(_) => {
                needed.push(function.name);
                continue;
            }
        };
        needed.push(name.clone());
        findings.push(Finding::new(path, function.line, "function-length", message));
    }
    for name in listed.into_iter().filter(|name| !needed.iter().any(|needed| needed == name)) {
        let message =
            format!("`{name}` in {path} is within {FUNCTION_LINES_MAX} lines or gone: remove its entry");
        findings.push(Finding::new(ratchet_path, 1, "ratchet", message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str, ratchet: &str) -> Vec<String> {
        let ratchet = Ratchet::parse(ratchet).expect("the list is well formed");
        check(&Source::scan("a.rs", text), &ratchet, "ratchet.toml")
            .into_iter()
            .map(|f| f.to_string())
            .collect()
    }

    fn function_of(lines: usize) -> String {
        format!("//! Doc.\nfn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_seventy_lines_is_fine_and_one_more_is_not() {
        assert!(findings(&function_of(70), "").is_empty());
        assert_eq!(findings(&function_of(71), "").len(), 1);
    }

    #[test]
    fn a_listed_function_may_be_as_long_as_its_entry_says_and_no_longer() {
        let entry = |lines: &str| {
            format!("[[function]]\npath = \"a.rs\"\nname = \"long\"\n{lines}\nreason = \"r\"\n")
        };
        assert!(findings(&function_of(80), &entry("lines = 80")).is_empty());
        assert_eq!(findings(&function_of(81), &entry("lines = 80")).len(), 1);
        assert!(findings(&function_of(300), &entry("")).is_empty());
    }

    #[test]
    fn an_entry_that_is_not_needed_is_found() {
        let entry = "[[function]]\npath = \"a.rs\"\nname = \"long\"\nreason = \"r\"\n";
        assert_eq!(findings(&function_of(10), entry).len(), 1);
        let entry = "[[file]]\npath = \"a.rs\"\nlines = 700\nreason = \"r\"\n";
        assert_eq!(findings(&function_of(10), entry).len(), 1);
    }

    #[test]
    fn long_files_need_an_entry_and_very_long_ones_have_none() {
        let entry = "[[file]]\npath = \"a.rs\"\nlines = 2000\nreason = \"r\"\n";
        let of = |lines: usize| "use a;\n".repeat(lines);
        assert_eq!(findings(&of(601), "").len(), 1);
        assert!(findings(&of(601), entry).is_empty());
        assert_eq!(findings(&of(1001), entry).len(), 1);
    }
}
