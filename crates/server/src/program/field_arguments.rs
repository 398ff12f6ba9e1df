//! `--fields` and `--field-file`: the columns of an import or export.

use std::io::ErrorKind;

use clap::{Arg, ArgMatches};

use crate::transfer::FormatError;

/// The arguments. The caller adds the help of the first.
pub(super) fn field_arguments() -> [Arg; 2] {
    [
        Arg::new("fields").long("fields").short('f').value_delimiter(','),
        Arg::new("field-file")
            .long("field-file")
            .alias("fieldFile")
            .value_name("FILE")
            .hide(true)
            .conflicts_with("fields"),
    ]
}

/// The columns that the command line names, itself or by a file with one column a line.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn named_fields(matches: &ArgMatches) -> Result<Option<Vec<String>>, String> {
    match matches.get_one::<String>("field-file") {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
                ErrorKind::InvalidData => format!("{path} is {}", FormatError::NotUtf8),
                _ => format!("cannot read {path}: {error}"),
            })?;
            Ok(Some(text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()))
        }
        None => Ok(matches.get_many::<String>("fields").map(|fields| fields.cloned().collect())),
    }
}
