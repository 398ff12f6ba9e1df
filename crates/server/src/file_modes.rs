//! The modes of the files and folders that a process makes.

use rustix::fs::Mode;
use rustix::process::umask;

/// The rights that are taken from others than the user of the process.
const OF_OTHERS: Mode = Mode::from_raw_mode(0o077);

/// Files and folders that the process makes are for its user only, whatever the umask of its parent.
pub(crate) fn restrict_files() {
    umask(OF_OTHERS);
}
