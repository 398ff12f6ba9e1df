//! Compiled patterns: the crate that matches each, and the bounds of their memory and time.
//!
//! # Bounds
//! - *Memory*. A few characters can stand for megabytes (`\p{L}{1000}`), and a filter may have thousands of
//!   patterns. So a pattern is compiled within the least of some [sizes](SIZES), and all patterns that are in
//!   use have [`BYTES_MAX`] together.
//! - *Groups*. A search that tells groups keeps their spans for each state of the pattern. So large patterns
//!   may have few groups ([`groups_max`]).
//! - *Time*. The matching time of the crate `regex` is linear in the text. `fancy-regex` gives up after a
//!   number of backtracks. Each of these may look through the rest of the text, so a long text has fewer
//!   ([`BACKTRACKED_BYTES`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fault::{RegexFault, invalid};
use super::syntax::{Flags, Translation};
use crate::error::{ErrorCode, QueryError};

/// Sizes of compiled patterns, in bytes: the greatest is also what the crate `regex` allows on its own.
const SIZES: [usize; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 10 << 20];
/// Bytes of all compiled patterns of the process that are in use.
const BYTES_MAX: usize = 512 << 20;
/// Bytes of the states that a search makes as it goes on, where the pattern is small or large.
const SEARCH_BYTES: (usize, usize) = (256 << 10, 2 << 20);
/// Bytes of the spans of groups in one search.
const SPAN_BYTES_MAX: usize = 128 << 20;
/// The least bytes that one state of a compiled pattern takes.
const STATE_BYTES: usize = 24;
/// The bytes of the span of a group.
const SPAN_BYTES: usize = 16;

/// Sizes of each of the parts of a pattern with backtracking that the crate `regex` matches.
const PART_BYTES: [usize; 2] = [16 << 10, 128 << 10];
/// Size of all of these parts together.
const PARTS_BYTES_MAX: usize = 16 << 20;
/// Groups of a pattern with backtracking.
const BACKTRACKING_GROUPS_MAX: usize = 2_000;
/// Instructions of a pattern with backtracking: calls of groups are written out.
const INSTRUCTIONS_MAX: usize = 100_000;

/// Backtracks of a search in a short text.
const BACKTRACKS_MAX: usize = 1_000_000;
/// Backtracks times bytes of the text: a minute or two at worst. Most patterns take a backtrack for each
/// place of the text, so these may search texts of some 300 KB to the end.
const BACKTRACKED_BYTES: usize = 100_000_000_000;
/// How much longer the texts of each class of lengths are than those of the one before.
const LENGTH_STEP: usize = 4;
/// The classes of lengths of texts.
const LENGTH_CLASSES: usize = 6;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Compiled {
    pub matcher: Matcher,
    /// Held as long as the pattern is in use.
    _bytes: BudgetShare,
}

#[derive(Debug)]
pub(super) enum Matcher {
    /// Time linear in the text.
    Linear(regex::Regex),
    /// Time bounded by a number of steps.
    Backtracking(Box<Backtracking>),
}

