//! The memory of queries: its bounds, and its change with the cache of the engine, whose part it is.

use std::sync::atomic::Ordering;

use pando_catalog::QUERY_MEMORY_MIN;
use pando_document::RawValue;

use super::value::{parse_bytes, size_text, text_of};
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// The setting of engines that have a cache.
const CACHE: &str = "cache";

/// The limit that a value asks for: a number of bytes, or text such as `64MB`.
pub(super) fn parse(context: &Context<'_>, name: &str, value: RawValue<'_>) -> Result<usize, CommandError> {
    let most = most(context);
    let bytes = text_of(value).and_then(|text| parse_bytes(&text));
    bytes.filter(|bytes| (QUERY_MEMORY_MIN..=most).contains(bytes)).ok_or_else(|| {
        // An engine without a cache has no upper bound.
        let most = match most {
            usize::MAX => String::new(),
            most => format!(" to {}, the size of the cache", size_text(most)),
        };
        let least = size_text(QUERY_MEMORY_MIN);
        let sentence = format!("{name} must be a size such as 64MB, from {least}{most}");
        CommandError::failed(ErrorCode::BadValue, sentence)
    })
}

/// Sets the limit, which does not follow the cache any more. The same request may have made that smaller.
pub(super) fn set(context: &Context<'_>, bytes: usize) {
    context.shared.query_memory_follows_cache.store(false, Ordering::Relaxed);
    context.catalog().query_memory().set_limit(bytes.min(most(context)));
}

/// Changes the limit after the cache of the engine was changed: to its share of it, or, where somebody has
/// set it in bytes, to no more than all of it.
pub(in crate::diagnostic) fn follow_cache(context: &Context<'_>) {
    let (memory, most) = (context.catalog().query_memory(), most(context));
    let follows = context.shared.query_memory_follows_cache.load(Ordering::Relaxed);
    let limit = match context.shared.options.query_memory.share_of_cache {
        Some(share) if follows => (most / share).max(QUERY_MEMORY_MIN),
        _ => memory.limit().min(most),
    };
    memory.set_limit(limit);
}

/// The most that the limit can be: the cache of now, or that of the start where it cannot change.
fn most(context: &Context<'_>) -> usize {
    let at_start = context.shared.options.query_memory.limit_bytes_max;
    let settings = context.catalog().engine().settings();
    let cache = settings.iter().find(|(name, _)| *name == CACHE).and_then(|(_, bytes)| bytes.parse().ok());
    cache.map_or(at_start, |cache: usize| cache.max(QUERY_MEMORY_MIN))
}
