//! The limit of open files. Each connection is one, and the usual soft limit is 1024.

use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::{info, warn};

/// Raises the limit of this process as far as the system allows, and warns where it is too low for the
/// connections.
pub(super) fn raise(max_connections: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let before = limit.current;
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            let shown = before.map_or_else(|| "the system's limit".to_owned(), |files| files.to_string());
            limit.current = before;
            info!("the limit of open files stays at {shown} ({error})");
        }
    }
    let wanted = u64::try_from(max_connections).unwrap_or(u64::MAX);
    if let Some(files) = limit.current.filter(|files| *files < wanted) {
        warn!(
            "the limit of open files is {files}, below --max-connections {max_connections}: connections beyond the limit \
             wait; raise it with ulimit -n, or lower --max-connections"
        );
    }
}
