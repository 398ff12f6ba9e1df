//! The rule on crates: every dependency in a manifest is an arrow that ARCHITECTURE.md allows.
//!
//! 1. [`Arrows`] come from the page, the packages from `cargo metadata` (declared dependencies, so that
//!    optional ones and those of other platforms count too).
//! 2. A normal or build dependency on a package of the workspace needs an arrow.
//! 3. A dev-dependency needs none, but no engine may dev-depend on another engine.
//!
//! Packages outside the workspace (fuzz targets, tests of whole drivers) are not looked at.

use super::crate_arrows::Arrows;
use super::folder_of;
use crate::finding::{CheckError, Finding};
use cargo_metadata::{DependencyKind, Metadata};
use std::collections::BTreeMap;
use std::path::Path;

/// The page that holds the list.
const PAGE: &str = "ARCHITECTURE.md";
const RULE: &str = "layers";

/// A package as the check sees it: the name of its folder, its manifest, its dependencies.
struct Package {
    folder: String,
    manifest: String,
    manifest_text: String,
    dependencies: Vec<Dependency>,
}

/// A dependency on another package of the workspace.
struct Dependency {
    /// The package's name, for the line in the manifest.
    package: String,
    folder: String,
    kind: DependencyKind,
}

/// Checks the packages of the workspace whose root this is.
pub fn check(root: &Path, metadata: &Metadata) -> Result<Vec<Finding>, CheckError> {
    let page = root.join(PAGE);
    let text =
        std::fs::read_to_string(&page).map_err(|source| CheckError::Read { path: page.clone(), source })?;
    let arrows = Arrows::parse(&text).map_err(|source| CheckError::Arrows { path: page, source })?;
    let packages = packages(root, metadata)?;
    Ok(packages.iter().flat_map(|package| check_package(&arrows, package)).collect())
}

fn packages(root: &Path, metadata: &Metadata) -> Result<Vec<Package>, CheckError> {
    let folders: BTreeMap<String, String> =
        metadata.packages.iter().map(|package| (package.name.to_string(), folder_of(package))).collect();
    let mut packages = Vec::new();
    for package in &metadata.packages {
        let manifest_text = std::fs::read_to_string(&package.manifest_path).map_err(|source| {
            CheckError::Read { path: package.manifest_path.clone().into_std_path_buf(), source }
        })?;
        let dependencies = package.dependencies.iter().filter_map(|dependency| {
            let folder = folders.get(&dependency.name)?.clone();
            Some(Dependency { package: dependency.name.clone(), folder, kind: dependency.kind })
        });
        let manifest = package.manifest_path.as_std_path();
        packages.push(Package {
            folder: folder_of(package),
            manifest: manifest.strip_prefix(root).unwrap_or(manifest).display().to_string(),
            manifest_text,
            dependencies: dependencies.collect(),
        });
    }
    Ok(packages)
}

fn check_package(arrows: &Arrows, package: &Package) -> Vec<Finding> {
    let from = &package.folder;
    let mut findings = Vec::new();
    for Dependency { package: name, folder: to, kind } in &package.dependencies {
        let is_development = *kind == DependencyKind::Development;
        let both_engines = arrows.is_engine(from) && arrows.is_engine(to) && from != to;
        let message = if is_development && both_engines {
            format!(
                "`{from} -> {to}`: an engine does not depend on another engine, not in its tests either; \
                     compare engines through tools/conformance"
            )
        } else if is_development || arrows.allow(from, to) {
            continue;
        } else {
            format!(
                "`{from} -> {to}` is not an allowed arrow (allowed: {}); take what you need from an allowed crate, or \
                 change the list in {PAGE} together with a decision record",
                arrows.allowed_from(from)
            )
        };
        findings.push(Finding::new(&package.manifest, line_of(&package.manifest_text, name), RULE, message));
    }
    findings
}

/// The line of a manifest that names the package; 1 if it is spelled in a way that this does not see.
fn line_of(manifest: &str, package: &str) -> usize {
    let names_it = |line: &str| {
        line.strip_prefix(package).is_some_and(|rest| rest.trim_start().starts_with(['.', '=']))
            || line.contains(&format!("package = \"{package}\""))
    };
    manifest.lines().position(names_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "```arrows\nquery -> catalog\nengines -> storage\nleaves: document\nengines: memory, betree\n```\n";

    fn check(from: &str, to: &str, kind: DependencyKind) -> Vec<Finding> {
        let arrows = Arrows::parse(PAGE).expect("the fixture is well formed");
        let package = Package {
            folder: from.to_owned(),
            manifest: format!("crates/{from}/Cargo.toml"),
            manifest_text: format!("[package]\n[dependencies]\npando-{to}.workspace = true\n"),
            dependencies: vec![Dependency { package: format!("pando-{to}"), folder: to.to_owned(), kind }],
        };
        check_package(&arrows, &package)
    }

    #[test]
    fn an_allowed_arrow_is_silent() {
        assert_eq!(check("query", "catalog", DependencyKind::Normal), []);
        assert_eq!(check("memory", "storage", DependencyKind::Build), []);
        assert_eq!(check("storage", "document", DependencyKind::Normal), []);
    }

    #[test]
    fn another_arrow_is_found_with_manifest_and_line() {
        let found = check("catalog", "query", DependencyKind::Normal);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/catalog/Cargo.toml", 3));
        assert!(found[0].message.contains("`catalog -> query`"), "{}", found[0].message);
    }

    #[test]
    fn a_build_dependency_needs_an_arrow_too() {
        assert_eq!(check("catalog", "query", DependencyKind::Build).len(), 1);
    }

    #[test]
    fn a_dev_dependency_is_free_unless_it_joins_two_engines() {
        assert_eq!(check("catalog", "query", DependencyKind::Development), []);
        assert_eq!(check("memory", "betree", DependencyKind::Development).len(), 1);
    }
}
