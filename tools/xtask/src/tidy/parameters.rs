//! No boolean parameter in a public function: at the call, `true` says nothing.

use super::functions::functions;
use super::ratchet::Ratchet;
use super::source::{Source, words};
use crate::finding::Finding;

/// The findings of one file.
pub fn check(source: &Source, ratchet: &Ratchet, ratchet_path: &str) -> Vec<Finding> {
    let (_, listed) = ratchet.functions_of(&source.path);
    let mut needed = Vec::new();
    let mut findings = Vec::new();
    for function in functions(source) {
        if !function.is_public || !has_boolean(&function.parameters) {
            continue;
        }
        if !ratchet.boolean_parameter(&source.path, &function.name) {
            let message = format!(
                "`{}` takes a bool: use a two-variant enum or two functions, or list it in {ratchet_path} with a reason",
                function.name
            );
            findings.push(Finding::new(&source.path, function.line, "boolean-parameter", message));
        }
        needed.push(function.name);
    }
    for name in listed.into_iter().filter(|name| !needed.iter().any(|needed| needed == name)) {
        let message = format!("`{name}` in {} takes no bool: remove its entry", source.path);
        findings.push(Finding::new(ratchet_path, 1, "ratchet", message));
    }
    findings
}

/// Whether a parameter's whole type is `bool`; `Option<bool>` or `&[bool]` is a value, not a switch.
fn has_boolean(parameters: &str) -> bool {
    words(parameters, "bool").any(|at| {
        let before = parameters[..at].trim_end();
        let after = parameters[at + 4..].trim_start();
        before.ends_with(':') && !before.ends_with("::") && (after.is_empty() || after.starts_with(','))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, ratchet: &str) -> usize {
        let ratchet = Ratchet::parse(ratchet).expect("the list is well formed");
        check(&Source::scan("a.rs", text), &ratchet, "ratchet.toml").len()
    }

    #[test]
    fn a_public_function_with_a_switch_is_found() {
        assert_eq!(count("pub fn open(path: &Path, read_only: bool) {}", ""), 1);
        assert_eq!(
            count("fn open(read_only: bool) {}\npub fn a(b: Option<bool>, c: fn(bool)) -> bool {}", ""),
            0
        );
    }

    #[test]
    fn a_listed_function_is_fine_until_it_changes() {
        let entry =
            "[[boolean_parameter]]\npath = \"a.rs\"\nname = \"append\"\nreason = \"the value itself\"\n";
        assert_eq!(count("pub fn append(value: bool) {}", entry), 0);
        assert_eq!(count("pub fn append(value: u8) {}", entry), 1);
    }
}
