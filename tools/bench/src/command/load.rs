//! `pando-bench load`: loads, and reports what that cost.

use super::{Found, find_server};
use crate::cli::ServerOptions;
use crate::counters::FolderSize;
use crate::error::BenchError;
use crate::report::table::{Row, megabytes, render};
use crate::report::{Figures, warnings};
use crate::workload::documents::DOCUMENT_BYTES;
use crate::workload::load::{IndexBuild, Load, Loaded};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Runs the subcommand.
pub fn run(server: &ServerOptions, load: &Load) -> Result<ExitCode, BenchError> {
    let mut found = find_server(server)?;
    load_and_report(&mut found, load, server.out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Loads and prints the figures.
pub(super) fn load_and_report(found: &mut Found, load: &Load, out: Option<&Path>) -> Result<(), BenchError> {
    let data = &load.data;
    println!(
        "load     {} x {} documents of {DOCUMENT_BYTES} bytes, {} connections, batches of {}, {}, durability {}",
        data.collections,
        data.documents,
        load.connections,
        load.batch,
        index_in_words(load.index),
        load.durability.name()
    );
    let loaded = load.run(found.target.address(), &mut found.sources)?;
    let Loaded { batches, documents_per_second, usage, index_seconds } = &loaded;
    let figures = Figures::new(batches, documents_per_second, usage.seconds, Some(usage));
    println!("\nload; an operation is a document, a latency is a batch's");
    print!("{}", render(&[Row { clients: load.connections, figures: &figures, ceiling: None }]));
    if let Some(seconds) = index_seconds {
        println!("index on k after the load: {seconds:.1} s");
    }
    for warning in warnings::warnings(&figures, None) {
        println!("warning: {warning}");
    }
    print_size(found);
    let parameters = json!({
        "data": data,
        "connections": load.connections,
        "batch": load.batch,
        "index": index_in_words(load.index),
        "index_seconds": index_seconds,
        "durability": load.durability.name(),
        "generator": load.generator.name(),
        "seed": load.seed,
    });
    if let Some(folder) = out {
        let file = found.circumstances.run_file("load", parameters, &figures, None);
        println!("written  {}", file.write(folder, load.connections)?.display());
    }
    Ok(())
}

/// Prints how large the data folder is.
pub(super) fn print_size(found: &Found) {
    if let Some(folder) = &found.circumstances.machine.data_folder {
        let FolderSize { allocated_bytes, apparent_bytes } = FolderSize::of(folder);
        println!(
            "size     {} MB on the device, {} MB apparent",
            megabytes(allocated_bytes),
            megabytes(apparent_bytes)
        );
    }
}

fn index_in_words(index: IndexBuild) -> &'static str {
    match index {
        IndexBuild::Before => "index on k before the load",
        IndexBuild::After => "index on k after the load",
        IndexBuild::Never => "no index on k",
    }
}
