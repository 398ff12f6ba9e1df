//! The allowed arrows between the top modules of a crate, as the head of its root lists them.
//!
//! The list is a block of arrows (see [`crate::arrow_block`]) in the root's `//!` comment, with one group:
//! `leaves: error, options` names modules that every module may use. A leaf uses another leaf by a declared
//! arrow only, and no other module.
//!
//! Worked example: `engine -> log, space`, `log -> base` and `leaves: error`. The module `engine` may use
//! `log`, `space` and `error`; `log` may use `base` and `error`; `error` may use none.

use crate::arrow_block::{self, ArrowsError, Entry};
use std::collections::{BTreeMap, BTreeSet};

/// The word that names the modules that everybody may use.
const LEAVES: &str = "leaves";

/// Which top module may use which.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModuleArrows {
    /// The leaves, each with the line that names it.
    pub leaves: BTreeMap<String, usize>,
    /// The arrows, each with its line.
    pub arrows: BTreeMap<(String, String), usize>,
}

impl ModuleArrows {
    /// Reads the list out of the head of a crate's root; `None` if there is none.
    pub fn parse(root_text: &str) -> Result<Option<ModuleArrows>, ArrowsError> {
        let head = root_text.lines().map(|line| line.strip_prefix("//!").unwrap_or_default());
        let entries = match arrow_block::entries(head) {
            Err(ArrowsError::Missing) => return Ok(None),
            entries => entries?,
        };
        let mut list = ModuleArrows::default();
        for (line, entry) in entries {
            match entry {
                Entry::Arrow { from, to } => {
                    list.arrows.extend(to.into_iter().map(|to| ((from.clone(), to), line)));
                }
                Entry::Group { name, members } if name == LEAVES => {
                    list.leaves.extend(members.into_iter().map(|member| (member, line)));
                }
                Entry::Group { name, .. } => return Err(arrow_block::not_understood(line, &name)),
            }
        }
        Ok(Some(list))
    }

    /// Whether the module `from` may use the module `to`.
    pub fn allow(&self, from: &str, to: &str) -> bool {
        let is_free = self.leaves.contains_key(to) && !self.leaves.contains_key(from);
        is_free || self.arrows.contains_key(&(from.to_owned(), to.to_owned()))
    }

    /// The modules that a module may use, for a message.
    pub fn allowed_from(&self, from: &str) -> String {
        let mut all: BTreeSet<&str> =
            self.arrows.keys().filter(|(user, _)| user == from).map(|(_, used)| used.as_str()).collect();
        if !self.leaves.contains_key(from) {
            all.extend(self.leaves.keys().map(String::as_str));
        }
        if all.is_empty() { "none".to_owned() } else { all.into_iter().collect::<Vec<_>>().join(", ") }
    }

    /// All names in the list, each with a line.
    pub fn names(&self) -> BTreeMap<&str, usize> {
        let arrows = self.arrows.iter().flat_map(|((from, to), line)| [(from.as_str(), *line), (to, *line)]);
        arrows.chain(self.leaves.iter().map(|(leaf, line)| (leaf.as_str(), *line))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "//! A crate.\n//!\n//! ```arrows\n//! engine -> log, space\n//! log -> base\n\
                        //! options -> error\n//! leaves: error, options\n//! ```\nmod a;\n";

    fn list() -> ModuleArrows {
        ModuleArrows::parse(ROOT).expect("well formed").expect("there is a list")
    }

    #[test]
    fn arrows_allow_their_own_direction_and_leaves_are_free() {
        assert!(list().allow("engine", "log") && list().allow("log", "error"));
        assert!(!list().allow("log", "engine") && !list().allow("engine", "base"));
    }

    #[test]
    fn a_leaf_uses_another_by_a_declared_arrow_only() {
        assert!(list().allow("options", "error"));
        assert!(!list().allow("error", "options"));
    }

    #[test]
    fn lines_are_those_of_the_file() {
        assert_eq!(list().arrows[&("log".to_owned(), "base".to_owned())], 5);
        assert_eq!(list().leaves["error"], 7);
    }

    #[test]
    fn a_root_without_a_list_has_none_and_a_broken_list_is_refused() {
        assert_eq!(ModuleArrows::parse("//! A crate.\n"), Ok(None));
        assert_eq!(
            ModuleArrows::parse("//! ```arrows\n//! a -> b\n"),
            Err(ArrowsError::Unclosed { line: 1 })
        );
        let other = ModuleArrows::parse("//! ```arrows\n//! engines: b\n//! ```\n");
        assert_eq!(other, Err(arrow_block::not_understood(2, "engines")));
    }

    #[test]
    fn a_message_names_the_allowed_modules() {
        assert_eq!(list().allowed_from("engine"), "error, log, options, space");
        assert_eq!(list().allowed_from("error"), "none");
    }
}
