//! `setParameter`: changes settings while the server runs: `queryMemory`, `transactionLifetimeLimitSeconds`,
//! `maxTransactionLockRequestTimeoutMillis`, `minSnapshotHistoryWindowInSeconds`, `atomicStatements`,
//! `ttlMonitorSleepSecs`, `ttlMonitorEnabled`, and those of the engine.
//!
//! The engine's settings appear under its name and theirs: `cache` of `betree` is `betreeCache`. They hold
//! until the server stops. Settings that hold from the start stand in the configuration.

use std::sync::atomic::Ordering;

use pando_catalog::{Engine, QUERY_MEMORY_MIN};
use pando_document::{DocumentWriter, Number, RawValue};

use crate::arguments::{is_generic, whole};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The parameter of the memory of queries.
pub(crate) const QUERY_MEMORY: &str = "queryMemory";

/// The parameter of the time after which an open transaction is ended.
pub(crate) const TRANSACTION_LIFETIME: &str = "transactionLifetimeLimitSeconds";

/// The parameter of the time in milliseconds that a statement of a transaction waits for a key.
pub(crate) const TRANSACTION_WAIT: &str = "maxTransactionLockRequestTimeoutMillis";

/// The parameter by which a statement or a batch that fails leaves nothing behind.
pub(crate) const ATOMIC_STATEMENTS: &str = "atomicStatements";

/// The parameter of the time for which a snapshot is held after its last use.
pub(crate) const SNAPSHOT_WINDOW: &str = "minSnapshotHistoryWindowInSeconds";

/// The parameter of the pause between two removals of expired documents.
pub(crate) const TTL_SLEEP: &str = "ttlMonitorSleepSecs";

/// The parameter by which expired documents are removed or stay.
pub(crate) const TTL_ENABLED: &str = "ttlMonitorEnabled";

/// The parameters that are not the engine's.
const OWN: [&str; 7] = [
    QUERY_MEMORY,
    TRANSACTION_LIFETIME,
    TRANSACTION_WAIT,
    ATOMIC_STATEMENTS,
    SNAPSHOT_WINDOW,
    TTL_SLEEP,
    TTL_ENABLED,
];

/// A change of a parameter that is not the engine's.
enum Change {
    QueryMemory(usize),
    LifetimeSeconds(u64),
    WaitMs(i32),
    AtomicStatements(bool),
    WindowSeconds(u64),
    TtlSleepSeconds(u64),
    TtlEnabled(bool),
}

/// A value as the reply shows it.
enum Was {
    Number(i32),
    Flag(bool),
    Text(String),
}

impl Change {
    /// The change that a field asks for, and the value before it; `None` for parameters of the engine.
    fn parse(
        context: &Context<'_>,
        name: &str,
        value: RawValue<'_>,
    ) -> Result<Option<(Change, Was)>, CommandError> {
        let sessions = &context.shared.sessions;
        Ok(Some(match name {
            QUERY_MEMORY => {
                let was = Was::Text(context.catalog().query_memory().limit().to_string());
                (Change::QueryMemory(parse_query_memory(context, value)?), was)
            }
            TRANSACTION_LIFETIME => {
                let was = Was::Number(i32::try_from(sessions.lifetime().as_secs()).unwrap_or(i32::MAX));
                (Change::LifetimeSeconds(parse_seconds(name, value, 1)?), was)
            }
            SNAPSHOT_WINDOW => {
                let was = context.shared.held_snapshots.window().as_secs();
                let was = Was::Number(i32::try_from(was).unwrap_or(i32::MAX));
                (Change::WindowSeconds(parse_seconds(name, value, 0)?), was)
            }
            TRANSACTION_WAIT => (Change::WaitMs(parse_wait(value)?), Was::Number(sessions.wait_ms())),
            ATOMIC_STATEMENTS => {
                let was = context.shared.atomic_statements.load(Ordering::Relaxed);
                (Change::AtomicStatements(parse_flag(name, value)?), Was::Text(was.to_string()))
            }
            TTL_SLEEP => {
                let was = context.shared.ttl.sleep().as_secs();
                let was = Was::Number(i32::try_from(was).unwrap_or(i32::MAX));
                (Change::TtlSleepSeconds(parse_ttl_sleep(value)?), was)
            }
            // MongoDB takes a value of any type here.
            TTL_ENABLED => (Change::TtlEnabled(value.to_bool()), Was::Flag(context.shared.ttl.is_enabled())),
            _ => return Ok(None),
        }))
    }

