//! The truth about the modules of a crate: each use of one top module by another, with its file and line.
//!
//! A *top module* is a child of the crate's root: its file `x.rs` and its folder `x/`.
//!
//! 1. The module tree is followed from the root file ([`tokens`]), so that tests are left out as the compiler
//!    does it.
//! 2. Each path that leaves a top module is resolved to a top module: by its name, by an item that the root
//!    re-exports from it (`crate::Betree` after `pub use engine::Betree`), or by a macro that it exports.
//! 3. A path to an item that stands in the root itself, and a glob of the root, are noted as [`RootUse`]: no
//!    list can allow them. A name that the root has from another crate is no use of a module.

use super::tokens::{self, Child, FileTokens, Path, Ups};
use crate::finding::CheckError;
use std::collections::{BTreeMap, BTreeSet};

/// One use of a top module by another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleUse {
    /// The top module that uses.
    pub from: String,
    /// The top module that is used.
    pub to: String,
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The first name after `crate::`: the module, or an item that is re-exported from it.
    pub name: String,
}

/// A use of the root by a top module.
#[derive(Debug, PartialEq, Eq)]
pub struct RootUse {
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The item; `*` for a glob.
    pub name: String,
}

/// The top modules of a crate and their uses of each other.
#[derive(Debug, Default)]
pub struct ModuleUses {
    /// The top modules.
    pub modules: BTreeSet<String>,
    /// Their uses of each other, in order.
    pub uses: Vec<ModuleUse>,
    /// Their uses of the root.
    pub root_uses: Vec<RootUse>,
}

impl ModuleUses {
    /// Follows the crate with this root file; `read` gives the text of a file, or `None` if there is none.
    pub fn read(root_file: &str, read: &dyn Fn(&str) -> Option<String>) -> Result<ModuleUses, CheckError> {
        let mut tree = Tree { read, files: Vec::new() };
        tree.follow(root_file, &[])?;
        Ok(resolve(&tree.files))
    }

    /// The uses by arrow.
    pub fn arrows(&self) -> BTreeMap<(&str, &str), Vec<&ModuleUse>> {
        let mut arrows: BTreeMap<(&str, &str), Vec<&ModuleUse>> = BTreeMap::new();
        for found in &self.uses {
            arrows.entry((&found.from, &found.to)).or_default().push(found);
        }
        arrows
    }
}

struct Tree<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    /// Each file with its path and its tokens, the root first.
    files: Vec<(String, FileTokens)>,
}

impl Tree<'_> {
    fn follow(&mut self, path: &str, module: &[String]) -> Result<(), CheckError> {
        let Some(text) = (self.read)(path) else { return Ok(()) };
        let mut file = tokens::read(&text, module)
            .map_err(|error| CheckError::NotRust { path: path.to_owned(), reason: error.to_string() })?;
        let children = std::mem::take(&mut file.children);
        self.files.push((path.to_owned(), file));
        for child in children {
            if let Some(path) = self.file_of(path, module.len(), &child) {
                self.follow(&path, &child.module)?;
            }
        }
        Ok(())
    }

    /// The file of a child that is declared in the file `parent`, whose own module has this many names.
    fn file_of(&self, parent: &str, depth: usize, child: &Child) -> Option<String> {
        let (folder, name) = parent.rsplit_once('/')?;
        if let Some(file) = &child.file {
            return Some(format!("{folder}/{file}"));
        }
        let stem = name.trim_end_matches(".rs");
        let is_at_folder = depth == 0 || stem == "mod";
        let folder = if is_at_folder { folder.to_owned() } else { format!("{folder}/{stem}") };
        let place = format!("{folder}/{}", child.module[depth..].join("/"));
        let exists = |path: &String| (self.read)(path).is_some();
        [format!("{place}.rs"), format!("{place}/mod.rs")].into_iter().find(exists)
    }
}

fn resolve(files: &[(String, FileTokens)]) -> ModuleUses {
    let mut found = ModuleUses::default();
    let Some((_, root)) = files.first() else { return found };
    found
        .modules
        .extend(root.modules.iter().filter(|module| module.len() == 1).map(|module| module[0].clone()));
    let names = names_of_root(files, &found.modules);
    for (file, tokens) in files {
        for path in &tokens.paths {
            let Some(from) = path.module.first().filter(|_| reaches_root(path)) else { continue };
            let Path { line, name, .. } = path;
            match names.get(name.as_str()) {
                Some(Origin::Module(to)) if to != from => found.uses.push(ModuleUse {
                    from: from.clone(),
                    to: to.clone(),
                    path: file.clone(),
                    line: *line,
                    name: name.clone(),
                }),
                Some(Origin::Root) => {
                    found.root_uses.push(RootUse { path: file.clone(), line: *line, name: name.clone() });
                }
                _ => {}
            }
        }
    }
    found.uses.sort();
    found.uses.dedup();
    found
}

