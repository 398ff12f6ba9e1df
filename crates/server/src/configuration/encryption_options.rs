//! The options of encryption at rest, of a server and of the tools that open a folder.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use pando_encryption::{Cipher, Encryption, KeyCommand, KeyFile, KeySource};

use super::error::ValueError;
use super::options::{OptionEntry, Shape};
use super::transport_options::file;

/// The key that a store has in a key command, unless another one is named.
const KEY_ID_DEFAULT: &str = "pando";
/// The word for the key that a store names.
const KEY_ID_AUTO: &str = "auto";
const CIPHERS: [&str; 2] = [Cipher::ALL[0].as_str(), Cipher::ALL[1].as_str()];

/// The chosen key, which is not read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptionChoice {
    /// The file of the master key.
    pub key_file: Option<PathBuf>,
    /// The command that prints master keys.
    pub key_command: Option<PathBuf>,
    /// The key of that command; `None` for the key that a store names.
    pub key_id: Option<String>,
    /// The cipher of a new store.
    pub cipher: Cipher,
    /// Whether a store without a key is refused.
    pub is_required: bool,
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
            (None, None) if self.is_required => {
                return Err("--enableEncryption needs a key: name its file with --encryption-key-file".into());
            }
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err("--encryption-key-file and --encryption-key-command exclude each other".into());
            }
            (Some(_), None) if self.key_id.is_some() => {
                return Err(
                    "--encryption-key-id is for --encryption-key-command; a key file has one key".into()
                );
            }
            (Some(path), None) => Arc::new(KeyFile::read(path)?),
            (None, Some(program)) => Arc::new(match &self.key_id {
                Some(id) => KeyCommand::of_id(program, id)?,
                None => KeyCommand::new(program, KEY_ID_DEFAULT)?,
            }),
        };
        Ok(Some(Encryption { cipher: self.cipher, source }))
    }
}

/// The id that was chosen.
pub fn key_id(text: &str) -> Option<String> {
    (text != KEY_ID_AUTO).then(|| text.to_owned())
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
        name: "encryption-cipher",
        shape: Shape::Value("CIPHER"),
        default: CIPHERS[0],
        help: "Cipher of a new encrypted store: AES256-GCM, or ChaCha20-Poly1305 for processors without instructions for AES. A store that is there keeps its own.",
        apply: |configuration, text| {
            let cipher = text.parse().map_err(|_| ValueError::Choice { choices: &CIPHERS })?;
            configuration.encryption.cipher = cipher;
            Ok(())
        },
    },
];
