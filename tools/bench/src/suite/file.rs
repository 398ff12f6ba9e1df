//! The file of a suite, and the checks of it before anything starts.

use super::caches::CacheEntry;
use crate::error::{BenchError, read_text};
use crate::launch::Words;
use crate::launch::caps::{IoCap, parse_bytes};
use crate::report::posts::posts;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// Which post it is for: A to E.
    pub post: Option<String>,
    /// Its purpose, in a sentence.
    pub about: String,
    /// The difference from the post's sizes, in a sentence; it stands in every result.
    pub scaled: Option<String>,
    /// How often each cell is measured.
    #[serde(default = "one")]
    pub repeats: u32,
    /// Seconds of rest before each cell.
    #[serde(default)]
    pub settle_s: u32,
    /// The readahead of the device under the servers' data, in kilobytes [as it is].
    pub readahead_kb: Option<u32>,
    /// After so many seconds a cell is ended and has failed.
    #[serde(default = "six_hours")]
    pub limit_s: u64,
    #[serde(rename = "server")]
    pub servers: Vec<ServerEntry>,
    #[serde(rename = "run")]
    pub runs: Vec<RunEntry>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    pub name: String,
    pub engine: String,
    /// The program that must be there; `{program}` in commands is where it is.
    pub program: Option<String>,
    /// A command that runs once in a new data folder.
    pub setup: Option<String>,
    /// Starts it; none for engines in this process, and for servers that somebody else runs.
    pub start: Option<String>,
    /// Ends it [SIGTERM].
    pub stop: Option<String>,
    /// Where it is to be found, with `{port}`.
    pub uri: String,
    #[serde(rename = "cache", default)]
    pub caches: Vec<CacheEntry>,
    /// The cache that data is loaded with, where loading with the cells' own would take too long; afterwards
    /// the server is started anew with the cell's [the cell's].
    pub load_cache: Option<CacheEntry>,
    /// How long it may take to answer, in seconds.
    #[serde(default = "two_minutes")]
    pub ready_s: u64,
    /// How long it may take to end, in seconds, before it is killed.
    #[serde(default = "two_minutes")]
    pub stop_s: u64,
    /// The meaning of an acknowledged write.
    pub durability: Option<String>,
    /// Arguments of every workload against it.
    #[serde(default)]
    pub arguments: BTreeMap<String, toml::Value>,
    /// The program's path and the time of its build, of a program that this call starts: another build is
    /// another measurement. See [`Suite::note_builds`].
    #[serde(skip_deserializing)]
    pub build: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunEntry {
    /// Its name in results [the workload].
    pub name: Option<String>,
    pub workload: String,
    pub state: State,
    pub clients: Vec<u32>,
    #[serde(default)]
    pub arguments: BTreeMap<String, toml::Value>,
    /// The servers that it is for [all].
    pub servers: Option<Vec<String>>,
    /// The names of the caches that it is for [all].
    pub caches: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its folder was emptied before, and the data loaded right before.
    Fresh,
    /// It was started anew, and no page of its data is in the kernel's cache.
    Cold,
    /// It has been running, and the warm-up comes before the window.
    Warm,
}

fn one() -> u32 {
    1
}

fn six_hours() -> u64 {
    6 * 3600
}

fn two_minutes() -> u64 {
    120
}

impl RunEntry {
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.workload)
    }
}

impl Suite {
    /// Keeps only these servers.
    pub fn keep_servers(&mut self, names: &[String]) -> Result<(), BenchError> {
        let wrong = |cause| BenchError::Option { option: "servers", cause };
        if let Some(name) = names.iter().find(|name| !self.servers.iter().any(|server| server.name == **name))
        {
            let all: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
            return Err(wrong(format!("there is no server `{name}`; there are: {}", all.join(", "))));
        }
        self.servers.retain(|server| names.contains(&server.name));
        Ok(())
    }

    /// Notes the builds of the programs of these servers, as far as they are there.
    pub fn note_builds(&mut self, names: &[String], programs: &BTreeMap<String, PathBuf>) {
        for server in self.servers.iter_mut().filter(|server| names.contains(&server.name)) {
            let path = if server.is_embedded() {
                // The engine is a part of this program.
                std::env::current_exe().ok()
            } else {
                server.program.as_deref().and_then(|name| program(name, programs))
            };
            server.build = path.map(|path| build_of(&path));
        }
    }

