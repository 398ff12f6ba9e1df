//! The settings of a run: its loop, its window, its state, its readahead and the parameters of its workload.
//! Runs are repeats of each other only where their settings agree.
//!
//! # Algorithm
//! 1. The runs of one workload, server, cache and run of a suite make a group.
//! 2. A setting that has two values within a group tells runs of this workload apart. One that differs only
//!    between servers does not: these servers are compared with each other.
//! 3. Each run of the workload gets these settings in words ([`RunFile::settings_apart`]). Tables, bars and
//!    charts have them in the names of runs.
//!
//! Example: a folder has a closed loop and one of 100 a second, both by 2 clients. Its runs get
//! `closed loop` and `open loop of 100/s (even)`, and have a row each.

use super::file::RunFile;
use super::page::{plain_server_name, state};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Longer values, such as commands, are numbered.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// The parts of a run's name that tell it from others of its workload, server and number of clients. Runs
/// that agree in all of them are repeats: pages and tables show one median of them.
pub struct Apart<'f> {
    pub cache: Option<&'f str>,
    /// The run of the suite.
    pub run: Option<&'f str>,
    pub settings: Option<&'f str>,
}

impl Apart<'_> {
    pub fn of(file: &RunFile) -> Apart<'_> {
        Apart {
            cache: file.labels.get("cache").map(String::as_str),
            run: file.run_label(),
            settings: file.settings_apart.as_deref(),
        }
    }
}

/// Settings in words, by their paths.
type Settings = BTreeMap<String, String>;

/// The workload, the server, the cache, and the run of the suite.
type Group = (String, String, Option<String>, Option<String>);

/// The settings of a run, each by its path: `data.docs` is `docs 5000`.
fn settings(file: &RunFile) -> Settings {
    let mut settings = Settings::new();
    add_parameters(&file.parameters, "", &mut settings);
    let plan = &file.plan;
    let pace = match (plan.rate, &plan.spacing) {
        (Some(rate), Some(spacing)) => format!("open loop of {rate}/s ({spacing})"),
        (Some(rate), None) => format!("open loop of {rate}/s"),
        (None, _) => "closed loop".to_owned(),
    };
    // No parameter has a name with a blank in it.
    settings.insert(" loop".to_owned(), pace);
    settings.insert(" window".to_owned(), format!("window of {} s", plan.duration_s));
    let threads = plan.threads.min(plan.clients);
    let name = if threads == 1 { "thread" } else { "threads" };
    settings.insert(" threads".to_owned(), format!("{threads} {name} of the tool"));
    settings.insert(" state".to_owned(), state(file));
    if let Some(kilobytes) = file.machine.read_ahead_kb {
        settings.insert(" readahead".to_owned(), format!("readahead {kilobytes} KB"));
    }
    settings
}

