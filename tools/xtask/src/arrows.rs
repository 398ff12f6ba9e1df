//! The list of allowed arrows, read out of ARCHITECTURE.md, so that page and rule cannot part.
//!
//! The list is the one fenced block that opens with "```arrows". Each of its lines is one of
//! - `server -> pando, commands, wire`: the crate in folder `server` may depend on those;
//! - `leaves: document, keyorder`: crates that every crate may depend on;
//! - `engines: memory, betree`: what the word `engines` stands for, on both sides of an arrow.
//!
//! Crates are called by the name of their folder. A name may be of a crate that does not exist yet.
//!
//! Worked example: with `engines -> storage`, `leaves: document` and `engines: memory`, the crate `memory` may depend on
//! `storage` (as an engine) and on `document` (a leaf), and on nothing else of the workspace.

use std::collections::{BTreeMap, BTreeSet};

/// Opens the block in the page.
const OPENING: &str = "```arrows";
/// Closes it.
const CLOSING: &str = "```";
/// The word that stands for all engines.
const ENGINES: &str = "engines";
/// The word that names the crates that everybody may use.
const LEAVES: &str = "leaves";

/// Why the page has no usable list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrowsError {
    /// There is no block.
    #[error("there is no block that opens with {OPENING}: write one with lines such as `query -> catalog`")]
    Missing,
    /// The block does not end.
    #[error("the block that opens in line {line} is not closed")]
    Unclosed {
        /// Where it opens.
        line: usize,
    },
    /// There is a second block.
    #[error("line {line} opens a second block: keep all arrows in one")]
    Second {
        /// Where it opens.
        line: usize,
    },
    /// A line that is neither an arrow nor a group.
    #[error("line {line} is neither `crate -> crate, crate` nor `group: crate, crate`: {text}")]
    NotUnderstood {
        /// Its line number.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// Which crate may depend on which.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arrows {
    leaves: BTreeSet<String>,
    engines: BTreeSet<String>,
    allowed: BTreeMap<String, BTreeSet<String>>,
}

impl Arrows {
    /// Reads the list out of the text of a page.
    pub fn parse(page: &str) -> Result<Arrows, ArrowsError> {
        let mut arrows = Arrows::default();
        let mut opened_at = None;
        let mut seen = false;
        for (index, line) in page.lines().enumerate() {
            let number = index + 1;
            match opened_at {
                None if line.trim_end() == OPENING && seen => {
                    return Err(ArrowsError::Second { line: number });
                }
                None if line.trim_end() == OPENING => (opened_at, seen) = (Some(number), true),
                None => {}
                Some(_) if line.trim_end() == CLOSING => opened_at = None,
                Some(_) => arrows.read_line(number, line)?,
            }
        }
        match opened_at {
            Some(line) => Err(ArrowsError::Unclosed { line }),
            None if seen => Ok(arrows),
            None => Err(ArrowsError::Missing),
        }
    }

    fn read_line(&mut self, number: usize, line: &str) -> Result<(), ArrowsError> {
        let text = line.trim();
        let understood = if text.is_empty() {
            true
        } else if let Some((from, to)) = text.split_once("->") {
            self.read_arrow(from.trim(), to)
        } else if let Some((group, members)) = text.split_once(':') {
            self.read_group(group.trim(), members)
        } else {
            false
        };
        if understood {
            Ok(())
        } else {
            Err(ArrowsError::NotUnderstood { line: number, text: text.to_owned() })
        }
    }

    fn read_arrow(&mut self, from: &str, to: &str) -> bool {
        match (is_name(from), names(to)) {
            (true, Some(to)) => {
                self.allowed.entry(from.to_owned()).or_default().extend(to);
                true
            }
            _ => false,
        }
    }

    fn read_group(&mut self, group: &str, members: &str) -> bool {
        match (group, names(members)) {
            (LEAVES, Some(members)) => self.leaves.extend(members),
            (ENGINES, Some(members)) => self.engines.extend(members),
            _ => return false,
        }
        true
    }

    /// Whether the crate is one of the engines.
    pub fn is_engine(&self, name: &str) -> bool {
        self.engines.contains(name)
    }

    /// Whether the crate `from` may depend on the crate `to`.
    pub fn allow(&self, from: &str, to: &str) -> bool {
        if self.leaves.contains(to) {
            return true;
        }
        let direct = self.allowed.get(from);
        let as_engine = self.allowed.get(ENGINES).filter(|_| self.is_engine(from));
        [direct, as_engine]
            .into_iter()
            .flatten()
            .any(|targets| targets.contains(to) || (targets.contains(ENGINES) && self.is_engine(to)))
    }

    /// What a crate may depend on, for a message.
    pub fn allowed_from(&self, from: &str) -> String {
        let mut all: Vec<&str> = self.leaves.iter().map(String::as_str).collect();
        let keys = if self.is_engine(from) { vec![from, ENGINES] } else { vec![from] };
        for key in keys {
            all.extend(self.allowed.get(key).into_iter().flatten().map(String::as_str));
        }
        all.join(", ")
    }
}

/// The names of a comma-separated list; nothing if one of them is none.
fn names(list: &str) -> Option<Vec<String>> {
    list.split(',').map(str::trim).map(|name| is_name(name).then(|| name.to_owned())).collect()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n```arrows\nquery -> catalog\nengines -> storage\npando -> query, engines\n\
                        leaves: document\nengines: memory, betree\n```\nmore\n";

    fn arrows() -> Arrows {
        Arrows::parse(PAGE).expect("the fixture is well formed")
    }

    #[test]
    fn an_arrow_allows_its_own_direction_only() {
        assert!(arrows().allow("query", "catalog"));
        assert!(!arrows().allow("catalog", "query"));
    }

    #[test]
    fn the_word_engines_stands_for_every_engine_on_both_sides() {
        assert!(arrows().allow("memory", "storage"));
        assert!(arrows().allow("pando", "betree"));
        assert!(!arrows().allow("memory", "betree"));
        assert!(!arrows().allow("query", "memory"));
    }

    #[test]
    fn a_leaf_may_be_used_from_anywhere() {
        assert!(arrows().allow("memory", "document"));
        assert!(arrows().allow("a-crate-that-the-page-does-not-name", "document"));
    }

    #[test]
    fn a_page_without_a_block_is_refused() {
        assert_eq!(Arrows::parse("# Page\n```text\nquery -> catalog\n```\n"), Err(ArrowsError::Missing));
    }

    #[test]
    fn a_block_that_does_not_end_is_refused() {
        assert_eq!(Arrows::parse("```arrows\nquery -> catalog\n"), Err(ArrowsError::Unclosed { line: 1 }));
    }

    #[test]
    fn a_second_block_is_refused() {
        let twice = format!("{PAGE}{PAGE}");
        assert_eq!(Arrows::parse(&twice), Err(ArrowsError::Second { line: 13 }));
    }

    #[test]
    fn a_line_that_is_no_arrow_is_refused_with_its_number() {
        for line in ["query => catalog", "query -> ", "nests: memory", "-> catalog", "Query -> catalog"] {
            let error = Arrows::parse(&format!("```arrows\n{line}\n```\n"));
            assert_eq!(
                error,
                Err(ArrowsError::NotUnderstood { line: 2, text: line.trim().to_owned() }),
                "{line}"
            );
        }
    }
}
