//! The memory of queries and the cache of the engine, whose part it is: the bounds of both, and the change of
//! the one with the other.

use pando_catalog::{ByteSize, QUERY_MEMORY_MIN};
use pando_document::RawValue;

use super::value::text_of;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// The setting of engines that have a cache.
const CACHE: &str = "cache";

/// The smallest cache with which a tree of any height can be read and written, in bytes.
pub const CACHE_BYTES_MIN: u64 = 16 << 20;

/// Refuses a cache that a start refuses as well, and logs one that is larger than the memory. The engine
/// itself refuses what is no size.
pub(in crate::diagnostic) fn check_cache(
    context: &Context<'_>,
    setting: &str,
    text: &str,
) -> Result<(), String> {
    match text.parse::<ByteSize>() {
        Ok(size) if setting == CACHE && size.bytes() < CACHE_BYTES_MIN => {
            Err(format!("a cache of {size} is too small: choose at least {}", shown(CACHE_BYTES_MIN)))
        }
        Ok(size) if setting == CACHE => {
            warn_of_large_cache(context, size);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Such a cache is filled all the same, until the kernel ends the process.
fn warn_of_large_cache(context: &Context<'_>, cache: ByteSize) {
    let memory = context.shared.options.host.memory_limit_bytes;
    if memory > 0 && cache.bytes() > memory {
        let memory = shown(memory >> 20 << 20);
        tracing::warn!(
            "the cache of {cache} is larger than the memory of this machine, {memory}: choose about half of it"
        );
    }
}

fn shown(bytes: u64) -> ByteSize {
    ByteSize::from_bytes(bytes)
}

/// The limit that a value asks for: a number of bytes, or text such as `64MB`.
pub(super) fn parse(context: &Context<'_>, name: &str, value: RawValue<'_>) -> Result<usize, CommandError> {
    let most = most(context);
    let size = text_of(value).and_then(|text| text.parse::<ByteSize>().ok());
    let bytes = size.and_then(|size| usize::try_from(size.bytes()).ok());
    bytes.filter(|bytes| (QUERY_MEMORY_MIN..=most).contains(bytes)).ok_or_else(|| {
        // An engine without a cache has no upper bound.
        let most = match most {
            usize::MAX => String::new(),
            most => format!(" to {}, the size of the cache", shown(most as u64)),
        };
        let least = shown(QUERY_MEMORY_MIN as u64);
        let sentence = format!("{name} must be a size such as 64MB, from {least}{most}");
        CommandError::failed(ErrorCode::BadValue, sentence)
    })
}

/// Sets the limit, which does not follow the cache any more. The same request may have made that smaller.
pub(super) fn set(context: &Context<'_>, bytes: usize) {
    *context.shared.query_memory_asked_for.lock() = Some(bytes);
    context.catalog().query_memory().set_limit(bytes.min(most(context)));
}

/// Changes the limit after the cache of the engine was changed: to its share of it, or, where somebody has
/// set it in bytes, to these or to all of the cache, whichever is less.
pub(in crate::diagnostic) fn follow_cache(context: &Context<'_>) {
    let most = most(context);
    let asked_for = *context.shared.query_memory_asked_for.lock();
    let limit = match (asked_for, context.shared.options.query_memory.share_of_cache) {
        (Some(bytes), _) => bytes.min(most),
        (None, Some(share)) => (most / share).max(QUERY_MEMORY_MIN),
        (None, None) => context.shared.options.query_memory.limit_bytes.min(most),
    };
    context.catalog().query_memory().set_limit(limit);
}

/// The most that the limit can be: the cache of now, or that of the start where it cannot change.
fn most(context: &Context<'_>) -> usize {
    let at_start = context.shared.options.query_memory.limit_bytes_max;
    let settings = context.catalog().engine().settings();
    let cache = settings.iter().find(|(name, _)| *name == CACHE).and_then(|(_, bytes)| bytes.parse().ok());
    cache.map_or(at_start, |cache: usize| cache.max(QUERY_MEMORY_MIN))
}