fn reaches_root(path: &Path) -> bool {
    match path.ups {
        Ups::Root => true,
        Ups::Modules(ups) => ups == path.module.len(),
    }
}

/// Where a name of the root comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Module(String),
    Root,
}

/// The names of the crate's root that lead to a module or stand in the root.
fn names_of_root(files: &[(String, FileTokens)], modules: &BTreeSet<String>) -> BTreeMap<String, Origin> {
    let mut names = BTreeMap::new();
    names.insert("*".to_owned(), Origin::Root);
    if let Some((_, root)) = files.first() {
        names.extend(root.root_items.iter().map(|item| (item.clone(), Origin::Root)));
        for found in root.root_uses.iter().filter(|found| modules.contains(&found.first) && found.name != "*")
        {
            names.insert(found.name.clone(), Origin::Module(found.first.clone()));
        }
    }
    for (_, file) in files {
        for (module, name) in &file.exported_macros {
            let origin = module.first().map_or(Origin::Root, |top| Origin::Module(top.clone()));
            names.insert(name.clone(), origin);
        }
    }
    names.extend(modules.iter().map(|module| (module.clone(), Origin::Module(module.clone()))));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The uses of a crate of these files, as text.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        let found = ModuleUses::read("x/src/lib.rs", &read).expect("the fixtures are Rust");
        let modules = found.uses.iter().map(|found| {
            format!("{}:{} {} -> {} ({})", found.path, found.line, found.from, found.to, found.name)
        });
        let root =
            found.root_uses.iter().map(|found| format!("{}:{} root {}", found.path, found.line, found.name));
        modules.chain(root).collect()
    }

    #[test]
    fn uses_are_counted_for_the_top_module_whatever_the_depth() {
        let found = uses(&[
            ("x/src/lib.rs", "mod a;\nmod b;\nmod c { fn f() { crate::b::g(); } }\n"),
            ("x/src/a.rs", "mod deep;\nuse super::b::B;\n"),
            (
                "x/src/a/deep.rs",
                "use super::super::c;\nuse super::other;\nuse crate::a::other;\nmod inner { use super::super::super::b; }\n",
            ),
            ("x/src/b.rs", "pub struct B;\n"),
        ]);
        assert_eq!(
            found,
            [
                "x/src/a.rs:2 a -> b (b)",
                "x/src/a/deep.rs:4 a -> b (b)",
                "x/src/a/deep.rs:1 a -> c (c)",
                "x/src/lib.rs:3 c -> b (b)"
            ]
        );
    }

    #[test]
    fn a_re_export_leads_to_its_module_and_one_of_another_crate_to_none() {
        let found = uses(&[
            (
                "x/src/lib.rs",
                "mod a;\nmod engine;\npub use engine::{Betree as Tree, Options};\npub use other::Thing;\n",
            ),
            ("x/src/a.rs", "use crate::{Options, Tree, Thing};\n"),
            ("x/src/engine.rs", "use crate::Options;\n#[macro_export]\nmacro_rules! doc { () => {} }\n"),
        ]);
        assert_eq!(found, ["x/src/a.rs:1 a -> engine (Options)", "x/src/a.rs:1 a -> engine (Tree)"]);
    }

    #[test]
    fn an_exported_macro_leads_to_its_module() {
        let found = uses(&[
            ("x/src/lib.rs", "mod a;\nmod m;\n"),
            ("x/src/a.rs", "fn f() { crate::doc!() }\n"),
            ("x/src/m.rs", "#[macro_export]\nmacro_rules! doc { () => {} }\n"),
        ]);
        assert_eq!(found, ["x/src/a.rs:1 a -> m (doc)"]);
    }

    #[test]
    fn items_and_globs_of_the_root_are_told() {
        let found = uses(&[
            ("x/src/main.rs", ""),
            ("x/src/lib.rs", "mod a;\nfn told() {}\n"),
            ("x/src/a.rs", "use crate::told;\nuse super::*;\n#[cfg(test)]\nmod tests { use super::*; }\n"),
        ]);
        assert_eq!(found, ["x/src/a.rs:1 root told", "x/src/a.rs:2 root *"]);
    }

    #[test]
    fn files_of_tests_are_not_followed() {
        let found = uses(&[
            (
                "x/src/lib.rs",
                "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\n#[cfg(all(test, shuttle))]\nmod schedules;\n",
            ),
            ("x/src/a.rs", "#[cfg(test)]\nmod tests;\n"),
            ("x/src/a/tests.rs", "use crate::b;\n"),
            ("x/src/schedules.rs", "use crate::b;\n"),
            ("x/src/tests.rs", "use crate::b;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_file_that_is_not_rust_is_named() {
        let read = |_: &str| Some("fn f( {".to_owned());
        let error = ModuleUses::read("x/src/lib.rs", &read).expect_err("the parenthesis is open");
        assert!(error.to_string().contains("x/src/lib.rs"), "{error}");
    }
}
