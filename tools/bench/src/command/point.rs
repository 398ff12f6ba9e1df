//! `pando-bench point`: loads if need be, then makes a run for each number of clients.
//!
//! Before each run the tool measures its own ceiling with as many clients, for [`CEILING_SECONDS`].

use super::load::{load_and_report, print_size};
use super::{Found, find_server};
use crate::cli::{LoadWhen, PointOptions};
use crate::client::{NullServer, Session};
use crate::error::BenchError;
use crate::report::table::{Row, render};
use crate::report::{Figures, warnings};
use crate::run::{self, Measured, Plan};
use crate::workload::Workload;
use crate::workload::load::{check_counts, count};
use crate::workload::point::{PointQuery, Projection};
use serde_json::json;
use std::process::ExitCode;

/// How long the tool's own ceiling is measured.
const CEILING_SECONDS: u32 = 2;

/// A run and the tool's own ceiling with as many clients.
struct Finished {
    clients: u32,
    figures: Figures,
    ceiling: Option<f64>,
}

/// Runs the subcommand.
pub fn run(options: &PointOptions) -> Result<ExitCode, BenchError> {
    if options.null_server {
        return measure_this_tool(options);
    }
    let mut found = find_server(&options.server)?;
    if should_load(&found, options)? {
        load_and_report(&mut found, &options.load, options.server.out.as_deref())?;
    }
    if options.load_when == LoadWhen::Only {
        return Ok(ExitCode::SUCCESS);
    }
    check_counts(&mut Session::open(found.target.address())?, &options.workload.data)?;
    print_workload(&options.workload);
    let mut finished = Vec::new();
    for plan in &options.plans {
        let ceiling = if options.with_ceiling { Some(ceiling(*plan, &options.workload)?) } else { None };
        eprintln!(
            "{} clients: {} s of warm-up, {} s of window",
            plan.clients, plan.warmup_s, plan.duration_s
        );
        let sources = Some(&mut found.sources);
        let measured = run::run(*plan, found.target.address(), &options.workload, sources)?;
        let figures = figures_of(&measured);
        write_file(&found, options, *plan, &figures, ceiling)?;
        finished.push(Finished { clients: plan.clients, figures, ceiling });
    }
    print_results(&finished);
    print_size(&found);
    Ok(exit_code(&finished))
}

/// Runs against nothing but a null server.
fn measure_this_tool(options: &PointOptions) -> Result<ExitCode, BenchError> {
    print_workload(&options.workload);
    println!(
        "server   none: these are the figures of the tool itself, whose null server runs in the same process"
    );
    let mut finished = Vec::new();
    for plan in &options.plans {
        let figures = figures_of(&run_on_null_server(*plan, &options.workload)?);
        finished.push(Finished { clients: plan.clients, figures, ceiling: None });
    }
    print_results(&finished);
    Ok(exit_code(&finished))
}

fn should_load(found: &Found, options: &PointOptions) -> Result<bool, BenchError> {
    match options.load_when {
        LoadWhen::Always | LoadWhen::Only => Ok(true),
        LoadWhen::Never => Ok(false),
        // Documents that are there are somebody's: whether they are the right ones is checked before the runs.
        LoadWhen::Missing => {
            let mut session = Session::open(found.target.address())?;
            Ok(count(&mut session, &options.workload.data, 1)? == 0)
        }
    }
}

/// What the null server reaches with as many clients and threads.
fn ceiling(plan: Plan, workload: &PointQuery) -> Result<f64, BenchError> {
    let plan = Plan { warmup_s: 0, duration_s: CEILING_SECONDS, ..plan };
    Ok(run_on_null_server(plan, workload)?.rate())
}

/// The null server always gives the same document, so that only a projection without `_id` can be content with it.
fn run_on_null_server(plan: Plan, workload: &PointQuery) -> Result<Measured, BenchError> {
    let workload = PointQuery { projection: Projection::C, ..workload.clone() };
    let server = NullServer::start(&workload.null_reply())?;
    run::run(plan, server.address(), &workload, None)
}

fn figures_of(measured: &Measured) -> Figures {
    let Measured { plan, tally, usage } = measured;
    Figures::new(tally, &tally.per_second, f64::from(plan.duration_s), usage.as_ref())
}

fn projection_in_words(projection: Projection) -> &'static str {
    match projection {
        Projection::C => "c",
        Projection::Full => "full",
    }
}

fn print_workload(workload: &PointQuery) {
    let PointQuery { data, shape, projection, generator, seed } = workload;
    println!(
        "point    {} x {} documents, keys {shape}, projection {}, {} seed {seed}, closed loop",
        data.collections,
        data.documents,
        projection_in_words(*projection),
        generator.name(),
    );
}

fn print_results(finished: &[Finished]) {
    let rows: Vec<Row<'_>> = finished
        .iter()
        .map(|run| Row { clients: run.clients, figures: &run.figures, ceiling: run.ceiling })
        .collect();
    print!("\n{}", render(&rows));
    for run in finished {
        for warning in warnings::warnings(&run.figures, run.ceiling) {
            println!("warning: {} clients: {warning}", run.clients);
        }
    }
}

fn write_file(
    found: &Found,
    options: &PointOptions,
    plan: Plan,
    figures: &Figures,
    ceiling: Option<f64>,
) -> Result<(), BenchError> {
    let Some(folder) = &options.server.out else { return Ok(()) };
    let PointQuery { data, shape, projection, generator, seed } = &options.workload;
    let parameters = json!({
        "data": data,
        "plan": plan,
        "keys": shape.to_string(),
        "projection": projection_in_words(*projection),
        "generator": generator.name(),
        "seed": seed,
    });
    let file = found.circumstances.run_file("point", parameters, figures, ceiling);
    println!("written  {}", file.write(folder, plan.clients)?.display());
    Ok(())
}

/// A run that is no measurement must not pass for one in a script.
fn exit_code(finished: &[Finished]) -> ExitCode {
    if finished.iter().any(|run| warnings::is_flagged(&run.figures)) {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}
