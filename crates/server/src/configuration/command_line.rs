//! The table's flags, for the command line of `pando serve`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches};

use super::all_options;
use super::familiar_switches::{FAMILIAR_SWITCHES, FamiliarSwitch, SET_PARAMETER};
use super::options::{OptionEntry, Shape};
use super::sources::{CONFIG_VARIABLE, Sources};

/// The flag that names the configuration file; it is not in the table, since it cannot stand in the file.
const CONFIG: &str = "config";

/// The flags of every option.
pub fn serve_arguments() -> Vec<Arg> {
    let config = Arg::new(CONFIG).long(CONFIG).value_name("FILE").help(format!(
        "TOML file with any of these options as keys, without the dashes [env: {CONFIG_VARIABLE}]"
    ));
    all_options()
        .map(argument)
        .chain([config])
        .chain(FAMILIAR_SWITCHES.iter().map(familiar_argument))
        .collect()
}

/// A switch of another server; the help leaves it out.
fn familiar_argument(switch: &'static FamiliarSwitch) -> Arg {
    let argument = Arg::new(switch.name).long(switch.name).hide(true).conflicts_with_all(switch.option);
    match switch.name {
        SET_PARAMETER => argument.value_name(switch.value).action(ArgAction::Append),
        _ if switch.value.is_empty() => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        // A number below zero is refused as such, not as an unknown flag.
        _ => argument.value_name(switch.value).allow_negative_numbers(true),
    }
}

fn argument(entry: &'static OptionEntry) -> Arg {
    let default =
        if entry.default.is_empty() { String::new() } else { format!(" [default: {}]", entry.default) };
    let help = format!("{}{default} [env: {}]", entry.help, entry.environment_variable());
    let argument = Arg::new(entry.name).long(entry.name).help(help);
    match entry.shape {
        // A number that is too small is told as such, not as an unknown flag.
        Shape::Value(name) => argument.value_name(name).action(ArgAction::Set).allow_negative_numbers(true),
        Shape::List(name) => argument.value_name(name).action(ArgAction::Append),
        Shape::Switch => argument
            .value_name("true|false")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .action(ArgAction::Set),
    }
}

impl Sources {
    /// The values on the command line.
    pub fn from_matches(matches: &ArgMatches) -> Sources {
        let mut flags = Vec::new();
        for entry in all_options() {
            let texts = matches.get_many::<String>(entry.name).unwrap_or_default();
            flags.extend(texts.map(|text| (entry.name, text.clone())));
        }
        let mut familiar = Vec::new();
        for switch in FAMILIAR_SWITCHES {
            let texts = matches.get_many::<String>(switch.name).unwrap_or_default();
            familiar.extend(texts.map(|text| (switch.name, text.clone())));
        }
        Sources { flags, familiar, file: matches.get_one::<String>(CONFIG).map(PathBuf::from) }
    }
}
