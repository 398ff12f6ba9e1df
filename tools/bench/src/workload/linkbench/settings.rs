//! LinkBench's own settings, under the names of its properties files.
//!
//! A file has lines `name = value` (or `name: value`); `#` and `!` begin comments. `workload_file` names
//! another file, whose settings stand behind: what the first one says counts. Settings that this tool has no
//! use for are told, not refused: most are about the original's stores.

use super::mix::{Mix, OPERATIONS};
use crate::error::{BenchError, read_text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most nodes: groups of ids are counted in 32 bits.
const NODES_MAX: u64 = 1 << 40;

/// Settings by name, with where each stands.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    values: BTreeMap<String, Place>,
}

#[derive(Clone, Debug)]
struct Place {
    value: String,
    file: PathBuf,
    line: usize,
}

impl Properties {
    /// Reads a file, and the one that it names as `workload_file`.
    pub fn read(path: &Path) -> Result<Properties, BenchError> {
        let mut properties = Properties::default();
        properties.read_one(path)?;
        if let Some(place) = properties.values.remove("workload_file") {
            let found = beside(path, &place.value).ok_or_else(|| {
                let cause = format!("there is no file {}", place.value);
                BenchError::FileForm { path: place.file.clone(), line: place.line, cause }
            })?;
            properties.read_one(&found)?;
        }
        Ok(properties)
    }

    fn read_one(&mut self, path: &Path) -> Result<(), BenchError> {
        let text = read_text(path)?;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let Some((name, value)) = line.split_once(['=', ':']) else {
                let cause = "expected name = value".to_owned();
                return Err(BenchError::FileForm { path: path.to_owned(), line: number + 1, cause });
            };
            let place = Place { value: value.trim().to_owned(), file: path.to_owned(), line: number + 1 };
            self.values.entry(name.trim().to_owned()).or_insert(place);
        }
        Ok(())
    }

    /// A setting of the command line, which counts before those of files: `name=value`.
    pub fn define(&mut self, definition: &str) -> Result<(), BenchError> {
        let Some((name, value)) = definition.split_once('=') else {
            return Err(BenchError::option("D", format!("expected name=value instead of {definition}")));
        };
        let place = Place { value: value.trim().to_owned(), file: PathBuf::from("-D"), line: 1 };
        self.values.insert(name.trim().to_owned(), place);
        Ok(())
    }

    /// Takes a setting out, if it is there.
    fn take<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>, BenchError> {
        let Some(Place { value, file, line }) = self.values.remove(name) else { return Ok(None) };
        let wrong =
            |_| BenchError::FileForm { path: file, line, cause: format!("{name} cannot be `{value}`") };
        value.parse().map(Some).map_err(wrong)
    }

    /// Takes a path out; a relative one is beside its file, or where the tool runs.
    fn take_path(&mut self, name: &str) -> Result<Option<PathBuf>, BenchError> {
        let Some(Place { value, file, line }) = self.values.remove(name) else { return Ok(None) };
        let cause = format!("there is no file {value}");
        beside(&file, &value).map(Some).ok_or(BenchError::FileForm { path: file, line, cause })
    }
}

/// A file by a path that is meant from another file's folder, from the one above (where LinkBench's home is),
/// or from here.
fn beside(file: &Path, path: &str) -> Option<PathBuf> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let above = folder.parent().unwrap_or(Path::new(""));
    [folder.join(path), above.join(path), PathBuf::from(path)].into_iter().find(|path| path.is_file())
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The first node.
    pub first_id: i64,
    /// After the last node that is loaded.
    pub end_id: i64,
    /// How many types of links there are.
    pub link_types: u32,
    /// The table of degrees, if it is not the built-in one.
    pub data_file: Option<PathBuf>,
    pub mix: Mix,
    pub history_percent: f64,
    /// Links in a list at most.
    pub list_limit: u32,
    pub loaders: u32,
    pub chunk: u32,
    /// Clients, if told.
    pub requesters: Option<u32>,
    /// Requests of each client, if told.
    pub requests: Option<u64>,
    /// Requests per second of each client, if told.
    pub rate_per_requester: Option<f64>,
    /// Seconds of the run at most, if told.
    pub max_s: Option<u32>,
    /// Seconds before it, if told.
    pub warmup_s: Option<u32>,
    /// Failures after which a client ends; negative for never.
    pub failures_max: i64,
    /// The seeds of the load and of the requests, if told.
    pub seeds: [Option<u64>; 2],
    /// Seconds of an interval in csvstream.
    pub display_s: u32,
    /// Latencies of an operation that are kept in an interval.
    pub samples_max: u32,
    /// The database, if told.
    pub database: Option<String>,
    /// Settings that this tool has no use for.
    pub unused: Vec<String>,
}

