//! Two sets of runs beside each other: ratios with their spread.
//!
//! 1. Runs are put together that did the same: workload, clients and rate. Where one side has several
//!    servers, runs of a suite, states, caches or settings of this work, those are put together that agree in
//!    them, too.
//! 2. Of each figure there is the median of each side, the ratio of the medians (second by first), and how
//!    far that ratio could be off: the lowest of the second by the highest of the first, and the other way
//!    round.
//! 3. Runs without a partner are named, with the conditions in which they differ from the nearest runs of the
//!    other side that have none either.
//! 4. A ratio whose spread has 1 in it is no difference that these runs could show; a single run has no
//!    spread, and says so.

use super::file::RunFile;
use super::page::{plain_server_name, state};
use super::settings::tell_apart;
use super::{Figures, clients_in_words, differences};
use pando_measuring::table::aligned;
use std::collections::{BTreeMap, BTreeSet};

struct Metric {
    name: &'static str,
    of: fn(&Figures) -> Option<f64>,
}

const METRICS: [Metric; 9] = [
    Metric { name: "operations/s", of: |figures| Some(figures.rate) },
    Metric { name: "p50 us", of: |figures| Some(figures.latency_us.p50) },
    Metric { name: "p99 us", of: |figures| Some(figures.latency_us.p99) },
    Metric { name: "max us", of: |figures| Some(figures.latency_us.max) },
    Metric { name: "server CPU us/op", of: |figures| figures.per_operation.server_cpu_us },
    Metric { name: "server switches/op", of: |figures| figures.per_operation.server_switches },
    Metric { name: "disk reads/op", of: |figures| figures.per_operation.disk_reads },
    Metric { name: "rKB/op", of: |figures| figures.per_operation.read_kb },
    Metric { name: "wKB/op", of: |figures| figures.per_operation.written_kb },
];

/// Two runs with the same work are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    workload: String,
    clients: u32,
    /// Units per second of an open loop, as text: rates are given, not computed.
    rate: String,
}

impl Work {
    fn of(file: &RunFile) -> Work {
        let rate = file.plan.rate.map_or_else(|| "closed".to_owned(), |rate| format!("{rate}/s"));
        Work { workload: file.workload.clone(), clients: file.plan.clients, rate }
    }

    fn in_words(&self) -> String {
        format!("{}, {}, {}", self.workload, clients_in_words(self.clients), self.rate)
    }

    /// The differences from other work of the same workload, which is on the second side.
    fn differences(&self, other: &Work) -> Vec<String> {
        let parts = [
            ("the number of clients", self.clients.to_string(), other.clients.to_string()),
            ("the loop", loop_in_words(&self.rate), loop_in_words(&other.rate)),
        ];
        let differing = parts.into_iter().filter(|(_, ours, theirs)| ours != theirs);
        differing.map(|(name, ours, theirs)| format!("{name} differs: {ours} | {theirs}")).collect()
    }
}

fn loop_in_words(rate: &str) -> String {
    if rate == "closed" { rate.to_owned() } else { format!("open, {rate}") }
}

