//! `pando-bench report DIR`: a page of all runs of a folder, or tables for a text file.

use super::Call;
use super::compare::read;
use crate::error::{BenchError, unwritable};
use crate::report::page::render;
use crate::report::{failed_cells, markdown, runs_in_words};
use clap::{Arg, Command, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("report")
        .about("Writes an HTML page of the runs of a folder")
        .arg(
            Arg::new("folder")
                .value_name("DIR")
                .required(true)
                .help("A folder that --out wrote; the page is its report.html")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            crate::cli::option("page", "FILE")
                .help("Write the page here")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            crate::cli::option("markdown", "FILE")
                .help("Write tables for a text file here, and no page")
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
    std::fs::write(&path, text).map_err(unwritable(&path))?;
    println!("written  {}: {}", path.display(), runs_in_words(files.len()));
    Ok(ExitCode::SUCCESS)
}
