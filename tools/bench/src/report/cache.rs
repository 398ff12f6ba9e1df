//! The cache of a run, as its labels say it: its size, its storage and its name. Beside them stands the size
//! that the server told.
//!
//! A suite, and a call that starts its server with `--cache-mb`, label each run with the size in 10^6 bytes
//! (`cache_mb`) and the limits of its storage (`io_cap`). Of other runs there is only the name that somebody
//! gave the cache, in which a size has its unit: `8 GB`.

use super::file::RunFile;
use crate::launch::caps::parse_bytes;
use std::collections::BTreeSet;

/// A cache on its storage. Runs of two of them are no repeats of each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheLabel {
    /// The size; `None` if the name has none.
    pub bytes: Option<u64>,
    /// The limits of the storage; `None` if there are none.
    pub io_cap: Option<String>,
    pub name: String,
}

impl CacheLabel {
    pub fn of(file: &RunFile) -> CacheLabel {
        CacheLabel {
            bytes: bytes(file),
            io_cap: file.labels.get("io_cap").cloned(),
            name: file.labels.get("cache").cloned().unwrap_or_default(),
        }
    }
}

/// Sizes that differ by less are one: servers round them to their own units.
const ROUNDING: f64 = 0.02;

fn is_same(one: u64, other: u64) -> bool {
    let (one, other) = (one as f64, other as f64);
    (one - other).abs() <= ROUNDING * one.max(other)
}

/// The cache of a run for a comparison: its label, and the size that the server told where there is no label
/// or where that contradicts it.
pub fn in_words(file: &RunFile) -> String {
    let told = file.server.cache_bytes.map(|bytes| format!("{:.0} MB", bytes as f64 / 1e6));
    match (file.labels.get("cache"), told) {
        (Some(label), Some(told)) if !agrees(file) => format!("{label} (the server says {told})"),
        (Some(label), _) => label.clone(),
        (None, Some(told)) => told,
        (None, None) => "unknown".to_owned(),
    }
}

/// Whether the size of the labels is the one that the server told, as far as there are both.
fn agrees(file: &RunFile) -> bool {
    bytes(file).zip(file.server.cache_bytes).is_none_or(|(label, told)| is_same(label, told))
}

/// Whether runs have caches that are not known to be the same.
pub fn differ(files: &[&RunFile]) -> bool {
    let sizes: Vec<Option<u64>> = files.iter().map(|file| file.server.cache_bytes.or(bytes(file))).collect();
    let names: BTreeSet<&String> = files.iter().filter_map(|file| file.labels.get("cache")).collect();
    let same_sizes =
        sizes.iter().all(|size| size.zip(sizes[0]).is_some_and(|(size, first)| is_same(size, first)));
    if same_sizes {
        return names.len() > 1;
    }
    files.iter().map(|file| in_words(file)).collect::<BTreeSet<_>>().len() > 1
}

/// The size of a run's cache in bytes, as far as its labels say it.
pub fn bytes(file: &RunFile) -> Option<u64> {
    if let Some(megabytes) = file.labels.get("cache_mb") {
        return Some(megabytes.parse::<u64>().ok()?.saturating_mul(1_000_000));
    }
    let name = file.labels.get("cache")?;
    let size = name.split(',').next()?.replace(' ', "");
    // A number without a unit may be anything.
    parse_bytes(&size).ok().filter(|_| size.ends_with('B'))
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::file;
    use super::*;

    #[test]
    fn a_size_is_judged_by_its_unit_and_a_name_without_one_has_none() {
        let of = |name: &str| {
            let mut file = file("point", 8, 1.0);
            file.labels.insert("cache".into(), name.into());
            bytes(&file)
        };
        assert!(of("8 GB") > of("512 MB") && of("512 MB").is_some());
        assert_eq!(of("64 MB, slow"), Some(64_000_000));
        assert_eq!(["as it is", "8/16", "8"].map(of), [None; 3]);
        let mut labelled = file("point", 8, 1.0);
        labelled.labels.extend([("cache".into(), "8/16".into()), ("cache_mb".into(), "8590".into())]);
        assert_eq!(bytes(&labelled), Some(8_590_000_000));
    }
    #[test]
    fn caches_are_told_apart_by_their_labels_or_by_what_the_server_told() {
        let of = |label: Option<&str>, told: Option<u64>| {
            let mut file = file("point", 8, 1.0);
            file.labels.extend(label.map(|label| ("cache".to_owned(), label.to_owned())));
            file.server.cache_bytes = told;
            file
        };
        let said = |one: &RunFile, other: &RunFile| {
            differ(&[one, other]).then(|| [one, other].map(in_words).join(" | "))
        };
        let (small, large) = (of(None, Some(64_000_000)), of(None, Some(1_000_000_000)));
        assert_eq!(said(&small, &large).as_deref(), Some("64 MB | 1000 MB"));
        assert_eq!(said(&small, &of(None, Some(64_500_000))), None, "a server rounds");
        assert_eq!(said(&small, &of(Some("64 MB"), None)), None);
        assert_eq!(said(&small, &of(None, None)).as_deref(), Some("64 MB | unknown"));
        assert_eq!(said(&of(None, None), &of(None, None)), None);
        let (named, other) = (of(Some("64 MB, slow"), None), of(Some("64 MB, fast"), None));
        assert_eq!(said(&named, &other).as_deref(), Some("64 MB, slow | 64 MB, fast"));
        let wrong = of(Some("64 MB"), Some(1_000_000_000));
        let both = said(&of(Some("64 MB"), Some(64_000_000)), &wrong);
        assert_eq!(both.as_deref(), Some("64 MB | 64 MB (the server says 1000 MB)"));
    }
}