fn add_parameters(value: &Value, path: &str, settings: &mut Settings) {
    if let (Value::Array(endpoints), "endpoints") = (value, path) {
        // Where a server listens is no setting: a suite starts it at another port each time.
        settings.insert(path.to_owned(), format!("endpoints {}", endpoints.len()));
        return;
    }
    if let Value::Object(members) = value {
        for (name, member) in members {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            add_parameters(member, &path, settings);
        }
        return;
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    settings.insert(path.to_owned(), format!("{} {text}", name_of(path)));
}

/// The last part of a path, as words.
fn name_of(path: &str) -> String {
    path.rsplit('.').next().unwrap_or(path).trim().replace('_', " ")
}

/// The paths whose values differ among some settings. A value that is missing differs from any other.
fn differing(all: &[&Settings]) -> BTreeSet<String> {
    let paths: BTreeSet<&String> = all.iter().flat_map(|settings| settings.keys()).collect();
    let differs = |path: &&String| all.iter().any(|settings| settings.get(*path) != all[0].get(*path));
    paths.into_iter().filter(differs).cloned().collect()
}

/// Says of each run how it differs from others of its server that are no repeats of it.
pub fn tell_apart(files: &mut [RunFile]) {
    let all: Vec<Settings> = files.iter().map(settings).collect();
    let mut groups: BTreeMap<Group, Vec<&Settings>> = BTreeMap::new();
    for (file, settings) in files.iter().zip(&all) {
        let (cache, run) = (file.labels.get("cache").cloned(), file.run_label().map(str::to_owned));
        let group = (file.workload.clone(), plain_server_name(file), cache, run);
        groups.entry(group).or_default().push(settings);
    }
    let mut telling: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for ((workload, ..), settings) in &groups {
        telling.entry(workload.clone()).or_default().extend(differing(settings));
    }
    let values = values(&all);
    for (file, settings) in files.iter_mut().zip(&all) {
        let mut words: Vec<String> = Vec::new();
        for path in telling.get(&file.workload).into_iter().flatten() {
            let Some(setting) = settings.get(path) else { continue };
            let word = shown(path, setting, &values);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        file.settings_apart = (!words.is_empty()).then(|| words.join(", "));
    }
}

/// All values of each setting.
fn values(all: &[Settings]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, setting) in all.iter().flatten() {
        values.entry(path).or_default().insert(setting);
    }
    values
}

/// A setting as a name has it: one that is too long is numbered among its values.
fn shown(path: &str, setting: &str, values: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let among = values.get(path).into_iter().flatten();
    if among.clone().all(|value| value.chars().count() <= SHOWN_CHARACTERS_MAX) {
        return setting.to_owned();
    }
    let place = among.clone().position(|value| *value == setting).unwrap_or(0);
    format!("{} no. {}", name_of(path), place + 1)
}

/// The parameters in which some runs differ, each with its values: `docs 200 | docs 5000`. The server and the
/// durability are told apart from these. Of two sides of a comparison, the values of the first come first.
pub fn differences(sides: &[&[&RunFile]]) -> Vec<String> {
    differences_in(sides, |path| !matches!(name_of(path).as_str(), "engine" | "endpoints" | "durability"))
}

/// The same, of the data only: how much there is, of which shape, under which indexes.
pub fn data_differences(files: &[&RunFile]) -> Vec<String> {
    differences_in(&[files], is_of_the_data)
}

/// The values of each side, in order of the sides.
pub fn in_order_of_sides(sides: Vec<BTreeSet<String>>) -> String {
    let within = if sides.len() > 1 { " and " } else { " | " };
    let of_side = |side: BTreeSet<String>| side.into_iter().collect::<Vec<_>>().join(within);
    sides.into_iter().map(of_side).collect::<Vec<_>>().join(" | ")
}

/// Whether a parameter says what the data is. Where it is, how it came there and by which draws does not make
/// it other data.
fn is_of_the_data(path: &str) -> bool {
    const ROOTS: [&str; 8] = ["data", "rows", "spread", "graph", "documents", "indexes", "index", "shape"];
    const NO_PART: [&str; 4] = ["database", "durability", "generator", "seed"];
    let first = path.split('.').next().unwrap_or(path);
    let last = path.rsplit('.').next().unwrap_or(path);
    ROOTS.contains(&first) && !NO_PART.contains(&last)
}

fn differences_in(sides: &[&[&RunFile]], is_asked: impl Fn(&str) -> bool) -> Vec<String> {
    let parameters = |file: &&RunFile| {
        let mut settings = Settings::new();
        add_parameters(&file.parameters, "", &mut settings);
        settings.retain(|path, _| is_asked(path));
        settings
    };
    let by_side: Vec<Vec<Settings>> =
        sides.iter().map(|side| side.iter().map(parameters).collect()).collect();
    let all = by_side.concat();
    let values = values(&all);
    let of_path = |path: &String| {
        let shown = |settings: &Settings| match settings.get(path) {
            Some(value) => shown(path, value, &values),
            None => format!("no {}", name_of(path)),
        };
        in_order_of_sides(by_side.iter().map(|side| side.iter().map(shown).collect()).collect())
    };
    let mut differences: Vec<String> =
        differing(&all.iter().collect::<Vec<_>>()).iter().map(of_path).collect();
    differences.dedup();
    differences
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::file;
    use super::*;
    use serde_json::json;

    fn told(mut files: Vec<RunFile>) -> Vec<Option<String>> {
        tell_apart(&mut files);
        files.into_iter().map(|file| file.settings_apart).collect()
    }

    fn of_server(server: &str, parameters: Value) -> RunFile {
        let mut file = file("point", 8, 1.0);
        file.labels.insert("server".into(), server.into());
        file.parameters = parameters;
        file
    }

    #[test]
    fn repeats_have_nothing_that_tells_them_apart() {
        assert_eq!(
            told(vec![file("point", 8, 1.0), file("point", 32, 2.0), file("kv", 8, 1.0)]),
            [(); 3].map(|()| None)
        );
    }

    #[test]
    fn loops_and_data_of_one_server_are_told_apart() {
        let data = |docs: u32| json!({ "data": { "docs": docs, "collections": 2 }, "keys": "uniform" });
        let mut files =
            vec![of_server("a", data(200)), of_server("a", data(5000)), of_server("a", data(200))];
        files[2].plan.rate = Some(100.0);
        files[2].plan.spacing = Some("even".to_owned());
        let told = told(files).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(
            told,
            ["closed loop, docs 200", "closed loop, docs 5000", "open loop of 100/s (even), docs 200"]
        );
    }

    #[test]
    fn settings_that_differ_between_servers_only_leave_them_comparable() {
        let of = |server, level: &str| of_server(server, json!({ "transactions": level }));
        assert_eq!(told(vec![of("a", "none"), of("b", "session")]), [None, None]);
        let told = told(vec![of("a", "none"), of("b", "session"), of("b", "none")]);
        assert_eq!(told[1].as_deref(), Some("transactions session"));
        assert_eq!(told[0], told[2], "the server with one setting is beside the same one of the other");
    }

    #[test]
    fn long_values_are_numbered_and_windows_and_readaheads_count() {
        let command =
            |name: &str| of_server("a", json!({ "commands": [format!("{name}{}", "x".repeat(50))] }));
        let told_commands = told(vec![command("b"), command("a")]);
        assert_eq!(told_commands, [Some("commands no. 2".to_owned()), Some("commands no. 1".to_owned())]);
        let mut files = vec![file("point", 8, 1.0), file("point", 8, 1.0)];
        files[0].plan.duration_s = 60;
        (files[0].machine.read_ahead_kb, files[1].machine.read_ahead_kb) = (Some(8), Some(128));
        assert_eq!(told(files)[0].as_deref(), Some("readahead 8 KB, window of 60 s"));
    }

    #[test]
    fn the_port_of_a_server_does_not_tell_its_repeats_apart() {
        let at = |ports: &[&str]| of_server("a", json!({ "endpoints": ports }));
        assert_eq!(told(vec![at(&["127.0.0.1:1"]), at(&["127.0.0.1:2"])]), [None, None]);
        let two = told(vec![at(&["127.0.0.1:1"]), at(&["127.0.0.1:2", "127.0.0.1:3"])]);
        assert_eq!(two, [Some("endpoints 1".to_owned()), Some("endpoints 2".to_owned())]);
    }

    #[test]
    fn data_differs_by_its_amount_and_not_by_its_seed_or_its_place() {
        let of = |docs: u32, seed: u32, database: &str| {
            of_server(
                "a",
                json!({ "data": { "docs": docs, "database": database }, "seed": seed, "batch": seed }),
            )
        };
        let same = [of(200, 1, "a"), of(200, 2, "b")];
        assert_eq!(data_differences(&same.iter().collect::<Vec<_>>()), Vec::<String>::new());
        let other = [of(200, 1, "a"), of(5000, 1, "a")];
        assert_eq!(data_differences(&other.iter().collect::<Vec<_>>()), ["docs 200 | docs 5000"]);
    }

    #[test]
    fn differences_name_the_parameters_and_not_the_whole_document() {
        let files = [
            of_server("a", json!({ "data": { "docs": 200, "collections": 2 }, "seed": 1 })),
            of_server("a", json!({ "data": { "docs": 5000, "collections": 2 } })),
        ];
        let all: Vec<&RunFile> = files.iter().collect();
        assert_eq!(differences(&[&all]), ["docs 200 | docs 5000", "no seed | seed 1"]);
        assert_eq!(differences(&[&all[1..], &all[..1]]), ["docs 5000 | docs 200", "no seed | seed 1"]);
        assert_eq!(differences(&[&all[..1]]), Vec::<String>::new());
    }
}
