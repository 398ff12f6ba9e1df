//! Regular expressions: PCRE's syntax, matched by two Rust crates.
//!
//! 1. [`syntax`] translates a pattern to the syntax of the crate `regex`, whose matching time is linear in
//!    the text.
//! 2. A pattern that needs lookaround, backreferences, possessive or atomic groups goes to `fancy-regex`.
//!    That crate gives up after a fixed number of steps, so no pattern runs for ever.
//!
//! Not here: `$regex` and `$options` of filters (`filter`), `$regexMatch` and its kin (`expression`).

mod fault;
mod syntax;

use pando_document::RawValue;

pub use self::fault::RegexFault;

use self::syntax::{Flags, Translation};
use crate::QueryError;

/// Characters that a pattern may have. MongoDB refuses a few less, by the size of the compiled pattern.
const PATTERN_CHARACTERS_MAX: usize = 32_764;

/// A compiled regular expression. Cloning shares the compiled form.
#[derive(Clone, Debug)]
pub struct RegularExpression {
    pattern: Box<str>,
    options: Box<str>,
    matcher: Matcher,
}

#[derive(Clone, Debug)]
enum Matcher {
    /// Time linear in the text.
    Linear(regex::Regex),
    /// Time bounded by a number of steps.
    Backtracking(fancy_regex::Regex),
}

/// Where a regular expression matched, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexMatch {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
    /// The span of each group, if it took part.
    pub groups: Vec<Option<(usize, usize)>>,
}

impl RegexMatch {
    /// `spans` has the whole match first.
    fn new(mut spans: impl Iterator<Item = Option<(usize, usize)>>) -> RegexMatch {
        let (start, end) = spans.next().flatten().unwrap_or((0, 0));
        RegexMatch { start, end, groups: spans.collect() }
    }
}

impl RegularExpression {
    /// Compiles a pattern with options out of `imsxu`.
    pub fn new(pattern: &str, options: &str) -> Result<RegularExpression, QueryError> {
        if pattern.contains('\0') {
            return Err(QueryError::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        if pattern.len() > PATTERN_CHARACTERS_MAX && pattern.chars().count() > PATTERN_CHARACTERS_MAX {
            return Err(invalid("regular expression is too large"));
        }
        let flags = Flags::parse(options).map_err(|flag| {
            RegexFault::UnknownFlag.error(format!(" invalid flag in regex options: {flag}"))
        })?;
        let matcher = compile(&syntax::translate(pattern, flags), flags)?;
        Ok(RegularExpression { pattern: pattern.into(), options: options.into(), matcher })
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The options as they were written.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// The beginning of every matching text, if the pattern fixes it by beginning with
    /// `^` and plain characters.
    pub fn literal_prefix(&self) -> Option<String> {
        syntax::literal_prefix(&self.pattern, &self.options)
    }

    /// Whether a text is matched anywhere.
    ///
    /// # Errors
    /// The pattern backtracks too much on this text.
    pub fn is_match(&self, text: &str) -> Result<bool, QueryError> {
        match &self.matcher {
            Matcher::Linear(regex) => Ok(regex.is_match(text)),
            Matcher::Backtracking(regex) => regex
                .is_match(text)
                .map_err(|error| RegexFault::Invalid.error(format!("Regular expression gives up: {error}"))),
        }
    }

    /// The first match at or behind a byte offset, which is at a character's start.
    ///
    /// # Errors
    /// The pattern backtracks too much on this text.
    pub fn find_from(&self, text: &str, start: usize) -> Result<Option<RegexMatch>, QueryError> {
        match &self.matcher {
            Matcher::Linear(regex) => Ok(regex.captures_at(text, start).map(|captures| {
                let span = |at| captures.get(at).map(|group: regex::Match<'_>| (group.start(), group.end()));
                RegexMatch::new((0..captures.len()).map(span))
            })),
            Matcher::Backtracking(regex) => match regex.captures_from_pos(text, start) {
                Ok(captures) => Ok(captures.map(|captures| {
                    let span = |at| captures.get(at).map(|group| (group.start(), group.end()));
                    RegexMatch::new((0..captures.len()).map(span))
                })),
                Err(error) => Err(RegexFault::Invalid.error(format!("Regular expression gives up: {error}"))),
            },
        }
    }

    /// Whether a leaf is a text that is matched, or the same regular expression.
    pub(crate) fn holds(&self, value: Option<RawValue<'_>>) -> Result<bool, QueryError> {
        match value {
            Some(RawValue::String(text) | RawValue::Symbol(text)) => self.is_match(text),
            Some(RawValue::Regex(regex)) => {
                Ok(regex.pattern == &*self.pattern && regex.options == &*self.options)
            }
            _ => Ok(false),
        }
    }
}

fn compile(translation: &Translation, flags: Flags) -> Result<Matcher, QueryError> {
    if let Some(fault) = translation.fault {
        return Err(invalid(fault));
    }
    let linear = regex::RegexBuilder::new(&translation.pattern)
        .case_insensitive(flags.ignore_case)
        .multi_line(flags.multi_line)
        .dot_matches_new_line(flags.dot_all)
        .ignore_whitespace(flags.extended)
        .build();
    match linear {
        Ok(regex) if !translation.needs_backtracking => return Ok(Matcher::Linear(regex)),
        Err(error) if !translation.needs_backtracking => return Err(invalid(&error.to_string())),
        Ok(_) | Err(_) => {}
    }
    let prefixed = format!("{}{}", flags.inline(), translation.pattern);
    fancy_regex::Regex::new(&prefixed).map(Matcher::Backtracking).map_err(|error| invalid(&error.to_string()))
}

/// MongoDB shows PCRE's words, which some tests of applications know; for rare faults ours stand in.
fn invalid(cause: &str) -> QueryError {
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