/// A trait of a run that tells it from others of the same work: its name and its value.
type Trait = (&'static str, fn(&RunFile) -> String);

const TRAITS: [Trait; 5] = [
    ("the server", plain_server_name),
    ("the run of the suite", |file| label(file, "run")),
    ("the state", state),
    ("the cache", |file| label(file, "cache")),
    ("a setting", settings),
];

fn settings(file: &RunFile) -> String {
    file.settings_apart.clone().unwrap_or_default()
}

fn label(file: &RunFile, name: &str) -> String {
    file.labels.get(name).cloned().unwrap_or_default()
}

/// The traits in which the runs of one side differ. Where each side has one server, two servers are compared
/// with each other.
fn differing_traits(sides: [&[&RunFile]; 2]) -> Vec<Trait> {
    let differs = |side: &[&RunFile], of: &Trait| {
        side.iter().map(|file| of.1(file)).collect::<BTreeSet<String>>().len() > 1
    };
    TRAITS.into_iter().filter(|of| sides.iter().any(|side| differs(side, of))).collect()
}

#[derive(Clone, Debug)]
struct Values {
    sorted: Vec<f64>,
}

impl Values {
    fn new(mut values: Vec<f64>) -> Values {
        values.sort_by(f64::total_cmp);
        Values { sorted: values }
    }

    fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        if self.sorted.len().is_multiple_of(2) {
            f64::midpoint(self.sorted[middle - 1], self.sorted[middle])
        } else {
            self.sorted[middle]
        }
    }

    fn lowest(&self) -> f64 {
        self.sorted[0]
    }

    fn highest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

/// The second by the first; nothing if the first is 0.
fn ratio(first: &Values, second: &Values) -> Option<[f64; 3]> {
    let by = |a: f64, b: f64| (b != 0.0).then(|| a / b);
    let middle = by(second.median(), first.median())?;
    Some([
        by(second.lowest(), first.highest())?,
        middle,
        by(second.highest(), first.lowest()).unwrap_or(f64::INFINITY),
    ])
}

/// A ratio for people. One to nothing has no bound.
fn ratio_text(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// A comparison.
pub struct Compared {
    /// For people.
    pub text: String,
    /// Groups of runs that both sides have.
    pub groups: usize,
    /// The runs of the first side without a partner, and how the nearest ones of the second side differ.
    pub unmatched: Vec<String>,
    /// The same for programs: a list of all groups.
    pub json: serde_json::Value,
}

/// Runs of both sides that did the same.
#[derive(serde::Serialize)]
struct Group {
    name: String,
    /// Runs of each side; a group that one side does not have has no figures.
    runs: [usize; 2],
    servers: [String; 2],
    figures: Vec<Line>,
    cautions: Vec<String>,
}

/// A figure of both sides. A ratio to nothing is not a number, and null for programs.
#[derive(serde::Serialize)]
struct Line {
    figure: &'static str,
    first: f64,
    second: f64,
    ratio: Option<f64>,
    from: Option<f64>,
    to: Option<f64>,
    remark: &'static str,
}

/// The comparison.
pub fn compare(first: &[RunFile], second: &[RunFile]) -> Compared {
    // Settings that differ within one side have the same words on both.
    let mut all = [first, second].concat();
    tell_apart(&mut all);
    let (first, second) = all.split_at(first.len());
    let (mut groups_found, mut keys): (Vec<Group>, Vec<Key>) = (Vec::new(), Vec::new());
    for (work, [ours, theirs]) in groups([first.iter().collect(), second.iter().collect()], Work::of) {
        let traits = differing_traits([&ours, &theirs]);
        let traits_of = |file: &RunFile| traits.iter().map(|of| of.1(file)).collect::<Vec<_>>();
        for (values, [ours, theirs]) in groups([ours, theirs], traits_of) {
            let named = values.iter().filter(|name| !name.is_empty()).cloned();
            let name = std::iter::once(work.in_words()).chain(named).collect::<Vec<_>>().join(", ");
            groups_found.push(one_group(name, &ours, &theirs));
            let traits = traits.iter().map(|of| of.0).zip(values).collect();
            keys.push(Key { work: work.clone(), traits });
        }
    }
    let unmatched = tell_unmatched(&mut groups_found, &keys);
    Compared {
        text: groups_found.iter().map(Group::text).collect(),
        groups: groups_found.iter().filter(|group| !group.runs.contains(&0)).count(),
        unmatched,
        json: serde_json::json!(groups_found),
    }
}

/// The key of a group.
struct Key {
    work: Work,
    /// The traits that tell the groups of this work apart.
    traits: Vec<(&'static str, String)>,
}

impl Key {
    /// The differences from a group of the second side; nothing if that is of another workload.
    fn differences(&self, other: &Key) -> Option<Vec<String>> {
        if self.work.workload != other.work.workload {
            return None;
        }
        if self.work != other.work {
            return Some(self.work.differences(&other.work));
        }
        let shown = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
        let pairs = self.traits.iter().zip(&other.traits).filter(|(ours, theirs)| ours != theirs);
        let differing = pairs.map(|((name, ours), (_, theirs))| {
            format!("{name} differs: {} | {}", shown(ours), shown(theirs))
        });
        Some(differing.collect())
    }
}

/// Names, in each group that only one side has, the nearest group of the other side that has no partner
/// either, with the differences; gives these pairs.
fn tell_unmatched(groups: &mut [Group], keys: &[Key]) -> Vec<String> {
    let without = |side: usize| -> Vec<usize> {
        (0..groups.len()).filter(|place| groups[*place].runs[side] == 0).collect()
    };
    let (ours, theirs) = (without(1), without(0));
    let difference = |first: usize, second: usize| keys[first].differences(&keys[second]);
    let nearest_of = |of: &dyn Fn(usize) -> Option<Vec<String>>, others: &[usize]| {
        let all = others.iter().filter_map(|other| Some((*other, of(*other)?)));
        all.min_by_key(|(_, differences)| differences.len())
    };
    let mut unmatched = Vec::new();
    let mut told: Vec<(usize, String)> = Vec::new();
    for first in &ours {
        let Some((second, differences)) = nearest_of(&|other| difference(*first, other), &theirs) else {
            continue;
        };
        let differences = differences.join("; ");
        let (ours, theirs) = (&groups[*first].name, &groups[second].name);
        told.push((*first, format!("nearest on the second side: {theirs}: {differences}")));
        unmatched.push(format!("{ours} beside {theirs}: {differences}"));
    }
    for second in &theirs {
        let Some((first, differences)) = nearest_of(&|other| difference(other, *second), &ours) else {
            continue;
        };
        let name = &groups[first].name;
        told.push((*second, format!("nearest on the first side: {name}: {}", differences.join("; "))));
    }
    told.into_iter().for_each(|(place, text)| groups[place].cautions.push(text));
    unmatched
}

/// The runs of both sides that agree in a key.
fn groups<K: Ord>(sides: [Vec<&RunFile>; 2], key: impl Fn(&RunFile) -> K) -> BTreeMap<K, [Vec<&RunFile>; 2]> {
    let mut groups: BTreeMap<K, [Vec<&RunFile>; 2]> = BTreeMap::new();
    for (place, files) in sides.into_iter().enumerate() {
        files.into_iter().for_each(|file| groups.entry(key(file)).or_default()[place].push(file));
    }
    groups
}

impl Group {
    fn text(&self) -> String {
        let name = &self.name;
        let ([ours, theirs], [first, second]) = (self.runs, &self.servers);
        if ours == 0 || theirs == 0 {
            let side = if theirs == 0 { "first" } else { "second" };
            let nearest: String = self.cautions.iter().map(|nearest| format!("  {nearest}\n")).collect();
            return format!("{name}: only on the {side} side\n{nearest}\n");
        }
        let mut text = format!("{name}: {ours} and {theirs} runs; first {first}, second {second}\n");
        let heading = ["", "first", "second", "ratio", "from", "to", ""];
        let mut lines = vec![heading.map(str::to_owned).to_vec()];
        lines.extend(self.figures.iter().map(Line::cells));
        text.push_str(&aligned(&lines));
        for caution in &self.cautions {
            text.push_str(&format!("caution: {caution}\n"));
        }
        text + "\n"
    }
}

impl Line {
    fn cells(&self) -> Vec<String> {
        let Line { figure, first, second, ratio, from, to, remark } = self;
        let ratios = [ratio, from, to].map(|ratio| ratio_text(*ratio));
        let numbers = [*first, *second].map(number);
        let named = std::iter::once((*figure).to_owned()).chain(numbers).chain(ratios);
        named.chain(std::iter::once((*remark).to_owned())).collect()
    }
}

fn one_group(name: String, first: &[&RunFile], second: &[&RunFile]) -> Group {
    let (runs, servers) = ([first.len(), second.len()], [first, second].map(servers));
    if runs.contains(&0) {
        return Group { name, runs, servers, figures: Vec::new(), cautions: Vec::new() };
    }
    let figures = METRICS.iter().filter_map(|metric| compared(metric, first, second)).collect();
    let cautions = doubts(first, second).into_iter().chain(warnings(first, second)).collect();
    Group { name, runs, servers, figures, cautions }
}

/// A figure that all runs of both sides have; nothing if it is 0 on both.
fn compared(metric: &Metric, first: &[&RunFile], second: &[&RunFile]) -> Option<Line> {
    let values = |files: &[&RunFile]| {
        let values: Vec<f64> = files.iter().filter_map(|file| (metric.of)(&file.figures)).collect();
        (values.len() == files.len()).then(|| Values::new(values))
    };
    let (ours, theirs) = (values(first)?, values(second)?);
    let ratios = ratio(&ours, &theirs);
    if ratios.is_none() && theirs.median() == 0.0 {
        return None;
    }
    let [from, middle, to] = ratios.unwrap_or([f64::INFINITY; 3]);
    let remark = match (first.len(), second.len()) {
        _ if ratios.is_none() => "the first side has none",
        (1, 1) => "no spread: repeat",
        (1, _) => "the first side has one run",
        (_, 1) => "the second side has one run",
        _ if from <= 1.0 && 1.0 <= to => "no difference shown",
        _ => "",
    };
    let finite = |ratio: f64| Some(ratio).filter(|ratio| ratio.is_finite());
    Some(Line {
        figure: metric.name,
        first: ours.median(),
        second: theirs.median(),
        ratio: finite(middle),
        from: finite(from),
        to: finite(to),
        remark,
    })
}

/// The servers of one side.
fn servers(files: &[&RunFile]) -> String {
    let names: BTreeSet<String> = files.iter().map(|file| plain_server_name(file)).collect();
    names.into_iter().collect::<Vec<_>>().join(" and ")
}

/// The warnings of the runs themselves, each kind once, with the number of runs that have it. A kind is its
/// text without the figures.
fn warnings(first: &[&RunFile], second: &[&RunFile]) -> Vec<String> {
    let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let all = || first.iter().chain(second);
    for file in all() {
        let by_kind = |warning: &String| {
            let kind: String = warning.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            (kind, warning.clone())
        };
        let of_run: BTreeMap<String, String> = file.warnings.iter().map(by_kind).collect();
        for (kind, warning) in of_run {
            kinds.entry(kind).or_insert((0, warning)).0 += 1;
        }
    }
    let runs = all().count();
    let sentence = |(count, warning): (usize, String)| format!("{count} of {runs} runs: {warning}");
    kinds.into_values().map(sentence).collect()
}

/// Reasons why the comparison is unfair or void.
fn doubts(first: &[&RunFile], second: &[&RunFile]) -> Vec<String> {
    let mut doubts = Vec::new();
    let all = || first.iter().chain(second).copied();
    let flagged = all().filter(|file| file.flagged).count();
    if flagged > 0 {
        let what = match flagged {
            1 => "is flagged: it is no measurement",
            _ => "are flagged: they are no measurements",
        };
        doubts.push(format!("{flagged} of the runs {what}"));
    }
    let differences = differences::of(&[first, second]);
    doubts.extend(differences.into_iter().map(|difference| difference.text));
    doubts
}

fn number(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::file;
    use super::*;

    fn runs(rates: &[f64]) -> Vec<RunFile> {
        rates.iter().map(|rate| file("point", 8, *rate)).collect()
    }

    #[test]
    fn ratios_come_with_what_they_could_be_off() {
        let Compared { text, .. } = compare(&runs(&[100.0, 110.0, 90.0]), &runs(&[200.0, 220.0, 180.0]));
        let line = text.lines().find(|line| line.contains("operations/s")).expect("a line of the rate");
        assert!(line.contains("2.000") && line.contains("1.636") && line.contains("2.444"), "{text}");
        assert!(!line.contains("no difference"), "{text}");
    }

    #[test]
    fn a_spread_with_one_in_it_shows_no_difference() {
        let Compared { text, .. } = compare(&runs(&[100.0, 120.0]), &runs(&[110.0, 130.0]));
        assert!(text.contains("no difference shown"), "{text}");
        assert!(compare(&runs(&[100.0]), &runs(&[110.0])).text.contains("no spread"), "one run has none");
        let Compared { text, .. } = compare(&runs(&[100.0, 120.0]), &runs(&[110.0]));
        assert!(text.contains("the second side has one run") && !text.contains("no spread"), "{text}");
    }

    #[test]
    fn a_figure_that_the_first_side_does_not_have_has_no_ratio() {
        let of = |reads| {
            let mut file = file("point", 8, 100.0);
            file.figures.per_operation.disk_reads = Some(reads);
            file
        };
        let line_of = |first: &[f64], second: &[f64]| {
            let side = |reads: &[f64]| reads.iter().copied().map(of).collect::<Vec<_>>();
            let Compared { text, .. } = compare(&side(first), &side(second));
            text.lines().find(|line| line.contains("disk reads/op")).map(str::to_owned)
        };
        let line = line_of(&[0.0], &[1.5]).expect("it is told");
        assert!(line.contains("1.500") && line.contains("the first side has none"), "{line}");
        let line = line_of(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0]).expect("it is told");
        assert!(line.contains("2.000") && line.contains(" - ") && !line.contains("inf"), "{line}");
        assert!(line_of(&[0.0], &[0.0]).is_none());
    }

    #[test]
    fn programs_get_the_same_as_people() {
        let (first, mut second) = (runs(&[100.0, 110.0]), runs(&[200.0, 220.0]));
        second.push(file("kv", 8, 1.0));
        let Compared { json, .. } = compare(&first, &second);
        let point =
            json.as_array().expect("a list").iter().find(|group| group["runs"] == serde_json::json!([2, 2]));
        let rate = &point.expect("both sides have it")["figures"][0];
        assert_eq!(
            (&rate["figure"], &rate["first"], &rate["second"]),
            (&"operations/s".into(), &105.0.into(), &210.0.into())
        );
        assert_eq!((&rate["ratio"], &rate["remark"]), (&2.0.into(), &"".into()));
        let alone =
            json.as_array().expect("a list").iter().find(|group| group["runs"] == serde_json::json!([0, 1]));
        assert!(alone.is_some_and(|group| group["figures"] == serde_json::json!([])), "{json}");
    }

    #[test]
    fn servers_states_and_caches_of_one_folder_are_not_blended() {
        let of = |server: &str, cache: &str, rate: f64| {
            let mut file = file("point", 8, rate);
            file.labels.insert("server".into(), server.into());
            file.labels.insert("cache".into(), cache.into());
            file
        };
        let first = [of("Pando", "8 GB", 400.0), of("MongoDB", "8 GB", 100.0)];
        let Compared { text, .. } =
            compare(&first, &[of("Pando", "8 GB", 800.0), of("MongoDB", "8 GB", 100.0)]);
        assert!(
            text.contains("closed, MongoDB: 1 and 1 runs; first MongoDB, second MongoDB")
                && text.contains("closed, Pando: 1 and 1"),
            "{text}"
        );
        assert!(text.contains("2.000") && text.contains("1.000") && !text.contains("8 GB"), "{text}");
        let Compared { text, .. } = compare(&first[..1], &[of("MongoDB", "16 GB", 200.0)]);
        assert!(text.contains("point, 8 clients, closed: 1 and 1 runs") && text.contains("0.500"), "{text}");
        let Compared { text, .. } = compare(&first, &[of("Pando", "8 GB", 800.0)]);
        assert!(text.contains("MongoDB: only on the first side"), "{text}");
    }

    #[test]
    fn data_of_two_sizes_on_one_side_are_not_blended() {
        let of = |docs: u32, rate| {
            let mut file = file("point", 8, rate);
            file.parameters = serde_json::json!({ "data": { "docs": docs } });
            file
        };
        let Compared { text, groups, .. } = compare(&[of(200, 400.0), of(5000, 100.0)], &[of(200, 800.0)]);
        assert!(text.contains("closed, docs 200: 1 and 1 runs") && text.contains("2.000"), "{text}");
        assert!(text.contains("docs 5000: only on the first side"), "{text}");
        assert_eq!(groups, 1);
    }

    #[test]
    fn other_promises_caches_and_counters_are_a_caution() {
        let (mut ours, mut theirs) = (runs(&[100.0]), runs(&[110.0]));
        (ours[0].durability, theirs[0].durability) = ("synced".into(), "not synced".into());
        ours[0].labels.insert("cache".into(), "8 GB".into());
        theirs[0].labels.insert("cap".into(), "400MB".into());
        ours[0].figures.disk_source = Some("/proc/diskstats, device 8:0, whole device".into());
        theirs[0].figures.disk_source = Some("/proc/7/io, bytes only".into());
        let Compared { text, .. } = compare(&ours, &theirs);
        for part in [
            "caution: durability differs: synced | not synced",
            "caution: the cache differs: 8 GB | unknown",
            "caution: the cap differs: none | 400MB",
            "caution: the counter of disk figures differs: ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn different_beginnings_are_a_caution() {
        let (mut ours, mut theirs) = (runs(&[100.0]), runs(&[110.0]));
        ours[0].labels.insert("state".into(), "cold".into());
        theirs[0].labels.insert("state".into(), "warm".into());
        ours[0].why.sizes_written = Some(crate::why::sizes::Sizes::default());
        let Compared { text, .. } = compare(&ours, &theirs);
        for part in [
            "caution: the state at the beginning differs: cold | warm\n",
            "caution: --force-checkpoint differs: on | off\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn runs_without_a_partner_are_told_with_the_condition_in_which_they_differ() {
        let closed = runs(&[100.0]);
        let mut open = runs(&[100.0]);
        (open[0].plan.rate, open[0].plan.spacing) = (Some(50.0), Some("even".into()));
        let Compared { text, groups, unmatched, json } = compare(&closed, &open);
        assert_eq!(groups, 0);
        let difference = "the loop differs: closed | open, 50/s";
        assert_eq!(
            unmatched,
            [format!("point, 8 clients, closed beside point, 8 clients, 50/s: {difference}")]
        );
        for part in [
            "point, 8 clients, closed: only on the first side\n  nearest on the second side: point, 8 clients, 50/s: ",
            "point, 8 clients, 50/s: only on the second side\n  nearest on the first side: point, 8 clients, closed: ",
        ] {
            assert!(text.contains(&format!("{part}{difference}\n")), "{text}");
        }
        assert!(
            json[0]["cautions"][0].as_str().is_some_and(|told| told.contains("the loop differs")),
            "{json}"
        );
        let Compared { unmatched, .. } = compare(&closed, &[file("point", 32, 1.0), file("kv", 8, 1.0)]);
        assert!(
            unmatched.len() == 1 && unmatched[0].ends_with("the number of clients differs: 8 | 32"),
            "{unmatched:?}"
        );
        let cached = |cache: &str| {
            let mut file = file("point", 8, 1.0);
            file.labels.insert("cache".into(), cache.into());
            file
        };
        let Compared { unmatched, .. } =
            compare(&[cached("64 MB"), cached("128 MB")], &[cached("64 MB"), cached("256 MB")]);
        assert!(unmatched[0].ends_with("the cache differs: 128 MB | 256 MB"), "{unmatched:?}");
        assert_eq!(compare(&closed, &runs(&[50.0])).unmatched, Vec::<String>::new());
    }

    #[test]
    fn work_that_only_one_side_did_is_named_and_other_parameters_are_a_caution() {
        let mut others = runs(&[100.0]);
        others[0].parameters = serde_json::json!({ "seed": 2 });
        others.push(file("kv", 1, 1.0));
        let Compared { text, .. } = compare(&runs(&[100.0]), &others);
        assert!(text.contains("kv, 1 client, closed: only on the second side"), "{text}");
        assert!(text.contains("what was done differs: seed 1 | seed 2\n"), "{text}");
        let Compared { text, .. } = compare(&others, &runs(&[100.0]));
        assert!(text.contains("what was done differs: seed 2 | seed 1\n"), "the first comes first: {text}");
    }
}