    pub fn read(path: &Path) -> Result<Suite, BenchError> {
        let text = read_text(path)?;
        Suite::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Suite, BenchError> {
        let wrong = |line, cause| BenchError::FileForm { path: path.to_owned(), line, cause };
        let mut suite: Suite = toml::from_str(text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start);
            let line = text[..before.min(text.len())].matches('\n').count() + 1;
            wrong(line, error.message().to_owned())
        })?;
        suite.name_caches().and_then(|()| suite.check()).map_err(|cause| wrong(0, cause))?;
        Ok(suite)
    }

    fn check(&self) -> Result<(), String> {
        let letters: Vec<&str> = posts().iter().map(|post| post.letter.as_str()).collect();
        if let Some(post) = self.post.as_deref().filter(|post| !letters.contains(post)) {
            return Err(format!("`{post}` is no post: {}", letters.join(", ")));
        }
        if self.repeats == 0 || self.servers.is_empty() || self.runs.is_empty() {
            return Err("a suite has at least one repeat, one [[server]] and one [[run]]".to_owned());
        }
        for server in &self.servers {
            check_server(server).map_err(|cause| format!("server `{}`: {cause}", server.name))?;
            let same = self.servers.iter().filter(|other| other.name == server.name).count();
            if same > 1 {
                return Err(format!("server `{}`: there are {same} of this name", server.name));
            }
        }
        for run in &self.runs {
            self.check_run(run).map_err(|cause| format!("run `{}`: {cause}", run.name()))?;
        }
        Ok(())
    }

    fn check_run(&self, run: &RunEntry) -> Result<(), String> {
        const WORKLOADS: [&str; 5] = ["point", "sysbench", "kv", "linkbench", "iibench"];
        if !WORKLOADS.contains(&run.workload.as_str()) {
            return Err(format!("`{}` is no workload: {}", run.workload, WORKLOADS.join(", ")));
        }
        if run.clients.is_empty() || run.clients.contains(&0) {
            return Err("clients is a list of numbers above 0".to_owned());
        }
        for name in run.servers.iter().flatten() {
            if !self.servers.iter().any(|server| server.name == *name) {
                return Err(format!("there is no server `{name}`"));
            }
        }
        for name in run.caches.iter().flatten() {
            let all: BTreeSet<String> =
                self.servers.iter().flat_map(|server| &server.caches).map(CacheEntry::name).collect();
            if !all.contains(name) {
                let all: Vec<String> = all.into_iter().collect();
                return Err(format!("no server has a cache `{name}`; there are: {}", all.join("; ")));
            }
        }
        for taken in [
            "uri",
            "out",
            "clients",
            "repeats",
            "first-run",
            "load",
            "data-dir",
            "server-command",
            "server-stop",
            "cache-mb",
            "embedded-cache",
            "cap",
            "io-cap",
            "label",
        ] {
            if run.arguments.contains_key(taken) {
                return Err(format!("`{taken}` is not an argument here: the suite itself says it"));
            }
        }
        let is_for =
            |server: &&ServerEntry| run.servers.as_ref().is_none_or(|names| names.contains(&server.name));
        for server in self.servers.iter().filter(is_for) {
            if server.is_somebody_elses() && run.state != State::Warm {
                return Err(format!(
                    "server `{}` has no `start` command: it runs already, and its state can only be warm",
                    server.name
                ));
            }
            let is_loaded_apart = server.is_embedded() && run.workload != "iibench";
            if server.keeps_nothing() && (run.state == State::Cold || is_loaded_apart) {
                return Err(format!(
                    "server `{}` has the engine memory, whose data is gone before the run: let `pando serve` run it, in \
                     the state fresh or warm",
                    server.name
                ));
            }
            if !server.is_somebody_elses() && run.workload == "iibench" && run.state != State::Fresh {
                return Err("iibench begins with an empty collection: its state is fresh".to_owned());
            }
        }
        Ok(())
    }
}

impl ServerEntry {
    pub fn is_embedded(&self) -> bool {
        self.uri.starts_with(crate::client::EMBEDDED_SCHEME)
    }

    /// Whether its data is gone when it ends, so that it cannot be loaded and then started anew.
    fn keeps_nothing(&self) -> bool {
        let words: Vec<&str> = self.start.iter().flat_map(|start| start.split_whitespace()).collect();
        words.contains(&"--engine=memory")
            || words.windows(2).any(|pair| pair == ["--engine", "memory"])
            || self.uri.strip_prefix(crate::client::EMBEDDED_SCHEME) == Some("memory")
    }

