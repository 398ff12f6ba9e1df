//! A master key from a command of the operator, as of a client for a key server (KMIP).
//!
//! The command gets the id of a key as its only argument, and prints the key as text. The wrapped data keys
//! of a store name their master key by its id. So a store finds its key again after a new one was made.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use zeroize::Zeroizing;

use crate::key_text::TEXT_BYTES_MAX;
use crate::{EncryptionError, KeySource, SecretKey, parse_key_text};

/// The longest id of a key, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// A command that prints keys.
pub struct KeyCommand {
    program: PathBuf,
    id_for_new: String,
    id_choice: IdChoice,
}

/// Which stores the id of a [`KeyCommand`] counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdChoice {
    /// For new ones. A store that is there names its own.
    OfNew,
    /// For all. A store that names another one is refused.
    OfAll,
}

impl KeyCommand {
    /// Keys of a program. A new store, and a rotation, asks for the key of this id; a store that is there for
    /// the key that it names.
    ///
    /// # Errors
    /// The id is not one.
    pub fn new(program: &Path, id_for_new: &str) -> Result<KeyCommand, EncryptionError> {
        if !is_id(id_for_new) {
            return Err(EncryptionError::KeyId { id: id_for_new.to_owned() });
        }
        let id_for_new = id_for_new.to_owned();
        Ok(KeyCommand { program: program.to_owned(), id_for_new, id_choice: IdChoice::OfNew })
    }

    /// The key of this id alone: a store that names another one is refused.
    ///
    /// # Errors
    /// The id is not one.
    pub fn of_id(program: &Path, id: &str) -> Result<KeyCommand, EncryptionError> {
        Ok(KeyCommand { id_choice: IdChoice::OfAll, ..KeyCommand::new(program, id)? })
    }
}

/// Whether a text can be the id of a key. An id cannot be taken for an option of the command, nor lead out of
/// a folder where the command takes it for a path.
pub(crate) fn is_id(id: &str) -> bool {
    if id.split('/').any(|part| part == "..") {
        return false;
    }
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
    !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.starts_with('-') && id.bytes().all(is_fit)
}

impl KeySource for KeyCommand {
    fn master_key(&self, id: &str) -> Result<SecretKey, EncryptionError> {
        let failed = |problem: String| EncryptionError::KeyCommand {
            origin: self.describe(),
            id: id.to_owned(),
            problem,
        };
        let child = Command::new(&self.program).arg(id).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| failed(error.to_string()))?;
        let mut text = Zeroizing::new(Vec::with_capacity(TEXT_BYTES_MAX + 64));
        if let Some(output) = child.stdout.take() {
            let read = output.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut text);
            read.map_err(|error| failed(error.to_string()))?;
        }
        let status = child.wait().map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            return Err(failed(format!("it ended with {status}")));
        }
        parse_key_text(&text).map_err(|problem| EncryptionError::KeyText { origin: self.describe(), problem })
    }

    fn id_for_new(&self) -> &str {
        &self.id_for_new
    }

    fn required_id(&self) -> Option<&str> {
        (self.id_choice == IdChoice::OfAll).then_some(&self.id_for_new)
    }

    fn describe(&self) -> String {
        format!("the key command {}", self.program.display())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn ask(script: &str) -> Result<SecretKey, EncryptionError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        KeyCommand::new(&path, "store/2026").unwrap().master_key("store/2026")
    }

    #[test]
    fn a_command_prints_the_key_of_an_id() {
        let script = format!("test \"$1\" = store/2026 && echo {}", "a5".repeat(32));
        assert_eq!(ask(&script).unwrap().bytes(), &[0xa5; 32]);
    }

    #[test]
    fn a_command_that_fails_or_prints_no_key_is_named() {
        for (script, word) in [("exit 3", "exit status: 3"), ("echo no", "hook"), ("yes", "hook")] {
            let error = ask(script).unwrap_err().to_string();
            assert!(error.contains(word), "{script}: {error}");
        }
        assert!(KeyCommand::new(Path::new("hook"), "--help").is_err());
        assert!(KeyCommand::new(Path::new("hook"), "a b").is_err());
        assert!(KeyCommand::new(Path::new("hook"), "").is_err());
        for id in ["..", "../root", "store/../root", "store/.."] {
            assert!(KeyCommand::new(Path::new("hook"), id).is_err(), "{id}");
        }
        for id in ["a..b", "...", "store/2026.1", "./a"] {
            assert!(KeyCommand::new(Path::new("hook"), id).is_ok(), "{id}");
        }
    }
}