impl Compiled {
    /// Compiles a translated pattern.
    pub fn new(translation: &Translation, flags: Flags) -> Result<Compiled, QueryError> {
        if let Some(fault) = translation.fault {
            return Err(invalid(fault));
        }
        if translation.needs_backtracking {
            return Backtracking::compile(format!("{}{}", flags.inline(), translation.pattern));
        }
        for size in SIZES {
            let bytes = BUDGET.share(size)?;
            match linear(translation, flags, size) {
                Ok(regex) if regex.captures_len() > groups_max(size) => return Err(too_large()),
                Ok(regex) => return Ok(Compiled { matcher: Matcher::Linear(regex), _bytes: bytes }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(invalid(&error.to_string())),
            }
        }
        Err(too_large())
    }
}

fn linear(translation: &Translation, flags: Flags, size: usize) -> Result<regex::Regex, regex::Error> {
    regex::RegexBuilder::new(&translation.pattern)
        .case_insensitive(flags.ignore_case)
        .multi_line(flags.multi_line)
        .dot_matches_new_line(flags.dot_all)
        .ignore_whitespace(flags.extended)
        .size_limit(size)
        .dfa_size_limit((size * 4).clamp(SEARCH_BYTES.0, SEARCH_BYTES.1))
        .build()
}

/// The groups that a pattern of some size may have, itself counted as one.
fn groups_max(size: usize) -> usize {
    let states = size / STATE_BYTES;
    SPAN_BYTES_MAX / (states * SPAN_BYTES)
}

fn too_large() -> QueryError {
    invalid("regular expression is too large")
}

/// A pattern with backtracking.
#[derive(Debug)]
pub(super) struct Backtracking {
    pattern: String,
    part_bytes: usize,
    /// The pattern for texts of each class of lengths: the number of backtracks is compiled in.
    by_length: [OnceLock<fancy_regex::Regex>; LENGTH_CLASSES],
}

impl Backtracking {
    fn compile(pattern: String) -> Result<Compiled, QueryError> {
        // Parts end at groups, at escapes and the like.
        let parts = 1 + pattern.bytes().filter(u8::is_ascii_punctuation).count();
        let mut part_sizes = PART_BYTES.to_vec();
        part_sizes.push((PARTS_BYTES_MAX / parts).max(PART_BYTES[0]));
        let mut refusal = too_large();
        for part_bytes in part_sizes {
            let bytes = BUDGET.share((parts * part_bytes).min(PARTS_BYTES_MAX))?;
            let compiled =
                Backtracking { pattern: pattern.clone(), part_bytes, by_length: Default::default() };
            match compiled.regex(0).map(fancy_regex::Regex::captures_len) {
                Ok(groups) if groups > BACKTRACKING_GROUPS_MAX => return Err(too_large()),
                Ok(_) => {
                    let matcher = Matcher::Backtracking(Box::new(compiled));
                    return Ok(Compiled { matcher, _bytes: bytes });
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// The pattern for a text of some length.
    pub fn for_text(&self, text: &str) -> Result<&fancy_regex::Regex, QueryError> {
        self.regex(length_class(text.len()))
    }

    fn regex(&self, class: usize) -> Result<&fancy_regex::Regex, QueryError> {
        let place = &self.by_length[class];
        if place.get().is_none() {
            let regex = fancy_regex::RegexBuilder::new(&self.pattern)
                .backtrack_limit(BACKTRACKS_MAX / LENGTH_STEP.pow(class as u32))
                .delegate_size_limit(self.part_bytes)
                .delegate_dfa_size_limit(SEARCH_BYTES.0)
                .max_prog_size(INSTRUCTIONS_MAX)
                .build()
                .map_err(|error| invalid(&error.to_string()))?;
            // Another thread may have been faster.
            let _same = place.set(regex);
        }
        place.get().ok_or_else(too_large)
    }
}

/// The class of texts of some length.
fn length_class(bytes: usize) -> usize {
    let short = BACKTRACKED_BYTES / BACKTRACKS_MAX;
    let is_within = |class: &usize| bytes <= short * LENGTH_STEP.pow(*class as u32);
    (0..LENGTH_CLASSES).find(is_within).unwrap_or(LENGTH_CLASSES - 1)
}

/// The error of a search that has no backtracks left.
pub(super) fn gave_up(error: &fancy_regex::Error) -> QueryError {
    RegexFault::Invalid.error(format!("Regular expression gives up: {error}"))
}

/// The bytes of compiled patterns.
#[derive(Debug)]
struct Budget {
    bytes_max: usize,
    held: AtomicUsize,
}

/// Patterns are parsed in many places that know no request. Their bytes are counted in one place for all.
static BUDGET: Budget = Budget { bytes_max: BYTES_MAX, held: AtomicUsize::new(0) };

impl Budget {
    fn share(&'static self, bytes: usize) -> Result<BudgetShare, QueryError> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed);
        let share = BudgetShare { budget: self, bytes };
        if held + bytes <= self.bytes_max {
            return Ok(share);
        }
        Err(QueryError::new(
            ErrorCode::ExceededMemoryLimit,
            format!(
                "the regular expressions in use take more than {} bytes of memory: use fewer or simpler ones",
                self.bytes_max
            ),
        ))
    }
}

/// Bytes of the budget, until it is dropped.
#[derive(Debug)]
struct BudgetShare {
    budget: &'static Budget,
    bytes: usize,
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RegularExpression;
    use super::*;

    fn refused(pattern: &str) -> bool {
        RegularExpression::new(pattern, "").is_err()
    }

    #[test]
    fn the_bytes_of_all_patterns_have_a_bound_and_come_back() {
        static FEW: Budget = Budget { bytes_max: 100, held: AtomicUsize::new(0) };
        let shares = [FEW.share(60).unwrap(), FEW.share(40).unwrap()];
        let error = FEW.share(1).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::ExceededMemoryLimit));
        drop(shares);
        assert!(FEW.share(100).is_ok());
    }

    #[test]
    fn patterns_of_much_memory_are_refused() {
        assert!(refused(r"\p{L}{1000}"));
        assert!(refused(&format!("{}a*{}", "(".repeat(5_000), ")".repeat(5_000))));
        assert!(refused(&format!("(?=x){}", "()".repeat(5_000))));
        assert!(refused(&format!("(?=x){}", r"(?=\p{L}{90})".repeat(500))));
        for usual in [r"\p{L}{1,20}", r"^(\w+) (\d{1,3})\.(\d{1,3}) \[([^\]]*)\]$", r"(?i)foo(?!bar)\p{L}*"] {
            assert!(!refused(usual), "{usual}");
        }
        let words: Vec<String> = (0..3_000).map(|at| format!("word{at}")).collect();
        assert!(!refused(&format!("^({})$", words.join("|"))));
    }

    #[test]
    fn long_texts_have_fewer_backtracks() {
        assert_eq!([0, 100_000, 100_001, 400_000, 16 << 20].map(length_class), [0, 0, 1, 1, 4]);
        assert_eq!(length_class(usize::MAX), LENGTH_CLASSES - 1);
        let pattern = RegularExpression::new("error(?!s)", "i").unwrap();
        let text = |bytes: usize| format!("{} Error ", "errors ".repeat(bytes / 7));
        assert!(pattern.is_match(&text(99_000)).unwrap() && pattern.is_match(&text(200_000)).unwrap());
        let each_place = RegularExpression::new("(?=a)a(?=b)", "").unwrap();
        assert!(!each_place.is_match(&"a".repeat(90_000)).unwrap());
        assert!(each_place.is_match(&"a".repeat(16 << 20)).is_err());
    }
}
