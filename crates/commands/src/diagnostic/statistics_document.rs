//! Figures of the engine as a document: dotted names become documents within documents.

use pando_catalog::{Statistics, Wait};
use pando_document::DocumentWriter;

/// The number of waits that are shown: the longest ones.
const WAITS_SHOWN: usize = 20;

/// Appends a document of the figures. They are sorted by name, so that those of one group stand together.
pub(crate) fn write_statistics(name: &str, figures: &Statistics, reply: &mut DocumentWriter<'_>) {
    let mut whole = reply.document(name);
    let figures: Vec<(&str, u64)> = figures.iter().collect();
    let mut rest = figures.as_slice();
    while let Some((name, value)) = rest.first() {
        let Some((group, _)) = name.split_once('.') else {
            whole.append_i64(name, whole_number(*value));
            rest = &rest[1..];
            continue;
        };
        let is_member = |name: &str| name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'));
        let count = rest.iter().take_while(|(name, _)| is_member(name)).count();
        let mut part = whole.document(group);
        for (name, value) in &rest[..count] {
            part.append_i64(&name[group.len() + 1..], whole_number(*value));
        }
        part.finish();
        rest = &rest[count..];
    }
    whole.finish();
}

/// Appends a list of the longest waits.
pub(crate) fn write_waits(waits: &[Wait], reply: &mut DocumentWriter<'_>) {
    let mut list = reply.array("waits");
    for wait in waits.iter().take(WAITS_SHOWN) {
        let mut one = list.document();
        one.append_str("name", wait.name);
        one.append_i64("count", whole_number(wait.count));
        one.append_i64("micros", whole_number(wait.micros));
        one.finish();
    }
    list.finish();
}

/// A figure as BSON has it.
pub(crate) fn whole_number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
