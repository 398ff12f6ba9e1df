//! The arguments that name the key of an encrypted store, for commands that open a data folder.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches};
use pando_encryption::{Cipher, Encryption};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::failure::UsageError;
use crate::configuration::{EncryptionChoice, key_id, key_timeout};
use crate::error_text::tell_line;

/// The names of arguments, for one store.
pub(super) struct EncryptionArguments {
    key_file: &'static str,
    key_command: &'static str,
    key_id: &'static str,
    key_timeout: &'static str,
    /// None where the command makes no store.
    cipher: Option<&'static str>,
}

/// The store of the command; of a copy, the target.
pub(super) const OF_STORE: EncryptionArguments = EncryptionArguments {
    key_file: "encryption-key-file",
    key_command: "encryption-key-command",
    key_id: "encryption-key-id",
    key_timeout: "encryption-key-timeout",
    cipher: Some("encryption-cipher"),
};
/// The source of a copy.
pub(super) const OF_SOURCE: EncryptionArguments = EncryptionArguments {
    key_file: "from-encryption-key-file",
    key_command: "from-encryption-key-command",
    key_id: "from-encryption-key-id",
    key_timeout: "from-encryption-key-timeout",
    cipher: None,
};
/// The key after a rotation.
pub(super) const NEW: EncryptionArguments = EncryptionArguments {
    key_file: "new-encryption-key-file",
    key_command: "new-encryption-key-command",
    key_id: "new-encryption-key-id",
    key_timeout: "new-encryption-key-timeout",
    cipher: None,
};

impl EncryptionArguments {
    /// The arguments; `whose` says of which store the key is.
    pub(super) fn arguments(&self, whose: &str) -> Vec<Arg> {
        let value = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
        let cipher = self
            .cipher
            .map(|name| value(name, "CIPHER").value_parser(|text: &str| text.parse::<Cipher>()).hide(true));
        let of_key = [
            value(self.key_file, "FILE")
                .conflicts_with(self.key_command)
                .help(format!("The file with the master key of {whose}, if it is encrypted")),
            value(self.key_command, "PROGRAM").help("A program that prints the key of an id instead"),
            value(self.key_id, "ID").requires(self.key_command).hide(true),
            value(self.key_timeout, "SECONDS")
                .requires(self.key_command)
                .value_parser(|text: &str| key_timeout(text))
                .hide(true),
        ];
        of_key.into_iter().chain(cipher).collect()
    }

    /// Refuses a key for a running server: it would have no effect.
    pub(super) fn refuse_for_server(&self, matches: &ArgMatches) -> Result<(), UsageError> {
        let names = [self.key_file, self.key_command, self.key_id, self.key_timeout];
        let names = names.into_iter().chain(self.cipher);
        match names.into_iter().find(|name| matches.try_contains_id(name).unwrap_or(false)) {
            None => Ok(()),
            Some(name) => Err(UsageError::new(format!(
                "--{name}: the key is for a data folder; a server has its own, so leave the option out"
            ))),
        }
    }

    /// The key that was chosen.
    pub(super) fn load(&self, matches: &ArgMatches) -> Result<Option<Encryption>, Box<dyn Error>> {
        let text = |name| matches.try_get_one::<String>(name).ok().flatten();
        let mut choice = EncryptionChoice {
            key_file: text(self.key_file).map(PathBuf::from),
            key_command: text(self.key_command).map(PathBuf::from),
            ..EncryptionChoice::default()
        };
        choice.key_id = text(self.key_id).and_then(|id| key_id(id));
        if let Some(time) = matches.try_get_one::<Duration>(self.key_timeout).ok().flatten() {
            choice.key_timeout = *time;
        }
        let cipher = self.cipher.and_then(|name| matches.try_get_one::<Cipher>(name).ok().flatten());
        if let Some(cipher) = cipher {
            if !choice.is_on() {
                let message =
                    format!("--encryption-cipher needs a key: name its file with --{}", self.key_file);
                return Err(UsageError::new(message).into());
            }
            choice.cipher = Some(*cipher);
        }
        if choice.is_on() {
            keep_out_of_core_dumps();
        }
        choice.load().map_err(|error| -> Box<dyn Error> { error })
    }
}

/// Keeps the memory of a tool with a key out of core dumps, and from other processes of its user.
fn keep_out_of_core_dumps() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tell_line!(
            "cannot turn core dumps off ({error}): a crash may leave the key on the disk; set the limit with ulimit -c 0"
        );
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use rustix::process::dumpable_behavior;

    use super::*;

    fn matches(arguments: &[&str]) -> ArgMatches {
        let command = Command::new("tool")
            .args(OF_STORE.arguments("the store"))
            .args(OF_SOURCE.arguments("the source"))
            .args(NEW.arguments("the store"));
        command.try_get_matches_from([&["tool"], arguments].concat()).unwrap()
    }

    #[test]
    fn a_key_has_no_effect_on_a_server_and_is_refused() {
        assert!(OF_STORE.refuse_for_server(&matches(&[])).is_ok());
        for option in [&["--encryption-key-file", "k"][..], &["--encryption-cipher", "AES256-GCM"]] {
            let refused = OF_STORE.refuse_for_server(&matches(option)).unwrap_err().to_string();
            assert!(refused.contains(option[0]) && refused.contains("a server has its own"), "{refused}");
            assert!(OF_SOURCE.refuse_for_server(&matches(option)).is_ok(), "it is not of the source");
        }
        assert!(OF_SOURCE.refuse_for_server(&matches(&["--from-encryption-key-command", "k"])).is_err());
    }

    #[test]
    fn a_cipher_without_a_key_is_refused() {
        let refused = OF_STORE.load(&matches(&["--encryption-cipher", "AES256-GCM"])).unwrap_err();
        assert!(refused.to_string().contains("--encryption-key-file"), "{refused}");
    }

    #[test]
    fn a_tool_with_a_key_leaves_no_core_dump() {
        let loaded = NEW.load(&matches(&["--new-encryption-key-command", "/bin/hook"])).unwrap();
        assert!(loaded.is_some());
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
