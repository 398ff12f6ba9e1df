//! The messages of a start in the log: doubts about the options, where the server listens, and what was
//! recovered.

use std::time::{Duration, Instant};

use pando_commands::{AccessControl, ByteSize, LocalhostException, MONGODB_VERSION, Persona};
use pandodb::Commands;
use tracing::{info, warn};

use super::ineffective_options;
use crate::amounts::{count_text, time_text};
use crate::configuration::{Configuration, OpenToOthers, misspelt_variables};

/// Logs what became of familiar switches, and what is set without effect.
pub(super) fn log_doubts(configuration: &Configuration) {
    for line in &configuration.familiar_lines {
        info!("{line}");
    }
    for warning in ineffective_options::warnings(configuration) {
        warn!("{warning}");
    }
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in misspelt_variables(variables) {
        warn!("{warning}");
    }
}

/// Tells the log where the server listens, and whether others may read and change everything.
pub(super) fn tell_of_service(
    configuration: &Configuration,
    commands: &Commands,
    endpoints: &[String],
    begun: Instant,
) {
    info!(
        version = env!("CARGO_PKG_VERSION"),
        speaks = MONGODB_VERSION,
        engine = configuration.engine.as_str(),
        data = %configuration.data.display(),
        cache = %cache_in_force(configuration, commands),
        listen = endpoints.join(" "),
        start_ms = begun.elapsed().as_millis(),
        "serving"
    );
    if configuration.open_to_others == OpenToOthers::Allowed
        && configuration.access_control == AccessControl::Off
    {
        warn!(
            "--allow-unauthenticated is set: every client that reaches {} can read and change everything; keep other \
             machines away with a firewall",
            endpoints.join(" or ")
        );
    }
}

/// The limit of the engine's memory, which a parameter of the start may have changed.
fn cache_in_force(configuration: &Configuration, commands: &Commands) -> ByteSize {
    let limit = commands.catalog().engine().statistics().get("cache.limit_bytes");
    limit.map_or(configuration.cache, ByteSize::from_bytes)
}

/// Tells the log what a person who sets the server up may not know.
pub(super) fn advise(configuration: &Configuration, commands: &Commands) {
    if commands.persona() == Persona::ReplicaSet && configuration.persona.advertised.is_none() {
        info!(
            "drivers connect to the address by which they came in; where addresses are translated on the way, name the one \
             for them with --advertise, or set directConnection=true in their connection strings"
        );
    }
    if configuration.access_control == AccessControl::On && commands.lacks_accounts() {
        let way = match configuration.monitoring.localhost_exception {
            LocalhostException::Granted => {
                "with 'pando user add NAME --uri …' or createUser on admin, from this machine"
            }
            LocalhostException::Refused => "with 'pando user add NAME --data …' while the server is stopped",
        };
        info!(
            "there are no users yet: make the first one {way}; until then no client reads or writes anything"
        );
    }
}

/// Tells of a replay of the log, which only a server that was not stopped cleanly leaves to the next start.
pub(super) fn log_recovery(commands: &Commands, elapsed: Duration) {
    let statistics = commands.catalog().engine().statistics();
    let figure = |name| statistics.get(name).unwrap_or(0);
    if figure("recovery.records") > 0 {
        info!(
            "recovered the store: replayed {} log records with {} writes in {}; it had not been closed cleanly. No \
             acknowledged write is lost, unless the machine or its device failed: then the last 100 ms of writes without \
             j: true may be",
            count_text(figure("recovery.records")),
            count_text(figure("recovery.writes")),
            time_text(elapsed)
        );
    }
}

/// A cache beyond the memory is filled all the same, until the kernel ends the process.
pub(super) fn warn_of_large_cache(cache: ByteSize, memory_bytes: u64) {
    if memory_bytes > 0 && cache.bytes() > memory_bytes {
        let memory = ByteSize::from_bytes(memory_bytes >> 20 << 20);
        warn!(
            "the cache of {cache} is larger than the memory of this machine, {memory}: choose less with --cache, about half of it"
        );
    }
}
