//! The user of the process at the other end of a unix socket, as the kernel tells it.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::net::sockopt::socket_peercred;

/// Bytes for the entry of a user.
const ENTRY_BYTES: usize = 16 * 1024;

/// The name of that user; `None` where the machine has no name for it.
pub(super) fn of(socket: impl AsFd) -> Option<Arc<str>> {
    let credentials = socket_peercred(socket).ok()?;
    name_of(credentials.uid.as_raw())
}

fn name_of(user: u32) -> Option<Arc<str>> {
    let mut bytes = vec![0; ENTRY_BYTES];
    // SAFETY: a structure of numbers and pointers, for which zeros are a value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to places that live until the end of this function, and the length is that of
    // the bytes.
    let code =
        unsafe { libc::getpwuid_r(user, &mut entry, bytes.as_mut_ptr().cast(), bytes.len(), &mut found) };
    if code != 0 || found.is_null() || entry.pw_name.is_null() {
        return None;
    }
    // SAFETY: the call has succeeded, so the name is a text with a final zero within the bytes.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    name.to_str().ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_user_of_this_process_is_told() {
        let (one, _other) = UnixStream::pair().unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(of(&one), name_of(own));
        assert_eq!(name_of(0).as_deref(), Some("root"));
        assert_eq!(name_of(u32::MAX - 7), None);
    }
}
