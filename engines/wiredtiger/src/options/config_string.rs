//! Configurations in WiredTiger's own words: `name=value,name=(name=value,…)`.
//!
//! A person may give one for the database, for a collection or for an index. It passes to the library as it
//! is, but names that would undo a promise of the engine (the journal, formats of keys, the removal of old
//! chunks) are refused. The library checks the values.

use pando_storage::StorageError;

use crate::failure::refused;

/// Names that may stand in a tree's configuration.
pub(super) const TREE_KEYS: [&str; 20] = [
    "access_pattern_hint",
    "allocation_size",
    "app_metadata",
    "block_allocation",
    "block_compressor",
    "cache_resident",
    "checksum",
    "dictionary",
    "internal_key_max",
    "internal_page_max",
    "leaf_key_max",
    "leaf_page_max",
    "leaf_value_max",
    "lsm",
    "memory_page_max",
    "os_cache_dirty_max",
    "os_cache_max",
    "prefix_compression",
    "split_pct",
    "type",
];

/// Names that may stand in the configuration of the database.
pub(super) const CONNECTION_KEYS: [&str; 15] = [
    "cache_max_wait_ms",
    "cache_overhead",
    "direct_io",
    "eviction",
    "eviction_checkpoint_target",
    "eviction_dirty_target",
    "eviction_dirty_trigger",
    "eviction_target",
    "eviction_trigger",
    "file_extend",
    "file_manager",
    "hazard_max",
    "lsm_manager",
    "mmap",
    "verbose",
];

/// Names of LSM trees that may not stand there: old chunks would be removed with their data, or go to a data
/// source that is not there.
const LSM_KEYS_REFUSED: [&str; 3] = ["chunk_count_limit", "merge_custom", "bloom_config"];

/// The configuration, if all of its names are allowed. `option` is its name, for the message.
pub(super) fn checked<'c>(option: &str, config: &'c str, allowed: &[&str]) -> Result<&'c str, StorageError> {
    for setting in
        settings(config).map_err(|reason| refused(format!("`{option}` cannot be read: {reason}")))?
    {
        if !allowed.contains(&setting.name) {
            let message =
                format!("`{option}` cannot have `{}`: there are {}", setting.name, allowed.join(", "));
            return Err(refused(message));
        }
        if setting.name == "lsm"
            && let Some(name) = LSM_KEYS_REFUSED.iter().find(|name| setting.value.contains(*name))
        {
            return Err(refused(format!("`{option}` cannot have `lsm=({name}=…)`")));
        }
    }
    Ok(config)
}

/// The value of a name at the top of a configuration that was checked.
pub(super) fn value_of<'c>(config: &'c str, name: &str) -> Option<&'c str> {
    let all = settings(config).ok()?;
    all.into_iter().rev().find(|setting| setting.name == name).map(|setting| setting.value.trim_matches('"'))
}

/// A name at the top of a configuration, with its value.
#[derive(Debug, PartialEq, Eq)]
struct Setting<'c> {
    name: &'c str,
    value: &'c str,
}

fn settings(config: &str) -> Result<Vec<Setting<'_>>, &'static str> {
    if config.contains('\0') {
        return Err("it has a zero byte");
    }
    let (mut all, mut depth, mut is_quoted, mut start) = (Vec::new(), 0_usize, false, 0);
    for (at, letter) in config.char_indices() {
        match letter {
            '\\' => return Err("it has a backslash"),
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1).ok_or("a bracket is not opened")?,
            ',' if depth == 0 => {
                all.extend(setting(&config[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 || is_quoted {
        return Err("a bracket or a quote is not closed");
    }
    all.extend(setting(&config[start..]));
    Ok(all)
}

/// WiredTiger takes `name`, `name=value`, `name:value` and `name(value)`.
fn setting(text: &str) -> Option<Setting<'_>> {
    let text = text.trim();
    let end = text.find(['=', ':', '(', '[', '{']).unwrap_or(text.len());
    let value = text[end..].trim_start_matches(['=', ':', ' ']);
    (!text.is_empty()).then(|| Setting { name: text[..end].trim().trim_matches('"'), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_top_are_found() {
        let found = settings(
            "type=lsm, lsm=(chunk_size=1MB,merge_max=20),checksum,\"leaf_page_max\"=4KB,app_metadata=\"a,b=(\"",
        );
        let found: Vec<_> = found.expect("it can be read").into_iter().map(|setting| setting.name).collect();
        assert_eq!(found, ["type", "lsm", "checksum", "leaf_page_max", "app_metadata"]);
        assert_eq!(value_of("type=file,type=lsm", "type"), Some("lsm"));
        assert_eq!(settings(""), Ok(Vec::new()));
    }

    #[test]
    fn a_text_that_cannot_be_read_is_refused() {
        for config in ["lsm=(", "a=)", "a=\"b", "a=\\", "a\0b"] {
            assert!(settings(config).is_err(), "{config:?}");
        }
    }
}
