//! Faults of regular expressions: causes of errors whose MongoDB code has no name, a row each.

use crate::error::{QueryError, faults};

faults! {
    /// Why a regular expression does not compile or gives up.
    RegexFault {
        /// A regular expression does not compile.
        Invalid = 51_091,
        /// A flag that regular expressions do not have.
        UnknownFlag = 51_108,
    }
}

/// The error of a pattern that does not compile. MongoDB shows PCRE's words, which some tests of applications
/// know; for rare faults ours stand in.
pub(super) fn invalid(cause: &str) -> QueryError {
    let words = [
        ("unclosed capture group name", "syntax error in subpattern name (missing terminator)"),
        ("unrecognized flag", "unrecognized character after (? or (?-"),
        ("unclosed group", "missing )"),
        ("unopened group", "unmatched parentheses"),
        ("unclosed character class", "missing terminating ] for character class"),
        ("repetition operator missing expression", "nothing to repeat"),
        ("incomplete escape sequence", "\\ at end of pattern"),
        ("invalid character class range", "range out of order in character class"),
        ("invalid repetition count range", "numbers out of order in {} quantifier"),
    ];
    let known = words.iter().find(|(ours, _)| cause.contains(ours)).map(|(_, theirs)| *theirs);
    let last_line = cause.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let text = format!("Regular expression is invalid: {}", known.unwrap_or(last_line));
    RegexFault::Invalid.error(text)
}
