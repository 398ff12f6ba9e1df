//! What makes the sources pleasant to read, as far as a program can tell: a ratchet that only tightens.
//!
//! 1. The files are those that git tracks or would track.
//! 2. Each Rust file is cut into code and comments once ([`source`]); each rule below is a pure function over that.
//! 3. What a rule finds is held against the exceptions of `tools/xtask/ratchet.toml` ([`ratchet`]), each with its reason.
//!    An exception that is no longer needed is a finding itself, so that the list only shrinks.
//!
//! | module | rules |
//! |---|---|
//! | [`length`] | files over 600 production lines, over 1,000 lines; functions over 70 lines |
//! | [`names`] | no file, folder or module whose name says nothing; no alias that poses as a type |
//! | [`attributes`] | every `allow` and `expect` has its reason |
//! | [`parameters`] | no boolean parameter in a public function |
//! | [`comments`] | module docs, no notes to oneself, no commented-out code |
//! | [`places`] | no absolute path of somebody's machine |
//! | [`decisions`] | every decision record is linked from the list |

mod attributes;
mod comments;
mod decisions;
mod functions;
mod length;
mod names;
mod parameters;
mod places;
mod ratchet;
mod source;

use crate::finding::{CheckError, Finding};
use ratchet::Ratchet;
use source::Source;
use std::path::Path;
use std::process::Command;

/// The list of exceptions.
const RATCHET: &str = "tools/xtask/ratchet.toml";

/// Checks the tree whose root this is.
pub fn check_tree(root: &Path) -> Result<Vec<Finding>, CheckError> {
    let ratchet_path = root.join(RATCHET);
    let ratchet = Ratchet::parse(&read(&ratchet_path)?)
        .map_err(|source| CheckError::Ratchet { path: ratchet_path, source })?;
    let paths = tracked_files(root)?;
    let mut findings = ratchet.files_that_are_gone(RATCHET, &paths);
    for path in &paths {
        if places::is_text(path) {
            check_text(&mut findings, &ratchet, path, &read(&root.join(path))?);
        }
    }
    findings.extend(decisions::check(root, &paths)?);
    findings.sort();
    Ok(findings)
}

fn check_text(findings: &mut Vec<Finding>, ratchet: &Ratchet, path: &str, text: &str) {
    findings.extend(places::check(path, text));
    findings.extend(comments::notes_to_oneself(path, text));
    if path.ends_with(".rs") {
        let source = Source::scan(path, text);
        findings.extend(length::check(&source, ratchet, RATCHET));
        findings.extend(parameters::check(&source, ratchet, RATCHET));
        findings.extend(names::check(&source));
        findings.extend(attributes::check(&source));
        findings.extend(comments::module_doc(&source));
        findings.extend(comments::commented_out_code(&source));
    }
}

fn read(path: &Path) -> Result<String, CheckError> {
    std::fs::read_to_string(path).map_err(|source| CheckError::Read { path: path.to_owned(), source })
}

/// The files that are in the tree: tracked, or new and not ignored, and not deleted.
fn tracked_files(root: &Path) -> Result<Vec<String>, CheckError> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .and_then(|output| {
            if output.status.success() {
                Ok(output)
            } else {
                Err(std::io::Error::other("not a git checkout"))
            }
        })
        .map_err(CheckError::ListFiles)?;
    let listing = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<String> =
        listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}
