//! The options of a server that `setParameter` and `profile` change while it runs.

use pando_commands::{LocalhostException, ProfilerOptions, TestCommands, is_parameter};

use super::error::ValueError;
use super::options::{OptionEntry, Shape, named_value, split_outside_brackets};

/// MongoDB's parameter that is an option of its own here.
const TEST_COMMANDS: &str = "enableTestCommands";
/// A parameter that can be set at the start alone.
const LOCALHOST_EXCEPTION: &str = "enableLocalhostAuthBypass";
const LEVELS: &[&str] = &["0", "1", "2"];

/// Parameters that are set at the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Monitoring {
    /// Names and values of parameters, in the order in which they are set.
    pub parameters: Vec<(String, String)>,
    /// Whether a client on this machine may make the first user without a login.
    pub localhost_exception: LocalhostException,
    /// The profiler.
    pub profiler: ProfilerOptions,
}

/// The options of what a server tells of itself.
pub(super) const MONITORING_OPTIONS: &[OptionEntry] = &[
    OptionEntry {
        name: "set-parameter",
        shape: Shape::List("NAME=VALUE"),
        default: "",
        help: "A parameter, as the command setParameter sets it while the server runs, such as ttlMonitorSleepSecs=10; several are possible. enableLocalhostAuthBypass and enableTestCommands can be set here only. `getParameter: '*'` shows all of them.",
        apply: |configuration, text| {
            let entries = split_outside_brackets(text).map(str::trim).filter(|entry| !entry.is_empty());
            let mut parameters = Vec::new();
            let mut localhost_exception = LocalhostException::default();
            for entry in entries {
                let (name, value) = named_value(entry).map_err(|_| ValueError::NamedParameter)?;
                if name == TEST_COMMANDS {
                    let is_on = super::options::switch(&value)?;
                    configuration.test_commands = if is_on { TestCommands::On } else { TestCommands::Off };
                } else if name == LOCALHOST_EXCEPTION {
                    let is_on = super::options::switch(&value)?;
                    localhost_exception =
                        if is_on { LocalhostException::Granted } else { LocalhostException::Refused };
                } else {
                    parameters.push((name, value));
                }
            }
            configuration.monitoring.parameters = parameters;
            configuration.monitoring.localhost_exception = localhost_exception;
            Ok(())
        },
    },
    OptionEntry {
        name: "slow-ms",
        shape: Shape::Value("MILLISECONDS"),
        default: "100",
        help: "How long a request may take before it is slow: slow ones are logged, and recorded where their database is profiled. -1 takes every request for slow.",
        apply: |configuration, text| {
            let slow_ms: i32 = text.parse().map_err(|_| ValueError::WholeOrMinusOne)?;
            if slow_ms < -1 {
                return Err(ValueError::WholeOrMinusOne);
            }
            configuration.monitoring.profiler.slow_ms = slow_ms.into();
            Ok(())
        },
    },
    OptionEntry {
        name: "slow-sample-rate",
        shape: Shape::Value("SHARE"),
        default: "1",
        help: "The share of slow requests that are logged and recorded, from 0 to 1.",
        apply: |configuration, text| {
            let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
            configuration.monitoring.profiler.sample_rate = rate.ok_or(ValueError::Share)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "profile",
        shape: Shape::Value("LEVEL"),
        default: "0",
        help: "Level of the profiler for every database: 1 records slow requests in its system.profile, 2 all requests, 0 none. The command profile changes it for one database.",
        apply: |configuration, text| {
            let level = text.parse().ok().filter(|level| (0..=2).contains(level));
            configuration.monitoring.profiler.level = level.ok_or(ValueError::Choice { choices: LEVELS })?;
            Ok(())
        },
    },
];

impl Monitoring {
    /// The first name that is no parameter of an engine.
    pub fn unknown_parameter(&self, engine: &str) -> Option<&str> {
        let unknown = self.parameters.iter().find(|(name, _)| !is_parameter(engine, name));
        unknown.map(|(name, _)| name.as_str())
    }
}
