//! The cells of a suite, in an order with few loads and few starts of servers: by server, cache, run,
//! clients, repeat.

use super::caches::CacheEntry;
use super::file::{RunEntry, ServerEntry, State, Suite, as_arguments};
use crate::command::SUBJECTS;
use crate::error::BenchError;
use crate::report::clients_in_words;
use crate::target::uri::without_login;
use std::collections::BTreeMap;

/// Arguments on which the data hangs; runs that agree in them share it.
const OF_THE_DATA: [&str; 20] = [
    "database",
    "databases",
    "collections",
    "docs",
    "seed",
    "java-rng",
    "faithful",
    "secondary-index",
    "index-build",
    "rows",
    "id-gap",
    "null-pct",
    "shuffle-load",
    "nodes",
    "max-degree",
    "scale",
    "mysql-engine",
    "mysql-table-options",
    "D",
    "c",
];

fn workloads() -> clap::Command {
    clap::Command::new("pando-bench").subcommands(SUBJECTS.iter().map(|subject| (subject.command)()))
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub server: ServerEntry,
    pub cache: CacheEntry,
    pub run: RunEntry,
    pub clients: u32,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Its place among the cells of its server, from 0. Each cell has draws of its own by it; cells of two
    /// servers that stand at the same place have the same draws.
    pub place: u32,
    pub conditions: Conditions,
}

/// The conditions of the whole suite that are part of a measurement.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Conditions {
    pub readahead_kb: Option<u32>,
    pub settle_s: u32,
}

impl Suite {
    /// All cells.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        let conditions = Conditions { readahead_kb: self.readahead_kb, settle_s: self.settle_s };
        for server in &self.servers {
            // Repeat by repeat, so that further repeats leave the places of the first ones as they were.
            let places_of_repeat = server.caches.iter().flat_map(|cache| {
                let runs = self.runs.iter().filter(move |run| run.is_for(server, cache));
                runs.map(|run| run.clients.len())
            });
            let places_of_repeat = u32::try_from(places_of_repeat.sum::<usize>()).unwrap_or(u32::MAX);
            let mut firsts = 0..;
            for cache in &server.caches {
                for run in self.runs.iter().filter(|run| run.is_for(server, cache)) {
                    for clients in &run.clients {
                        let first = firsts.next().unwrap_or(u32::MAX);
                        for repeat in 1..=self.repeats {
                            let (server, cache, run) = (server.clone(), cache.clone(), run.clone());
                            let place = first.saturating_add((repeat - 1).saturating_mul(places_of_repeat));
                            let clients = *clients;
                            cells.push(Cell { server, cache, run, clients, repeat, place, conditions });
                        }
                    }
                }
            }
        }
        cells
    }
}

impl ServerEntry {
    /// The beginning of the keys of all its data.
    pub fn data_owner(&self) -> String {
        format!("{} / ", self.name)
    }
}

impl RunEntry {
    fn is_for(&self, server: &ServerEntry, cache: &CacheEntry) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(&server.name))
            && self.caches.as_ref().is_none_or(|caches| caches.contains(&cache.name()))
    }
}

impl Cell {
    /// All of its definition: a cell with another key is another measurement. The build of the server's
    /// program is not in it: [`Done::build`](super::kept::Done::build) has it.
    pub fn key(&self) -> String {
        let Cell { server, cache, run, clients, repeat, conditions, .. } = self;
        // The other caches and clients of the suite are other cells' business.
        let uri = without_login(&server.uri);
        let server = ServerEntry { caches: Vec::new(), uri, build: None, ..server.clone() };
        let run = RunEntry { clients: Vec::new(), servers: None, caches: None, ..run.clone() };
        serde_json::json!([server, cache, run, clients, repeat, conditions]).to_string()
    }

    /// Whose data it is: the server, and the workloads that use the same collections. Keys of data begin with
    /// it.
    pub fn data_family(&self) -> String {
        let family = if self.run.workload == "point" { "sysbench" } else { &self.run.workload };
        format!("{}{family} / ", self.server.data_owner())
    }

    /// The definition of its data, and the build of the program that loads it: another build may store it in
    /// another way.
    pub fn data_key(&self) -> String {
        match &self.server.build {
            Some(build) => format!("{} by {build}", self.data_definition()),
            None => self.data_definition(),
        }
    }

