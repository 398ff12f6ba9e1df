//! `pando serve`: a server from its configuration to its end.
//!
//! 1. Listen. A port that is taken, or that other machines could reach, is refused before the store is
//!    opened.
//! 2. Open the store. After a crash this replays its log. Clients that connect meanwhile wait in the kernel.
//! 3. Serve: the network side hands requests to [`CommandHandler`].
//! 4. Wait for SIGTERM, SIGINT or the command `shutdown`.
//! 5. Stop: close the listeners, answer the short requests under way and interrupt the long ones, close the
//!    store. A later signal ends the process at once, and no acknowledged write is lost.

mod audit;
mod banner;
mod command_handler;
mod file_limit;
mod host;
mod ineffective_options;
mod legacy_operation;
mod listening;
mod log_tail_layer;
mod log_writer;
mod logging;
mod privileges;
mod service_manager;
mod shutdown_signal;
mod start_messages;
mod start_settings;
mod store_watch;
mod transport;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use audit::WantedTrail;
use command_handler::CommandHandler;
use file_limit::FILES_MIN;
pub use listening::ListenRefused;
use listening::listen;
use log_tail_layer::{ThreadName, line_of_now};
use logging::{FlushAtEnd, ProcessLog};
use pando_commands::{
    AccessControl, AuditTrail, ByteSize, CertificateRotation, ErrorKind, LogLine, LogSeverity, LogTail,
    ServerStop, StartParameterError, StorageError,
};
use pando_encryption::{Encryption, EncryptionError, master_key_id, refuse_other_cipher};
use pando_environment::Environment;
use pando_tls::TlsError;
use pandodb::{
    Commands, CommandsOptions, EngineName, EngineOptions, FolderError, FolderState, MissingStore,
    inspect_folder, open_commands,
};
use service_manager::{Notice, ServiceManager};
use shutdown_signal::ShutdownSignal;
use start_messages::{advise, log_doubts, log_recovery, tell_of_service, warn_of_large_cache};
use store_watch::StoreWatch;
use tracing::{error, info, warn};
use transport::Certificates;

use crate::configuration::{Configuration, LogFormat, OptionsDisagree};
use crate::error_text::error_text;
use crate::network::{AddressLimits, Limits, ListenError, Listener, Network, Patiences, Placement};

/// How long no request has come before the connections of clients are closed. Until then clients are told in
/// answers that the server stops. A client that is at work sends its next request within this time.
const LAST_REQUESTS: Duration = Duration::from_millis(100);
/// How long requests are answered so at most.
const LAST_REQUESTS_MAX: Duration = Duration::from_secs(1);

/// Processors of one query, where nobody says.
const QUERY_THREADS_AUTO_MAX: usize = 8;

