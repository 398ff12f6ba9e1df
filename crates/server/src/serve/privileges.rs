//! The rights of the process: root becomes another user.

use std::ffi::CString;
use std::io;

use tracing::{info, warn};

use super::ServeError;
use crate::configuration::Configuration;

pub(super) const RUNS_AS_ROOT: &str = "the server runs as root, so that a flaw in it is a flaw of the whole machine; start it as \
                                       another user, or name one with --user";

/// Whether the process has all rights.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Becomes the user that `--user` names. Called once the keys are read, and before the process has threads of
/// its own but that of the log.
pub(super) fn become_user(configuration: &Configuration) -> Result<(), ServeError> {
    let is_root = is_root();
    let Some(name) = &configuration.transport.user else {
        if is_root {
            warn!("{RUNS_AS_ROOT}");
        }
        return Ok(());
    };
    let refused = |source| ServeError::User { name: name.clone(), source };
    if !is_root {
        return Err(refused(io::Error::other("only root can become another user; leave --user out")));
    }
    set_user(name).map_err(refused)?;
    info!("the server goes on as user {name}");
    Ok(())
}

/// Sets groups, group and user of the whole process.
fn set_user(name: &str) -> io::Result<()> {
    let c_name = CString::new(name).map_err(io::Error::other)?;
    // SAFETY: the name is a text with a final zero, and the result is read before any other call that could
    // change it: the only other thread writes the log.
    let entry = unsafe { libc::getpwnam(c_name.as_ptr()).as_ref() };
    let entry = entry.ok_or_else(|| io::Error::other("there is no such user on this machine"))?;
    let (user, group) = (entry.pw_uid, entry.pw_gid);
    if user == 0 {
        return Err(io::Error::other("it is root again; name a user without privileges"));
    }
    // SAFETY: three calls without pointers but the name. Order matters: groups cannot be set any more once
    // the user is set. libc carries them to every thread.
    let done = unsafe {
        libc::initgroups(c_name.as_ptr(), group) == 0 && libc::setgid(group) == 0 && libc::setuid(user) == 0
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a call without pointers.
    if unsafe { libc::setuid(0) } == 0 {
        return Err(io::Error::other("the system lets the process become root again"));
    }
    Ok(())
}
