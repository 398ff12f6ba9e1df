//! The phases of every workload: load, warm-up, run, verify, for each number of clients and each repeat.
//!
//! Before each run the tool measures its own ceiling with as many clients, for [`CEILING_SECONDS`]. After
//! each run its file is written at once: what has been measured is kept if a later run fails or the tool is
//! interrupted.

use super::{Found, find_server};
use crate::cli::{self, LoadWhen, MeasureOptions, ServerOptions};
use crate::client::{Address, EmbeddedStore, Misses, Pace, Place};
use crate::error::{BenchError, make_folder};
use crate::launch::Readahead;
use crate::protocol::Server;
use crate::report::file::{RunFacts, RunFile};
use crate::report::table::{Row, megabytes, render, render_kinds, render_per_second};
use crate::report::{Figures, Finding, clients_in_words, csv, dips, warnings};
use crate::run::settle::{self, Settled};
use crate::run::{self, Counting, Measured, Observer, Plan, ServerEnd};
use crate::target::Target;
use crate::why::checkpoints::Watch;
use crate::why::profile::Recording;
use crate::why::sizes::Sizes;
use crate::why::{StatusSpan, Why, status};
use crate::workload::load::{LONGEST_SECONDS, Loading, load_measured};
use crate::workload::{RunNumber, Workload};
use pando_measuring::counters::FolderSize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// How long the tool's own ceiling is measured.
const CEILING_SECONDS: u32 = 2;

#[derive(Debug, Default)]
pub struct Finished {
    /// Their files, whether or not they were written.
    pub runs: Vec<RunFile>,
    /// Whether one of them is no measurement.
    flagged: bool,
}

impl Finished {
    /// A run that is no measurement must not pass for one in a script.
    pub fn exit_code(&self) -> ExitCode {
        if self.flagged { ExitCode::from(1) } else { ExitCode::SUCCESS }
    }
}

/// Goes through all phases of a workload; gives the runs.
pub fn measure(workload: &dyn Workload, options: &MeasureOptions) -> Result<Finished, BenchError> {
    if options.null_server {
        return measure_this_tool(workload, options);
    }
    if options.server.readahead_sweep.is_empty() {
        return measure_server(workload, options);
    }
    let mut finished = Finished::default();
    for (place, kilobytes) in options.server.readahead_sweep.iter().enumerate() {
        let _readahead = set_readahead(&options.server, *kilobytes)?;
        out_line!("\nreadahead {kilobytes} KB");
        let mut options = options.clone();
        if place > 0 && options.load_when == LoadWhen::Always {
            options.load_when = LoadWhen::Never;
        }
        let swept = measure_server(workload, &options)?;
        finished.flagged |= swept.flagged;
        finished.runs.extend(swept.runs);
    }
    Ok(finished)
}

/// Sets the readahead of the device under a server's data.
fn set_readahead(options: &ServerOptions, kilobytes: u32) -> Result<Readahead, BenchError> {
    let folder = match (&options.data_folder, options.launch.is_given()) {
        (Some(folder), true) => {
            make_folder(folder)?;
            folder.clone()
        }
        (_, true) => {
            return Err(BenchError::option(
                "data-dir",
                "name the folder of the server that is to be started",
            ));
        }
        (_, false) => {
            out_line!(
                "note: files that the server has open keep their readahead: --server-command starts it anew each time"
            );
            let found = find_server(options)?;
            let folder = found.sources.data_folder().map(Path::to_owned);
            folder.ok_or_else(|| BenchError::Option {
                option: "readahead-sweep",
                cause: "the server's data folder is not known: give --data-dir".to_owned(),
            })?
        }
    };
    Readahead::set(&folder, kilobytes)
}

