//! A master key from a command of the operator, as of a client for a key server (KMIP).
//!
//! The command gets the id of a key as its only argument, and prints the key as text. The wrapped data keys
//! of a store name their master key by its id. So a store finds its key again after a new one was made.
//!
//! A key server that does not answer must not keep a server from starting or failing. So the command has a
//! time limit, after which it and the processes that it has begun are killed.

use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pando_environment::{Clock, Environment, Monotonic};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use zeroize::Zeroizing;

use crate::key_text::TEXT_BYTES_MAX;
use crate::{EncryptionError, KeySource, SecretKey, parse_key_text};

/// The longest id of a key, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// How often a command that has closed its output is asked whether it has ended.
const EXIT_POLL: Duration = Duration::from_millis(5);
/// How often a program that is busy is tried again, and the pause before.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// A command that prints keys.
pub struct KeyCommand {
    program: PathBuf,
    id_for_new: String,
    id_choice: IdChoice,
    time_limit: Duration,
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
    /// The time that a command may take unless another one is chosen.
    pub const TIME_LIMIT_DEFAULT: Duration = Duration::from_secs(30);

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
        Ok(KeyCommand {
            program: program.to_owned(),
            id_for_new,
            id_choice: IdChoice::OfNew,
            time_limit: KeyCommand::TIME_LIMIT_DEFAULT,
        })
    }

    /// The same with another time limit.
    #[must_use]
    pub fn within(self, time_limit: Duration) -> KeyCommand {
        KeyCommand { time_limit, ..self }
    }

    /// The key of this id alone: a store that names another one is refused.
    ///
    /// # Errors
    /// The id is not one.
    pub fn of_id(program: &Path, id: &str) -> Result<KeyCommand, EncryptionError> {
        Ok(KeyCommand { id_choice: IdChoice::OfAll, ..KeyCommand::new(program, id)? })
    }

    fn failed(&self, id: &str, problem: String) -> EncryptionError {
        EncryptionError::KeyCommand { origin: self.describe(), id: id.to_owned(), problem }
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

/// A command under way. It is killed where it has not ended by itself.
struct Running {
    child: Child,
    clock: Arc<dyn Clock>,
    began: Monotonic,
    limit: Duration,
}

/// The reason why a command has printed no key.
enum Failure {
    Io(std::io::Error),
    Time,
}

impl<E: Into<std::io::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Io(error.into())
    }
}

impl Running {
    fn begin(program: &Path, id: &str, limit: Duration) -> Result<Running, std::io::Error> {
        let clock = Arc::clone(Environment::real().clock());
        let began = clock.monotonic();
        // A group of its own, so that the processes that it begins end with it.
        let mut command = Command::new(program);
        command.arg(id).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut tries = 0;
        let child = loop {
            match command.spawn() {
                // Somebody writes it just now, or a process that was begun meanwhile has it open.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                    tries += 1;
                    std::thread::sleep(BUSY_PAUSE);
                }
                other => break other?,
            }
        };
        Ok(Running { child, clock, began, limit })
    }

    fn time_left(&self) -> Result<Duration, Failure> {
        let left = self.limit.checked_sub(self.clock.monotonic().since(self.began));
        left.filter(|left| !left.is_zero()).ok_or(Failure::Time)
    }

    /// Everything that the command prints, up to a little more than a key has.
    fn output(&self, mut stdout: ChildStdout) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let mut text = Zeroizing::new(vec![0; TEXT_BYTES_MAX + 1]);
        let mut length = 0;
        while length < text.len() {
            let left = Timespec::try_from(self.time_left()?).unwrap_or_default();
            let mut waiting = [PollFd::new(&stdout, PollFlags::IN)];
            match poll(&mut waiting, Some(&left)) {
                Ok(0) => continue,
                Err(rustix::io::Errno::INTR) => continue,
                outcome => outcome?,
            };
            match stdout.read(&mut text[length..])? {
                0 => break,
                bytes => length += bytes,
            }
        }
        text.truncate(length);
        Ok(text)
    }

    /// Waits for the end of the command.
    fn status(&mut self) -> Result<ExitStatus, Failure> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            let left = self.time_left()?;
            std::thread::sleep(left.min(EXIT_POLL));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // A process that is gone meanwhile needs no signal.
            let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _gone = self.child.wait();
        }
    }
}

impl KeySource for KeyCommand {
    fn master_key(&self, id: &str) -> Result<SecretKey, EncryptionError> {
        let failed = |failure: Failure| match failure {
            Failure::Io(error) => self.failed(id, error.to_string()),
            Failure::Time => EncryptionError::KeyCommandTime {
                origin: self.describe(),
                id: id.to_owned(),
                seconds: self.time_limit.as_secs(),
            },
        };
        let running = Running::begin(&self.program, id, self.time_limit);
        let mut running = running.map_err(|error| failed(error.into()))?;
        let text = match running.child.stdout.take() {
            Some(stdout) => running.output(stdout).map_err(failed)?,
            None => Zeroizing::new(Vec::new()),
        };
        let status = running.status().map_err(failed)?;
        if !status.success() {
            return Err(self.failed(id, format!("it ended with {status}")));
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
        ask_within(script, KeyCommand::TIME_LIMIT_DEFAULT)
    }

    fn ask_within(script: &str, limit: Duration) -> Result<SecretKey, EncryptionError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        KeyCommand::new(&path, "store/2026").unwrap().within(limit).master_key("store/2026")
    }

    #[test]
    fn a_command_that_does_not_answer_in_time_is_killed_and_named() {
        let clock = Arc::clone(Environment::real().clock());
        let began = clock.monotonic();
        let folder = tempfile::tempdir().unwrap();
        let proof = folder.path().join("went-on");
        // It neither prints nor ends; it closes its output and goes on; a child of its own keeps the output
        // open.
        let goes_on = format!("sleep 2; touch {}", proof.display());
        for script in ["exec sleep 60", "exec >&-; sleep 60", &format!("({goes_on}) & sleep 60")] {
            let error = ask_within(script, Duration::from_millis(1_000)).unwrap_err().to_string();
            assert!(error.contains("hook") && error.contains("within 1 s"), "{script}: {error}");
            assert!(error.contains("--encryption-key-timeout"), "{error}");
        }
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(!proof.exists(), "a process of the command goes on");
        assert!(clock.monotonic().since(began) < Duration::from_secs(40));
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
