//! `pando serve`: from a configuration to a running server, and to its end.
//!
//! 1. Listen: a port that is taken, or that others could reach, is refused before anything is opened.
//! 2. Open the store; after a crash this is where its log is replayed. Clients that connect meanwhile wait in the kernel.
//! 3. Serve: the network side hands requests to [`CommandHandler`].
//! 4. Wait for SIGTERM or SIGINT, and forget cursors that nobody uses any more.
//! 5. Stop: close the listeners, answer what is under way, close the store. A second signal ends the process at once, which
//!    loses nothing that was acknowledged.

mod command_handler;
mod file_limit;
mod listening;
mod logging;
mod shutdown_signal;
mod welcome;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use command_handler::CommandHandler;
pub use listening::ListenRefused;
use listening::listen;
use pando_environment::Environment;
use pandodb::{Commands, CommandsOptions, EngineName, EngineOptions, open_commands};
use shutdown_signal::ShutdownSignal;
use tracing::{error, info, warn};

use crate::configuration::{Configuration, OpenToOthers};
use crate::network::{Limits, ListenError, Network, Placement};

/// How often cursors are looked at that nobody uses any more.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(5);

/// Why a server does not start, or ends badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address will not do.
    #[error(transparent)]
    Address(#[from] ListenRefused),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The data folder is not a folder that can be written.
    #[error("cannot use {} as data folder: choose a folder that this user may write with --data", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the store in {}", folder.display())]
    Open {
        /// The folder.
        folder: PathBuf,
        /// What the engine says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system refuses threads, signals or sockets.
    #[error("cannot start the server")]
    Start(#[source] std::io::Error),
    /// The store was not closed cleanly; its log is replayed at the next start.
    #[error("the store was not closed cleanly; the next start replays its log")]
    Close(#[source] Box<dyn Error + Send + Sync>),
}

/// Serves until a signal comes.
///
/// # Errors
/// [`ServeError`].
pub fn serve(configuration: &Configuration) -> Result<(), ServeError> {
    logging::start(configuration);
    let begun = Instant::now();
    file_limit::raise();
    if configuration.engine != EngineName::Memory {
        prepare_folder(&configuration.data)?;
    }
    let listeners = listen(configuration)?;
    let places: Vec<String> = listeners.iter().map(|listener| listener.place()).collect();
    let signal = ShutdownSignal::watch().map_err(ServeError::Start)?;
    let commands = open_store(configuration, &places)?;
    let handler = Arc::new(CommandHandler::new(commands));
    let network =
        Network::start(Arc::clone(&handler), listeners, limits(configuration)).map_err(ServeError::Start)?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        engine = configuration.engine.as_str(),
        data = %configuration.data.display(),
        cache = %configuration.cache,
        listen = places.join(" "),
        start_ms = begun.elapsed().as_millis(),
        "serving"
    );
    if configuration.open_to_others == OpenToOthers::Allowed {
        warn!("--allow-unauthenticated is set: whoever reaches the port can read and change everything");
    }
    welcome::print(configuration, &places);
    while !signal.came_within(HOUSEKEEPING_EVERY) {
        handler.commands().expire_cursors();
    }
    info!(connections = network.connections(), "stopping");
    network.stop(configuration.stop_grace);
    close(handler.commands())?;
    info!("stopped");
    Ok(())
}

fn limits(configuration: &Configuration) -> Limits {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (io_threads, placement) = match configuration.io_threads {
        None => (cores, Placement::OnePerProcessor),
        Some(threads) => (threads, Placement::Free),
    };
    Limits {
        io_threads,
        placement,
        blocking_threads: configuration.blocking_threads,
        queued_reads: configuration.queued_reads,
        connections: configuration.max_connections,
    }
}

/// Makes the data folder and finds out whether it can be written, so that a refusal names the folder and not a file in it.
fn prepare_folder(folder: &Path) -> Result<(), ServeError> {
    let writable = std::fs::create_dir_all(folder).and_then(|()| {
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).map_err(std::io::Error::from)
    });
    writable.map_err(|source| ServeError::Folder { folder: folder.to_owned(), source })
}

fn open_store(configuration: &Configuration, places: &[String]) -> Result<Commands, ServeError> {
    let engine_options = EngineOptions {
        cache_bytes: configuration.cache.bytes(),
        named: configuration.engine_options.clone(),
    };
    let options = CommandsOptions {
        command_line: std::env::args().collect(),
        address: places.first().cloned().unwrap_or_default(),
        ..CommandsOptions::default()
    };
    open_commands(configuration.engine, &configuration.data, &engine_options, Environment::real(), options)
        .map_err(|source| ServeError::Open { folder: configuration.data.clone(), source })
}

fn close(commands: &Commands) -> Result<(), ServeError> {
    commands.close().map_err(|source| {
        error!(error = &source as &dyn Error, "the store was not closed cleanly");
        ServeError::Close(Box::new(source))
    })
}
