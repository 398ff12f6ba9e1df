//! The check of style: the rules that a program can check, with exceptions whose number only falls.
//!
//! 1. The files are those that git tracks or would track.
//! 2. Each Rust file is cut into code and comments once ([`source`]). Each rule is a pure function of that.
//! 3. The findings are held against the exceptions of `tools/xtask/ratchet.toml` ([`ratchet`]), each with its
//!    reason. An exception that is no longer needed is a finding itself.
//!
//! | module | rules |
//! |---|---|
//! | [`length`] | files over 600 production lines, over 1,000 lines; functions over 70 lines |
//! | [`names`] | no name of a file, folder or module that says nothing; no function whose name begins with a clause; no `mod.rs`; no alias that poses as a type |
//! | [`attributes`] | every `allow` and `expect` has its reason |
//! | [`parameters`] | no boolean parameter in a public function; no tuple of more than two as a parameter |
//! | [`comments`] | heads that begin with a noun; no notes to oneself, no commented-out code |
//! | [`comment_width`] | comments as wide as code at most |
//! | [`doors`] | the crates of the product turn on the lint against doors beside `environment` |
//! | [`places`] | no absolute path of somebody's machine |
//! | [`decisions`] | decision records: a page each, numbers without gaps, linked from the list |
//! | [`page_paths`] | the files, modules and sections that pages name or link to are there |

mod attributes;
mod comment_width;
mod comments;
mod decisions;
mod doors;
mod functions;
mod length;
mod names;
mod page_paths;
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
    let (_, ratchet) = ratchet(root)?;
    let mut findings = ratchet.without_backlog(RATCHET, findings(root, &ratchet)?);
    findings.sort();
    Ok(findings)
}

/// Lowers the numbers in the list of exceptions to what the tree needs, and checks it.
pub fn lower_and_check(root: &Path) -> Result<Vec<Finding>, CheckError> {
    let (text, ratchet) = ratchet(root)?;
    let lowered = ratchet.lowered(&text, &findings(root, &ratchet)?);
    let path = root.join(RATCHET);
    std::fs::write(&path, lowered).map_err(|source| CheckError::Write { path, source })?;
    check_tree(root)
}

/// The list of exceptions, as text and as read.
fn ratchet(root: &Path) -> Result<(String, Ratchet), CheckError> {
    let path = root.join(RATCHET);
    let text = read(&path)?;
    let ratchet = Ratchet::parse(&text).map_err(|source| CheckError::Toml { path, source })?;
    Ok((text, ratchet))
}

/// All findings, those of the backlogs too.
fn findings(root: &Path, ratchet: &Ratchet) -> Result<Vec<Finding>, CheckError> {
    let width_max = comment_width::width_max(root)?;
    let paths = tracked_files(root)?;
    let mut findings = ratchet.files_that_are_gone(RATCHET, &paths);
    for path in paths.iter().filter(|path| places::is_text(path)) {
        let text = read(&root.join(path))?;
        findings.extend(places::check(path, &text));
        findings.extend(comments::notes_to_oneself(path, &text));
        if path.ends_with(".rs") {
            check_source(&mut findings, ratchet, &Source::scan(path, &text), width_max);
        }
    }
    findings.extend(decisions::check(root, &paths)?);
    findings.extend(page_paths::check(root, &paths)?);
    Ok(findings)
}

fn check_source(findings: &mut Vec<Finding>, ratchet: &Ratchet, source: &Source, width_max: usize) {
    findings.extend(length::check(source, ratchet, RATCHET));
    findings.extend(parameters::check(source, ratchet, RATCHET));
    findings.extend(names::check(source));
    findings.extend(attributes::check(source));
    findings.extend(comments::module_doc(source));
    findings.extend(comments::head_first_word(source));
    findings.extend(comments::commented_out_code(source));
    findings.extend(comment_width::check(source, width_max));
    findings.extend(doors::check(source));
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