/// All phases against one server.
fn measure_server(workload: &dyn Workload, options: &MeasureOptions) -> Result<Finished, BenchError> {
    let mut found = find_server(&options.server)?;
    workload.check_ability(&found.target)?;
    if options.server.force_checkpoint {
        // Better refused now than after a load.
        forced_checkpoint(found.server.as_ref())?;
    }
    if let Some(loading) = workload.loading() {
        if should_load(loading, &found.target, options.load_when)? {
            load(loading, workload.name(), &mut found, &options.server)?;
        }
        if options.load_when == LoadWhen::Only {
            return Ok(Finished::default());
        }
        loading.check(&found.target)?;
    }
    out_line!("{:<8} {}", workload.name(), workload.summary());
    let mut finished = Finished::default();
    let mut number = options.first_run;
    for plan in &options.plans {
        for _ in 0..options.repeats {
            let run = one_run(workload, &mut found, (*plan, number), options);
            number = number.next();
            match run {
                Ok(run) => {
                    finished.flagged |= run.flagged;
                    finished.runs.push(run);
                }
                Err(error) => {
                    // Earlier runs are printed, and are in their files.
                    print_results(&finished.runs);
                    return Err(error);
                }
            }
        }
    }
    print_results(&finished.runs);
    print_size(&found);
    Ok(finished)
}

fn should_load(loading: &dyn Loading, target: &Target, when: LoadWhen) -> Result<bool, BenchError> {
    match when {
        LoadWhen::Always | LoadWhen::Only => Ok(true),
        LoadWhen::Never => Ok(false),
        // Data that is there is somebody's: whether it is the right data is checked before the runs.
        LoadWhen::Missing => Ok(!loading.is_there(target)?),
    }
}

fn one_run(
    workload: &dyn Workload,
    found: &mut Found,
    (plan, number): (Plan, RunNumber),
    options: &MeasureOptions,
) -> Result<RunFile, BenchError> {
    let plan = Plan { pace: plan.pace.in_run(number.stream(0)), ..plan };
    let ceiling = if options.with_ceiling { ceiling(plan, workload, &found.target)? } else { None };
    let counting = counting_of(workload);
    workload.prepare(&found.target)?;
    warm_up(workload, &found.target, plan)?;
    let mut state = Vec::new();
    if options.server.force_checkpoint {
        let seconds = forced_checkpoint(found.server.as_ref())?;
        state.push(format!("a checkpoint was forced before the run ({seconds:.2} s)"));
    }
    let clients = workload.clients(&found.target, plan.clients, number)?;
    let recording = start_recording(found, plan, options)?;
    let watch = checkpoint_watch(found.server.as_ref())?;
    let (server, mut statuses) = (found.server.clone(), Vec::new());
    let mut look = || statuses.push(server.status());
    let observer = Observer { sources: &mut found.sources, at_edge: Some(&mut look) };
    let mut measured = run::run(plan, found.target.address(), clients, counting, Some(observer))?;
    let told = watch.map(Watch::finish).unwrap_or_default();
    let profile = recording.map(Recording::finish).transpose()?;
    let status = status::changed_between(&statuses);
    let lost = lost_server(found, &measured);
    let is_there = lost.is_none();
    let settled = if is_there { settled(workload, found)? } else { None };
    let (sizes, mut sizes_written) = (Some(sizes_of(found, &workload.databases())), None);
    if options.server.force_checkpoint && is_there {
        let seconds = forced_checkpoint(found.server.as_ref())?;
        state.push(format!("another one was forced after it ({seconds:.2} s)"));
        sizes_written = Some(sizes_of(found, &workload.databases()));
    }
    let (findings, lost) = verified(workload, found, &mut measured, lost);
    let why = Why { profile, status, status_span: StatusSpan::Window, sizes, sizes_written };
    let facts = RunFacts {
        workload: workload.name().to_owned(),
        summary: workload.summary(),
        operations: workload.operations(),
        parameters: workload.parameters(),
        misses: workload.misses(),
        plan,
        ceiling,
        findings,
        lines: workload
            .lines(&measured)
            .into_iter()
            .chain(settled_line(workload, &measured, settled))
            .chain(state)
            .collect(),
        extras: workload.extras(),
        why,
    };
    let figures = Figures::new(&measured, &workload.kinds()).with_told(&told, measured.from);
    let file = found.circumstances.run_file(facts, figures);
    if let Some(folder) = &options.server.out {
        // The figures are printed even if the disk is full.
        write_files(workload, &file, folder).inspect_err(|_| print_results(std::slice::from_ref(&file)))?;
    }
    match lost {
        None => Ok(file),
        Some(error) => {
            print_results(std::slice::from_ref(&file));
            Err(error)
        }
    }
}

