//! The values of options: sizes, switches and choices, as text.

use std::ops::RangeInclusive;

use pando_storage::{ByteSize, StorageError};

use crate::failure::invalid;

/// A number with an optional unit: `16KB`, `1MB`, `64B`, `32`.
pub(super) fn parse_size(name: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64, StorageError> {
    let size = value.parse::<ByteSize>().ok().map(ByteSize::bytes);
    size.filter(|size| range.contains(size)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        invalid(format!(
            "the option `{name}` cannot be {value:?}: give a size from {least} to {most}, such as 64KB"
        ))
    })
}

/// `on` or `off`.
pub(super) fn parse_switch(name: &str, value: &str) -> Result<bool, StorageError> {
    parse_choice(name, value, &[("on", true), ("off", false)])
}

/// One of several words.
pub(super) fn parse_choice<T: Copy>(
    name: &str,
    value: &str,
    choices: &[(&str, T)],
) -> Result<T, StorageError> {
    let chosen = choices.iter().find(|(word, _)| *word == value);
    chosen.map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        invalid(format!("the option `{name}` cannot be {value:?}: give one of {}", words.join(", ")))
    })
}
