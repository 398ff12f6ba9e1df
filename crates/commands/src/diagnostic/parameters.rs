//! The table of the parameters that `getParameter` shows and `setParameter` changes, and the settings of the
//! engine among them.
//!
//! The engine's settings appear under its name and theirs: `cache` of `betree` is `betreeCache`. TokuMX's
//! names of some stand beside them: `defaultCompression` for `betreeCompression`. Changes hold until the
//! server stops. Settings that hold from the start stand in the configuration.

pub(super) mod query_memory;
mod value;
mod verbosity;

use std::sync::atomic::Ordering;

use pando_document::{DocumentWriter, RawValue, Value, doc};

pub use self::query_memory::CACHE_BYTES_MIN;
pub(in crate::diagnostic) use self::value::text_of;
use self::value::{flag, seconds_above, seconds_from, whole_number};
use crate::access::LocalhostException;
use crate::accounts::store::SCHEMA_VERSION;
use crate::context::Context;
use crate::fail_points::TestCommands;
use crate::identity::FEATURE_COMPATIBILITY_VERSION;
use crate::short_options;
use crate::{CommandError, ErrorCode, Request};

/// The change of a parameter, after its value was found to be right.
pub(super) type Change = Box<dyn FnOnce(&Context<'_>)>;

/// Finds the change that a value asks for. The name is that of the parameter, for the error.
type Parse = fn(&Context<'_>, &str, RawValue<'_>) -> Result<Change, CommandError>;

/// A parameter that is not the engine's.
pub(super) struct Parameter {
    pub name: &'static str,
    show: fn(&Context<'_>) -> Value,
    setting: Setting,
}

/// When a parameter can be set.
enum Setting {
    /// While the server runs, as well as at its start.
    AtRuntime(Parse),
    /// By an option of the start alone.
    AtStart,
    /// It only tells.
    Never,
}

/// The parameters that are not the engine's, by name.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "atomicStatements",
        show: |context| context.shared.atomic_statements.load(Ordering::Relaxed).into(),
        setting: Setting::AtRuntime(|_, name, value| {
            let wanted = flag(name, value)?;
            change(move |context| context.shared.atomic_statements.store(wanted, Ordering::Relaxed))
        }),
    },
    Parameter { name: "authSchemaVersion", show: |_| SCHEMA_VERSION.into(), setting: Setting::Never },
    Parameter {
        name: "cursorTimeoutMillis",
        show: |context| context.shared.cursors.timeout_ms().into(),
        setting: Setting::AtRuntime(|_, name, value| {
            let milliseconds = whole_number(name, value)?;
            change(move |context| context.shared.cursors.set_timeout_ms(milliseconds))
        }),
    },
    Parameter {
        name: "enableLocalhostAuthBypass",
        show: |context| (context.shared.options.localhost_exception == LocalhostException::Granted).into(),
        setting: Setting::AtStart,
    },
    Parameter {
        name: "enableTestCommands",
        show: |context| (context.shared.options.test_commands == TestCommands::On).into(),
        setting: Setting::AtStart,
    },
    Parameter {
        name: "featureCompatibilityVersion",
        show: |_| doc! { "version": FEATURE_COMPATIBILITY_VERSION }.into(),
        setting: Setting::Never,
    },
    Parameter {
        name: "logComponentVerbosity",
        show: |context| context.shared.options.log_verbosity.document().into(),
        setting: Setting::AtRuntime(|_, name, value| {
            let changes = verbosity::changes(name, value)?;
            change(move |context| context.shared.options.log_verbosity.set(&changes))
        }),
    },
    Parameter {
        name: "logLevel",
        show: |context| context.shared.options.log_verbosity.level().into(),
        setting: Setting::AtRuntime(|_, name, value| {
            let changes = [verbosity::change_of_all(name, value)?];
            change(move |context| context.shared.options.log_verbosity.set(&changes))
        }),
    },
    Parameter {
        name: "maxTransactionLockRequestTimeoutMillis",
        show: |context| context.shared.sessions.wait_ms().into(),
        setting: Setting::AtRuntime(|_, name, value| {
            let milliseconds = whole_number(name, value)?;
            change(move |context| context.shared.sessions.set_wait_ms(milliseconds))
        }),
    },
    Parameter {
        name: "minSnapshotHistoryWindowInSeconds",
        show: |context| seconds_shown(context.shared.held_snapshots.window().as_secs()),
        setting: Setting::AtRuntime(|_, name, value| {
            let seconds = seconds_from(0, name, value)?;
            change(move |context| context.shared.held_snapshots.set_window_seconds(seconds))
        }),
    },
    Parameter {
        name: "notablescan",
        show: |context| context.shared.no_table_scan.load(Ordering::Relaxed).into(),
        // MongoDB takes a value of any type here.
        setting: Setting::AtRuntime(|_, _, value| {
            let wanted = value.to_bool();
            change(move |context| context.shared.no_table_scan.store(wanted, Ordering::Relaxed))
        }),
    },
    Parameter {
        name: "queryMemory",
        show: |context| {
            let limit = context.catalog().query_memory().limit();
            i64::try_from(limit).unwrap_or(i64::MAX).into()
        },
        setting: Setting::AtRuntime(|context, name, value| {
            let bytes = query_memory::parse(context, name, value)?;
            change(move |context| query_memory::set(context, bytes))
        }),
    },
    Parameter {
        name: "transactionLifetimeLimitSeconds",
        show: |context| seconds_shown(context.shared.sessions.lifetime().as_secs()),
        setting: Setting::AtRuntime(|_, name, value| {
            let seconds = seconds_from(1, name, value)?;
            change(move |context| context.shared.sessions.set_lifetime_seconds(seconds))
        }),
    },
    Parameter {
        name: "ttlMonitorEnabled",
        show: |context| context.shared.ttl.is_enabled().into(),
        // MongoDB takes a value of any type here.
        setting: Setting::AtRuntime(|_, _, value| match value.to_bool() {
            true => change(|context| context.shared.ttl.enable()),
            false => change(|context| context.shared.ttl.disable()),
        }),
    },
    Parameter {
        name: "ttlMonitorSleepSecs",
        show: |context| seconds_shown(context.shared.ttl.sleep().as_secs()),
        setting: Setting::AtRuntime(|_, name, value| {
            let seconds = seconds_above(0, name, value)?;
            change(move |context| context.shared.ttl.set_sleep_seconds(seconds))
        }),
    },
];