/// Makes the passes of a workload that warms up by them; says how the run goes.
fn warm_up(workload: &dyn Workload, target: &Target, plan: Plan) -> Result<(), BenchError> {
    let clients_in_words = clients_in_words(plan.clients);
    if let Some(clients) = workload.warm_up(target, plan.clients)? {
        err_line!("{clients_in_words}: whole passes to warm up, which do not count");
        let passes = Plan { warmup_s: 0, duration_s: LONGEST_SECONDS, pace: Pace::Closed, ..plan };
        run::run(passes, target.address(), clients, counting_of(workload), None)?;
    }
    err_line!(
        "{clients_in_words}, {}: {} s of warm-up, {}",
        in_words(plan.pace),
        plan.warmup_s,
        window_in_words(plan.duration_s)
    );
    Ok(())
}

/// Whether the server has ended or hangs. A server hangs if it left units without a reply and does not answer
/// a greeting either; one that answers was only slow, and its run is flagged.
fn lost_server(found: &Found, measured: &Measured) -> Option<BenchError> {
    if let Some(ServerEnd { process, seconds }) = measured.server_end {
        return Some(BenchError::ServerEnded { process, seconds });
    }
    // An engine in this process has no greeting, and a call into it might never come back.
    let is_embedded = matches!(found.target.address().place(), Place::Embedded(_));
    let units = measured.tally.unanswered;
    if units == 0 || is_embedded {
        return None;
    }
    let source = Box::new(found.server.facts().err()?);
    Some(BenchError::ServerHangs { units, source })
}

/// Verifies the data, unless the server is lost. A server that has ended or does not answer any more is a
/// failure of the run, which keeps its file and its figures. It is an error, too: no further run can be made.
fn verified(
    workload: &dyn Workload,
    found: &Found,
    measured: &mut Measured,
    lost: Option<BenchError>,
) -> (Vec<Finding>, Option<BenchError>) {
    let (when, error) = match lost {
        Some(error) => ("", error),
        None => match workload.verify(&found.target) {
            Ok(findings) => return (findings, None),
            Err(error) => ("the data could not be verified: ", error),
        },
    };
    let message = format!("{when}{error}");
    match error {
        // Its units have been counted as failures already.
        BenchError::ServerHangs { .. } => measured.tally.keep_failure(message),
        _ => measured.tally.fail(message),
    }
    (Vec::new(), Some(error))
}

/// Waits for an idle server, if the workload does; notes the work that the server has put off even then.
fn settled(workload: &dyn Workload, found: &mut Found) -> Result<Option<Settled>, BenchError> {
    let settled = settle::settle(&mut found.sources, workload.settle_s())?;
    Ok(settled.map(|settled| Settled { owed: deferred_bytes(found.server.as_ref()), ..settled }))
}

/// The time after the run, for a workload that waits for an idle server.
fn settled_line(workload: &dyn Workload, measured: &Measured, settled: Option<Settled>) -> Option<String> {
    let done = measured.tally.operations();
    settled.map(|settled| settled.line(workload.operations(), done, measured.seconds))
}

fn write_files(workload: &dyn Workload, file: &RunFile, folder: &Path) -> Result<(), BenchError> {
    let path = file.write(folder)?;
    out_line!("written  {}", path.display());
    let files = workload.csv(&file.figures).into_iter().chain(csv::of_run(&file.figures));
    files.into_iter().try_for_each(|csv| csv.write(&path).map(drop))
}

fn start_recording(
    found: &Found,
    plan: Plan,
    options: &MeasureOptions,
) -> Result<Option<Recording>, BenchError> {
    let Some(stacks) = &options.server.profile else { return Ok(None) };
    let Some(server) = found.sources.server() else {
        let cause = "the server's process is not on this machine, or not to be found: give --server-pid";
        return Err(BenchError::option("profile", cause));
    };
    Recording::start(server, stacks, plan.warmup_s.saturating_add(plan.duration_s)).map(Some)
}

