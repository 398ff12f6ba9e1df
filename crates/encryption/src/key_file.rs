//! A master key in a file of the operator, which nobody else may reach.
//!
//! The file is read past the environment's door: the mode of a file is not among its promises, and the file
//! is no part of a store.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::key_text::TEXT_BYTES_MAX;
use crate::{EncryptionError, KeySource, SecretKey, parse_key_text};

/// The bits of a mode that let others than the owner reach a file.
const MODE_OF_OTHERS: u32 = 0o077;

/// The key of a file, as it was when the file was read.
pub struct KeyFile {
    path: PathBuf,
    key: SecretKey,
}

impl KeyFile {
    /// Reads a key file.
    ///
    /// # Errors
    /// The file cannot be read, others can reach it, or it has no key.
    pub fn read(path: &Path) -> Result<KeyFile, EncryptionError> {
        let failed = |source| EncryptionError::KeyFile { path: path.to_owned(), source };
        #[allow(
            clippy::disallowed_methods,
            reason = "the environment does not tell modes; see the module's head"
        )]
        let file = std::fs::File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if !facts.is_file() {
            return Err(EncryptionError::NotAFile { path: path.to_owned() });
        }
        let mode = facts.permissions().mode() & 0o7777;
        if mode & MODE_OF_OTHERS != 0 {
            return Err(EncryptionError::KeyFileMode { path: path.to_owned(), mode });
        }
        // Room for all of it, so that no copy stays behind where a buffer grows.
        let mut text = Zeroizing::new(Vec::with_capacity(TEXT_BYTES_MAX + 64));
        file.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut text).map_err(failed)?;
        let key = parse_key_text(&text)
            .map_err(|problem| EncryptionError::KeyText { origin: describe(path), problem })?;
        Ok(KeyFile { path: path.to_owned(), key })
    }
}

fn describe(path: &Path) -> String {
    format!("the key file {}", path.display())
}

impl KeySource for KeyFile {
    fn master_key(&self, _id: &str) -> Result<SecretKey, EncryptionError> {
        Ok(self.key.clone())
    }

    fn id_for_new(&self) -> &str {
        ""
    }

    fn describe(&self) -> String {
        describe(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str, mode: u32) -> Result<KeyFile, EncryptionError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        KeyFile::read(&path)
    }

    #[test]
    fn a_key_file_is_one_that_only_its_owner_can_reach() {
        let text = "5a".repeat(32);
        for mode in [0o600, 0o400] {
            let file = read(&text, mode).unwrap();
            assert_eq!(file.master_key("").unwrap().bytes(), &[0x5a; 32]);
        }
        for mode in [0o640, 0o604, 0o660, 0o644, 0o610] {
            let error = read(&text, mode).err().unwrap().to_string();
            assert!(error.contains("chmod 0600") && error.contains(&format!("{mode:04o}")), "{error}");
        }
    }

    #[test]
    fn errors_name_the_file_and_the_cure_and_not_the_content() {
        let error = read("hunter2", 0o600).err().unwrap().to_string();
        assert!(
            error.contains("/key") && error.contains("openssl rand") && !error.contains("hunter2"),
            "{error}"
        );
        let error = KeyFile::read(Path::new("/no/such/key")).err().unwrap().to_string();
        assert!(error.contains("/no/such/key"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(KeyFile::read(folder.path()), Err(EncryptionError::NotAFile { .. })));
    }
}