    fn apply(self, context: &Context<'_>) {
        match self {
            Change::QueryMemory(bytes) => context.catalog().query_memory().set_limit(bytes),
            Change::AtomicStatements(wanted) => {
                context.shared.atomic_statements.store(wanted, Ordering::Relaxed);
            }
            Change::LifetimeSeconds(seconds) => context.shared.sessions.set_lifetime_seconds(seconds),
            Change::WindowSeconds(seconds) => context.shared.held_snapshots.set_window_seconds(seconds),
            Change::WaitMs(milliseconds) => context.shared.sessions.set_wait_ms(milliseconds),
            Change::TtlSleepSeconds(seconds) => context.shared.ttl.set_sleep_seconds(seconds),
            Change::TtlEnabled(true) => context.shared.ttl.enable(),
            Change::TtlEnabled(false) => context.shared.ttl.disable(),
        }
    }
}

/// The name of a parameter for a setting of an engine.
pub(crate) fn parameter_name(engine: &str, setting: &str) -> String {
    let mut name = engine.to_owned();
    let mut letters = setting.chars();
    name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
    name.extend(letters);
    name
}

/// Changes all named settings or none, as MongoDB does. The reply has the earlier value of the first.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    if wants_help(request)? {
        write_help("setParameter sets parameters of the running server", context, reply);
        return Ok(());
    }
    let engine = context.catalog().engine();
    let settings = engine.settings();
    let mut changes = Vec::new();
    let mut first_was = None;
    let mut own_changes = Vec::new();
    for field in request.body.iter().skip(1) {
        let (name, value) = field?;
        if is_generic(name) {
            continue;
        }
        if let Some((change, was)) = Change::parse(context, name, value)? {
            own_changes.push(change);
            first_was.get_or_insert(was);
            continue;
        }
        let setting = settings.iter().find(|(setting, _)| parameter_name(engine.name(), setting) == name);
        let Some((setting, was)) = setting else {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                format!("attempted to set unrecognized parameter [{name}], use help:true to see options "),
            ));
        };
        let Some(value) = text_of(value) else {
            return Err(CommandError::failed(
                ErrorCode::BadValue,
                format!("{name} must be a string or a whole number"),
            ));
        };
        first_was.get_or_insert(Was::Text(was.clone()));
        changes.push((*setting, value));
    }
    let was = first_was.ok_or_else(no_parameter)?;
    let changes: Vec<_> = changes.iter().map(|(setting, value)| (*setting, value.as_str())).collect();
    engine
        .change_settings(&changes)
        .map_err(|error| under_parameter_names(error.into(), &**engine, &changes))?;
    own_changes.into_iter().for_each(|change| change.apply(context));
    match was {
        Was::Number(number) => reply.append_i32("was", number),
        Was::Flag(flag) => reply.append_bool("was", flag),
        Was::Text(text) => reply.append_str("was", &text),
    }
    Ok(())
}

/// The error of an engine, which knows its own names of the settings only.
fn under_parameter_names(
    mut error: CommandError,
    engine: &dyn Engine,
    changes: &[(&str, &str)],
) -> CommandError {
    if let CommandError::Failed(failure) = &mut error {
        for (setting, _) in changes {
            let own = format!("option {setting} ");
            if let Some(rest) = failure.message.strip_prefix(&own) {
                failure.message = format!("{} {rest}", parameter_name(engine.name(), setting));
                break;
            }
        }
    }
    error
}

/// Whether the request asks for the names of the parameters. The value may be of any type, as in MongoDB.
pub(crate) fn wants_help(request: &Request<'_>) -> Result<bool, CommandError> {
    Ok(request.body.get("help")?.is_some_and(|value| value.to_bool()))
}

/// Answers the names of all parameters that can be set.
pub(crate) fn write_help(sentence: &str, context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let engine = context.catalog().engine();
    let of_engine = engine.settings().into_iter().map(|(setting, _)| parameter_name(engine.name(), setting));
    let mut names: Vec<String> = OWN.iter().map(|name| (*name).to_owned()).chain(of_engine).collect();
    names.sort();
    let mut help = format!("help for: {sentence}\nsupported:\n");
    for name in names {
        help.push_str(&format!("  {name}\n"));
    }
    help.push_str("{ getParameter: '*' } to get everything\n");
    reply.append_str("help", &help);
}

fn parse_flag(name: &str, value: RawValue<'_>) -> Result<bool, CommandError> {
    value
        .as_bool()
        .ok_or_else(|| CommandError::failed(ErrorCode::BadValue, format!("{name} must be true or false")))
}

fn no_parameter() -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, "no option found to set, use help:true to see options ")
}