fn sizes_of(found: &Found, databases: &[String]) -> Sizes {
    found.server.sizes_in(databases, found.sources.data_folder())
}

/// Has the server write a checkpoint; gives how many seconds it took.
pub(super) fn forced_checkpoint(server: &dyn Server) -> Result<f64, BenchError> {
    server.force_checkpoint().map(|took| took.as_secs_f64())
}

/// The work that the server has put off, as far as it says so.
fn deferred_bytes(server: &dyn Server) -> Option<u64> {
    server.teller().ok()?.ask().ok()?.behind
}

/// Asks the server for its checkpoints beside the run; nothing if it does not count them.
fn checkpoint_watch(server: &dyn Server) -> Result<Option<Watch>, BenchError> {
    match server.teller().and_then(Watch::start) {
        // A server without this command, or a user without the right to it.
        Err(BenchError::Refused { .. }) => Ok(None),
        watch => watch,
    }
}

fn window_in_words(duration_s: u32) -> String {
    if duration_s >= cli::DURATION_MAX_S {
        return "a window that ends with the work".to_owned();
    }
    format!("{duration_s} s of window at most")
}

fn in_words(pace: Pace) -> String {
    match pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Open { rate, spacing } => format!("open loop of {rate}/s, {}", spacing.name()),
    }
}

/// Runs against nothing but a null server.
fn measure_this_tool(workload: &dyn Workload, options: &MeasureOptions) -> Result<Finished, BenchError> {
    out_line!("{:<8} {}", workload.name(), workload.summary());
    out_line!(
        "server   none: these are the figures of the tool itself, whose null server runs in the same process"
    );
    let mut all_figures = Vec::new();
    for plan in &options.plans {
        let Some(measured) = run_on_null_server(*plan, workload)? else {
            return Err(BenchError::option("null-server", "this workload has no null server"));
        };
        all_figures.push((plan.clients, Figures::new(&measured, &workload.kinds())));
    }
    let rows: Vec<Row<'_>> = all_figures
        .iter()
        .map(|(clients, figures)| Row { clients: *clients, figures, ceiling: None })
        .collect();
    out_text!("\n{}", render(&rows));
    let flagged =
        all_figures.iter().any(|(_, figures)| warnings::is_flagged(figures, workload.misses(), &[]));
    Ok(Finished { runs: Vec::new(), flagged })
}

/// The rate of the null server with as many clients and threads; for an engine in this process, of a store
/// without work.
fn ceiling(plan: Plan, workload: &dyn Workload, target: &Target) -> Result<Option<f64>, BenchError> {
    let plan = Plan { warmup_s: 0, duration_s: CEILING_SECONDS, pace: Pace::Closed, ..plan };
    let measured = if let Place::Embedded(_) = target.address().place() {
        run_on_null_store(plan, workload)?
    } else {
        run_on_null_server(plan, workload)?
    };
    Ok(measured.map(|measured| measured.rate()))
}

fn run_on_null_store(plan: Plan, workload: &dyn Workload) -> Result<Option<Measured>, BenchError> {
    let Some(reply) = workload.null_reply() else { return Ok(None) };
    let target = Target::at(Address::embedded(Arc::new(EmbeddedStore::null(&reply))));
    let clients = workload.null_clients(&target, plan.clients)?;
    run::run(plan, target.address(), clients, counting_of(workload), None).map(Some)
}

fn run_on_null_server(plan: Plan, workload: &dyn Workload) -> Result<Option<Measured>, BenchError> {
    let Some(server) = workload.null_server()? else { return Ok(None) };
    let clients = workload.null_clients(&Target::at(server.address()), plan.clients)?;
    run::run(plan, server.address(), clients, counting_of(workload), None).map(Some)
}

fn counting_of(workload: &dyn Workload) -> Counting {
    Counting { kinds: workload.kinds().len(), misses: workload.misses() }
}

