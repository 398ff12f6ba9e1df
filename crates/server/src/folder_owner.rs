//! A warning where root works in the folder of another user: files that it makes there are root's, so that
//! the server of that user cannot open its store any more.
//!
//! Nothing is given to that user afterwards: the owner of the folder may put files of others, or links to
//! them, into it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Uid, geteuid};

use crate::error_text::tell_line;

/// Warns on standard error, in one line with the cure.
pub(crate) fn warn_root_in(folder: &Path) {
    if let Some(warning) = warning(geteuid(), folder) {
        tell_line!("pando: {warning}");
    }
}

fn warning(user: Uid, folder: &Path) -> Option<String> {
    // A folder that is not there has no owner yet.
    let owner = std::fs::metadata(folder).ok()?.uid();
    let is_of_root = owner == Uid::ROOT.as_raw();
    (user.is_root() && !is_of_root).then(|| {
        format!(
            "this runs as root, and {} belongs to user {owner}: files that it makes there are root's, and the server of that \
             user cannot open them; run it as that user: sudo -u '#{owner}' pando …",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_warned_in_folders_of_others_and_nobody_else_is() {
        let folder = tempfile::tempdir().unwrap();
        // The tests may run as root.
        assert_eq!(warning(Uid::ROOT, folder.path()).is_some(), !geteuid().is_root());
        assert_eq!(warning(Uid::from_raw(1000), folder.path()), None);
        assert_eq!(warning(Uid::ROOT, &folder.path().join("new")), None);
        assert_eq!(warning(Uid::ROOT, Path::new("/")), None);
    }
}
