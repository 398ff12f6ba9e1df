//! The rules on parameters. No public function has a boolean one, because `true` says nothing at the call. No
//! tuple has more than two parts, because these have no names.

use super::functions::{Function, functions};
use super::ratchet::Ratchet;
use super::source::{Source, words};
use crate::finding::Finding;

/// A tuple that is a parameter has at most this many parts.
const TUPLE_PARTS_MAX: usize = 2;

/// The findings of one file.
pub fn check(source: &Source, ratchet: &Ratchet, ratchet_path: &str) -> Vec<Finding> {
    let functions = functions(source);
    let mut findings = booleans(source, &functions, ratchet, ratchet_path);
    findings.extend(functions.iter().flat_map(|function| tuples(source, function)));
    findings
}

fn booleans(source: &Source, functions: &[Function], ratchet: &Ratchet, ratchet_path: &str) -> Vec<Finding> {
    let (_, listed) = ratchet.functions_of(&source.path);
    let mut needed = Vec::new();
    let mut findings = Vec::new();
    for function in functions {
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
        needed.push(&function.name);
    }
    for name in listed.into_iter().filter(|name| !needed.iter().any(|needed| *needed == name)) {
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

/// A finding for each parameter that is taken apart into, or whose type is, a tuple of more than two.
fn tuples(source: &Source, function: &Function) -> Vec<Finding> {
    let mut findings = Vec::new();
    for parameter in split(&function.parameters) {
        let (pattern, kind) = pattern_and_type(parameter);
        let parts = tuple_parts(pattern).max(tuple_parts(kind));
        if parts > TUPLE_PARTS_MAX {
            let message = format!(
                "`{}` takes a tuple of {parts}, at most {TUPLE_PARTS_MAX}: make it a struct with named fields",
                function.name
            );
            findings.push(Finding::new(&source.path, function.line, "tuple-parameter", message));
        }
    }
    findings
}

/// The parts of a list that commas separate outside of any bracket.
fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0_usize, 0);
    let bytes = list.as_bytes();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[from..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The two sides of a parameter's colon; a receiver has no type.
fn pattern_and_type(parameter: &str) -> (&str, &str) {
    let is_colon =
        |(at, _): &(usize, &str)| !parameter[..*at].ends_with(':') && !parameter[at + 1..].starts_with(':');
    parameter
        .match_indices(':')
        .find(is_colon)
        .map_or((parameter, ""), |(at, _)| (&parameter[..at], &parameter[at + 1..]))
}

/// How many parts the tuple has that this is, or that is behind this reference; 0 if it is none.
fn tuple_parts(text: &str) -> usize {
    let mut text = text.trim();
    while let Some(rest) = text.strip_prefix('&') {
        let rest = rest.trim_start();
        let lifetime = rest.strip_prefix('\'').and_then(|rest| rest.split_once(' ')).map(|(_, rest)| rest);
        let rest = lifetime.unwrap_or(rest).trim_start();
        text = rest.strip_prefix("mut ").unwrap_or(rest).trim_start();
    }
    text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).map_or(0, |parts| split(parts).len())
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
    fn a_tuple_of_three_is_found_as_pattern_and_as_type() {
        assert_eq!(count("fn a((b, c, d): Triple) {}", ""), 1);
        assert_eq!(count("fn a(&self, b: (u8, Vec<(u8, u8)>, u8)) {}", ""), 1);
        assert_eq!(count("fn a(b: &'a mut (u8, u8, u8), c: &(\n u8,\n u8,\n u8,\n)) {}", ""), 2);
    }

    #[test]
    fn pairs_and_tuples_within_other_types_are_fine() {
        let text =
            "fn a((b, c): (u8, u8), d: &[(u8, u8, u8)], e: impl Fn(u8, u8, u8) -> u8, f: std::io::Error) {}";
        assert_eq!(count(text, ""), 0);
    }

    #[test]
    fn a_listed_function_is_fine_until_it_changes() {
        let entry =
            "[[boolean_parameter]]\npath = \"a.rs\"\nname = \"append\"\nreason = \"the value itself\"\n";
        assert_eq!(count("pub fn append(value: bool) {}", entry), 0);
        assert_eq!(count("pub fn append(value: u8) {}", entry), 1);
    }
}
