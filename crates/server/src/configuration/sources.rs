//! The sources of option values, and their precedence: flag, environment, file, default.

use std::ffi::OsString;
use std::path::PathBuf;

use pandodb::EngineName;

use super::error::{ConfigurationError, Origin, ValueError};
use super::familiar_switches::FAMILIAR_SWITCHES;
use super::file;
use super::options::OptionEntry;
use super::{Configuration, Shape, all_options};

/// The values from the command line, and the configuration file.
#[derive(Debug, Default)]
pub struct Sources {
    /// `(option, text)` from the command line.
    pub flags: Vec<(&'static str, String)>,
    /// `(switch, text)` from the command line, in the words of other servers.
    pub familiar: Vec<(&'static str, String)>,
    /// The configuration file that the command line or `PANDO_CONFIG` names.
    pub file: Option<PathBuf>,
}

impl Sources {
    /// Reads the file and the environment, and gives each option the value of the first source that has one:
    /// flag, environment, file, default.
    ///
    /// # Errors
    /// [`ConfigurationError`]. Every source is checked, even if one with precedence has a value.
    pub fn resolve(
        &self,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Configuration, ConfigurationError> {
        let file = self.file.clone().or_else(|| environment(CONFIG_VARIABLE).map(PathBuf::from));
        let from_file = match &file {
            Some(path) => file::read(path)?,
            None => Vec::new(),
        };
        let mut configuration = Configuration::unset();
        if let Some(path) = &file {
            configuration.note_given("config", &path.display().to_string());
        }
        for entry in all_options() {
            // In rising precedence, so that the last value stands.
            apply(&mut configuration, entry, Origin::Default(entry.name), entry.default)?;
            for (_, text) in from_file.iter().filter(|(name, _)| *name == entry.name) {
                let path = file.clone().unwrap_or_default();
                apply(&mut configuration, entry, Origin::File(path, entry.name), text)?;
            }
            let variable = entry.environment_variable();
            if let Some(text) = environment(&variable) {
                let text = text
                    .into_string()
                    .map_err(|_| ConfigurationError::EnvironmentNotUtf8 { variable: variable.clone() })?;
                apply(&mut configuration, entry, Origin::Environment(variable), &text)?;
            }
            if let Some(text) = self.flag(entry) {
                apply(&mut configuration, entry, Origin::Flag(entry.name), &text)?;
            }
        }
        for switch in FAMILIAR_SWITCHES {
            for (name, text) in self.familiar.iter().filter(|(name, _)| *name == switch.name) {
                let became = (switch.apply)(&mut configuration, text).map_err(|reason| {
                    ConfigurationError::Value { origin: Origin::Flag(name), text: text.clone(), reason }
                })?;
                let said = if switch.value.is_empty() { String::new() } else { format!(" {text}") };
                configuration.familiar_lines.push(format!("the switch --{name}{said} became {became}"));
            }
        }
        self.check_query_memory(&configuration, file, environment)?;
        let engine = configuration.engine.as_str();
        if let Some(name) = configuration.monitoring.unknown_parameter(engine) {
            return Err(ConfigurationError::UnknownParameter { name: name.to_owned(), engine });
        }
        Ok(configuration)
    }

    /// The memory of queries is a part of the cache; the memory engine has none.
    fn check_query_memory(
        &self,
        configuration: &Configuration,
        file: Option<PathBuf>,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), ConfigurationError> {
        let Some(memory) = configuration.query_memory.filter(|memory| *memory > configuration.cache) else {
            return Ok(());
        };
        if configuration.engine == EngineName::Memory {
            return Ok(());
        }
        let entry = all_options().find(|entry| entry.name == QUERY_MEMORY);
        let variable = entry.map(OptionEntry::environment_variable).unwrap_or_default();
        let is_flag = self.flags.iter().any(|(name, _)| *name == QUERY_MEMORY);
        let origin = match file {
            _ if is_flag => Origin::Flag(QUERY_MEMORY),
            Some(path) if environment(&variable).is_none() => Origin::File(path, QUERY_MEMORY),
            _ => Origin::Environment(variable),
        };
        let reason = ValueError::AboveCache { cache: configuration.cache };
        Err(ConfigurationError::Value { origin, text: memory.to_string(), reason })
    }

    /// The flag's text; a list's repeated flags are one list.
    fn flag(&self, entry: &OptionEntry) -> Option<String> {
        let texts: Vec<&str> = self
            .flags
            .iter()
            .filter(|(name, _)| *name == entry.name)
            .map(|(_, text)| text.as_str())
            .collect();
        match entry.shape {
            Shape::List(_) if !texts.is_empty() => Some(texts.join(",")),
            _ => texts.last().map(|text| (*text).to_owned()),
        }
    }
}

/// The option of the memory of queries.
const QUERY_MEMORY: &str = "query-memory";

/// A sentence for each of these environment variables that is most likely a misspelt option. Others that
/// begin with `PANDO_` may be of the person who started the server.
pub fn misspelt_variables(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let known: Vec<String> = all_options().map(OptionEntry::environment_variable).collect();
    let sentence = |name: &String| {
        let key = name.strip_prefix("PANDO_")?;
        let meant = file::nearest_name(key, VARIABLE_LIKENESS_MIN)?;
        let entry = all_options().find(|entry| entry.name == meant)?;
        Some(format!(
            "the environment variable {name} has no effect, because there is no option of this name: {} is the nearest",
            entry.environment_variable()
        ))
    };
    let unknown = |name: &String| *name != CONFIG_VARIABLE && !known.contains(name);
    names.into_iter().filter(unknown).filter_map(|name| sentence(&name)).collect()
}

/// How alike a variable and an option are where the one is a misspelt other.
const VARIABLE_LIKENESS_MIN: f64 = 0.85;

/// The environment variable that names the configuration file.
pub(super) const CONFIG_VARIABLE: &str = "PANDO_CONFIG";

fn apply(
    configuration: &mut Configuration,
    entry: &OptionEntry,
    origin: Origin,
    text: &str,
) -> Result<(), ConfigurationError> {
    if !matches!(origin, Origin::Default(_)) {
        configuration.note_given(entry.name, text);
    }
    (entry.apply)(configuration, text).map_err(|reason| ConfigurationError::Value {
        origin,
        text: text.to_owned(),
        reason,
    })
}