/// Why a server does not start, or ends badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address is not allowed or not known.
    #[error(transparent)]
    Address(#[from] ListenRefused),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// TLS cannot be set up.
    #[error("cannot set up TLS for --tls-mode {mode}")]
    Tls {
        /// The mode.
        mode: &'static str,
        /// The fault, with the way to mend it.
        source: TlsError,
    },
    /// The file of the audit trail cannot be opened.
    #[error(
        "cannot open {} for the audit trail; choose a file that this user may write with --audit-path",
        path.display()
    )]
    AuditFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file of the audit trail is in the store.
    #[error(
        "--audit-path {}: the file is one of the store's; name another one, or leave the option out for audit.json in the data folder",
        path.display()
    )]
    AuditInStore {
        /// The file.
        path: PathBuf,
    },
    /// The master key of an encrypted store cannot be had.
    #[error("cannot encrypt the store: {source}")]
    Encryption {
        /// The fault, with the way to mend it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The filter of the audit trail is no query.
    #[error("--audit-filter is no query in JSON ({cause}); write names in double quotes")]
    AuditFilter {
        /// The fault.
        cause: String,
    },
    /// The process cannot become another user.
    #[error("cannot become the user {name} of --user")]
    User {
        /// The name.
        name: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file of TLS is named, and TLS is off.
    #[error(
        "{option} has no effect with --tls-mode disabled: choose allowTLS or requireTLS, or leave {option} out"
    )]
    TlsOff {
        /// The option.
        option: &'static str,
    },
    /// TLS has no certificate.
    #[error(
        "--tls-mode {mode} needs a certificate: name a PEM file with the server's certificate and its private key with \
         --tls-certificate-key-file"
    )]
    NoCertificate {
        /// The mode.
        mode: &'static str,
    },
    /// The data folder is not a folder that can be written.
    #[error("cannot use {} as data folder; choose a folder that this user may write with --data", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The data folder has no store, and none can be made there.
    #[error(transparent)]
    NoStore(#[from] FolderError),
    /// The store cannot be opened.
    #[error("cannot open the store in {}", folder.display())]
    Open {
        /// The folder.
        folder: PathBuf,
        /// The error of the engine.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The engine refuses one of its options.
    #[error("--engine-option: {told}")]
    EngineOption {
        /// The fault, with the options that there are.
        told: String,
    },
    /// The system refuses threads, signals or sockets.
    #[error(
        "cannot start the server: the system refuses a thread, a signal or a socket; look at the limits of this user (ulimit -a) and \
         of its control group (TasksMax of a systemd unit, --pids-limit of a container)"
    )]
    Start(#[source] std::io::Error),
    /// Too few open files for the store and any client.
    #[error(
        "the limit of open files is {files}, and the server needs {FILES_MIN}: raise it with ulimit -n, or LimitNOFILE of a systemd unit"
    )]
    OpenFiles {
        /// The limit.
        files: u64,
    },
    /// A parameter of the start is refused.
    #[error("--set-parameter: {0}")]
    Parameter(#[from] StartParameterError),
    /// The store was not closed cleanly; its log is replayed at the next start.
    #[error("the store in {} was not closed cleanly; the next start replays its log", folder.display())]
    Close {
        /// The folder.
        folder: PathBuf,
        /// The error of the engine.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ServeError {
    /// Whether the configuration is the fault by itself, so that another start with it fails, too. What
    /// another start may find, such as a file on a disk that is not mounted yet, is none.
    pub fn is_wrong_configuration(&self) -> bool {
        match self {
            ServeError::Parameter(_)
            | ServeError::AuditFilter { .. }
            | ServeError::EngineOption { .. }
            | ServeError::TlsOff { .. }
            | ServeError::NoCertificate { .. }
            | ServeError::User { .. } => true,
            ServeError::Address(refused) => match refused {
                ListenRefused::OpenToOthers { .. } | ListenRefused::LongPath { .. } => true,
                // Another start may find the name.
                ListenRefused::Unknown { .. } => false,
            },
            ServeError::Tls { source, .. } => !matches!(source, TlsError::Read { .. }),
            ServeError::NoStore(refused) => refused.is_wrong_path(),
            ServeError::Encryption { source } => is_wrong_setting(source.as_ref()),
            ServeError::Open { source, .. } => is_wrong_setting(source.as_ref()),
            _ => false,
        }
    }
}

/// Whether a setting of the engine or of the encryption is the reason of this error.
fn is_wrong_setting(error: &(dyn Error + 'static)) -> bool {
    let reasons = || std::iter::successors(Some(error), |error| (*error).source());
    // The error of a key knows more than that of the engine around it.
    if let Some(reason) = reasons().find_map(|reason| reason.downcast_ref::<EncryptionError>()) {
        return reason.is_wrong_setting();
    }
    reasons().any(|reason| {
        let of_engine = reason.downcast_ref::<StorageError>();
        reason.is::<OptionsDisagree>()
            || of_engine.is_some_and(|reason| reason.kind() == ErrorKind::InvalidInput)
    })
}

/// Tells why serving has ended: as a line of the log where that is JSON, whose readers take nothing else, and
/// in lines otherwise. A stalled reader does not keep the process from its end.
pub fn tell_end(configuration: &Configuration, line: &str, lines: &[String]) {
    if configuration.log_format == LogFormat::Json && tracing::enabled!(tracing::Level::ERROR) {
        error!("{line}");
        logging::flush();
    } else {
        logging::tell_end(&lines.join("\n"));
    }
}

/// Serves until a signal comes.
///
/// # Errors
/// [`ServeError`].
pub fn serve(configuration: &Configuration) -> Result<(), ServeError> {
    let _flush = FlushAtEnd;
    let log = logging::start(configuration);
    log_doubts(configuration);
    let begun = Instant::now();
    let max_connections = file_limit::raise(configuration.max_connections)?;
    let configuration = &Configuration { max_connections, ..configuration.clone() };
    let (tls, encryption) = restrict_process(configuration)?;
    let wanted_trail = audit::wanted(configuration)?;
    // Before the folder is made, and before the socket is in it.
    let found = look_into_folder(configuration)?;
    let listeners = prepare_and_listen(configuration, tls.as_ref())?;
    let endpoints: Vec<String> = listeners.iter().map(|listener| listener.endpoint()).collect();
    let signal = ShutdownSignal::watch(tls.clone()).map_err(ServeError::Start)?;
    match configuration.engine {
        EngineName::Memory => {
            info!("opening an empty store in memory");
            warn_of_unopened_store(&configuration.data);
        }
        _ => info!("opening the store in {}", configuration.data.display()),
    }
    let opening = Instant::now();
    warn_in_shells(configuration, &log.tail);
    let trail = wanted_trail.map(WantedTrail::open).transpose()?;
    if let Some(trail) = &trail {
        signal.rotate_at_signal(trail);
    }
    let rotation = tls.map(|tls| tls as Arc<dyn CertificateRotation>);
    let commands =
        open_store(configuration, (rotation, encryption), &endpoints, log, (trail, signal.stop()))?;
    set_parameters(&commands, configuration)?;
    log_recovery(&commands, opening.elapsed());
    if found == FolderState::Vacant && configuration.engine != EngineName::Memory {
        info!("made a new store in {}", configuration.data.display());
    }
    let handler = Arc::new(CommandHandler::new(commands, configuration.legacy_protocol));
    let network =
        Network::start(Arc::clone(&handler), listeners, limits(configuration)).map_err(ServeError::Start)?;
    let watch = watch(configuration, &handler)?;
    tell_of_service(configuration, handler.commands(), &endpoints, begun);
    advise(configuration, handler.commands());
    banner::print(configuration, &endpoints, found);
    let manager = ServiceManager::of_environment();
    manager.tell(Notice::Ready);
    signal.wait();
    manager.tell(Notice::Stopping);
    info!(connections = network.connections(), "stopping");
    handler.commands().audit_shutdown();
    if network.connections() > 0 {
        handler.commands().refuse_requests();
        // A monitor that waits is refused as well, so that its driver sends no further request here.
        handler.commands().release_replies();
        refuse_last_requests(handler.commands());
    }
    handler.commands().release_replies();
    drop(watch);
    network.stop(configuration.stop_grace, || handler.commands().interrupt_all());
    close(handler.commands(), &configuration.data)?;
    info!("stopped");
    Ok(())
}

/// Goes on to refuse requests until none has come for a while.
fn refuse_last_requests(commands: &Commands) {
    let end = Instant::now() + LAST_REQUESTS_MAX;
    let mut refused = commands.refused_at_stop();
    loop {
        thread::sleep(LAST_REQUESTS);
        let before = std::mem::replace(&mut refused, commands.refused_at_stop());
        if refused == before || Instant::now() >= end {
            return;
        }
    }
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
        of_address: AddressLimits {
            connections: configuration.transport.connections_per_address,
            requests_per_second: configuration.transport.requests_per_second,
        },
        patiences: Patiences {
            opening: configuration.transport.handshake_timeout,
            reading: configuration.transport.write_timeout,
        },
    }
}

/// The keys that the server has read: of TLS, and of an encrypted store.
type Secrets = (Option<Arc<Certificates>>, Option<Encryption>);

/// Reads the keys and gives up the rights that the server does not need.
fn restrict_process(configuration: &Configuration) -> Result<Secrets, ServeError> {
    // Root reads the keys; the folder, its files and its socket are those of the user that it becomes.
    let tls = transport::load_tls(configuration)?;
    let encryption = configuration.encryption.load();
    let encryption = encryption.map_err(|source| ServeError::Encryption { source })?;
    privileges::become_user(configuration)?;
    transport::limit_core_dumps(configuration);
    Ok((tls, encryption))
}

/// Tells which master key the store names.
fn tell_of_keys(folder: &Path, encryption: &Encryption) -> Result<(), ServeError> {
    let id = master_key_id(&Environment::real(), folder);
    let id = id.map_err(|error| ServeError::Encryption { source: Box::new(error) })?;
    let source = encryption.source.describe();
    if id.is_empty() {
        info!("the store is encrypted under the key of {source}");
    } else {
        info!("the store is encrypted under the key '{id}' of {source}");
    }
    Ok(())
}

/// Starts the watch over the store's disk; the memory engine has none.
fn watch(
    configuration: &Configuration,
    handler: &Arc<CommandHandler>,
) -> Result<Option<StoreWatch>, ServeError> {
    if configuration.engine == EngineName::Memory {
        return Ok(None);
    }
    let watch = StoreWatch::start(Arc::clone(handler), configuration.engine, configuration.data.clone());
    watch.map(Some).map_err(ServeError::Start)
}

/// Looks whether there is a store, or one can be made.
fn look_into_folder(configuration: &Configuration) -> Result<FolderState, ServeError> {
    let found = inspect_folder(configuration.engine, &configuration.data, MissingStore::Create);
    if matches!(found, Err(FolderError::Unreadable { .. })) {
        // This says best what is wrong with the folder.
        prepare_folder(&configuration.data)?;
    }
    Ok(found?)
}

/// The memory engine opens no store: whoever has one in the folder may have meant it.
fn warn_of_unopened_store(folder: &Path) {
    let found = inspect_folder(EngineName::Betree, folder, MissingStore::Refuse);
    if matches!(found, Ok(FolderState::Store) | Err(FolderError::OtherEngine { .. })) {
        warn!(
            "the store in {} stays unopened: --engine memory begins without data, and loses what is written at its end",
            folder.display()
        );
    }
}

/// Prepares the data folder, where a socket may be, and opens the listeners. A folder that was made for a
/// server that cannot listen is removed.
fn prepare_and_listen(
    configuration: &Configuration,
    tls: Option<&Arc<Certificates>>,
) -> Result<Vec<Listener>, ServeError> {
    let new: Vec<&Path> = configuration
        .data
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    if configuration.engine != EngineName::Memory {
        prepare_folder(&configuration.data)?;
    }
    listen(configuration, &transport::security(configuration, tls)).inspect_err(|_| {
        // It fails where something has come into a folder meanwhile, which then stays.
        let _ = new.iter().try_for_each(std::fs::remove_dir);
    })
}

/// Creates the data folder and checks that it can be written, so that a refusal names the folder and not a
/// file in it.
fn prepare_folder(folder: &Path) -> Result<(), ServeError> {
    if folder.exists() && !folder.is_dir() {
        let source = std::io::Error::other("it is a file");
        return Err(ServeError::Folder { folder: folder.to_owned(), source });
    }
    let writable = std::fs::create_dir_all(folder).and_then(|()| {
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).map_err(std::io::Error::from)
    });
    writable.map_err(|source| ServeError::Folder { folder: folder.to_owned(), source })
}

