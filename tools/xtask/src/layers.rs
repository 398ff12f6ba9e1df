//! The check of the arrows: between crates, and between the top modules of a crate.
//!
//! | module | what it holds |
//! |---|---|
//! | [`crates`] | the rule on crates: manifests against the list in ARCHITECTURE.md ([`crate_arrows`]) |
//! | [`modules`] | the rule on modules: uses against the list in the head of the crate's root ([`module_arrows`]) |
//! | [`module_uses`] | the truth on modules: each use of one top module by another, with its file and line |
//! | [`tokens`] | the paths, modules and re-exports in a file's tokens, without tests |
//! | [`circles`] | circles among arrows |
//! | [`graph`] | the found arrows of a crate as a list, ready to be pasted |

mod circles;
mod crate_arrows;
mod crates;
mod graph;
mod module_arrows;
mod module_uses;
mod modules;
mod tokens;

use crate::finding::{CheckError, Finding};
use cargo_metadata::{Metadata, MetadataCommand, Package, TargetKind};
use std::path::Path;

/// The root file of a library or a program, relative to the root of the workspace.
struct CrateRoot {
    /// The crate, by the name of its folder.
    folder: String,
    path: String,
}

/// Checks the workspace whose root this is.
pub fn check_workspace(root: &Path) -> Result<Vec<Finding>, CheckError> {
    let metadata = metadata(root)?;
    let mut findings = crates::check(root, &metadata)?;
    for crate_root in crate_roots(root, &metadata) {
        findings.extend(modules::check(root, &crate_root)?);
    }
    Ok(findings)
}

/// The found arrows of a crate, for a person: the list to paste, then its circles.
pub fn graph_of(root: &Path, folder: &str) -> Result<String, CheckError> {
    let roots = crate_roots(root, &metadata(root)?);
    let mut text = String::new();
    for crate_root in roots.iter().filter(|crate_root| crate_root.folder == folder) {
        text.push_str(&graph::of(root, crate_root)?);
    }
    if text.is_empty() {
        let mut known: Vec<&str> = roots.iter().map(|root| root.folder.as_str()).collect();
        known.dedup();
        return Err(CheckError::UnknownCrate { name: folder.to_owned(), known: known.join(", ") });
    }
    Ok(text)
}

fn metadata(root: &Path) -> Result<Metadata, CheckError> {
    Ok(MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?)
}

/// The roots of all libraries and programs; a package may have one of each.
fn crate_roots(root: &Path, metadata: &Metadata) -> Vec<CrateRoot> {
    let mut roots = Vec::new();
    for package in &metadata.packages {
        let is_product = |kind: &TargetKind| matches!(kind, TargetKind::Lib | TargetKind::Bin);
        for target in package.targets.iter().filter(|target| target.kind.iter().any(is_product)) {
            let path = target.src_path.as_std_path();
            let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
            roots.push(CrateRoot { folder: folder_of(package), path });
        }
    }
    roots
}

fn folder_of(package: &Package) -> String {
    let folder = package.manifest_path.parent().and_then(|folder| folder.file_name());
    folder.unwrap_or_default().to_owned()
}
