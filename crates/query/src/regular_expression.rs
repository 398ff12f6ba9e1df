//! Regular expressions: PCRE's syntax, matched by two Rust crates.
//!
//! 1. [`syntax`] translates a pattern to the syntax of the crate `regex`, whose matching time is linear in
//!    the text.
//! 2. A pattern that needs lookaround, backreferences, possessive or atomic groups goes to `fancy-regex`.
//!    That crate gives up after a number of steps, so no pattern runs for ever.
//!
//! [`compiled`] bounds the memory and the time of both.
//!
//! Not here: `$regex` and `$options` of filters (`filter`), `$regexMatch` and its kin (`expression`).

mod compiled;
mod fault;
mod syntax;

use std::sync::Arc;

use pando_document::RawValue;

pub use self::fault::RegexFault;

use self::compiled::{Compiled, Matcher, gave_up};
use self::fault::invalid;
use self::syntax::Flags;
use crate::QueryError;

/// Characters that a pattern may have. MongoDB refuses a few less, by the size of the compiled pattern.
const PATTERN_CHARACTERS_MAX: usize = 32_764;

/// A compiled regular expression. Cloning shares the compiled form.
#[derive(Clone, Debug)]
pub struct RegularExpression {
    pattern: Box<str>,
    options: Box<str>,
    compiled: Arc<Compiled>,
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
        let compiled = Arc::new(Compiled::new(&syntax::translate(pattern, flags), flags)?);
        Ok(RegularExpression { pattern: pattern.into(), options: options.into(), compiled })
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
        match &self.compiled.matcher {
            Matcher::Linear(regex) => Ok(regex.is_match(text)),
            Matcher::Backtracking(pattern) => {
                pattern.for_text(text)?.is_match(text).map_err(|error| gave_up(&error))
            }
        }
    }

    /// The first match at or behind a byte offset, which is at a character's start.
    ///
    /// # Errors
    /// The pattern backtracks too much on this text.
    pub fn find_from(&self, text: &str, start: usize) -> Result<Option<RegexMatch>, QueryError> {
        match &self.compiled.matcher {
            Matcher::Linear(regex) => Ok(regex.captures_at(text, start).map(|captures| {
                let span = |at| captures.get(at).map(|group: regex::Match<'_>| (group.start(), group.end()));
                RegexMatch::new((0..captures.len()).map(span))
            })),
            Matcher::Backtracking(pattern) => {
                let captures = pattern
                    .for_text(text)?
                    .captures_from_pos(text, start)
                    .map_err(|error| gave_up(&error))?;
                Ok(captures.map(|captures| {
                    let span = |at| captures.get(at).map(|group| (group.start(), group.end()));
                    RegexMatch::new((0..captures.len()).map(span))
                }))
            }
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