    /// The definition of its data.
    pub fn data_definition(&self) -> String {
        let data: BTreeMap<&str, String> = self
            .run
            .arguments
            .iter()
            .chain(&self.server.arguments)
            .filter(|(name, _)| OF_THE_DATA.contains(&name.as_str()))
            .map(|(name, value)| (name.as_str(), value.to_string()))
            .collect();
        self.data_family()
            + &serde_json::json!([self.server.start, self.server.setup, self.server.load_cache, data])
                .to_string()
    }

    pub fn name(&self) -> String {
        let Cell { server, cache, run, clients, .. } = self;
        format!("{}, {}, {}, {}", server.name, cache.name(), run.name(), clients_in_words(*clients))
    }

    pub fn has_load(&self) -> bool {
        // iibench is a load.
        self.run.workload != "iibench"
    }

    /// Whether its run changes the data.
    pub fn writes(&self) -> bool {
        let arguments = || self.run.arguments.iter().chain(&self.server.arguments);
        match self.run.workload.as_str() {
            "point" | "kv" => false,
            "sysbench" => {
                !arguments().any(|(name, value)| name == "read-only" && value.as_bool() == Some(true))
            }
            _ => true,
        }
    }

    pub fn is_embedded(&self) -> bool {
        self.server.is_embedded()
    }

    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![self.run.workload.clone()];
        arguments.extend(["--clients".to_owned(), self.clients.to_string()]);
        arguments.extend(as_arguments(&self.run.arguments));
        arguments.extend(as_arguments(&self.server.arguments));
        if self.is_embedded() {
            arguments.extend(["--embedded-cache".to_owned(), self.cache.mb.to_string()]);
        }
        arguments
    }

    pub fn check(&self) -> Result<(), BenchError> {
        let all = std::iter::once("pando-bench".to_owned()).chain(self.arguments());
        let all = crate::command::linkbench::with_long_options(all.map(Into::into));
        match workloads().try_get_matches_from(all) {
            Ok(_) => Ok(()),
            Err(error) => {
                let text = error.to_string();
                let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
                Err(BenchError::SuiteEntry {
                    entry: format!("the cell `{}`", self.name()),
                    cause: first.to_owned(),
                })
            }
        }
    }

    /// How long it takes at least, as far as its arguments say.
    pub fn planned_seconds(&self) -> f64 {
        let seconds = |name: &str, default: f64| {
            let value = self.run.arguments.get(name);
            value.and_then(|value| value.as_integer()).map_or(default, |seconds| seconds as f64)
        };
        let start = if self.run.state == State::Warm { 0.0 } else { 5.0 };
        let (window, warmup) = match self.run.workload.as_str() {
            "kv" | "iibench" => (30.0, 0.0),
            _ => (20.0, 3.0),
        };
        start + seconds("duration", window) + seconds("warmup", warmup) + 3.0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two servers, of which `one` is started: points by both, and a cell of sysbench, which writes, by the
    /// other.
    pub fn suite() -> Suite {
        toml::from_str(
            r#"
            name = "a"
            about = "b"
            repeats = 2
            [[server]]
            name = "one"
            engine = "betree"
            start = "x"
            uri = "mongodb://127.0.0.1:{port}"
            cache = [{ mb = 64 }, { mb = 128 }]
            [[server]]
            name = "two"
            engine = "betree"
            uri = "embedded:betree"
            cache = [{ mb = 64 }]
            [[run]]
            workload = "point"
            state = "warm"
            clients = [1, 8]
            arguments = { docs = 100, duration = 7 }
            [[run]]
            workload = "sysbench"
            state = "cold"
            clients = [4]
            servers = ["two"]
            arguments = { docs = 100 }
            "#,
        )
        .expect("it is whole")
    }

    #[test]
    fn the_matrix_is_whole_and_a_servers_cells_stand_together() {
        let cells = suite().cells();
        assert_eq!(cells.len(), 2 * 2 * 2 + 2 * 2 + 2);
        assert!(cells[..8].iter().all(|cell| cell.server.name == "one"));
        let mut keys: Vec<String> = cells.iter().map(Cell::key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), cells.len(), "each is another measurement");
        assert_eq!(cells[8].data_key(), cells[13].data_key(), "point and sysbench share their documents");
        assert_ne!(cells[0].data_key(), cells[8].data_key(), "servers do not");
    }

    #[test]
    fn a_run_is_made_with_the_caches_that_it_names() {
        let mut suite = suite();
        suite.runs[0].caches = Some(vec!["128 MB".to_owned()]);
        let cells = suite.cells();
        let points = cells.iter().filter(|cell| cell.run.workload == "point");
        assert!(points.clone().all(|cell| cell.cache.mb == 128 && cell.server.name == "one"));
        assert_eq!(points.count(), 2 * 2);
    }

    #[test]
    fn a_cell_is_another_one_if_its_arguments_change_but_not_if_its_neighbours_do() {
        let (before, mut after) = (suite(), suite());
        after.runs[0].clients.push(99);
        after.servers[0].caches.pop();
        assert_eq!(before.cells()[0].key(), after.cells()[0].key());
        after.runs[0].arguments.insert("duration".into(), toml::Value::Integer(8));
        assert_ne!(before.cells()[0].key(), after.cells()[0].key());
    }

    #[test]
    fn a_cell_is_another_one_if_the_conditions_of_the_suite_or_the_options_of_its_tables_change() {
        let (before, mut after) = (suite(), suite());
        after.settle_s = 5;
        assert_ne!(before.cells()[0].key(), after.cells()[0].key());
        after = suite();
        after.readahead_kb = Some(8);
        assert_ne!(before.cells()[0].key(), after.cells()[0].key());
        after = suite();
        let options = toml::Value::String("ROW_FORMAT=COMPRESSED".into());
        after.servers[0].arguments.insert("mysql-table-options".into(), options);
        assert_ne!(before.cells()[0].data_key(), after.cells()[0].data_key());
        after = suite();
        after.servers[0].build = Some("/bin/x, built at 5".into());
        assert_eq!(before.cells()[0].key(), after.cells()[0].key(), "that stands beside it");
        assert_ne!(before.cells()[0].data_key(), after.cells()[0].data_key());
    }

    #[test]
    fn no_two_cells_of_a_server_have_the_same_place() {
        let cells = suite().cells();
        let places = |name: &str| -> Vec<u32> {
            let of_server = cells.iter().filter(|cell| cell.server.name == name);
            let mut places: Vec<u32> = of_server.map(|cell| cell.place).collect();
            places.sort_unstable();
            places
        };
        assert_eq!(places("one"), (0..8).collect::<Vec<u32>>());
        assert_eq!(places("two"), (0..6).collect::<Vec<u32>>());
        let mut repeated = suite();
        repeated.repeats += 1;
        let of_first_repeats = |suite: &Suite| -> Vec<u32> {
            suite.cells().iter().filter(|cell| cell.repeat == 1).map(|cell| cell.place).collect()
        };
        assert_eq!(of_first_repeats(&suite()), of_first_repeats(&repeated));
    }

    #[test]
    fn reads_leave_the_data_as_it_is() {
        let mut suite = suite();
        let writes = |suite: &Suite| suite.cells().iter().map(Cell::writes).collect::<Vec<bool>>();
        assert_eq!(writes(&suite)[8..], [false, false, false, false, true, true]);
        suite.runs[1].arguments.insert("read-only".into(), toml::Value::Boolean(true));
        assert!(!writes(&suite).contains(&true));
    }

    #[test]
    fn arguments_that_a_workload_does_not_have_are_refused_before_anything_starts() {
        let mut suite = suite();
        assert!(suite.cells().iter().all(|cell| cell.check().is_ok()));
        suite.runs[0].arguments.insert("rounds".into(), toml::Value::Integer(8));
        let error = suite.cells()[0].check().expect_err("point has no rounds").to_string();
        assert!(error.contains("--rounds") && error.starts_with("the cell `one, 64 MB, point"), "{error}");
        suite.runs[0].arguments = [("D".to_owned(), toml::Value::String("a=b".into()))].into();
        let error = suite.cells()[0].check().expect_err("point has no definitions").to_string();
        assert!(error.contains("-D") && !error.contains("--D"), "{error}");
    }
}