/// Has shells tell their users of the dangers that they are in.
fn warn_in_shells(configuration: &Configuration, log_tail: &LogTail) {
    let thread = ThreadName::of_this();
    let warn = |component, message: &str| {
        let severity = LogSeverity::Warning;
        log_tail.push_startup_warning(&LogLine { severity, component, message, ..line_of_now(&thread) });
    };
    if configuration.access_control == AccessControl::Off {
        // A shell shows only MongoDB's version beside this line.
        let message = format!(
            "This is Pando {}. Access control is off (--auth): every client that reaches this server can read and change everything",
            crate::version::version_text()
        );
        warn("ACCESS", &message);
    }
    if privileges::is_root() {
        warn("CONTROL", privileges::RUNS_AS_ROOT);
    }
}

fn open_store(
    configuration: &Configuration,
    (certificates, encryption): (Option<Arc<dyn CertificateRotation>>, Option<Encryption>),
    endpoints: &[String],
    log: ProcessLog,
    (audit, stop): (Option<AuditTrail>, Arc<dyn ServerStop>),
) -> Result<Commands, ServeError> {
    let engine_options = EngineOptions {
        cache_bytes: configuration.cache.bytes(),
        named: configuration.engine_options.clone(),
        encryption,
    };
    let environment = Environment::real();
    let processors = environment.spawner().processors().min(QUERY_THREADS_AUTO_MAX);
    let host = host::facts();
    warn_of_large_cache(configuration.cache, host.memory_limit_bytes);
    let options = CommandsOptions {
        query_threads: configuration.query_threads.unwrap_or(processors),
        command_line: std::env::args().collect(),
        settings: start_settings::of(configuration),
        address: endpoints.first().cloned().unwrap_or_default(),
        unix_socket: listening::unix_socket_uri(endpoints),
        persona: configuration.persona.clone(),
        test_commands: configuration.test_commands,
        default_layout: configuration.default_layout,
        access_control: configuration.access_control,
        localhost_exception: configuration.monitoring.localhost_exception,
        plain_logins: configuration.transport.plain_logins,
        host,
        connections_max: configuration.max_connections,
        log_tail: log.tail,
        log_verbosity: log.verbosity,
        certificates,
        audit,
        stop: Some(stop),
        profiler: configuration.monitoring.profiler,
        ..CommandsOptions::default()
    };
    let query_memory = configuration.query_memory.map(ByteSize::bytes);
    if let Some(cipher) = configuration.encryption.cipher {
        refuse_other_cipher(&environment, &configuration.data, cipher)
            .map_err(|error| ServeError::Encryption { source: Box::new(error) })?;
    }
    let commands = open_commands(
        configuration.engine,
        &configuration.data,
        &engine_options,
        environment,
        options,
        query_memory,
    )
    .map_err(|source| refused_store(configuration, source))?;
    if let Some(encryption) = &engine_options.encryption {
        tell_of_keys(&configuration.data, encryption)?;
    }
    Ok(commands)
}