pub(super) fn load(
    loading: &dyn Loading,
    workload: &str,
    found: &mut Found,
    options: &ServerOptions,
) -> Result<(), BenchError> {
    out_line!("load     {}", loading.summary());
    let watch = checkpoint_watch(found.server.as_ref())?;
    let (measured, steps) = load_measured(loading, &found.target, &mut found.sources)?;
    let told = watch.map(Watch::finish).unwrap_or_default();
    let steps = steps.iter().map(|step| format!("{}: {:.1} s", step.what, step.seconds));
    let mut lines: Vec<String> = loading.lines(&measured).into_iter().chain(steps).collect();
    let mut why = Why { sizes: Some(sizes_of(found, &loading.databases())), ..Why::default() };
    if options.force_checkpoint {
        let seconds = forced_checkpoint(found.server.as_ref())?;
        lines.push(format!("a checkpoint was forced after the load ({seconds:.2} s)"));
        why.sizes_written = Some(sizes_of(found, &loading.databases()));
    }
    let facts = RunFacts {
        workload: format!("{workload} load"),
        summary: loading.summary(),
        operations: "documents",
        parameters: loading.parameters(),
        misses: Misses::AreFaults,
        plan: measured.plan,
        ceiling: None,
        findings: Vec::new(),
        lines,
        extras: serde_json::Value::Null,
        why,
    };
    let figures = Figures::new(&measured, &loading.kinds()).with_told(&told, measured.from);
    let file = found.circumstances.run_file(facts, figures);
    out_line!("\nload; an operation is a document, a latency is a batch's");
    print_results(std::slice::from_ref(&file));
    print_size(found);
    if let Some(folder) = &options.out {
        let path = file.write(folder)?;
        out_line!("written  {}", path.display());
        let files = [csv::of_load(&file.figures)].into_iter().chain(csv::of_run(&file.figures));
        files.into_iter().try_for_each(|csv| csv.write(&path).map(drop))?;
    }
    Ok(())
}

/// Prints how large the data folder is.
fn print_size(found: &Found) {
    if let Some(folder) = &found.circumstances.machine.data_folder {
        let FolderSize { allocated_bytes, apparent_bytes } = FolderSize::of(folder);
        out_line!(
            "size     {} MB on the device, {} MB apparent",
            megabytes(allocated_bytes),
            megabytes(apparent_bytes)
        );
    }
}

fn print_results(files: &[RunFile]) {
    if files.is_empty() {
        return;
    }
    let row = |file: &'_ RunFile| (file.plan.clients, file.ceiling);
    let rows: Vec<Row<'_>> = files
        .iter()
        .map(|file| Row { clients: row(file).0, figures: &file.figures, ceiling: row(file).1 })
        .collect();
    out_text!("\n{}", render(&rows));
    out_text!("\nper second, shares in percent of a core\n{}", render_per_second(&rows));
    for file in files {
        let clients = clients_in_words(file.plan.clients);
        if let Some(kinds) = render_kinds(&file.figures) {
            out_text!("\n{clients}, by kind of statement\n{kinds}");
        }
        file.lines.iter().for_each(|line| out_line!("{line}"));
        if let Some(line) = dips::steadiness(&file.figures).line() {
            out_line!("checkpoints of {clients}: {line}");
        }
        out_line!("durability of {clients}: {}", file.durability);
        if let Some(line) = file.why.sizes.and_then(|sizes| sizes.line()) {
            // A server that writes its data at checkpoints has less of it in its files.
            out_line!("size after {clients}, without a forced checkpoint: {line}");
        }
        if let Some(line) = file.why.sizes_written.and_then(|sizes| sizes.line()) {
            out_line!("size after a forced checkpoint: {line}");
        }
        let notes = file.figures.notes.iter().filter(|(_, count)| **count > 0);
        notes.for_each(|(name, count)| out_line!("note: {clients}: {name}: {count}"));
        file.findings.iter().for_each(|finding| out_line!("verified: {clients}: {finding}"));
        if let Some(source) = &file.figures.disk_source {
            out_line!("disk I/O of {clients} from {source}");
        }
        file.warnings.iter().for_each(|warning| out_line!("warning: {clients}: {warning}"));
    }
}
