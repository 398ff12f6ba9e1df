//! `pando-bench compare A B`: ratios of two sets of runs.

use super::Call;
use crate::cli::flag;
use crate::error::BenchError;
use crate::report::compare::{Compared, compare};
use crate::report::file::RunFile;
use clap::{Arg, Command, value_parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn command() -> Command {
    let side = |name, help| {
        Arg::new(name).value_name("PATH").required(true).help(help).value_parser(value_parser!(PathBuf))
    };
    Command::new("compare")
        .about("Ratios of two sets of runs, with their spread")
        .arg(side("first", "A folder that --out wrote, or one of its JSON files: what the ratios are to"))
        .arg(side("second", "Another one"))
        .arg(
            flag("json").help(
                "Print a list of JSON for programs: of each group its runs, servers, figures and cautions",
            ),
        )
}

pub fn run(call: Call<'_>) -> Result<ExitCode, BenchError> {
    let side = |name| read(&crate::cli::value::<PathBuf>(call.matches, name));
    let (first, second) = (side("first")?, side("second")?);
    let compared = compare(&first, &second);
    if call.matches.get_flag("json") {
        out_line!("{}", compared.json);
        return Ok(ended(&compared));
    }
    let path = |name| crate::cli::value::<PathBuf>(call.matches, name).display().to_string();
    out_line!("first: {}; second: {}; ratio: second by first\n", path("first"), path("second"));
    out_text!("{}", compared.text);
    Ok(ended(&compared))
}

/// Sides without a group in common are told, with their differences.
fn ended(compared: &Compared) -> ExitCode {
    if compared.groups == 0 {
        err_line!("nothing can be compared: no run of the one side is like one of the other");
        compared.unmatched.iter().for_each(|pair| err_line!("{pair}"));
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}

pub fn read(path: &Path) -> Result<Vec<RunFile>, BenchError> {
    let files = if path.is_dir() { RunFile::read_folder(path)? } else { vec![RunFile::read(path)?] };
    if files.is_empty() {
        let cause = "there is no file of a run in this folder".to_owned();
        return Err(BenchError::FileForm { path: path.to_owned(), line: 0, cause });
    }
    Ok(files)
}