fn change(apply: impl FnOnce(&Context<'_>) + 'static) -> Result<Change, CommandError> {
    Ok(Box::new(apply))
}

fn seconds_shown(seconds: u64) -> Value {
    i32::try_from(seconds).unwrap_or(i32::MAX).into()
}

/// The parameter of this name that is not the engine's.
pub(super) fn own(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

/// Whether a store of this engine may have a parameter of this name that can be set.
pub(crate) fn may_be(engine: &str, name: &str) -> bool {
    let is_of_engine = || {
        let setting = name.strip_prefix(engine).and_then(|setting| setting.chars().next());
        setting.is_some_and(|first| first.is_ascii_uppercase())
    };
    match own(name) {
        Some(parameter) => matches!(parameter.setting, Setting::AtRuntime(_)),
        None => short_options::DEFAULTS.contains(&name) || is_of_engine(),
    }
}

impl Parameter {
    /// The value of now.
    pub fn value(&self, context: &Context<'_>) -> Value {
        (self.show)(context)
    }

    /// The change that a value asks for.
    pub fn change(&self, context: &Context<'_>, value: RawValue<'_>) -> Result<Change, CommandError> {
        match self.setting {
            Setting::AtRuntime(parse) => parse(context, self.name, value),
            Setting::AtStart | Setting::Never => {
                let sentence = format!("not allowed to change [{}] at runtime", self.name);
                Err(CommandError::failed(ErrorCode::Untold, sentence))
            }
        }
    }
}

/// A parameter with its value, as it is shown.
pub(super) struct Shown {
    pub name: String,
    pub value: Value,
    pub at_runtime: bool,
    pub at_start: bool,
}

/// All parameters with their values, by name.
pub(super) fn all(context: &Context<'_>) -> Vec<Shown> {
    let own = PARAMETERS.iter().map(|parameter| Shown {
        name: parameter.name.to_owned(),
        value: parameter.value(context),
        at_runtime: matches!(parameter.setting, Setting::AtRuntime(_)),
        at_start: !matches!(parameter.setting, Setting::Never),
    });
    let engine = context.catalog().engine();
    let settings = engine.settings();
    let of_engine = settings.iter().map(|(setting, value)| Shown {
        name: name_of_setting(engine.name(), setting),
        value: setting_shown(value),
        at_runtime: true,
        at_start: true,
    });
    let of_tokumx = short_options::DEFAULTS.iter().filter_map(|name| {
        let setting = short_options::setting_of_default(name);
        let (_, value) = settings.iter().find(|(found, _)| *found == setting)?;
        let value = setting_shown(value);
        Some(Shown { name: (*name).to_owned(), value, at_runtime: true, at_start: true })
    });
    let mut all: Vec<_> = own.chain(of_engine).chain(of_tokumx).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// The name of the parameter of a setting of an engine.
pub(super) fn name_of_setting(engine: &str, setting: &str) -> String {
    let mut name = engine.to_owned();
    let mut letters = setting.chars();
    name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
    name.extend(letters);
    name
}

/// A setting of the engine; numbers are numbers.
pub(super) fn setting_shown(value: &str) -> Value {
    match value.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => value.into(),
    }
}

/// The text of a value for a setting of the engine, which reads text.
pub(super) fn setting_text(name: &str, value: RawValue<'_>) -> Result<String, CommandError> {
    text_of(value).ok_or_else(|| {
        CommandError::failed(ErrorCode::BadValue, format!("{name} must be a string or a whole number"))
    })
}

/// Whether the request asks for the names of the parameters. The value may be of any type, as in MongoDB.
pub(super) fn wants_help(request: &Request<'_>) -> Result<bool, CommandError> {
    Ok(request.body.get("help")?.is_some_and(|value| value.to_bool()))
}

/// Answers the names of all parameters that can be set.
pub(super) fn write_help(sentence: &str, context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut help = format!("help for: {sentence}\nsupported:\n");
    for shown in all(context).iter().filter(|shown| shown.at_runtime) {
        help.push_str(&format!("  {}\n", shown.name));
    }
    help.push_str("{ getParameter: '*' } to get everything\n");
    reply.append_str("help", &help);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(PARAMETERS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(own("logLevel").is_some() && own("betreeCache").is_none());
        assert_eq!(name_of_setting("betree", "checkpointPeriod"), "betreeCheckpointPeriod");
    }

    #[test]
    fn a_name_of_the_start_is_that_of_a_parameter_which_can_be_set() {
        for name in ["logLevel", "betreeCache", "defaultCompression"] {
            assert!(may_be("betree", name), "{name}");
        }
        for name in
            ["logLeve", "enableTestCommands", "authSchemaVersion", "betree", "betreecache", "memoryCache", ""]
        {
            assert!(!may_be("betree", name), "{name}");
        }
    }
}
