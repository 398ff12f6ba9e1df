//! The found arrows of a crate, for a person: the list to paste into the head of its root, then the
//! obstacles.
//!
//! The list keeps the leaves that the crate has declared. A crate without a list is proposed some: modules
//! that use no other and are used by at least [`LEAF_USERS_MIN`].

use super::CrateRoot;
use super::circles::{self, ArrowSet};
use super::module_arrows::ModuleArrows;
use super::module_uses::{ModuleUse, ModuleUses};
use crate::finding::CheckError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The number of modules that use a module before it is proposed as a leaf.
const LEAF_USERS_MIN: usize = 4;
/// A line of the list is as wide as a comment may be.
const LINE_BYTES_MAX: usize = 110;

/// The text for one root; empty if it has no modules.
pub fn of(root: &Path, crate_root: &CrateRoot) -> Result<String, CheckError> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let found = ModuleUses::read(&crate_root.path, &read)?;
    if found.modules.is_empty() {
        return Ok(String::new());
    }
    let text = read(&crate_root.path).unwrap_or_default();
    let list = ModuleArrows::parse(&text).ok().flatten();
    Ok(format!("{}\n{}", crate_root.path, describe(&found, list.as_ref())))
}

fn describe(found: &ModuleUses, list: Option<&ModuleArrows>) -> String {
    let arrows = found.arrows();
    let pairs: ArrowSet<'_> = arrows.keys().copied().collect();
    let leaves: BTreeSet<&str> = match list {
        Some(list) => {
            list.leaves.keys().map(String::as_str).filter(|leaf| found.modules.contains(*leaf)).collect()
        }
        None => proposed_leaves(found, &pairs),
    };
    let mut text = block(found, &pairs, &leaves);
    for root_use in &found.root_uses {
        let _ = writeln!(text, "{}:{}: uses `{}` of the root", root_use.path, root_use.line, root_use.name);
    }
    let groups = circles::groups(&pairs);
    if groups.is_empty() {
        text.push_str("no circle\n");
    }
    for group in groups {
        describe_group(&mut text, &group, &arrows);
    }
    text
}

fn proposed_leaves<'a>(found: &'a ModuleUses, arrows: &ArrowSet<'a>) -> BTreeSet<&'a str> {
    let modules = found.modules.iter().map(String::as_str);
    let is_leaf = |module: &&str| {
        arrows.iter().all(|(from, _)| from != module)
            && arrows.iter().filter(|(_, to)| to == module).count() >= LEAF_USERS_MIN
    };
    modules.filter(is_leaf).collect()
}

fn block(found: &ModuleUses, arrows: &ArrowSet<'_>, leaves: &BTreeSet<&str>) -> String {
    let mut text = "//! ```arrows\n".to_owned();
    let modules: BTreeSet<&str> = found.modules.iter().map(String::as_str).collect();
    for from in circles::from_users_to_used(&modules, arrows) {
        let is_listed = |to: &&str| leaves.contains(from) || !leaves.contains(to);
        let to = arrows.iter().filter(|(user, _)| *user == from).map(|(_, to)| *to).filter(is_listed);
        let mut line = String::new();
        for to in to {
            // A module may have several lines.
            if line.len() + ", ".len() + to.len() > LINE_BYTES_MAX {
                let _ = writeln!(text, "{line}");
                line.clear();
            }
            let joint = if line.is_empty() { format!("//! {from} -> ") } else { ", ".to_owned() };
            line.push_str(&joint);
            line.push_str(to);
        }
        if !line.is_empty() {
            let _ = writeln!(text, "{line}");
        }
    }
    if !leaves.is_empty() {
        let _ = writeln!(text, "//! leaves: {}", leaves.iter().copied().collect::<Vec<_>>().join(", "));
    }
    text.push_str("//! ```\n");
    text
}

/// A circle group: its names, then each of its arrows, those with the fewest uses first, for they are cut
/// most cheaply.
fn describe_group(
    text: &mut String,
    group: &BTreeSet<&str>,
    arrows: &BTreeMap<(&str, &str), Vec<&ModuleUse>>,
) {
    let names: Vec<&str> = group.iter().copied().collect();
    let _ = writeln!(text, "circle among {} modules: {}", names.len(), names.join(", "));
    let mut within: Vec<_> =
        arrows.iter().filter(|((from, to), _)| group.contains(from) && group.contains(to)).collect();
    within.sort_by_key(|(pair, uses)| (uses.len(), **pair));
    for ((from, to), uses) in within {
        let places: Vec<String> =
            uses.iter().take(3).map(|found| format!("{}:{}", found.path, found.line)).collect();
        let more = if uses.len() > places.len() { ", …" } else { "" };
        let _ = writeln!(text, "  {from} -> {to}: {} uses ({}{more})", uses.len(), places.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(uses: &[(&str, &str)]) -> ModuleUses {
        let mut found = ModuleUses::default();
        for (from, to) in uses {
            found.modules.extend([(*from).to_owned(), (*to).to_owned()]);
            let (from, to) = ((*from).to_owned(), (*to).to_owned());
            found.uses.push(ModuleUse { path: format!("{from}.rs"), line: 1, name: to.clone(), from, to });
        }
        found
    }

    #[test]
    fn the_list_goes_from_users_to_used_and_proposes_leaves() {
        let uses = [("a", "b"), ("a", "e"), ("b", "c"), ("b", "e"), ("c", "e"), ("d", "e")];
        let text = describe(&found(&uses), None);
        assert_eq!(text, "//! ```arrows\n//! a -> b\n//! b -> c\n//! leaves: e\n//! ```\nno circle\n");
    }

    #[test]
    fn a_long_line_is_broken() {
        let names: Vec<String> = (0..12).map(|at| format!("a_long_module_name_{at:02}")).collect();
        let uses: Vec<(&str, &str)> = names.iter().map(|name| ("top", name.as_str())).collect();
        let text = describe(&found(&uses), None);
        assert_eq!(text.lines().filter(|line| line.starts_with("//! top -> ")).count(), 3, "{text}");
        assert!(text.lines().all(|line| line.len() <= LINE_BYTES_MAX), "{text}");
    }

    #[test]
    fn the_crates_own_leaves_are_kept() {
        let list = ModuleArrows::parse("//! ```arrows\n//! leaves: c\n//! ```\n").expect("well formed");
        let text = describe(&found(&[("a", "c"), ("a", "b"), ("c", "b")]), list.as_ref());
        assert!(text.contains("//! a -> b\n//! c -> b\n//! leaves: c\n"), "{text}");
    }

    #[test]
    fn a_circle_is_described_with_its_arrows() {
        let text = describe(&found(&[("a", "b"), ("b", "a"), ("b", "c")]), None);
        assert!(text.contains("circle among 2 modules: a, b\n  a -> b: 1 uses (a.rs:1)\n"), "{text}");
    }
}
