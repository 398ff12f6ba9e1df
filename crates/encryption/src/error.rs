//! Errors of keys: each names the file or the command, and the cure. None has a key in it.

use std::path::PathBuf;

use pando_environment::EnvironmentError;

/// The reason why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyTextProblem {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// The text is longer than any key.
    #[error("it is too long")]
    TooLong,
    /// The text is neither base64 nor hexadecimal.
    #[error("it is neither base64 nor hexadecimal")]
    NotEncoded,
    /// The decoded key has another length.
    #[error("it has {found} bytes")]
    Length {
        /// Bytes of the key.
        found: usize,
    },
}

/// An error of encryption at rest.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    /// The key file cannot be read.
    #[error("cannot read the key file {}: {source}; name the file with the master key, and let this user read it", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The path is not one of a file.
    #[error("the key file {} is not a file; name the file with the master key", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Others than its owner may read or write the key file.
    #[error("the key file {} has mode {mode:04o}, so that others can reach it; run chmod 0600 {}", path.display(), path.display())]
    KeyFileMode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The text of a key is not one.
    #[error(
        "{origin} has no master key: {problem}; it takes 32 random bytes as base64 or hexadecimal (openssl rand -base64 32)"
    )]
    KeyText {
        /// The source of the text.
        origin: String,
        /// The problem.
        problem: KeyTextProblem,
    },
    /// The key command cannot be run, or has failed.
    #[error("{origin} gave no key{}: {problem}; run it by hand, and look after the key server", named(id))]
    KeyCommand {
        /// The command.
        origin: String,
        /// The key that was asked for.
        id: String,
        /// The problem.
        problem: String,
    },
    /// The key command has not answered in time.
    #[error(
        "{origin} gave no key{} within {seconds} s, and was killed: run it by hand and look after the key server, or \
         give it more time with --encryption-key-timeout",
        named(id)
    )]
    KeyCommandTime {
        /// The command.
        origin: String,
        /// The key that was asked for.
        id: String,
        /// The time limit.
        seconds: u64,
    },
    /// The store has another cipher than the one that was asked for.
    #[error("the store in {} has the cipher {found}, and keeps it: leave --encryption-cipher {wanted} out, or make a copy with it by 'pando copy --to FOLDER --encryption-cipher {wanted}'", folder.display())]
    OtherCipher {
        /// The folder of the store.
        folder: PathBuf,
        /// Its cipher.
        found: crate::Cipher,
        /// The cipher that was asked for.
        wanted: crate::Cipher,
    },
    /// The id of a key has characters that no id may have.
    #[error(
        "'{id}' is no id of a key: it takes 1 to 256 letters, digits and the characters . _ : / -, and no part of it is '..'"
    )]
    KeyId {
        /// The id.
        id: String,
    },
    /// The store is encrypted, and no key was given.
    #[error("the store in {} is encrypted: name its master key with --encryption-key-file or --encryption-key-command, in a program with EngineOptions::encryption", folder.display())]
    KeyMissing {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The store is not encrypted, and a key was given.
    #[error(
        "the store in {} is not encrypted: leave the encryption options out (in a program EngineOptions::encryption), or make an encrypted copy with \
         'pando copy --to FOLDER --encryption-key-file FILE'",
        folder.display()
    )]
    StoreIsPlain {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The master key is not the one of the store.
    #[error("{origin} does not have the master key of the store: {} cannot be opened with it; give the key that the store was made or last rotated with", path.display())]
    WrongKey {
        /// The source of the key.
        origin: String,
        /// The file with the wrapped data keys.
        path: PathBuf,
    },
    /// The store names another master key than the one that was asked for.
    #[error("{} names the master key '{found}', not '{wanted}': give the store's own id with --encryption-key-id, or leave the option out", path.display())]
    OtherKeyId {
        /// The file with the wrapped data keys.
        path: PathBuf,
        /// The id in the file; empty for the key of a file.
        found: String,
        /// The id that was asked for.
        wanted: String,
    },
    /// The file with the data keys is missing.
    #[error("{} is missing, and without it no byte of the store can be decrypted; put it back from a backup", path.display())]
    TableMissing {
        /// The file.
        path: PathBuf,
    },
    /// The new file with the data keys is in place, and a loss of power may bring the former one back.
    #[error("{} was replaced, and is not durable yet ({source}): after a loss of power the former one may be back; keep both master keys, the former and the new one, until a rotation succeeds", path.display())]
    TableNotDurable {
        /// The file.
        path: PathBuf,
        /// The error of the device.
        source: EnvironmentError,
    },
    /// The new master key is the present one.
    #[error("{origin} has the master key that the store has already: name another key; nothing has changed")]
    SameKey {
        /// The source of the key.
        origin: String,
    },
    /// There are data keys, and not the store that they are of.
    #[error("{} has the keys of a store whose data file is missing: put the data file and the log back beside it, or keep it with them and make the store in an empty folder", path.display())]
    KeysWithoutStore {
        /// The file with the data keys.
        path: PathBuf,
    },
    /// The file with the data keys is damaged.
    #[error("{} is damaged: {problem}; put it back from a backup", path.display())]
    TableDamaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        problem: &'static str,
    },
    /// A newer program wrote the file with the data keys.
    #[error("{} has version {found}, this program reads version 1; open the store with the program that wrote it", path.display())]
    TableVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// There are too many data keys.
    #[error(
        "the store has {count} data keys, the most that it can have; let the rewriting of old blocks end first"
    )]
    TooManyKeys {
        /// The number of keys.
        count: usize,
    },
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes for a key")]
    NoRandomBytes,
    /// A file could not be read or written.
    #[error("{0}")]
    Environment(#[from] EnvironmentError),
}

impl EncryptionError {
    /// Whether another setting or another key is needed: a second try with these ends in the same way.
    pub fn is_wrong_setting(&self) -> bool {
        matches!(
            self,
            EncryptionError::NotAFile { .. }
                | EncryptionError::KeyFileMode { .. }
                | EncryptionError::KeyText { .. }
                | EncryptionError::OtherCipher { .. }
                | EncryptionError::KeyId { .. }
                | EncryptionError::KeyMissing { .. }
                | EncryptionError::StoreIsPlain { .. }
                | EncryptionError::WrongKey { .. }
                | EncryptionError::OtherKeyId { .. }
        )
    }
}

/// The identifier of a key in a sentence; a command may be asked for its only key without one.
fn named(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" '{id}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_an_identifier_is_told_without_one() {
        let told = |id: &str| {
            let (origin, problem) = ("the key command /bin/false".to_owned(), "exit code 1".to_owned());
            EncryptionError::KeyCommand { origin, id: id.to_owned(), problem }.to_string()
        };
        assert!(told("").contains("gave no key: exit code 1"), "{}", told(""));
        assert!(told("7").contains("gave no key '7': "), "{}", told("7"));
    }
}
