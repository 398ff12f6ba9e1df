//! The configurations, whose answers must be equal.

use pando_betree::Options;

/// As the engine comes. All others are tiny.
pub const USUAL: &str = "usual";
/// The configuration that deletes ranges key by key, as the usual one does where they are small; all others
/// do by messages.
const KEY_BY_KEY: &str = "no codec";
/// The configuration whose trees are laid out anew on the way.
pub const CHANGING: &str = "laid out anew";

/// The memory of transactions in the tiny configurations, in turn. With the least every commit is a large
/// one, with the most only those of several steps.
const TRANSACTION_MEMORY: [u64; 4] = [4_000, 256, 1_000, 2_000];

/// The first three have no runs.
pub fn configurations() -> Vec<(&'static str, Options)> {
    let mut configurations = all_configurations();
    let tiny = configurations.iter_mut().filter(|(name, _)| *name != USUAL);
    for ((name, options), memory) in tiny.zip(TRANSACTION_MEMORY.into_iter().cycle()) {
        options.transaction_memory_bytes = memory;
        if *name != KEY_BY_KEY {
            options.range_delete_entries = 0;
        }
    }
    configurations
}

fn options(entries: &[(&str, &str)], cache: u64, partition: usize) -> Options {
    let entries: Vec<_> = entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes, options.log_budget_bytes) = (cache, partition, 1 << 20);
    options
}

fn all_configurations() -> Vec<(&'static str, Options)> {
    let tiny = [("pageSize", "128B"), ("leafSize", "1KB"), ("fanout", "4"), ("runSize", "512B")];
    let with = |more: &[(&'static str, &'static str)]| [&tiny[..], more].concat();
    vec![
        (USUAL, Options::default()),
        ("straight into leaves", options(&with(&[("bufferPercent", "0")]), 16 << 10, 1_000)),
        (
            "straight into leaves that have filters",
            options(&with(&[("bufferPercent", "0"), ("leafFilterBits", "10")]), 4 << 10, 500),
        ),
        (CHANGING, options(&with(&[("bufferPercent", "40")]), 16 << 10, 500)),
        (
            "leaf filters of few bits",
            options(&with(&[("bufferPercent", "20"), ("leafFilterBits", "2")]), 16 << 10, 800),
        ),
        ("8 percent", options(&with(&[("bufferPercent", "8")]), 16 << 10, 1_000)),
        ("50 percent", options(&with(&[("bufferPercent", "50"), ("compression", "lz4")]), 16 << 10, 600)),
        ("no cache", options(&with(&[("bufferPercent", "30"), ("filterBits", "0")]), 2 << 10, 2_000)),
        (
            "all values out of line",
            options(&with(&[("bufferPercent", "40"), ("largeValueSize", "16B")]), 16 << 10, 2_000),
        ),
        (
            "the largest values out of line, none kept in memory",
            options(
                &with(&[("bufferPercent", "20"), ("largeValueSize", "100B"), ("compression", "lz4")]),
                1 << 10,
                3_000,
            ),
        ),
        (
            KEY_BY_KEY,
            options(
                &with(&[("bufferPercent", "30"), ("compression", "none"), ("logCompression", "none")]),
                1 << 20,
                300,
            ),
        ),
        (
            "large runs",
            options(
                &[
                    ("pageSize", "64B"),
                    ("leafSize", "512B"),
                    ("fanout", "5"),
                    ("bufferPercent", "50"),
                    ("runSize", "8KB"),
                ],
                8 << 10,
                4_000,
            ),
        ),
    ]
}
