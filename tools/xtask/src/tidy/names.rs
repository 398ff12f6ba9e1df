//! The rules on names: none that says nothing, no function that begins with a clause, no file called
//! `mod.rs`, no alias that poses as a type.

use super::source::{Source, is_name_byte, words};
use crate::finding::Finding;

/// A file, folder or module of such a name collects whatever nobody wanted to name.
const EMPTY_NAMES: [&str; 8] =
    ["utils", "util", "common", "misc", "helpers", "helper", "utilities", "shared"];

/// Words with which the name of a function begins that hides its subject, as the sentences of tests did.
const CLAUSE_BEGINS: [&str; 5] = ["what_", "who_", "whoever_", "nothing_", "as_many_"];

/// An alias of one of these is not a type: the compiler would let a length pass for an offset.
const NUMBERS: [&str; 14] =
    ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64"];

/// The findings of one file.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let parts = source.path.trim_end_matches(".rs").split('/');
    for part in parts.filter(|part| EMPTY_NAMES.contains(part)) {
        findings.push(empty_name(source, 1, part));
    }
    findings.extend(module_file(source));
    for at in words(&source.code, "mod") {
        let name = name_after(&source.code, at + 3);
        // A module in a file of its own is found by its path.
        let is_inline =
            source.code[at..].find(['{', ';']).is_some_and(|end| source.code.as_bytes()[at + end] == b'{');
        if is_inline && EMPTY_NAMES.contains(&name) {
            findings.push(empty_name(source, source.line_of(at), name));
        }
    }
    findings.extend(words(&source.code, "fn").filter_map(|at| clause(source, at)));
    findings.extend(words(&source.code, "type").filter_map(|at| alias(source, at)));
    findings
}

/// A module is `x.rs` beside its folder `x/`. Only modules that several integration tests share are called
/// `mod.rs`: cargo would take a file beside them for a test of its own.
fn module_file(source: &Source) -> Option<Finding> {
    let folder = source.path.strip_suffix("/mod.rs")?;
    let is_in_tests = folder.split('/').any(|part| part == "tests");
    (!is_in_tests).then(|| {
        let message = format!("a module is `x.rs` beside its folder `x/`: move this file to {folder}.rs");
        Finding::new(&source.path, 1, "module-file", message)
    })
}

fn empty_name(source: &Source, line: usize, name: &str) -> Finding {
    Finding::new(
        &source.path,
        line,
        "empty-name",
        format!("`{name}` says nothing: name the idea that it holds"),
    )
}

/// At a `fn`: a finding if its name begins with a clause.
fn clause(source: &Source, at: usize) -> Option<Finding> {
    let name = name_after(&source.code, at + 2);
    let begin = CLAUSE_BEGINS.iter().find(|begin| name.starts_with(**begin))?;
    let message = format!("`{name}` begins with `{begin}`: name the subject first");
    Some(Finding::new(&source.path, source.line_of(at), "clause-name", message))
}

/// At a `type`: a finding if it is public and stands for a bare number.
fn alias(source: &Source, at: usize) -> Option<Finding> {
    let before = source.code[..at].rsplit('\n').next().unwrap_or_default();
    if !before.trim_start().starts_with("pub") {
        return None;
    }
    let statement = &source.code[at..at + source.code[at..].find(';')?];
    let (name, target) = statement.split_once('=')?;
    NUMBERS.contains(&target.trim()).then(|| {
        let message =
            format!("`pub {} = {}` is an alias, not a type: make it a newtype", name.trim(), target.trim());
        Finding::new(&source.path, source.line_of(at), "alias", message)
    })
}

fn name_after(code: &str, at: usize) -> &str {
    let rest = code[at..].trim_start();
    &rest[..rest.bytes().take_while(|byte| is_name_byte(*byte)).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&Source::scan(path, text)).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn empty_names_are_found_in_files_folders_and_inline_modules() {
        assert_eq!(rules("crates/x/src/utils.rs", ""), ["empty-name"]);
        assert_eq!(rules("crates/x/tests/common/mod.rs", ""), ["empty-name"]);
        assert_eq!(rules("crates/x/src/y.rs", "mod helpers { }"), ["empty-name"]);
        assert!(rules("crates/x/src/y.rs", "mod utilisation; mod length { }").is_empty());
    }

    #[test]
    fn a_module_stands_beside_its_folder() {
        assert_eq!(rules("crates/x/src/pages/mod.rs", ""), ["module-file"]);
        assert!(rules("crates/x/src/pages.rs", "").is_empty());
        assert!(rules("crates/x/tests/server/mod.rs", "").is_empty());
    }

    #[test]
    fn a_function_that_begins_with_a_clause_is_found() {
        assert_eq!(rules("y.rs", "fn what_is_read_is_checked() {}"), ["clause-name"]);
        assert_eq!(rules("y.rs", "fn nothing_is_lost() {}"), ["clause-name"]);
        assert!(
            rules("y.rs", "fn whole() {} fn what(what_is: u32) {} fn a_page_that_is_read() {}").is_empty()
        );
    }

    #[test]
    fn a_public_alias_of_a_number_is_found() {
        assert_eq!(rules("y.rs", "pub type Lsn = u64;"), ["alias"]);
        assert_eq!(rules("y.rs", "pub(crate) type Lsn = u64;"), ["alias"]);
        assert!(rules("y.rs", "pub type Map = BTreeMap<u64, u64>;\n type Item = u64;").is_empty());
    }
}
