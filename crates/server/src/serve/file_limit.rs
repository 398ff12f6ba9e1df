//! The limit of open files. Each connection is one, and the usual soft limit is 1024.

use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// Raises the limit of this process as far as the system allows.
pub(super) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let before = limit.current;
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        let shown = before.map_or_else(|| "the system's limit".to_owned(), |files| files.to_string());
        warn!(
            "cannot raise the limit of open files above {shown} ({error}); connections beyond it are refused; raise it \
             with ulimit -n"
        );
    }
}
