//! What the subcommands do: one file per workload for its arguments, and the phases, which are the same for all.

pub mod compare;
pub mod iibench;
pub mod kv;
pub mod linkbench;
pub mod load;
pub mod phases;
pub mod point;
pub mod report;
pub mod sysbench;

use crate::cli::ServerOptions;
use crate::client::Session;
use crate::counters::{Facts, Sources};
use crate::error::BenchError;
use crate::report::file::Circumstances;
use crate::target::{ServerFacts, Target};

/// The server that was found, and where its counters are.
struct Found {
    target: Target,
    sources: Sources,
    circumstances: Circumstances,
}

/// Greets the server, finds its process, and says on the screen what was found.
fn find_server(options: &ServerOptions) -> Result<Found, BenchError> {
    let (target, server) = greet(options)?;
    let sources = Sources::find(target.address(), options.process, options.data_folder.clone());
    let circumstances = Circumstances {
        server_address: target.address().to_string(),
        server,
        server_process: sources.server(),
        machine: Facts::gather(sources.data_folder()),
        disk_source: sources.disk_source(),
    };
    print_circumstances(&circumstances);
    Ok(Found { target, sources, circumstances })
}

/// The server's address, and what it says about itself.
fn greet(options: &ServerOptions) -> Result<(Target, ServerFacts), BenchError> {
    #[cfg(feature = "mysql")]
    if let Some(sql) = &options.sql {
        return Ok((Target::at(sql.address()), sql.facts()?));
    }
    let target = Target::parse(&options.uri)?;
    let server = ServerFacts::ask(&mut Session::open(target.address())?)?;
    Ok((target, server))
}

fn print_circumstances(circumstances: &Circumstances) {
    let Circumstances { server_address, server, server_process, machine, disk_source } = circumstances;
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
}
