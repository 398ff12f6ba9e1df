//! The rule on doors: the crates of the product reach clock, threads, files and randomness through
//! `environment`.
//!
//! The lint `clippy::disallowed_methods` checks it, with the list in clippy.toml, where the root of a crate
//! turns it on. This rule says which roots must: those of all crates and engines but [`OUTSIDE`].

use super::source::Source;
use crate::finding::Finding;

/// The crates that the rule does not hold for.
const OUTSIDE: [&str; 2] = [
    // The door itself.
    "crates/environment",
    // The process: its sockets, network threads, configuration, and the files that it imports and exports.
    "crates/server",
];

/// The folders that hold the crates of the product.
const PRODUCT_FOLDERS: [&str; 2] = ["crates/", "engines/"];

/// The line that turns the lint on, for all but unit tests.
const LINE: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_methods))]";

/// The finding of one file.
pub fn check(source: &Source) -> Option<Finding> {
    let package = source.path.strip_suffix("/src/lib.rs")?;
    let is_product = PRODUCT_FOLDERS.iter().any(|folder| package.starts_with(folder));
    if !is_product || OUTSIDE.contains(&package) || source.text.lines().any(|line| line == LINE) {
        return None;
    }
    let message =
        format!("the doors of `environment` are not the only ones here: add `{LINE}` below the head");
    Some(Finding::new(&source.path, 1, "doors", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(path: &str, text: &str) -> bool {
        check(&Source::scan(path, text)).is_some()
    }

    #[test]
    fn the_root_of_a_product_crate_turns_the_lint_on() {
        assert!(is_found("crates/query/src/lib.rs", "//! Queries.\n"));
        assert!(is_found("engines/memory/src/lib.rs", "//! In memory.\n"));
        assert!(!is_found("crates/query/src/lib.rs", &format!("//! Queries.\n{LINE}\n")));
    }

    #[test]
    fn tools_tests_and_the_crates_outside_need_not() {
        for path in ["tools/bench/src/lib.rs", "crates/environment/src/lib.rs", "crates/query/src/filter.rs"]
        {
            assert!(!is_found(path, "//! Head.\n"), "{path}");
        }
    }
}
