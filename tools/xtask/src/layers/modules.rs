//! The rule on modules: the uses between a crate's top modules are those that the head of its root lists.
//!
//! 1. Each use of one top module by another is listed, or the used one is a leaf.
//! 2. Each listed arrow is used; each listed name is a top module; each leaf is used.
//! 3. The arrows have no circle, and a leaf uses leaves only.
//! 4. A top module uses no item of the root, and no glob of it.
//!
//! A crate of [`CRATES_WITH_LIST`] must have a list; another crate may have one.

use super::CrateRoot;
use super::circles::{self, ArrowSet};
use super::module_arrows::ModuleArrows;
use super::module_uses::ModuleUses;
use crate::finding::{CheckError, Finding};
use std::path::Path;

/// The crates that must list the arrows between their modules, by the names of their folders.
const CRATES_WITH_LIST: [&str; 7] = ["bench", "betree", "commands", "query", "server", "storage", "xtask"];

const RULE: &str = "module-layers";

/// Checks one root of a crate.
pub fn check(root: &Path, crate_root: &CrateRoot) -> Result<Vec<Finding>, CheckError> {
    let path = &crate_root.path;
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let text = read(path).unwrap_or_default();
    let list = match ModuleArrows::parse(&text) {
        Ok(list) => list,
        Err(error) => return Ok(vec![Finding::new(path, error.line(), RULE, error.to_string())]),
    };
    let must_have_list = CRATES_WITH_LIST.contains(&crate_root.folder.as_str());
    if list.is_none() && !must_have_list {
        return Ok(Vec::new());
    }
    let found = ModuleUses::read(path, &read)?;
    match list {
        Some(list) => Ok(compare(path, &list, &found)),
        None if found.modules.is_empty() => Ok(Vec::new()),
        None => {
            let message = format!(
                "the head has no list of arrows between the modules: `cargo xtask layers --graph {}` prints one \
                 to paste",
                crate_root.folder
            );
            Ok(vec![Finding::new(path, 1, RULE, message)])
        }
    }
}

/// Holds the found uses against the list in the root file.
fn compare(root_file: &str, list: &ModuleArrows, found: &ModuleUses) -> Vec<Finding> {
    let mut findings = undeclared(root_file, list, found);
    findings.extend(unused(root_file, list, found));
    findings.extend(uses_of_root(root_file, found));
    findings.extend(circles_in(root_file, list, found));
    findings.sort();
    findings
}

fn undeclared(root_file: &str, list: &ModuleArrows, found: &ModuleUses) -> Vec<Finding> {
    let uses = found.uses.iter().filter(|found| !list.allow(&found.from, &found.to));
    uses.map(|found| {
        let (from, to) = (&found.from, &found.to);
        let message = format!(
            "`{from} -> {to}` (by `{}`) is not an allowed arrow (allowed from `{from}`: {}): move what is needed to \
             an allowed module, or add the arrow to the list in {root_file} if it makes no circle",
            found.name,
            list.allowed_from(from)
        );
        Finding::new(&found.path, found.line, RULE, message)
    })
    .collect()
}

fn unused(root_file: &str, list: &ModuleArrows, found: &ModuleUses) -> Vec<Finding> {
    let used = found.arrows();
    let mut findings = Vec::new();
    let mut find = |line, message| findings.push(Finding::new(root_file, line, RULE, message));
    for (name, line) in list.names() {
        if !found.modules.contains(name) {
            find(
                line,
                format!("`{name}` is no module of this crate: remove it from the list, or correct its name"),
            );
        }
    }
    for ((from, to), line) in &list.arrows {
        let are_modules = found.modules.contains(from) && found.modules.contains(to);
        if are_modules && !used.contains_key(&(from, to)) {
            find(*line, format!("`{from} -> {to}` is not used: remove it from the list"));
        } else if list.leaves.contains_key(to) && !list.leaves.contains_key(from) {
            find(
                *line,
                format!("`{from} -> {to}` need not be listed, for `{to}` is a leaf: remove it from the list"),
            );
        }
    }
    for (leaf, line) in &list.leaves {
        if found.modules.contains(leaf) && !used.keys().any(|(_, to)| to == leaf) {
            find(*line, format!("the leaf `{leaf}` is not used by any module: remove it from the list"));
        }
    }
    findings
}

fn uses_of_root(root_file: &str, found: &ModuleUses) -> Vec<Finding> {
    let uses = found.root_uses.iter();
    uses.map(|found| {
        let message = if found.name == "*" {
            format!("a glob of {root_file} hides which modules are used: name what is needed")
        } else {
            format!(
                "`{}` stands in {root_file}, which stands on every module: move it to a module",
                found.name
            )
        };
        Finding::new(&found.path, found.line, RULE, message)
    })
    .collect()
}

