//! The project's own checks, run as `cargo xtask CHECK`.
//!
//! - `layers`: which crate may depend on which, and which module within a crate (see [`layers`]). With
//!   `--graph CRATE` it prints the arrows that are found between the modules of a crate, and their circles.
//! - `tidy`: the rules of style that a program can check (see [`tidy`]). With `--lower` it first lowers the
//!   numbers of exceptions that the tree no longer needs.
//! - `dependencies`: licences, sources and versions of packages of others (see [`dependencies`]).
//! - `compatibility`: writes docs/compatibility.md, by the test of `crates/pando` that otherwise compares it.
//!
//! Every check prints all findings as `file:line: rule: what to do`. It ends with 1 if there was a finding,
//! and with 2 if it could not run. Not here: formatting (`cargo fmt`) and lints (`cargo clippy`).
//!
//! ```arrows
//! dependencies -> finding
//! layers -> arrow_block, finding
//! tidy -> finding
//! finding -> arrow_block
//! ```

mod arrow_block;
mod dependencies;
mod finding;
mod layers;
mod tidy;

use finding::{CheckError, Finding};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str =
    "usage: cargo xtask layers [--graph CRATE] | tidy [--lower] | dependencies | compatibility";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let outcome = match words.as_slice() {
        ["layers", "--graph", folder] => return print(words[0], layers::graph_of(&root, folder)),
        ["layers"] => layers::check_workspace(&root),
        ["tidy"] => tidy::check_tree(&root),
        ["tidy", "--lower"] => tidy::lower_and_check(&root),
        ["dependencies"] => dependencies::check_workspace(&root),
        ["compatibility"] => return write_compatibility(&root),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(findings) => report(&words[0..1], &findings),
        Err(error) => failed(words[0], &error),
    }
}

/// Runs the test that makes the page, and lets it write.
fn write_compatibility(root: &Path) -> ExitCode {
    let status = Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "--package",
            "pandodb",
            "--features",
            "collation,text,codecs,saslprep",
            "--test",
            "outside",
            "compatibility",
        ])
        .env("PANDO_WRITE_PAGES", "1")
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("compatibility: cannot run cargo: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints what was asked for.
fn print(check: &str, outcome: Result<String, CheckError>) -> ExitCode {
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(check, &error),
    }
}

/// Says why a check could not run.
fn failed(check: &str, error: &CheckError) -> ExitCode {
    eprintln!("{check}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::from(2)
}

fn report(check: &[&str], findings: &[Finding]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    let check = check.concat();
    if findings.is_empty() {
        println!("{check}: clean");
        ExitCode::SUCCESS
    } else {
        println!("{check}: {} findings", findings.len());
        ExitCode::from(1)
    }
}

/// The root of the workspace: two folders above this package.
fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).map_or_else(|| package.to_path_buf(), Path::to_path_buf)
}
