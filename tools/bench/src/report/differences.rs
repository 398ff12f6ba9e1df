//! The conditions in which runs differ that stand beside each other: reasons why their figures do not
//! compare. Comparisons of two folders and reports of one have the same list.

use super::cache;
use super::clients_in_words;
use super::durability::NO_WRITES;
use super::file::RunFile;
use super::page::{is_just_started, state};
use super::settings;
use pando_measuring::counters::counted_by;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The parameters of the workload.
    Work,
    Window,
    WarmUp,
    /// How the units of an open loop are spread.
    Arrivals,
    /// The state of server and data at the beginning.
    State,
    /// Whether the server of a warm run was started right before it.
    Start,
    /// Whether checkpoints were forced.
    Checkpoint,
    /// The threads of the tool that drive the clients.
    Threads,
    Machine,
    Readahead,
    Durability,
    Cache,
    Cap,
    /// The counter of the disk figures.
    DiskSource,
}

/// A condition in which some runs differ, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub condition: Condition,
    pub text: String,
}

/// A condition, its name, and its value of a run; nothing where a run says nothing of it.
type Question = (Condition, &'static str, fn(&RunFile) -> Option<String>);

const QUESTIONS: [Question; 13] = [
    (Condition::Window, "the window", |file| Some(format!("{} s", file.plan.duration_s))),
    (Condition::WarmUp, "the warm-up", |file| Some(format!("{} s", file.plan.warmup_s))),
    (Condition::Arrivals, "the spread of arrivals", |file| file.plan.spacing.clone()),
    (Condition::State, "the state at the beginning", |file| {
        let state = state(file);
        Some(if state == "-" { "unknown".to_owned() } else { state })
    }),
    (Condition::Start, "the start of the server", |file| {
        Some(if is_just_started(file) { "right before" } else { "earlier" }.to_owned())
    }),
    (Condition::Checkpoint, "--force-checkpoint", |file| {
        Some(if file.why.sizes_written.is_some() { "on" } else { "off" }.to_owned())
    }),
    (Condition::Threads, "the number of the tool's threads", |file| {
        // Further threads have no client.
        Some(file.plan.threads.min(file.plan.clients).to_string())
    }),
    (Condition::Machine, "the machine", |file| {
        let model = file.machine.cpu_model.clone().unwrap_or_default();
        Some(format!("{} x {model}", file.machine.cores))
    }),
    (Condition::Readahead, "readahead", |file| {
        Some(file.machine.read_ahead_kb.map_or_else(|| "unknown".to_owned(), |kb| format!("{kb} KB")))
    }),
    (Condition::Durability, "durability", |file| {
        Some(file.durability.clone()).filter(|durability| durability != NO_WRITES && !durability.is_empty())
    }),
    (Condition::Cache, "the cache", |file| Some(cache::in_words(file))),
    (Condition::Cap, "the cap", |file| {
        Some(file.labels.get("cap").cloned().unwrap_or_else(|| "none".to_owned()))
    }),
    (Condition::DiskSource, "the counter of disk figures", |file| {
        file.figures.disk_source.as_deref().map(|source| counted_by(source).to_owned())
    }),
];

/// The conditions in which these runs differ. Of two sides of a comparison, the values of the first stand
/// before those of the second.
pub fn of(sides: &[&[&RunFile]]) -> Vec<Difference> {
    let mut differences = Vec::new();
    let parameters = settings::differences(sides);
    if !parameters.is_empty() {
        let text = format!("what was done differs: {}", parameters.join("; "));
        differences.push(Difference { condition: Condition::Work, text });
    }
    let all = sides.concat();
    for (condition, name, value) in QUESTIONS {
        let values = sides.iter().map(|side| side.iter().filter_map(|file| value(file)).collect());
        let values: Vec<BTreeSet<String>> = values.collect();
        let differs = match condition {
            Condition::Cache => cache::differ(&all),
            _ => values.iter().flatten().collect::<BTreeSet<_>>().len() > 1,
        };
        if differs {
            let text = format!("{name} differs: {}", settings::in_order_of_sides(values));
            differences.push(Difference { condition, text });
        }
    }
    differences
}

/// The differences among the runs of a report, each said once, behind the names of the comparisons that have
/// it. Runs of one workload, run of the suite, cache label and settings are a comparison, so that runs
/// without a label of their cache are compared whatever their servers' caches are. Threads are compared among
/// runs of as many clients. The disk figures of a workload stand in one table.
pub fn within(files: &[RunFile]) -> Vec<String> {
    let compared = |file: &RunFile| {
        let cache = file.labels.get("cache").map(String::as_str);
        let parts = [Some(file.workload.as_str()), file.run_label(), cache, file.settings_apart.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |name_of: &dyn Fn(&RunFile) -> String, conditions: &[Condition]| {
        let mut groups: BTreeMap<String, Vec<&RunFile>> = BTreeMap::new();
        files.iter().for_each(|file| groups.entry(name_of(file)).or_default().push(file));
        for (name, files) in groups {
            let asked = of(&[&files]).into_iter().filter(|found| conditions.contains(&found.condition));
            asked.for_each(|found| names.entry(found.text).or_default().push(name.clone()));
        }
    };
    let conditions = [
        Condition::Work,
        Condition::Window,
        Condition::State,
        Condition::Checkpoint,
        Condition::Cache,
        Condition::Cap,
    ];
    add(&compared, &conditions);
    add(
        &|file| format!("{}, {}", compared(file), clients_in_words(file.plan.clients)),
        &[Condition::Threads],
    );
    add(&|file| file.workload.clone(), &[Condition::DiskSource]);
    names.into_iter().map(|(text, names)| format!("{}: {text}", names.join("; "))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::file;
    use super::*;

    fn of_server(server: &str, batch: u32) -> RunFile {
        let mut file = file("iibench", 8, 1.0);
        file.labels.insert("server".into(), server.into());
        file.parameters = serde_json::json!({ "batch": batch });
        file
    }

    #[test]
    fn every_condition_in_which_runs_differ_is_named() {
        let (mut first, mut second) = (of_server("a", 100), of_server("b", 1000));
        assert_eq!(of(&[&[&first, &first]]), []);
        second.plan.duration_s = 60;
        second.plan.threads = 2;
        second.plan.warmup_s = 3;
        (first.plan.spacing, second.plan.spacing) = (Some("even".into()), Some("poisson".into()));
        first.labels.insert("state".into(), "cold: no page of it in memory".into());
        second.labels.insert("state".into(), "warm: the server was started right before".into());
        second.why.sizes_written = Some(crate::why::sizes::Sizes::default());
        second.machine.cores += 1;
        (first.machine.read_ahead_kb, second.machine.read_ahead_kb) = (Some(8), Some(128));
        (first.durability, second.durability) = ("synced".into(), "not synced".into());
        for (name, text) in [("cache", "8 GB"), ("cap", "16 GB")] {
            second.labels.insert(name.into(), text.into());
        }
        first.figures.disk_source = Some("/proc/diskstats, device 8:0, whole device".into());
        second.figures.disk_source = Some("/proc/7/io, bytes only".into());
        let found = of(&[&[&first], &[&second]]);
        let texts: Vec<String> = found.into_iter().map(|found| found.text).collect();
        for part in [
            "what was done differs: batch 100 | batch 1000",
            "the window differs: 2 s | 60 s",
            "the warm-up differs: 0 s | 3 s",
            "the spread of arrivals differs: even | poisson",
            "the state at the beginning differs: cold | warm",
            "the start of the server differs: earlier | right before",
            "--force-checkpoint differs: off | on",
            "the number of the tool's threads differs: 1 | 2",
            "the machine differs: ",
            "readahead differs: 8 KB | 128 KB",
            "durability differs: synced | not synced",
            "the cache differs: unknown | 8 GB",
            "the cap differs: none | 16 GB",
            "the counter of disk figures differs: ",
        ] {
            assert!(texts.iter().any(|text| text.starts_with(part)), "{part}: {texts:?}");
        }
        second.durability = NO_WRITES.into();
        let differs = |found: &Difference| found.condition == Condition::Durability;
        assert!(!of(&[&[&first], &[&second]]).iter().any(differs), "who writes nothing promises nothing");
    }

    #[test]
    fn servers_of_a_report_that_did_other_things_are_told_and_its_labelled_caches_are_not() {
        let mut files = vec![of_server("a", 100), of_server("b", 1000)];
        assert_eq!(within(&files), ["iibench: what was done differs: batch 100 | batch 1000"]);
        files[0].labels.insert("cache".into(), "64 MB".into());
        files[1].labels.insert("cache".into(), "128 MB".into());
        assert_eq!(within(&files), Vec::<String>::new(), "they are not compared with each other");
        files[0].figures.disk_source = Some("cgroup v1 /a, without buffered writes".into());
        files[1].figures.disk_source = Some("/proc/diskstats, device 8:0, whole device".into());
        let told = within(&files);
        assert!(told[0].starts_with("iibench: the counter of disk figures differs: "), "{told:?}");
    }

    #[test]
    fn states_and_forced_checkpoints_that_differ_between_the_servers_of_a_report_are_told() {
        let mut files = vec![of_server("a", 100), of_server("b", 100)];
        files[0].labels.insert("state".into(), "cold".into());
        files[1].why.sizes_written = Some(crate::why::sizes::Sizes::default());
        assert_eq!(
            within(&files),
            [
                "iibench: --force-checkpoint differs: off | on",
                "iibench: the state at the beginning differs: cold | unknown",
            ]
        );
    }

    #[test]
    fn caches_without_labels_that_a_report_compares_are_told() {
        let mut files = vec![of_server("a", 100), of_server("b", 100)];
        (files[0].server.cache_bytes, files[1].server.cache_bytes) = (Some(134_000_000), Some(268_000_000));
        assert_eq!(within(&files), ["iibench: the cache differs: 134 MB | 268 MB"]);
        files[1].server.cache_bytes = files[0].server.cache_bytes;
        assert_eq!(within(&files), Vec::<String>::new());
    }

    #[test]
    fn threads_that_differ_are_told_among_runs_of_as_many_clients_that_have_a_use_for_them() {
        let mut files = vec![of_server("a", 100), of_server("b", 100)];
        files[1].plan.threads = 2;
        assert_eq!(within(&files), ["iibench, 8 clients: the number of the tool's threads differs: 1 | 2"]);
        files.iter_mut().for_each(|file| file.plan.clients = 1);
        assert_eq!(within(&files), Vec::<String>::new(), "a second thread would have no client");
        (files[0].plan.clients, files[1].plan.clients, files[1].plan.threads) = (1, 8, 1);
        assert_eq!(within(&files), Vec::<String>::new());
    }
}
