//! A folder that survives a power cut: it is created, and its name is made durable in the folder above it.
//!
//! A sync of files within a new folder does not cover the name of the folder itself. On some file systems a
//! power cut would take the whole folder away, with all that is synced in it.

use std::io::ErrorKind;
use std::path::Path;

use pando_environment::{EnvironmentError, FileSystem};

/// Creates a folder and those above it, and makes their names durable. If the folder exists, its name is
/// made durable as far as that is possible, since the caller may have just created it.
pub(crate) fn create_durable_folder(files: &dyn FileSystem, folder: &Path) -> Result<(), EnvironmentError> {
    let is_new = !files.exists(folder)?;
    let mut parents = Vec::new();
    for parent in folder.ancestors().skip(1) {
        // The parent of a relative path of one name.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        parents.push(parent);
        if files.exists(parent)? {
            break;
        }
    }
    files.create_dir(folder)?;
    for parent in parents.into_iter().rev() {
        match files.sync_dir(parent) {
            Err(error) if is_new && !is_denied(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether the process may create names in a folder, and may not open it to sync it.
fn is_denied(error: &EnvironmentError) -> bool {
    matches!(error, EnvironmentError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use pando_environment::simulated::{Fault, FaultRule};
    use pando_environment::{Environment, Operation};

    use super::*;

    #[test]
    fn the_name_of_each_new_folder_is_synced_and_a_failure_is_reported() {
        let folder = Path::new("/a/b/store");
        let failing = |after: u64| {
            let simulation = Environment::simulated(1);
            let rule = FaultRule::new(Operation::SyncFolder, Fault::InputOutputError);
            simulation.disk.inject(rule.after(after));
            create_durable_folder(simulation.environment.files().as_ref(), folder)
        };
        let failed = (0..3).map(|after| match failing(after) {
            Err(EnvironmentError::Io { path, .. }) => path,
            outcome => panic!("sync {after} fails, and the outcome is {outcome:?}"),
        });
        assert_eq!(failed.collect::<Vec<_>>(), ["/", "/a", "/a/b"].map(Path::new));
        assert!(failing(3).is_ok(), "there are three new names");
    }

    #[test]
    fn a_folder_that_exists_is_accepted_even_if_its_parent_cannot_be_synced() {
        let simulation = Environment::simulated(2);
        let files = simulation.environment.files().as_ref();
        create_durable_folder(files, Path::new("/a/store")).expect("it is created");
        let calls = simulation.disk.calls();
        let rule = FaultRule::new(Operation::SyncFolder, Fault::InputOutputError).on("/a");
        simulation.disk.inject(rule);
        create_durable_folder(files, Path::new("/a/store")).expect("it exists");
        assert_eq!(simulation.disk.calls() - calls, 2, "one creation without effect, one sync");
        create_durable_folder(files, Path::new("relative")).expect("it is created");
    }
}
