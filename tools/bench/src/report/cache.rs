//! The cache of a run, as its labels say it: its size, its storage and its name.
//!
//! A suite labels each run with the size in 10^6 bytes (`cache_mb`) and the limits of its storage (`io_cap`).
//! Of other runs there is only the name that somebody gave the cache, in which a size has its unit: `8 GB`.

use super::file::RunFile;
use crate::launch::caps::parse_bytes;

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
}
