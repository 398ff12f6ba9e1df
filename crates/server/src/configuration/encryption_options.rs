//! The options of encryption at rest, of a server and of the tools that open a folder.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pando_encryption::{Cipher, Encryption, KeyCommand, KeyFile, KeySource};

use super::error::ValueError;
use super::options::{OptionEntry, Shape, seconds};
use super::transport_options::file;

/// The key that a store has in a key command, unless another one is named.
const KEY_ID_DEFAULT: &str = "pando";
/// The word for the key that a store names.
const KEY_ID_AUTO: &str = "auto";
/// The word for the cipher that a store has, and for the default of a new one.
const CIPHER_AUTO: &str = "auto";
const CIPHERS: [&str; 3] = [CIPHER_AUTO, Cipher::ALL[0].as_str(), Cipher::ALL[1].as_str()];

/// Options that do not fit each other, in a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OptionsDisagree(String);

/// The chosen key, which is not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionChoice {
    /// The file of the master key.
    pub key_file: Option<PathBuf>,
    /// The command that prints master keys.
    pub key_command: Option<PathBuf>,
    /// The key of that command; `None` for the key that a store names.
    pub key_id: Option<String>,
    /// The time that the command may take.
    pub key_timeout: Duration,
    /// The cipher that was chosen for the store.
    pub cipher: Option<Cipher>,
    /// Whether a store without a key is refused.
    pub is_required: bool,
}

impl Default for EncryptionChoice {
    fn default() -> EncryptionChoice {
        EncryptionChoice {
            key_file: None,
            key_command: None,
            key_id: None,
            key_timeout: KeyCommand::TIME_LIMIT_DEFAULT,
            cipher: None,
            is_required: false,
        }
    }
}

impl EncryptionChoice {
    /// Whether there is a key.
    pub fn is_on(&self) -> bool {
        self.key_file.is_some() || self.key_command.is_some()
    }

    /// Reads the key file, or makes the key command ready; `None` without either.
    ///
    /// # Errors
    /// The key file is none, or the options contradict each other.
    pub fn load(&self) -> Result<Option<Encryption>, Box<dyn Error + Send + Sync>> {
        let source: Arc<dyn KeySource> = match (&self.key_file, &self.key_command) {
            (None, None) => return self.check_without_key().map(|()| None),
            (Some(_), Some(_)) => {
                let text = "--encryption-key-file and --encryption-key-command exclude each other";
                return Err(OptionsDisagree(text.to_owned()).into());
            }
            (Some(path), None) => {
                self.check_without_command("a key file has one key, and no command is asked")?;
                Arc::new(KeyFile::read(path)?)
            }
            (None, Some(program)) => {
                let command = match &self.key_id {
                    Some(id) => KeyCommand::of_id(program, id)?,
                    None => KeyCommand::new(program, KEY_ID_DEFAULT)?,
                };
                Arc::new(command.within(self.key_timeout))
            }
        };
        Ok(Some(Encryption { cipher: self.cipher.unwrap_or_default(), source }))
    }

    /// Refuses options that need a key: whoever gives one of them takes the store for an encrypted one.
    fn check_without_key(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let option = match (self.is_required, self.cipher) {
            (true, _) => "--enableEncryption",
            (false, Some(_)) => "--encryption-cipher",
            (false, None) => return self.check_without_command("no command is named"),
        };
        let text = format!("{option} needs a key: name its file with --encryption-key-file");
        Err(OptionsDisagree(text).into())
    }

    /// Refuses options of a key command.
    fn check_without_command(&self, reason: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        let option = if self.key_id.is_some() {
            "--encryption-key-id"
        } else if self.key_timeout != KeyCommand::TIME_LIMIT_DEFAULT {
            "--encryption-key-timeout"
        } else {
            return Ok(());
        };
        Err(OptionsDisagree(format!("{option} is for --encryption-key-command; {reason}")).into())
    }
}

/// The id that was chosen.
pub fn key_id(text: &str) -> Option<String> {
    (text != KEY_ID_AUTO).then(|| text.to_owned())
}

/// The time that was chosen for a key command.
pub fn key_timeout(text: &str) -> Result<Duration, ValueError> {
    Ok(seconds(text)?.max(Duration::from_secs(1)))
}

/// The options of encryption at rest, in the order in which help lists them.
pub(super) const ENCRYPTION_OPTIONS: &[OptionEntry] = &[
    OptionEntry {
        name: "encryption-key-file",
        shape: Shape::Value("FILE"),
        default: "none",
        help: "File with the master key of an encrypted store, 32 bytes as base64 or hexadecimal, of mode 0600. A new store is encrypted with it; a plain one is refused.",
        apply: |configuration, text| {
            configuration.encryption.key_file = file(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "encryption-key-command",
        shape: Shape::Value("PROGRAM"),
        default: "none",
        help: "Program that prints a master key, such as a client of a key server, instead of a key file. Its argument is the id of the key.",
        apply: |configuration, text| {
            configuration.encryption.key_command = file(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "encryption-key-id",
        shape: Shape::Value("ID"),
        default: KEY_ID_AUTO,
        help: "Id of the key that the key command prints. A store that has another one is refused. auto: the key that the store has, and 'pando' for a new one.",
        apply: |configuration, text| {
            if text.is_empty() {
                return Err(ValueError::Empty);
            }
            configuration.encryption.key_id = key_id(text);
            Ok(())
        },
    },
    OptionEntry {
        name: "encryption-key-timeout",
        shape: Shape::Value("SECONDS"),
        default: "30",
        help: "The time that the key command may take, at least a second. It is killed then, and the server does not start.",
        apply: |configuration, text| {
            configuration.encryption.key_timeout = key_timeout(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "encryption-cipher",
        shape: Shape::Value("CIPHER"),
        default: CIPHER_AUTO,
        help: "Cipher of an encrypted store: AES256-GCM, or ChaCha20-Poly1305 for processors without instructions for AES. A store that has another one is refused. auto: the one that the store has, and AES256-GCM for a new one.",
        apply: |configuration, text| {
            configuration.encryption.cipher = match text {
                CIPHER_AUTO => None,
                name => Some(name.parse().map_err(|_| ValueError::Choice { choices: &CIPHERS })?),
            };
            Ok(())
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_effect_are_refused() {
        let cipher = EncryptionChoice { cipher: Some(Cipher::Aes256Gcm), ..EncryptionChoice::default() };
        let id = EncryptionChoice { key_id: Some("a".to_owned()), ..EncryptionChoice::default() };
        let time = EncryptionChoice { key_timeout: Duration::from_secs(5), ..EncryptionChoice::default() };
        let file = Some(PathBuf::from("/key"));
        for (choice, words) in [
            (cipher, ["--encryption-cipher", "--encryption-key-file"]),
            (id.clone(), ["--encryption-key-id", "--encryption-key-command"]),
            (time.clone(), ["--encryption-key-timeout", "--encryption-key-command"]),
            (EncryptionChoice { key_file: file.clone(), ..id }, ["--encryption-key-id", "one key"]),
            (EncryptionChoice { key_file: file, ..time }, ["--encryption-key-timeout", "one key"]),
        ] {
            let refused = choice.load().unwrap_err().to_string();
            assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
        }
        assert!(EncryptionChoice::default().load().unwrap().is_none());
    }
}
