//! `pando-bench report DIR`: a page of all runs of a folder, or tables for a text file. `-` writes either to
//! standard output, and nothing else.

use super::Call;
use super::compare::read;
use crate::cli::STANDARD_OUTPUT;
use crate::error::{BenchError, unwritable};
use crate::report::file::replace_page;
use crate::report::page::render;
use crate::report::{failed_cells, markdown, runs_in_words};
use clap::{Arg, Command, value_parser};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("report")
        .about("Writes an HTML page of the runs of a folder")
        .arg(
            Arg::new("folder")
                .value_name("DIR")
                .required(true)
                .help("A folder that --out wrote, or one of its JSON files")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            crate::cli::option("page", "FILE")
                .help("Write the page here [default: DIR/report.html]; - for standard output")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            crate::cli::option("markdown", "FILE")
                .help("Write tables for a text file here, and no page; - for standard output")
                .conflicts_with("page")
                .value_parser(value_parser!(PathBuf)),
        )
}

pub fn run(call: Call<'_>) -> Result<ExitCode, BenchError> {
    let matches = call.matches;
    let folder: PathBuf = crate::cli::value(matches, "folder");
    let beside = || if folder.is_dir() { folder.join("report.html") } else { folder.with_extension("html") };
    let path = matches.get_one::<PathBuf>("page").cloned().unwrap_or_else(beside);
    let files = read(&folder)?;
    let failed = failed_cells::read(&folder)?;
    let (path, text) = match matches.get_one::<PathBuf>("markdown") {
        Some(path) => (path.clone(), markdown::render(&files, &failed)),
        None => (path, render(&files, &failed)),
    };
    if path.as_os_str() == STANDARD_OUTPUT {
        return match std::io::stdout().write_all(text.as_bytes()) {
            // The reader has all that it wants.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            written => written.map(|()| ExitCode::SUCCESS).map_err(unwritable("standard output")),
        };
    }
    replace_page(&path, &text)?;
    out_line!("written  {}: {}", path.display(), runs_in_words(files.len()));
    Ok(ExitCode::SUCCESS)
}
