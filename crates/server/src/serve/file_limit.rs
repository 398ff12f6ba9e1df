//! The limit on open files: a connection is one, and the usual soft limit is 1024.

use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// Raises this process's own limit as far as the system lets it.
pub(super) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "cannot raise the limit of open files; there may be fewer connections than allowed");
    }
}
