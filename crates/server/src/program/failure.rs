//! The failure message of the program.

use std::error::Error;
use std::path::Path;

use pando_environment::EnvironmentError;
use pandodb::SOCKET_NAME;
use serde_json::json;

use super::output::print_line;
use crate::error_text::{error_text, tell_line};
use crate::uri_encoding::socket_uri;

/// The form in which a failure is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureForm {
    /// Lines on standard error.
    Lines,
    /// The same, and an object on standard output.
    LinesAndJson,
    /// An object on standard error.
    JsonInPlace,
}

/// Prints an error and what caused it, each on a line, to standard error, or as a JSON object.
pub(super) fn print_failure(error: &dyn Error, form: FailureForm) {
    let object = json!({ "error": error_text(error) });
    match form {
        FailureForm::JsonInPlace => return tell_line!("{object}"),
        FailureForm::LinesAndJson => print_line!("{object}"),
        FailureForm::Lines => {}
    }
    for line in error_lines(error) {
        tell_line!("{line}");
    }
}

/// A wrong command line that the parser has let through. It ends the program with a code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(String);

impl UsageError {
    pub(super) fn new(message: impl Into<String>) -> UsageError {
        UsageError(message.into())
    }
}

/// Whether a folder is in use by a server, or another process.
pub(super) fn is_folder_in_use(error: &(dyn Error + 'static)) -> bool {
    folder_in_use(error).is_some()
}

/// The folder that another process has open, where that is the fault.
pub(super) fn folder_in_use<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Path> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(EnvironmentError::Locked { path, .. }) = error.downcast_ref() {
            return Some(path);
        }
        cause = error.source();
    }
    None
}

/// The address of the server that has a folder open: its socket there, or the form of an address.
pub(super) fn address_of_holder(folder: &Path) -> String {
    let socket = folder.join(SOCKET_NAME);
    let socket = socket.canonicalize().ok().filter(|socket| socket.exists());
    match socket.as_deref() {
        Some(socket) => socket_uri(socket),
        None => "mongodb://HOST:PORT".to_owned(),
    }
}

/// An error and what caused it, each on a line.
pub(super) fn error_lines(error: &dyn Error) -> Vec<String> {
    let mut lines = vec![format!("pando: {error}")];
    let mut cause = error.source();
    let mut said = error.to_string();
    while let Some(error) = cause {
        let text = error.to_string();
        // An error that is only a wrapper repeats what it wraps.
        if !said.contains(&text) {
            // The lines of a longer one stand below each other.
            lines.push(format!("  because: {}", text.trim_end().replace('\n', "\n    ")));
        }
        said = text;
        cause = error.source();
    }
    lines
}