/// Circles among the listed arrows, and leaves that use modules which are none.
fn circles_in(root_file: &str, list: &ModuleArrows, found: &ModuleUses) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut arrows: ArrowSet<'_> = ArrowSet::new();
    for ((from, to), line) in &list.arrows {
        if list.leaves.contains_key(from) && !list.leaves.contains_key(to) {
            let message = format!(
                "`{from}` is a leaf and uses `{to}`, which is none: make `{to}` a leaf too, or `{from}` an ordinary \
                 module"
            );
            findings.push(Finding::new(root_file, *line, RULE, message));
        } else {
            arrows.insert((from, to));
        }
    }
    let used = found.arrows();
    for group in circles::groups(&arrows) {
        let Some(circle) =
            group.iter().filter_map(|name| circles::shortest_through(&arrows, name)).min_by_key(Vec::len)
        else {
            continue;
        };
        let line = list.arrows.get(&(circle[0].to_owned(), circle[1].to_owned())).copied().unwrap_or(1);
        let places = circle.windows(2).filter_map(|step| used.get(&(step[0], step[1])));
        let places: Vec<String> = places
            .filter_map(|uses| uses.first())
            .map(|found| format!("{}:{}", found.path, found.line))
            .collect();
        let message = format!(
            "`{}` is a circle (at {}): turn one of these arrows round, or move what both need to a module below both",
            circle.join(" -> "),
            places.join(", ")
        );
        findings.push(Finding::new(root_file, line, RULE, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of a crate with this list and these modules.
    fn findings(list: &str, modules: &[(&str, &str)]) -> Vec<String> {
        let list = list.lines().map(|line| format!("//! {line}\n")).collect::<String>();
        let declared = modules.iter().map(|(name, _)| format!("mod {name};\n")).collect::<String>();
        let root = format!("//! ```arrows\n{list}//! ```\n{declared}fn told() {{}}\n");
        let read = |path: &str| {
            let module =
                |(name, text): &&(&str, &str)| path == format!("x/src/{name}.rs") && !text.is_empty();
            if path == "x/src/lib.rs" {
                return Some(root.clone());
            }
            modules.iter().find(module).map(|(_, text)| (*text).to_owned())
        };
        let list = ModuleArrows::parse(&root).expect("well formed").expect("there is a list");
        let found = ModuleUses::read("x/src/lib.rs", &read).expect("the fixtures are Rust");
        compare("x/src/lib.rs", &list, &found).into_iter().map(|finding| finding.to_string()).collect()
    }

    fn only(findings: Vec<String>) -> String {
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.into_iter().next().expect("there is one")
    }

    #[test]
    fn a_list_that_says_what_is_used_is_silent() {
        let modules = [
            ("a", "use crate::{b::B, e};"),
            ("b", "use crate::e::E;"),
            ("e", "use crate::f::F;"),
            ("f", "//! F."),
        ];
        assert!(findings("a -> b\ne -> f\nleaves: e, f", &modules).is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_listed_is_found_at_the_use() {
        let found = only(findings(
            "a -> c\nleaves: e",
            &[
                ("a", "use crate::c;\nuse crate::b::B;\nuse crate::e;"),
                ("b", "//! B."),
                ("c", "//! C."),
                ("e", "//! E."),
            ],
        ));
        assert!(found.starts_with("x/src/a.rs:2: module-layers: `a -> b`"), "{found}");
        assert!(found.contains("allowed from `a`: c, e"), "{found}");
    }

    #[test]
    fn an_arrow_that_is_not_used_is_found_in_the_list() {
        let found = only(findings("a -> b, c", &[("a", "use crate::b;"), ("b", "//! B."), ("c", "//! C.")]));
        assert!(found.starts_with("x/src/lib.rs:2: module-layers: `a -> c` is not used"), "{found}");
    }

    #[test]
    fn a_use_in_tests_only_is_not_used() {
        let found =
            only(findings("a -> b", &[("a", "#[cfg(test)]\nmod tests { use crate::b; }"), ("b", "//! B.")]));
        assert!(found.contains("`a -> b` is not used"), "{found}");
    }

    #[test]
    fn a_name_that_is_no_module_is_found() {
        let found = only(findings("a -> b, gone", &[("a", "use crate::b;"), ("b", "//! B.")]));
        assert!(found.contains("`gone` is no module"), "{found}");
    }

    #[test]
    fn arrows_to_leaves_are_not_listed_and_leaves_are_used() {
        let found = only(findings("a -> b\nleaves: b", &[("a", "use crate::b;"), ("b", "//! B.")]));
        assert!(found.contains("need not be listed"), "{found}");
        let found = only(findings("leaves: b", &[("a", "//! A."), ("b", "//! B.")]));
        assert!(found.contains("the leaf `b` is not used"), "{found}");
    }

    #[test]
    fn a_circle_is_found_with_its_places() {
        let found = only(findings(
            "a -> b\nb -> c\nc -> a",
            &[("a", "use crate::b;"), ("b", "\nuse crate::c;"), ("c", "use crate::a;")],
        ));
        assert!(found.contains("`a -> b -> c -> a` is a circle"), "{found}");
        assert!(found.contains("x/src/b.rs:2"), "{found}");
    }

    #[test]
    fn a_leaf_that_uses_another_module_is_found() {
        let found = only(findings(
            "e -> b\nleaves: e",
            &[("a", "use crate::e;"), ("b", "//! B."), ("e", "use crate::b;")],
        ));
        assert!(found.contains("`e` is a leaf and uses `b`"), "{found}");
    }

    #[test]
    fn items_and_globs_of_the_root_are_found() {
        let found = findings("", &[("a", "use crate::told;\nuse super::*;")]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("`told` stands in x/src/lib.rs") && found[1].contains("a glob"),
            "{found:?}"
        );
    }
}