    /// A text of this server with its words replaced; `key` is where it stands.
    pub fn fill(&self, words: &Words, key: &str, text: &str) -> Result<String, BenchError> {
        words.fill(text).map_err(|cause| self.wrong(key, cause))
    }

    /// The error of one of its keys.
    pub fn wrong(&self, key: &str, cause: String) -> BenchError {
        BenchError::SuiteEntry { entry: format!("server `{}`: {key}", self.name), cause }
    }

    /// Whether it runs before and after the suite: a cluster of several programs, a server of another
    /// machine.
    pub fn is_somebody_elses(&self) -> bool {
        self.start.is_none() && !self.is_embedded()
    }
}

fn check_server(server: &ServerEntry) -> Result<(), String> {
    if server.caches.is_empty() {
        return Err(if server.is_somebody_elses() {
            "it needs the cache that it has, with a name if its size is not known: cache = [{ mb = 100, name = \"as it is\" }]"
        } else {
            "it needs a cache: cache = [{ mb = 100 }]"
        }
        .to_owned());
    }
    let is_embedded = server.is_embedded();
    if is_embedded && server.start.is_some() {
        return Err("an engine in this process (embedded:) has no `start` command".to_owned());
    }
    if server.is_somebody_elses() {
        let of_started = [
            ("program", server.program.is_some()),
            ("setup", server.setup.is_some()),
            ("stop", server.stop.is_some()),
            ("load_cache", server.load_cache.is_some()),
            ("cap", server.caches.iter().any(|cache| cache.cap.is_some() || cache.io_cap.is_some())),
            ("{port} in its uri", server.uri.contains("{port}")),
        ];
        if let Some((what, _)) = of_started.into_iter().find(|(_, has)| *has) {
            return Err(format!("without a `start` command it runs already, and {what} has no meaning"));
        }
    }
    check_words(server)?;
    if server.keeps_nothing() && server.load_cache.is_some() {
        return Err("the engine memory loses its data with each start: it has no load_cache".to_owned());
    }
    if is_embedded && server.load_cache.is_some() {
        return Err("an engine in this process is opened with one cache: it has no load_cache".to_owned());
    }
    for cache in server.caches.iter().chain(&server.load_cache) {
        if cache.mb == 0 {
            return Err("a cache of 0 MB".to_owned());
        }
        if is_embedded && (cache.cap.is_some() || cache.io_cap.is_some()) {
            return Err("an engine in this process cannot be capped".to_owned());
        }
        cache.cap.as_deref().map(parse_bytes).transpose().map_err(|cause| format!("cap: {cause}"))?;
        cache
            .io_cap
            .as_deref()
            .map(str::parse::<IoCap>)
            .transpose()
            .map_err(|cause| format!("io_cap: {cause}"))?;
    }
    Ok(())
}

/// Whether the words in braces are those that a started server has.
fn check_words(server: &ServerEntry) -> Result<(), String> {
    let Some(start) = &server.start else { return Ok(()) };
    let mut words = Words::new().with("port", 1).with("data", "").with_cache(1);
    if server.program.is_some() {
        words = words.with("program", "");
    }
    let texts = [
        ("start", Some(start)),
        ("stop", server.stop.as_ref()),
        ("setup", server.setup.as_ref()),
        ("uri", Some(&server.uri)),
    ];
    for (key, text) in texts {
        text.map(|text| words.fill(text)).transpose().map_err(|cause| format!("{key}: {cause}"))?;
    }
    Ok(())
}

/// Arguments of a table, as on the command line: `name = true` is a flag, a list is joined by commas; `D` is
/// LinkBench's own.
pub fn as_arguments(table: &BTreeMap<String, toml::Value>) -> Vec<String> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut arguments = Vec::new();
    for (name, value) in table {
        // LinkBench has options of one letter: `D`, `c`.
        let option = if name.len() == 1 { format!("-{name}") } else { format!("--{name}") };
        match value {
            toml::Value::Boolean(true) => arguments.push(option),
            toml::Value::Boolean(false) => {}
            toml::Value::Array(values) if name == "D" => {
                values.iter().for_each(|value| arguments.extend([option.clone(), text(value)]));
            }
            toml::Value::Array(values) => {
                let joined: Vec<String> = values.iter().map(text).collect();
                arguments.extend([option, joined.join(",")]);
            }
            value => arguments.extend([option, text(value)]),
        }
    }
    arguments
}

/// A program's path, and when its file was written last.
fn build_of(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let written = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
    let nanoseconds =
        written.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|time| time.as_nanos());
    match nanoseconds {
        Some(nanoseconds) => format!("{}, written at {nanoseconds} ns", path.display()),
        None => path.display().to_string(),
    }
}