/// The error of a store that cannot be opened. An unknown option of the engine is the fault of the command
/// line: its message leaves out the option of the engine that is `--cache` here.
fn refused_store(configuration: &Configuration, source: Box<dyn Error + Send + Sync>) -> ServeError {
    let told = error_text(source.as_ref());
    let is_told = |name: &str| {
        let forms = [format!("option {name} "), format!("option {name:?}"), format!("option `{name}`")];
        forms.iter().any(|form| told.contains(form))
    };
    let is_of_option = configuration.engine_options.iter().any(|(name, _)| is_told(name));
    if !is_of_option || !is_wrong_setting(source.as_ref()) {
        return ServeError::Open { folder: configuration.data.clone(), source };
    }
    ServeError::EngineOption { told: told.replacen(" are cache, ", " are ", 1) }
}

/// Sets the parameters of the start. A store whose parameter is refused is closed.
fn set_parameters(commands: &Commands, configuration: &Configuration) -> Result<(), ServeError> {
    for (name, text) in &configuration.monitoring.parameters {
        if let Err(error) = commands.set_parameter_at_start(name, text) {
            close(commands, &configuration.data)?;
            return Err(error.into());
        }
    }
    Ok(())
}

fn close(commands: &Commands, folder: &Path) -> Result<(), ServeError> {
    commands.close().map_err(|source| {
        let error = ServeError::Close { folder: folder.to_owned(), source: Box::new(source) };
        error!("{}", error_text(&error));
        error
    })
}
