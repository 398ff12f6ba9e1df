//! The list of targets stands in three places, and the manifest is not read by people: here they are compared.

const MANIFEST: &str = include_str!("../Cargo.toml");
const README: &str = include_str!("../README.md");

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

#[test]
fn every_target_is_in_the_manifest_and_in_the_readme() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz_targets");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of targets")
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    files.sort_unstable();
    assert!(!files.is_empty());
    assert_eq!(names(MANIFEST, "path = \"fuzz_targets/", '.'), files);
    assert_eq!(names(README, "| `", '`'), files);
}