impl Settings {
    /// The settings of some properties. Others have LinkBench's defaults, apart from the number of nodes.
    pub fn of(mut properties: Properties, nodes: u64) -> Result<Settings, BenchError> {
        let from = &mut properties;
        let first_id = from.take("startid1")?.unwrap_or(1);
        let end_id = from.take("maxid1")?.unwrap_or(first_id + i64::try_from(nodes).unwrap_or(i64::MAX / 2));
        let mut percentages = [None; OPERATIONS.len()];
        for (percentage, operation) in percentages.iter_mut().zip(OPERATIONS) {
            *percentage = from.take::<f64>(operation.property())?;
        }
        let mut settings = Settings {
            first_id,
            end_id,
            link_types: from.take("link_type_count")?.unwrap_or(2),
            data_file: from.take_path("data_file")?,
            mix: Mix::of(percentages)?,
            history_percent: from.take("getlinklist_history")?.unwrap_or(0.3),
            list_limit: from.take("range_limit")?.unwrap_or(10_000),
            loaders: from.take("loaders")?.unwrap_or(10),
            chunk: from.take("loader_chunk_size")?.unwrap_or(2048),
            requesters: from.take("requesters")?,
            requests: from.take("requests")?,
            rate_per_requester: from.take::<f64>("requestrate")?.filter(|rate| *rate > 0.0),
            max_s: from.take("maxtime")?,
            warmup_s: from.take("warmup_time")?,
            failures_max: from.take("max_failed_requests")?.unwrap_or(100),
            seeds: [from.take("load_random_seed")?, from.take("request_random_seed")?],
            display_s: from.take("displayfreq")?.unwrap_or(10),
            samples_max: from.take("maxsamples")?.unwrap_or(10_000),
            database: from.take("dbid")?,
            unused: Vec::new(),
        };
        settings.unused = properties.values.into_keys().collect();
        settings.check()?;
        Ok(settings)
    }

    /// How many nodes are loaded.
    pub fn nodes(&self) -> u64 {
        u64::try_from(self.end_id - self.first_id).unwrap_or(0)
    }

    fn check(&self) -> Result<(), BenchError> {
        let nodes = self.end_id.checked_sub(self.first_id).unwrap_or(0);
        let limits = [
            (
                nodes < 1 || nodes as u64 > NODES_MAX || self.first_id < 1,
                "maxid1",
                "there must be a node, and 2^40 at most, from 1 on",
            ),
            (!(1..=1000).contains(&self.link_types), "link_type_count", "1 to 1000"),
            (!(0.0..=100.0).contains(&self.history_percent), "getlinklist_history", "0 to 100"),
            (!(1..=1_000_000).contains(&self.list_limit), "range_limit", "1 to 1000000"),
            (!(1..=1000).contains(&self.loaders), "loaders", "1 to 1000"),
            (!(1..=1_000_000).contains(&self.chunk), "loader_chunk_size", "1 to 1000000"),
            (self.requesters.is_some_and(|count| !(1..=10_000).contains(&count)), "requesters", "1 to 10000"),
            (self.rate_per_requester.is_some_and(|rate| rate > 1e9), "requestrate", "at most 1000000000"),
            (self.max_s == Some(0), "maxtime", "at least 1"),
            (self.display_s == 0, "displayfreq", "at least 1"),
            (!(1..=10_000_000).contains(&self.samples_max), "maxsamples", "1 to 10000000"),
        ];
        match limits.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, name, limit)) => {
                Err(BenchError::option("D", format!("the setting {name} is out of its range: {limit}")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(definitions: &[&str]) -> Result<Settings, BenchError> {
        let mut properties = Properties::default();
        definitions.iter().try_for_each(|definition| properties.define(definition))?;
        Settings::of(properties, 1000)
    }

    #[test]
    fn files_of_linkbench_are_read_with_the_workload_that_they_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = folder.path().join("config");
        std::fs::create_dir(&config).expect("it is empty");
        std::fs::write(config.join("Distribution.dat"), "nlinks\n0 50\n1 100\n").expect("writable");
        std::fs::write(
            config.join("FBWorkload.properties"),
            "# the workload\nstartid1 = 1\nmaxid1 = 10001\nlink_type_count = 2\naddlink = 100\nrequesters = 3\n\
             data_file = config/Distribution.dat\n",
        )
        .expect("writable");
        let file = config.join("LinkConfigMysql.properties");
        std::fs::write(
            &file,
            "workload_file = config/FBWorkload.properties\nhost = here\nrequesters=64\n! more\nmaxtime: 30\n",
        )
        .expect("writable");
        let mut properties = Properties::read(&file).expect("both are there");
        properties.define("maxtime=5").expect("a definition");
        let settings = Settings::of(properties, 1).expect("all values are possible");
        assert_eq!((settings.nodes(), settings.requesters, settings.max_s), (10_000, Some(64), Some(5)));
        assert!(settings.data_file.is_some_and(|path| path.is_file()));
        assert_eq!(settings.unused, ["host"]);
        assert_eq!(settings.mix.percentages()[4], 100.0, "{:?}", settings.mix);
    }

    #[test]
    fn without_settings_they_are_linkbenchs_own() {
        let settings = settings(&[]).expect("nothing is required");
        assert_eq!((settings.first_id, settings.nodes(), settings.link_types), (1, 1000, 2));
        assert_eq!((settings.list_limit, settings.chunk, settings.loaders), (10_000, 2048, 10));
        assert_eq!((settings.history_percent, settings.failures_max), (0.3, 100));
    }

    #[test]
    fn impossible_values_are_refused_with_their_name() {
        for (definition, part) in [
            ("maxid1=1", "maxid1"),
            ("maxid1=many", "maxid1"),
            ("startid1=0", "maxid1"),
            ("link_type_count=0", "link_type_count"),
            ("getlinklist_history=101", "getlinklist_history"),
            ("addlink=-1", "addlink"),
            ("addlink", "name=value"),
            ("requestrate=1e99", "requestrate"),
        ] {
            let error = settings(&[definition]).expect_err(definition).to_string();
            assert!(error.contains(part), "{definition}: {error}");
        }
    }
}