/// Where a program is: what was given for it, or in the search path.
pub fn program(name: &str, given: &BTreeMap<String, PathBuf>) -> Option<PathBuf> {
    if let Some(path) = given.get(name) {
        return path.is_file().then(|| path.clone());
    }
    if name.contains('/') {
        return Path::new(name).is_file().then(|| PathBuf::from(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::MYSQL_SCHEME;

    const GOOD: &str = r#"
        name = "a"
        about = "b"
        [[server]]
        name = "one"
        engine = "betree"
        start = "pando serve --data {data}"
        uri = "mongodb://127.0.0.1:{port}"
        cache = [{ mb = 64, cap = "128MB", io_cap = "200riops" }]
        [[run]]
        workload = "point"
        state = "cold"
        clients = [1, 8]
        arguments = { docs = 100, java-rng = true, dist = "uniform" }
    "#;

    fn parse(text: &str) -> Result<Suite, String> {
        Suite::parse(text, Path::new("x.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_without_a_cache_is_told_what_to_write() {
        let without = GOOD.replace("cache = [{ mb = 64, cap = \"128MB\", io_cap = \"200riops\" }]", "");
        assert!(parse(&without).expect_err("no cache").contains("cache = [{ mb = 100 }]"));
        let theirs = without.replace("start = \"pando serve --data {data}\"", "");
        assert!(parse(&theirs).expect_err("no cache").contains("name = \"as it is\""));
    }

    #[test]
    fn a_suite_is_read_with_its_defaults() {
        let suite = parse(GOOD).expect("it is good");
        assert_eq!((suite.repeats, suite.runs[0].state, suite.servers[0].caches[0].mb), (1, State::Cold, 64));
        let arguments = as_arguments(&suite.runs[0].arguments);
        assert_eq!(arguments, ["--dist", "uniform", "--docs", "100", "--java-rng"]);
    }

    #[test]
    fn unknown_keys_and_impossible_values_are_refused_with_their_place() {
        for (from, to, expected) in [
            ("about =", "aboot =", "x.toml, line 3"),
            ("state = \"cold\"", "state = \"luke\"", "luke"),
            ("clients = [1, 8]", "clients = [0]", "numbers above 0"),
            ("workload = \"point\"", "workload = \"pint\"", "is no workload"),
            ("mb = 64", "mb = 0", "a cache of 0 MB"),
            ("cap = \"128MB\"", "cap = \"128XB\"", "is no unit"),
            ("io_cap = \"200riops\"", "io_cap = \"fast\"", "is no cap"),
            ("docs = 100", "uri = \"x\"", "the suite itself says it"),
            ("engine =", "load_cache = { mb = 0 }\nengine =", "a cache of 0 MB"),
            ("engine =", "stop_s = -1\nengine =", "integer `-1`"),
            ("mongodb://127.0.0.1:{port}", "embedded:betree", "has no `start` command"),
            ("start =", "stop =", "runs already, and stop has no meaning"),
            ("start = \"pando serve --data {data}\"", "", "runs already, and cap has no meaning"),
            (
                "{data}",
                "{date}",
                "x.toml: server `one`: start: `{date}` stands for nothing here; there are: cache_bytes",
            ),
            ("{data}", "{program}", "`{program}` stands for nothing here"),
            ("engine =", "stop = \"halt {prot}\"\nengine =", "stop: `{prot}` stands"),
            ("{port}", "{prt}", "uri: `{prt}` stands"),
            ("about =", "post = \"Z\"\nabout =", "`Z` is no post: A, B, C, D, E"),
            ("serve --data", "serve --engine memory --data", "server `one` has the engine memory"),
            (
                "start = \"pando serve",
                "load_cache = { mb = 9 }\nstart = \"pando serve --engine=memory",
                "has no load_cache",
            ),
            ("clients = [1, 8]", "clients = [1]\nservers = [\"two\"]", "there is no server `two`"),
            ("clients = [1, 8]", "clients = [1]\ncaches = [\"65 MB\"]", "no server has a cache `65 MB`"),
        ] {
            let error = parse(&GOOD.replace(from, to)).expect_err(to);
            assert!(error.contains(expected) && !error.contains("line 0"), "{to}: {error}");
        }
    }

    #[test]
    fn a_server_without_a_start_command_runs_already_and_can_only_be_warm() {
        let running = GOOD
            .replace("start = \"pando serve --data {data}\"", "")
            .replace("{port}", "27017")
            .replace(", cap = \"128MB\", io_cap = \"200riops\"", "");
        let error = parse(&running).expect_err("nobody can make it cold");
        assert!(error.contains("server `one`") && error.contains("only be warm"), "{error}");
        let suite = parse(&running.replace("\"cold\"", "\"warm\"")).expect("warm it may be");
        assert!(suite.servers[0].is_somebody_elses() && !suite.servers[0].is_embedded());
        let of_port = running.replace("27017", "{port}");
        assert!(parse(&of_port).expect_err("nobody gives it a port").contains("{port} in its uri"));
    }

    #[test]
    fn every_suite_of_the_repository_is_whole_and_its_workloads_understand_their_arguments() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            let suite = Suite::parse(&text, &path).unwrap_or_else(|error| panic!("{error}"));
            for cell in suite.cells() {
                cell.check().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
            assert!(
                path.to_string_lossy().contains("small") == suite.scaled.is_some(),
                "what is smaller is said"
            );
            count += 1;
        }
        assert_eq!(
            count, 15,
            "each post in two sizes, all of them in one small suite, three of the engines, and single statements"
        );
    }

    #[test]
    fn a_program_that_was_built_anew_is_another_build_and_servers_that_are_not_measured_have_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("pando");
        std::fs::write(&path, "").expect("writable");
        let given = BTreeMap::from([("pando".to_owned(), path.clone())]);
        let with_program = GOOD.replace("start =", "program = \"pando\"\nstart =");
        let build = |names: &[&str]| {
            let mut suite = parse(&with_program).expect("it is good");
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            suite.note_builds(&names, &given);
            suite.servers[0].build.clone()
        };
        let first = build(&["one"]).expect("the program is there");
        assert!(first.starts_with(&path.display().to_string()), "{first}");
        let file = std::fs::File::options().write(true).open(&path).expect("writable");
        file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(1)).expect("the time can be set");
        assert_ne!(build(&["one"]), Some(first));
        assert_eq!(build(&[]), None);
        let error = parse(&with_program.replace("engine =", "build = \"x\"\nengine =")).expect_err("no key");
        assert!(error.contains("build"), "{error}");
    }

    #[test]
    fn servers_of_mysqls_protocol_let_all_clients_connect_and_prepare_their_statements() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
        for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let suite = Suite::read(&path).unwrap_or_else(|error| panic!("{error}"));
            for cell in suite.cells().iter().filter(|cell| cell.server.uri.starts_with(MYSQL_SCHEME)) {
                let (connections, statements) = needs_of_mysql(cell);
                let has = |name: &str, default| mysql_limit(&cell.server, name).unwrap_or(default);
                let place = format!("{}: {}", path.display(), cell.name());
                // Beside the clients there are those that load, count and ask.
                assert!(has("--max-connections=", 151) >= connections + 10, "{place}: {connections}");
                assert!(has("--max-prepared-stmt-count=", 16_382) >= statements, "{place}: {statements}");
            }
        }
    }

    /// The connections and the prepared statements of a cell: see the workloads in `tools/bench-mysql`.
    fn needs_of_mysql(cell: &crate::suite::matrix::Cell) -> (u64, u64) {
        let clients = u64::from(cell.clients);
        let collections = cell.run.arguments.get("collections").and_then(toml::Value::as_integer);
        let collections = collections.and_then(|count| u64::try_from(count).ok());
        match cell.run.workload.as_str() {
            "sysbench" => (clients, clients * collections.unwrap_or(8) * 9),
            // Two connections a client, and a multiget for each number of links.
            "linkbench" => (clients * 2, clients * (12 + 127)),
            _ => (clients, clients * collections.unwrap_or(8) * 2),
        }
    }

    fn mysql_limit(server: &ServerEntry, option: &str) -> Option<u64> {
        let start = server.start.as_deref().unwrap_or_default();
        let (_, value) = start.split_once(option)?;
        value.split_whitespace().next()?.parse().ok()
    }

    #[test]
    fn programs_are_found_in_the_search_path_or_where_they_were_said_to_be() {
        assert!(program("sh", &BTreeMap::new()).is_some());
        assert_eq!(program("no-such-program", &BTreeMap::new()), None);
        let given = BTreeMap::from([("sh".to_owned(), PathBuf::from("/nowhere/sh"))]);
        assert_eq!(program("sh", &given), None, "what was given counts, even if it is not there");
    }
}
