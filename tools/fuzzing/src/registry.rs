//! The test that every list of targets is complete.
//!
//! The list stands in five places, three of them manifests, which no compiler compares.

use std::fs;
use std::path::Path;

use crate::targets::ALL;

/// The names behind a prefix, one per line, up to a suffix.
fn names<'t>(text: &'t str, prefix: &str, suffix: char) -> Vec<&'t str> {
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(prefix)?.split_once(suffix))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    names
}

fn stems(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("there is such a folder");
    let stem = |path: &Path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let mut stems: Vec<String> = entries.map(|entry| stem(&entry.expect("it can be read").path())).collect();
    stems.sort_unstable();
    stems
}

#[test]
fn every_target_has_a_program_inputs_and_a_line_in_the_readme() {
    let (here, fuzz) =
        (Path::new(env!("CARGO_MANIFEST_DIR")), concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"));
    let (fuzz, targets) = (Path::new(fuzz), ALL.iter().map(|target| target.name).collect::<Vec<_>>());
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("there is a manifest");
    let readme = fs::read_to_string(fuzz.join("README.md")).expect("there is a description");
    assert_eq!(names(&manifest, "path = \"fuzz_targets/", '.'), targets);
    assert_eq!(names(&readme, "| `", '`'), targets);
    assert_eq!(stems(&fuzz.join("fuzz_targets")), targets);
    assert_eq!(stems(&here.join("src/targets")), targets);
    assert_eq!(stems(&here.join("corpus")), targets);
}
