//! The subcommands that measure: one file for the arguments of each workload, and the phases, which are the
//! same for all.

pub mod commands;
pub mod compare;
pub mod iibench;
pub mod kv;
pub mod linkbench;
pub mod load;
pub mod phases;
pub mod point;
pub mod report;
pub mod scale;
pub mod sysbench;

use crate::cli::{self, MYSQL_SCHEME, MeasureOptions, ServerOptions};
use crate::client::{Address, EMBEDDED_SCHEME, EmbeddedStore};
use crate::error::{BenchError, make_folder};
use crate::launch::StartedServer;
use crate::protocol::{Job, MongoServer, Protocol, Server};
use crate::report::file::Circumstances;
use crate::target::{ServerFacts, Target};
use crate::why::status;
use clap::{ArgMatches, Command};
use pando_measuring::counters::{Facts, ProcessId, Sources};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Clone, Copy)]
pub struct Call<'c> {
    pub matches: &'c ArgMatches,
    /// The protocol that this program speaks beside MongoDB's, if any.
    pub protocol: Option<&'c dyn Protocol>,
}

impl Call<'_> {
    pub fn speaks(&self, uri: &str) -> bool {
        !uri.starts_with(MYSQL_SCHEME) || self.foreign(uri).is_some()
    }

    fn foreign(&self, uri: &str) -> Option<&dyn Protocol> {
        self.protocol.filter(|protocol| uri.starts_with(protocol.scheme()))
    }

    /// The server of the arguments, if it speaks another protocol than MongoDB's.
    fn foreign_server(&self) -> Result<Option<Arc<dyn Server>>, BenchError> {
        let protocol = self.foreign(&cli::uri(self.matches));
        protocol.map(|protocol| protocol.server(self.matches)).transpose()
    }

    fn measure(&self, job: Job, mut options: MeasureOptions) -> Result<phases::Finished, BenchError> {
        options.server.foreign = self.foreign_server()?;
        let workload = match &options.server.foreign {
            Some(server) => server.workload(job)?,
            None => job.into_workload(),
        };
        phases::measure(workload.as_ref(), &options)
    }
}

pub struct Subject {
    pub name: &'static str,
    pub command: fn() -> Command,
    pub job: fn(&ArgMatches) -> Result<Job, BenchError>,
}

/// All workloads.
pub const SUBJECTS: [Subject; 6] = [
    Subject {
        name: "point",
        command: point::command,
        job: |matches| Ok(Job::Point(point::workload(matches))),
    },
    Subject { name: "sysbench", command: sysbench::command, job: sysbench::job },
    Subject { name: "kv", command: kv::command, job: |matches| Ok(Job::KeyValue(kv::workload(matches)?)) },
    Subject { name: "iibench", command: iibench::command, job: iibench::job },
    Subject {
        name: "linkbench",
        command: linkbench::command,
        job: |matches| Ok(Job::LinkBench(Box::new(linkbench::workload(matches)?.0))),
    },
    Subject {
        name: "commands",
        command: commands::command,
        job: |matches| Ok(Job::Commands(commands::workload(matches)?)),
    },
];

pub fn run(call: Call<'_>, subject: &Subject) -> Result<ExitCode, BenchError> {
    if subject.name == "linkbench" {
        return linkbench::run(call);
    }
    let finished = call.measure((subject.job)(call.matches)?, cli::measure_options(call.matches))?;
    Ok(finished.exit_code())
}

/// The server that was found, and where its counters are.
struct Found {
    /// Ends with this, if the tool has started it. Before the target: an engine in this process closes after
    /// its clients.
    _started: Option<StartedServer>,
    server: Arc<dyn Server>,
    target: Target,
    sources: Sources,
    circumstances: Circumstances,
}

/// Greets the server, finds its process, and says on the screen what was found.
fn find_server(options: &ServerOptions) -> Result<Found, BenchError> {
    if let Some(folder) = &options.out {
        // Better now than when the first run is over.
        make_folder(folder)?;
    }
    if let Some(process) = options.process.filter(|process| process.began_ticks().is_none()) {
        let cause = format!("there is no process {process} on this machine");
        return Err(BenchError::option("server-pid", cause));
    }
    let started = match options.launch.resolve(&options.uri, options.data_folder.as_deref())? {
        Some(launch) => {
            refuse_taken_address(&server_of(options)?.target().address())?;
            Some(StartedServer::start(&launch, &|| greet(options).map(|_| ()))?)
        }
        None => None,
    };
    let (server, mut facts) = greet(options)?;
    facts.cache_bytes = status::cache_bytes(&server.status());
    let target = server.target();
    let process = options.process.or_else(|| started.as_ref().map(|server| ProcessId::new(server.process())));
    let sources = Sources::find(process.or_else(|| target.address().process()), options.data_folder.clone());
    let circumstances = Circumstances {
        server_address: target.address().to_string(),
        server: facts,
        server_process: sources.server(),
        machine: Facts::gather(sources.data_folder(), sources.server()),
        disk_source: sources.disk_source(),
        labels: options.labels.clone(),
    };
    print_circumstances(&circumstances);
    Ok(Found { _started: started, server, target, sources, circumstances })
}

/// Refuses to start a server where another one listens. That one would answer in its place, and a load would
/// drop its collections.
fn refuse_taken_address(address: &Address) -> Result<(), BenchError> {
    if !address.is_taken() {
        return Ok(());
    }
    let cause = format!("a server answers at {address} already: stop it, or choose another port");
    Err(BenchError::option("server-command", cause))
}

/// The server, and what it says about itself.
fn greet(options: &ServerOptions) -> Result<(Arc<dyn Server>, ServerFacts), BenchError> {
    let server = server_of(options)?;
    let facts = server.facts()?;
    Ok((server, facts))
}

fn server_of(options: &ServerOptions) -> Result<Arc<dyn Server>, BenchError> {
    Ok(match (&options.foreign, options.uri.strip_prefix(EMBEDDED_SCHEME)) {
        (Some(server), _) => server.clone(),
        (None, Some(engine)) => Arc::new(MongoServer::at(embedded(engine, options)?)),
        (None, None) => Arc::new(MongoServer::at(Target::parse(&options.uri)?)),
    })
}

/// An engine in this process, over the folder that was given.
fn embedded(engine: &str, options: &ServerOptions) -> Result<Target, BenchError> {
    let Some(folder) = &options.data_folder else {
        let cause = "an engine in this process needs a folder for its data (memory keeps it empty)";
        return Err(BenchError::option("data-dir", cause));
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
    let version = server.version.as_deref().unwrap_or("unknown version");
    out_line!("server   {server_address}, {version}, {process}");
    out_line!(
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
    out_line!("data     {folder} ({}), disk I/O from {disk_source}", known(&machine.file_system));
    if let Some(files) = machine.open_files {
        let readahead = machine.read_ahead_kb.map_or_else(|| "unknown".to_owned(), |kb| format!("{kb} KB"));
        out_line!("files    {}, readahead {readahead}", files.line());
    }
}
