//! The rule on exceptions to lints: every `allow` and `expect` attribute says why.

use super::source::{Source, words};
use crate::finding::Finding;

/// The findings of one file.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, _) in source.code.match_indices("#[").chain(source.code.match_indices("#![")) {
        let open = at + source.code[at..].find('[').unwrap_or_default();
        let attribute = &source.code[open..closing_bracket(&source.code, open)];
        for kind in ["allow", "expect"] {
            let is_there = words(attribute, kind)
                .any(|word| attribute[word + kind.len()..].trim_start().starts_with('('));
            if is_there && words(attribute, "reason").next().is_none() {
                let message = format!("this `{kind}` gives no reason: add `reason = \"…\"`");
                findings.push(Finding::new(&source.path, source.line_of(at), "unexplained", message));
            }
        }
    }
    findings
}

fn closing_bracket(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'[' => depth += 1,
            b']' if depth <= 1 => return at,
            b']' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Source::scan("a.rs", text)).len()
    }

    #[test]
    fn an_attribute_without_a_reason_is_found() {
        assert_eq!(count("#[allow(dead_code)]\nfn a() {}"), 1);
        assert_eq!(count("#![expect(unused)]"), 1);
        assert_eq!(count("#[cfg_attr(test, allow(unused))]"), 1);
    }

    #[test]
    fn a_reason_or_a_call_of_that_name_is_fine() {
        assert_eq!(count("#[allow(dead_code, reason = \"the fuzz target reads it\")]"), 0);
        assert_eq!(count("fn a() { b[0].expect(\"there is one\"); arrows.allow(c); }"), 0);
    }
}
