//! `pando-bench suite FILE`: its arguments, and the checks before anything starts.

use super::conduct::{Conductor, Places};
use super::file::{ServerEntry, Suite, program};
use super::folder_lock::FolderLock;
use crate::cli;
use crate::command::Call;
use crate::error::{BenchError, make_folder, unreadable};
use crate::report::file::{RunFile, replace_page};
use crate::report::page::render;
use crate::report::{failed_cells, markdown, runs_in_words};
use clap::{Arg, ArgAction, Command, value_parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("suite")
        .about(
            "Measures a matrix of servers, caches, workloads and clients; goes on where it was interrupted",
        )
        .arg(
            Arg::new("suite")
                .value_name("FILE")
                .required(true)
                .help("The suite, in TOML: see tools/bench/suites and docs/benchmarks.md")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            cli::written_path("out", "DIR")
                .help("Results, and what is done already")
                .default_value("suite-results"),
        )
        .arg(cli::written_path("stores", "DIR").help("The servers' data [default: DIR/stores]"))
        .arg(
            cli::option("program", "NAME=PATH")
                .help("Where a server's program is, if not in the search path")
                .action(ArgAction::Append)
                .value_parser(parse_program),
        )
        .arg(cli::option("servers", "NAME,NAME").help("Only these servers of the suite").value_delimiter(','))
        .arg(
            cli::flag("without-caps")
                .help("Leave the suite's memory and disk caps out, where control groups may not be made"),
        )
        .arg(cli::flag("check").help("Only check it, and name its cells"))
        .arg(cli::flag("no-ceiling").help("Do not measure this tool's own ceiling before each run"))
}

fn parse_program(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("a program is NAME=PATH")?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

pub fn run(call: Call<'_>) -> Result<ExitCode, BenchError> {
    let matches = call.matches;
    let mut suite = Suite::read(&cli::value::<PathBuf>(matches, "suite"))?;
    if matches.get_flag("without-caps") {
        suite.without_caps();
    }
    let mut whole = suite.clone();
    if let Some(names) = matches.get_many::<String>("servers") {
        suite.keep_servers(&names.cloned().collect::<Vec<_>>())?;
    }
    let out = absolute(&cli::value::<PathBuf>(matches, "out"))?;
    let data =
        matches.get_one::<PathBuf>("stores").map_or_else(|| Ok(out.join("stores")), |path| absolute(path))?;
    let programs = matches.get_many::<(String, PathBuf)>("program").unwrap_or_default().cloned().collect();
    let mut places = Places { out, data, programs, further: Vec::new() };
    if matches.get_flag("no-ceiling") {
        places.further.push("--no-ceiling".to_owned());
    }
    let names: Vec<String> = suite.servers.iter().map(|server| server.name.clone()).collect();
    for suite in [&mut suite, &mut whole] {
        suite.note_builds(&names, &places.programs);
    }
    check(&suite, &places, call)?;
    out_line!("suite    {}: {}", suite.name, suite.about);
    if let Some(scaled) = &suite.scaled {
        out_line!("scaled   {scaled}");
    }
    let cells = suite.cells();
    if matches.get_flag("check") {
        let times = if suite.repeats > 1 { format!(", {} times", suite.repeats) } else { String::new() };
        for cell in cells.iter().filter(|cell| cell.repeat == 1) {
            out_line!("  {}{times}: {}", cell.name(), cell.arguments().join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    out_line!("results  {}, {} cells", places.out.display(), cells.len());
    let _locks = lock(&places)?;
    let conducted = Conductor::new(&suite, &whole.cells(), &places)?.conduct();
    // Also after an interruption: what there is can be looked at.
    write_reports(&places.out)?;
    let outcome = conducted?;
    if outcome.failed > 0 {
        return Err(BenchError::Suite { failed: outcome.failed, all: cells.len() });
    }
    out_line!("all {} cells are done, {} of them flagged", outcome.done, outcome.flagged);
    Ok(if outcome.flagged > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Keeps other calls away from the results and from the servers' data, which `--stores` may have put
/// elsewhere.
fn lock(places: &Places) -> Result<Vec<FolderLock>, BenchError> {
    let mut locks = Vec::new();
    let mut seen = Vec::new();
    for (folder, option) in [(&places.out, "out"), (&places.data, "stores")] {
        make_folder(folder)?;
        let real = folder.canonicalize().map_err(unreadable(folder))?;
        if !seen.contains(&real) {
            locks.push(FolderLock::take(folder, option)?);
            seen.push(real);
        }
    }
    Ok(locks)
}

/// The checks that need no server.
fn check(suite: &Suite, places: &Places, call: Call<'_>) -> Result<(), BenchError> {
    // All at once: who repairs one after the other reads the same suite again and again.
    let lacks: Vec<String> =
        suite.servers.iter().filter_map(|server| lack_of(server, places, call)).collect();
    if !lacks.is_empty() {
        return Err(BenchError::SuiteServers { lacks: lacks.concat() });
    }
    suite.cells().iter().try_for_each(super::matrix::Cell::check)
}

/// Why a server cannot be measured here, as a line; nothing if it can.
fn lack_of(server: &ServerEntry, places: &Places, call: Call<'_>) -> Option<String> {
    if !call.speaks(&server.uri) {
        return Some(format!(
            "\n  server `{}` speaks MySQL's protocol: use the program pando-bench-mysql",
            server.name
        ));
    }
    let name = server.program.as_deref().filter(|name| program(name, &places.programs).is_none())?;
    Some(format!(
        "\n  server `{}` needs `{name}`, which is not there: install it, or name it by --program {name}=PATH",
        server.name
    ))
}

fn write_reports(out: &Path) -> Result<(), BenchError> {
    let files = RunFile::read_folder(out)?;
    if files.is_empty() {
        return Ok(());
    }
    let failed = failed_cells::read(out)?;
    let reports =
        [("report.html", render(&files, &failed)), ("tables.md", markdown::render(&files, &failed))];
    for (name, text) in reports {
        let path = out.join(name);
        replace_page(&path, &text)?;
        out_line!("report   {}: {}", path.display(), runs_in_words(files.len()));
    }
    Ok(())
}

/// Servers start in folders of their own.
fn absolute(path: &Path) -> Result<PathBuf, BenchError> {
    std::path::absolute(path).map_err(unreadable(path))
}
