//! The limit of open files. Each connection is one, and the usual soft limit is 1024.
//!
//! The store needs files of its own while clients are connected: a new segment of the log, a scratch file, a
//! backup. So connections never take all of them.

use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::{info, warn};

use super::ServeError;

/// Open files that are kept for the store, its engine and the event loops.
const RESERVED_FILES: u64 = 256;

/// The fewest open files with which a server starts: some 20 are the engine's and the event loops', before
/// any client. With fewer the connections that the limit leaves room for could not be accepted.
pub(super) const FILES_MIN: u64 = 64;

/// Raises the limit of this process as far as the system allows. Gives the number of connections that it
/// leaves room for, `max_connections` at most. Warns where the limit is below that.
///
/// # Errors
/// It is below [`FILES_MIN`].
pub(super) fn raise(max_connections: usize) -> Result<usize, ServeError> {
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
    let Some(files) = limit.current else { return Ok(max_connections) };
    if files < FILES_MIN {
        return Err(ServeError::OpenFiles { files });
    }
    let room = room_for_connections(files);
    if room < max_connections && usize::try_from(files).is_ok_and(|files| files >= max_connections) {
        info!("the server takes {room} connections at the same time: the limit of open files is {files}");
    } else if room < max_connections {
        warn!(
            "the limit of open files is {files}, below --max-connections {max_connections} with the {RESERVED_FILES} files of the \
             store: the server takes {room} connections at the same time, and closes further ones at once; raise it with ulimit -n, or \
             LimitNOFILE of a systemd unit, or lower --max-connections"
        );
    }
    Ok(room.min(max_connections))
}

/// The connections that a limit of open files leaves room for. A low limit is shared evenly with the store.
fn room_for_connections(files: u64) -> usize {
    let room = files - RESERVED_FILES.min(files / 2);
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_store() {
        assert_eq!(room_for_connections(64_000), 63_744);
        assert_eq!(room_for_connections(1024), 768);
        assert_eq!(room_for_connections(300), 150);
        assert_eq!(room_for_connections(0), 0);
        assert_eq!(room_for_connections(u64::MAX), usize::try_from(u64::MAX - 256).unwrap_or(usize::MAX));
    }
}