/// A number of seconds from `least`.
fn parse_seconds(name: &str, value: RawValue<'_>, least: i32) -> Result<u64, CommandError> {
    let refused = |reason: String| Err(CommandError::failed(ErrorCode::BadValue, reason));
    if !value.is_number() {
        return refused(format!("Failed validating {name}: Unable to coerce value to integral type"));
    }
    match i32::try_from(whole(value)) {
        Ok(seconds) if seconds >= least => Ok(u64::from(seconds.unsigned_abs())),
        Ok(seconds) => refused(format!(
            "Invalid value for parameter {name}: {seconds} is not greater than or equal to {least}"
        )),
        Err(_) => refused(format!("Failed validating {name}: the value is out of the range of 32 bits")),
    }
}

/// A number of seconds above 0. A fraction is cut off, and true is 1, as in MongoDB.
fn parse_ttl_sleep(value: RawValue<'_>) -> Result<u64, CommandError> {
    let refused = |reason: String| Err(CommandError::failed(ErrorCode::BadValue, reason));
    let seconds = match value {
        RawValue::Boolean(flag) => i64::from(flag),
        number if number.is_number() => whole(number),
        _ => {
            return refused(format!(
                "Failed validating {TTL_SLEEP}: Unable to coerce value to integral type"
            ));
        }
    };
    match i32::try_from(seconds) {
        Ok(seconds) if seconds > 0 => Ok(u64::from(seconds.unsigned_abs())),
        Ok(seconds) => {
            refused(format!("Invalid value for parameter {TTL_SLEEP}: {seconds} is not greater than 0"))
        }
        Err(_) => refused(format!("Failed validating {TTL_SLEEP}: Out of bounds coercing to integral value")),
    }
}

/// A number of milliseconds; below 0 it is no limit. A fraction is cut off, as in MongoDB.
fn parse_wait(value: RawValue<'_>) -> Result<i32, CommandError> {
    let refused = |reason: &str| {
        Err(CommandError::failed(
            ErrorCode::BadValue,
            format!("Failed validating {TRANSACTION_WAIT}: {reason}"),
        ))
    };
    match value {
        RawValue::Boolean(flag) => Ok(i32::from(flag)),
        number if number.is_number() => match i32::try_from(whole(number)) {
            Ok(milliseconds) => Ok(milliseconds),
            Err(_) => refused("Out of bounds coercing to integral value"),
        },
        _ => refused("Unable to coerce value to integral type"),
    }
}

/// The memory of queries: a number of bytes, or text such as `64MB`.
fn parse_query_memory(context: &Context<'_>, value: RawValue<'_>) -> Result<usize, CommandError> {
    let most = context.shared.options.query_memory.limit_bytes_max;
    let bytes = text_of(value).and_then(|text| parse_bytes(&text));
    bytes.filter(|bytes| (QUERY_MEMORY_MIN..=most).contains(bytes)).ok_or_else(|| {
        CommandError::failed(
            ErrorCode::BadValue,
            format!(
                "{QUERY_MEMORY} must be a size such as 64MB, from {}{}",
                size_text(QUERY_MEMORY_MIN),
                most_text(most)
            ),
        )
    })
}

/// The upper bound of the memory of queries; an engine without a cache has none.
fn most_text(most: usize) -> String {
    match most {
        usize::MAX => String::new(),
        most => format!(" to {}, the size of the cache", size_text(most)),
    }
}

/// A size as `setParameter` reads it; from a megabyte on rounded down to a whole number of a unit.
pub fn size_text(bytes: usize) -> String {
    match bytes {
        mebibytes if mebibytes.is_multiple_of(1 << 20) => format!("{}MiB", mebibytes >> 20),
        megabytes if megabytes >= 1_000_000 => format!("{}MB", megabytes / 1_000_000),
        bytes => format!("{bytes} bytes"),
    }
}

fn parse_bytes(text: &str) -> Option<usize> {
    const UNITS: [(&str, usize); 7] = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("b", 1),
    ];
    let text = text.trim().to_ascii_lowercase();
    let with_unit = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, *bytes)));
    let (number, unit) = with_unit.unwrap_or((&text, 1));
    number.trim_end().parse::<usize>().ok()?.checked_mul(unit)
}

fn text_of(value: RawValue<'_>) -> Option<String> {
    match value {
        RawValue::String(text) => Some(text.to_owned()),
        RawValue::Double(double) => Some(Number::Double(double).to_i64_exact()?.to_string()),
        number => number.as_i64_exact().map(|number| number.to_string()),
    }
}
