//! The project's own checks, run as `cargo xtask CHECK`.
//!
//! - `layers`: which crate may depend on which, as ARCHITECTURE.md says it (see [`arrows`] and [`layers`]).
//! - `tidy`: what makes the sources pleasant to read (see [`tidy`]).
//!
//! Every check prints all that it finds as `file:line: rule: what to do`, and ends with 1 if there was anything, with 2 if
//! it could not run. Not here: formatting (`cargo fmt`) and lints (`cargo clippy`).

mod arrows;
mod finding;
mod layers;
mod tidy;

use finding::Finding;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask layers | tidy";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let outcome = match words.as_slice() {
        ["layers"] => layers::check_workspace(&root),
        ["tidy"] => tidy::check_tree(&root),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(findings) => report(&words[0..1], &findings),
        Err(error) => {
            eprintln!("{}: {error}", words[0]);
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::from(2)
        }
    }
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
