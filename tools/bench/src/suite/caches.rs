//! The caches of a suite's servers, and their names. Cells whose caches have one name would be taken for
//! repeats of each other: a report would pool them into one median.
//!
//! # Names
//! 1. A cache has the name that its entry gives.
//! 2. Else it is called by its size: `64 MB`.
//! 3. Where a server has several unnamed caches of one size, their caps are part of the names:
//!    `64 MB, cap 400MB`. The same holds for all caches of this size in the suite, so that servers stay
//!    beside each other.
//! 4. Two caches of a server that still have one name are refused.

use super::file::Suite;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CacheEntry {
    /// The engine's cache, in 10^6 bytes.
    pub mb: u64,
    pub cap: Option<String>,
    pub io_cap: Option<String>,
    /// Its name in results [the size].
    pub name: Option<String>,
}

impl CacheEntry {
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{} MB", self.mb))
    }

    /// The caps as results have them; nothing if there are none.
    pub fn caps(&self) -> Option<String> {
        let caps: Vec<&str> = self.cap.iter().chain(&self.io_cap).map(String::as_str).collect();
        (!caps.is_empty()).then(|| caps.join(", "))
    }

    fn name_with_caps(&self) -> String {
        match self.caps() {
            Some(caps) => format!("{} MB, cap {caps}", self.mb),
            None => format!("{} MB, no cap", self.mb),
        }
    }
}

impl Suite {
    /// Gives caches that differ in their caps only names that tell them apart; an error if two have one name.
    pub(super) fn name_caches(&mut self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        let mut shared = BTreeSet::new();
        for (place, server) in self.servers.iter().enumerate() {
            let unnamed = server.caches.iter().filter(|cache| cache.name.is_none());
            shared.extend(unnamed.filter(|cache| !seen.insert((place, cache.mb))).map(|cache| cache.mb));
        }
        for server in &mut self.servers {
            for cache in server.caches.iter_mut().filter(|cache| shared.contains(&cache.mb)) {
                cache.name = Some(cache.name.take().unwrap_or_else(|| cache.name_with_caps()));
            }
            let mut names = BTreeSet::new();
            if let Some(twice) = server.caches.iter().find(|cache| !names.insert(cache.name())) {
                return Err(format!(
                    "server `{}`: two caches are called `{}`: give each a `name` of its own",
                    server.name,
                    twice.name()
                ));
            }
        }
        Ok(())
    }

    /// Leaves the caps out, and says so in every result. Names that had caps in them say it, too.
    pub fn without_caps(&mut self) {
        let mut renamed = Vec::new();
        for cache in self.servers.iter_mut().flat_map(|server| &mut server.caches) {
            let before = cache.name();
            if cache.caps().is_some() && before == cache.name_with_caps() {
                let now = format!("{before} left out");
                cache.name = Some(now.clone());
                renamed.push((before, now));
            }
            cache.cap = None;
            cache.io_cap = None;
        }
        for name in self.runs.iter_mut().flat_map(|run| run.caches.iter_mut().flatten()) {
            if let Some((_, now)) = renamed.iter().find(|(before, _)| before == name) {
                name.clone_from(now);
            }
        }
        let scaled = self.scaled.take().map_or_else(String::new, |scaled| scaled + "; ");
        self.scaled =
            Some(scaled + "without the suite's caps: the page cache is as large as the machine's memory");
    }
}

#[cfg(test)]
mod tests {
    use super::super::matrix::tests::suite;
    use super::*;

    fn cache(mb: u64, cap: Option<&str>, name: Option<&str>) -> CacheEntry {
        CacheEntry { mb, cap: cap.map(str::to_owned), io_cap: None, name: name.map(str::to_owned) }
    }

    /// The names of the caches of two servers.
    fn named(first: &[CacheEntry], second: &[CacheEntry]) -> Result<(Suite, Vec<Vec<String>>), String> {
        let mut suite = suite();
        suite.servers[0].caches = first.to_vec();
        suite.servers[1].caches = second.to_vec();
        suite.name_caches()?;
        let names = suite.servers.iter().map(|server| server.caches.iter().map(CacheEntry::name).collect());
        let names = names.collect();
        Ok((suite, names))
    }

    #[test]
    fn caches_that_differ_in_their_caps_only_have_names_that_tell_them_apart() {
        let capped = [cache(64, Some("400MB"), None), cache(64, Some("1GB"), None), cache(128, None, None)];
        let (mut suite, names) = named(&capped, &[cache(64, Some("400MB"), None)]).expect("told apart");
        assert_eq!(names[0], ["64 MB, cap 400MB", "64 MB, cap 1GB", "128 MB"]);
        assert_eq!(names[1], ["64 MB, cap 400MB"], "it stays beside the other server's");
        let keys: BTreeSet<String> = suite.cells().iter().map(|cell| cell.key()).collect();
        assert_eq!(keys.len(), suite.cells().len());
        suite.runs[0].caches = Some(vec!["64 MB, cap 1GB".to_owned()]);
        let before = suite.cells().len();
        suite.without_caps();
        assert_eq!(suite.cells().len(), before, "the run is still for that cache");
        assert_eq!(suite.servers[0].caches[1].name(), "64 MB, cap 1GB left out");
        let (_, names) = named(&capped[1..], &[cache(64, Some("400MB"), None)]).expect("told apart");
        assert_eq!(names, [vec!["64 MB", "128 MB"], vec!["64 MB"]], "one of each size needs no more");
    }

    #[test]
    fn two_caches_of_one_name_are_refused() {
        let one = cache(64, None, None);
        let same = named(&[cache(64, None, None), cache(64, None, None)], std::slice::from_ref(&one));
        assert!(same.expect_err("the same twice").contains("`64 MB, no cap`: give each a `name`"));
        let named_so = [cache(64, None, Some("small")), cache(128, None, Some("small"))];
        assert!(named(&named_so, &[one]).expect_err("one name").contains("two caches are called `small`"));
    }
}
