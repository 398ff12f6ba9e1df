//! The arguments that name the key of an encrypted store, for commands that open a data folder.

use std::error::Error;
use std::path::PathBuf;

use clap::{Arg, ArgMatches};
use pando_encryption::{Cipher, Encryption};

use crate::configuration::EncryptionChoice;

/// The names of arguments, for one store.
pub(super) struct EncryptionArguments {
    key_file: &'static str,
    key_command: &'static str,
    key_id: &'static str,
    cipher: &'static str,
}

/// The store of the command; of a copy, the target.
pub(super) const OF_STORE: EncryptionArguments = EncryptionArguments {
    key_file: "encryption-key-file",
    key_command: "encryption-key-command",
    key_id: "encryption-key-id",
    cipher: "encryption-cipher",
};
/// The source of a copy.
pub(super) const OF_SOURCE: EncryptionArguments = EncryptionArguments {
    key_file: "from-encryption-key-file",
    key_command: "from-encryption-key-command",
    key_id: "from-encryption-key-id",
    cipher: "from-encryption-cipher",
};
/// The key after a rotation.
pub(super) const NEW: EncryptionArguments = EncryptionArguments {
    key_file: "new-encryption-key-file",
    key_command: "new-encryption-key-command",
    key_id: "new-encryption-key-id",
    cipher: "new-encryption-cipher",
};

impl EncryptionArguments {
    /// The arguments; `whose` says of which store the key is.
    pub(super) fn arguments(&self, whose: &str) -> [Arg; 4] {
        let value = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
        [
            value(self.key_file, "FILE")
                .conflicts_with(self.key_command)
                .help(format!("The file with the master key of {whose}, if it is encrypted")),
            value(self.key_command, "PROGRAM").help("A program that prints the key of an id instead"),
            value(self.key_id, "ID").requires(self.key_command).hide(true),
            value(self.cipher, "CIPHER").value_parser(|text: &str| text.parse::<Cipher>()).hide(true),
        ]
    }

    /// The key that was chosen.
    pub(super) fn load(&self, matches: &ArgMatches) -> Result<Option<Encryption>, Box<dyn Error>> {
        let text = |name| matches.try_get_one::<String>(name).ok().flatten();
        let mut choice = EncryptionChoice {
            key_file: text(self.key_file).map(PathBuf::from),
            key_command: text(self.key_command).map(PathBuf::from),
            ..EncryptionChoice::default()
        };
        if let Some(id) = text(self.key_id) {
            choice.key_id.clone_from(id);
        }
        if let Ok(Some(cipher)) = matches.try_get_one::<Cipher>(self.cipher) {
            choice.cipher = *cipher;
        }
        choice.load().map_err(|error| -> Box<dyn Error> { error })
    }
}
