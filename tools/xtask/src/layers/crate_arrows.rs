//! The allowed arrows between crates, read out of ARCHITECTURE.md, so that page and rule cannot part.
//!
//! The list is the page's one block of arrows (see [`crate::arrow_block`]), with two groups:
//! - `leaves: document, keyorder`: crates that every crate may depend on;
//! - `engines: memory, betree`: the crates for which the word `engines` stands, on both sides of an arrow.
//!
//! Crates are called by the name of their folder. A name may be of a crate that does not exist yet.
//!
//! Worked example: `engines -> storage`, `leaves: document` and `engines: memory`. The crate `memory` may
//! depend on `storage` (as an engine) and on `document` (a leaf), and on no other crate of the workspace.

use crate::arrow_block::{self, ArrowsError, Entry};
use std::collections::{BTreeMap, BTreeSet};

/// The word that stands for all engines.
const ENGINES: &str = "engines";
/// The word that names the crates that everybody may use.
const LEAVES: &str = "leaves";

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
        for (line, entry) in arrow_block::entries(page.lines())? {
            match entry {
                Entry::Arrow { from, to } => arrows.allowed.entry(from).or_default().extend(to),
                Entry::Group { name, members } if name == LEAVES => arrows.leaves.extend(members),
                Entry::Group { name, members } if name == ENGINES => arrows.engines.extend(members),
                Entry::Group { name, .. } => return Err(arrow_block::not_understood(line, &name)),
            }
        }
        Ok(arrows)
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

    /// The crates that a crate may depend on, for a message.
    pub fn allowed_from(&self, from: &str) -> String {
        let mut all: Vec<&str> = self.leaves.iter().map(String::as_str).collect();
        let keys = if self.is_engine(from) { vec![from, ENGINES] } else { vec![from] };
        for key in keys {
            all.extend(self.allowed.get(key).into_iter().flatten().map(String::as_str));
        }
        all.join(", ")
    }
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
    fn a_group_of_another_name_is_refused() {
        let error = Arrows::parse("```arrows\nnests: memory\n```\n");
        assert_eq!(error, Err(arrow_block::not_understood(2, "nests")));
    }
}
