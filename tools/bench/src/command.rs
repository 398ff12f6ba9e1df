//! What the subcommands do: one file per workload for its arguments, and the phases, which are the same for all.

pub mod compare;
pub mod iibench;
pub mod kv;
pub mod linkbench;
pub mod load;
pub mod phases;
pub mod point;
pub mod report;
pub mod self_check;
pub mod suite;
pub mod sysbench;

use crate::address::Address;
use crate::cli::ServerOptions;
use crate::client::{EMBEDDED_SCHEME, EmbeddedStore, Session};
use crate::counters::{Facts, ProcessId, Sources};
use crate::error::BenchError;
use crate::launch::StartedServer;
use crate::report::file::Circumstances;
use crate::target::{ServerFacts, Target};
use std::sync::Arc;

/// The server that was found, and where its counters are.
struct Found {
    /// Ends with this, if the tool has started it. Before the target: an engine in this process closes after its clients.
    _started: Option<StartedServer>,
    target: Target,
    sources: Sources,
    circumstances: Circumstances,
}

/// Greets the server, finds its process, and says on the screen what was found.
fn find_server(options: &ServerOptions) -> Result<Found, BenchError> {
    if let Some(folder) = &options.out {
        // Better now than when the first run is over.
        std::fs::create_dir_all(folder)
            .map_err(|source| BenchError::WriteReport { path: folder.clone(), source })?;
    }
    let started = match options.launch.resolve(&options.uri, options.data_folder.as_deref())? {
        Some(launch) => Some(StartedServer::start(&launch, &|| greet(options).map(|_| ()))?),
        None => None,
    };
    let (target, server) = greet(options)?;
    let process = options.process.or_else(|| started.as_ref().map(|server| ProcessId::new(server.process())));
    let sources = Sources::find(target.address(), process, options.data_folder.clone());
    let circumstances = Circumstances {
        server_address: target.address().to_string(),
        server,
        server_process: sources.server(),
        machine: Facts::gather(sources.data_folder(), sources.server()),
        disk_source: sources.disk_source(),
        labels: options.labels.clone(),
    };
    print_circumstances(&circumstances);
    Ok(Found { _started: started, target, sources, circumstances })
}

/// The server's address, and what it says about itself.
fn greet(options: &ServerOptions) -> Result<(Target, ServerFacts), BenchError> {
    #[cfg(feature = "mysql")]
    if let Some(sql) = &options.sql {
        return Ok((Target::at(sql.address()), sql.facts()?));
    }
    let target = match options.uri.strip_prefix(EMBEDDED_SCHEME) {
        Some(engine) => embedded(engine, options)?,
        None => Target::parse(&options.uri)?,
    };
    let server = ServerFacts::ask(&mut Session::open(target.address())?)?;
    Ok((target, server))
}

/// An engine in this process, over the folder that was given.
fn embedded(engine: &str, options: &ServerOptions) -> Result<Target, BenchError> {
    let Some(folder) = &options.data_folder else {
        let cause =
            "an engine in this process needs a folder for its data (memory keeps it empty)".to_owned();
        return Err(BenchError::Option { option: "data-dir", cause });
    };
    let store = EmbeddedStore::open(engine, folder, options.embedded_cache_bytes)?;
    Ok(Target::at(Address::embedded(Arc::new(store))))
}

fn print_circumstances(circumstances: &Circumstances) {
    let Circumstances { server_address, server, server_process, machine, disk_source, .. } = circumstances;
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let process = server_process.map_or_else(
        || "not on this machine: no counters of it".to_owned(),
        |process| format!("pid {process}"),
    );
    println!("server   {server_address}, version {}, {process}", known(&server.version));
    println!(
        "machine  {} cores, {}, kernel {}, load average {}",
        machine.cores,
        known(&machine.cpu_model),
        known(&machine.kernel),
        known(&machine.load_average)
    );
    let folder = machine
        .data_folder
        .as_ref()
        .map_or_else(|| "unknown".to_owned(), |folder| folder.display().to_string());
    println!("data     {folder} ({}), disk I/O from {disk_source}", known(&machine.file_system));
    if let Some(files) = machine.open_files {
        let readahead = machine.read_ahead_kb.map_or_else(|| "unknown".to_owned(), |kb| format!("{kb} KB"));
        println!("files    {}, readahead {readahead}", files.line());
    }
}
