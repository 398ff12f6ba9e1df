//! The verdicts on the posts: whether the runs at hand agree with a conclusion, with our two figures.
//!
//! Rates of two machines do not compare, but the order of two engines does.
//!
//! # Which runs are compared
//! 1. Those of both engines that are measurements: a flagged run is none.
//! 2. Of several caches the least or the most, as the file of the posts says, by their sizes. Where both
//!    sides are to have the same, they have the same label; where not, they have the same storage. Of several
//!    labels of one size, the one without limits of the storage counts.
//! 3. Of several numbers of clients, the most that both sides have.
//! 4. Runs with different settings are not judged. Sides whose data differs are not compared, and the row
//!    says so.
//!
//! # Outcomes
//! A conclusion holds or does not, or the runs do not show it: the figures are about the same ([`SAME`]), or
//! a repeat of the one side is within those of the other.

use super::cache::CacheLabel;
use super::file::RunFile;
use super::posts::Post;
use super::settings::data_differences;
use pando_measuring::number::{median, number};
use serde::Deserialize;
use std::collections::BTreeSet;

/// A figure that moves by less than this share is the same: runs of a minute on a machine that is not wholly
/// idle differ by as much.
const SAME: f64 = 0.2;
/// LinkBench's parameter `mapping` of runs that write as the original's plugin for MongoDB.
const PLUGIN: &str = "Plugin";

/// A conclusion, and the question that decides whether it holds. Exactly one of the two questions is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub says: String,
    pub comparison: Option<Comparison>,
    /// Whether LinkBench's counts are wrong with this engine, of runs that write as the original's plugin.
    pub wrong_counts_of: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    figure: Figure,
    unit: String,
    first: Side,
    is: Relation,
    second: Side,
    #[serde(default)]
    two_caches: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    /// The suites' label `engine`.
    engine: String,
    /// The name for the reader, if it is another one.
    name: Option<String>,
    cache: Cache,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cache {
    Least,
    Most,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Relation {
    Less,
    More,
    Same,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Figure {
    Rate,
    DiskReads,
    MachineSwitches,
    ServerCpuUs,
    WrittenKb,
}

/// The judgement of runs on a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Holds,
    DoesNotHold,
    /// They show no difference.
    NotShown,
    /// The two sides did not do the same.
    NotComparable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub figures: String,
    pub outcome: Outcome,
}

impl Judged {
    pub fn verdict(&self) -> &'static str {
        match self.outcome {
            Outcome::Holds => "holds",
            Outcome::DoesNotHold => "does not hold",
            Outcome::NotShown => "not shown",
            Outcome::NotComparable => "not comparable",
        }
    }
}

impl Verdict {
    /// Judges the conclusion by these runs; nothing if they have not what it needs.
    pub fn judge(&self, post: &Post, files: &[&RunFile]) -> Option<Judged> {
        let of_workload: Vec<&RunFile> =
            files.iter().copied().filter(|file| file.workload == post.workload).collect();
        match (&self.comparison, &self.wrong_counts_of) {
            (Some(comparison), _) => comparison.judge(&of_workload),
            (None, Some(engine)) => wrong_counts(&of_workload, engine),
            (None, None) => None,
        }
    }
}

impl Comparison {
    fn judge(&self, files: &[&RunFile]) -> Option<Judged> {
        let labels: BTreeSet<CacheLabel> = files.iter().map(|file| CacheLabel::of(file)).collect();
        let (ours, theirs) = self.sides(files)?;
        let differences = data_differences(&[ours.as_slice(), theirs.as_slice()].concat());
        if !differences.is_empty() {
            let figures = format!("the data differs: {}", differences.join("; "));
            return Some(Judged { figures, outcome: Outcome::NotComparable });
        }
        let (first, second) = (Values::of(&ours, self.figure)?, Values::of(&theirs, self.figure)?);
        let ratio = if second.median > 0.0 {
            format!(": {:.2} times", first.median / second.median)
        } else {
            String::new()
        };
        let label = CacheLabel::of(ours[0]);
        let cache = if labels.len() > 1 && label == CacheLabel::of(theirs[0]) {
            format!(" ({})", label.name)
        } else {
            String::new()
        };
        let figures = format!(
            "{} {}, {} {} {}{ratio}{cache}",
            self.first.name(),
            number(first.median),
            self.second.name(),
            number(second.median),
            self.unit
        );
        Some(Judged { figures, outcome: self.is.outcome(&first, &second) })
    }

    /// The runs of both sides.
    fn sides<'f>(&self, files: &[&'f RunFile]) -> Option<(Vec<&'f RunFile>, Vec<&'f RunFile>)> {
        let (mut ours, mut theirs) = (self.first.measurements(files), self.second.measurements(files));
        let labels = |files: &[&RunFile]| -> BTreeSet<CacheLabel> {
            files.iter().map(|file| CacheLabel::of(file)).collect()
        };
        let (of_ours, of_theirs) = (labels(&ours), labels(&theirs));
        let sizes: BTreeSet<u64> = of_ours.intersection(&of_theirs).filter_map(|label| label.bytes).collect();
        if self.two_caches && sizes.len() < 2 {
            return None;
        }
        let (first, second) = if self.first.cache == self.second.cache {
            let both = chosen(of_ours.intersection(&of_theirs), self.first.cache)?;
            (both, both)
        } else {
            let first = chosen(of_ours.iter(), self.first.cache)?;
            let is_another = |label: &&CacheLabel| label.io_cap == first.io_cap && label.bytes != first.bytes;
            (first, chosen(of_theirs.iter().filter(is_another), self.second.cache)?)
        };
        ours.retain(|file| CacheLabel::of(file) == *first);
        theirs.retain(|file| CacheLabel::of(file) == *second);
        let clients =
            |files: &[&RunFile]| -> BTreeSet<u32> { files.iter().map(|file| file.plan.clients).collect() };
        let most = clients(&ours).intersection(&clients(&theirs)).max().copied()?;
        for side in [&mut ours, &mut theirs] {
            side.retain(|file| file.plan.clients == most);
            if side.iter().any(|file| file.settings_apart != side[0].settings_apart) {
                // They are no repeats: a median over them is nobody's figure.
                return None;
            }
        }
        Some((ours, theirs))
    }
}

/// The label of the least or the most cache. Without sizes there is none but the only one.
fn chosen<'l>(labels: impl Iterator<Item = &'l CacheLabel>, cache: Cache) -> Option<&'l CacheLabel> {
    let labels: Vec<&CacheLabel> = labels.collect();
    let sizes = labels.iter().filter_map(|label| label.bytes);
    let size = match cache {
        Cache::Least => sizes.min(),
        Cache::Most => sizes.max(),
    };
    match size {
        // They are in order, and a label without limits of its storage comes before one with them.
        Some(size) => labels.into_iter().find(|label| label.bytes == Some(size)),
        None => labels.first().copied().filter(|_| labels.len() == 1),
    }
}

impl Side {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.engine)
    }

    fn measurements<'f>(&self, files: &[&'f RunFile]) -> Vec<&'f RunFile> {
        let mut files = of_engine(files, &self.engine);
        files.retain(|file| !file.flagged);
        files
    }
}

/// A figure over the repeats of one side.
struct Values {
    median: f64,
    least: f64,
    most: f64,
}

impl Values {
    /// The values of those runs that have this figure; `None` if no run has it.
    fn of(files: &[&RunFile], figure: Figure) -> Option<Values> {
        let values: Vec<f64> = files.iter().filter_map(|file| figure.of(file)).collect();
        Some(Values {
            least: values.iter().copied().min_by(f64::total_cmp)?,
            most: values.iter().copied().max_by(f64::total_cmp)?,
            median: median(values)?,
        })
    }

    /// Whether the two are about the same.
    fn is_near(&self, other: &Values) -> bool {
        if other.median == 0.0 { self.median == 0.0 } else { (self.median / other.median - 1.0).abs() < SAME }
    }

    /// Whether a repeat of the one is within those of the other.
    fn overlaps(&self, other: &Values) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

impl Relation {
    fn outcome(self, first: &Values, second: &Values) -> Outcome {
        let holds = match self {
            Relation::Same if first.is_near(second) => return Outcome::Holds,
            _ if first.is_near(second) || first.overlaps(second) => return Outcome::NotShown,
            Relation::Same => false,
            Relation::Less => first.median < second.median,
            Relation::More => first.median > second.median,
        };
        if holds { Outcome::Holds } else { Outcome::DoesNotHold }
    }
}

impl Figure {
    fn of(self, file: &RunFile) -> Option<f64> {
        let each = &file.figures.per_operation;
        match self {
            Figure::Rate => Some(file.figures.rate),
            Figure::DiskReads => each.disk_reads,
            Figure::MachineSwitches => each.machine_switches,
            Figure::ServerCpuUs => each.server_cpu_us,
            Figure::WrittenKb => each.written_kb,
        }
    }
}

/// Of all runs that write as the plugin, also of flagged ones: wrong counts flag theirs. The lab's own
/// mapping keeps counts right, and says nothing of what the post said of the plugin.
fn wrong_counts(files: &[&RunFile], engine: &str) -> Option<Judged> {
    let mut files = of_engine(files, engine);
    files.retain(|file| file.parameters["mapping"] == PLUGIN);
    let sum = |of: fn(&super::Finding) -> u64| {
        median(files.iter().map(|file| file.findings.iter().map(of).sum::<u64>() as f64).collect())
    };
    let (wrong, checked) = (sum(|found| found.wrong)?, sum(|found| found.checked)?);
    let figures = format!("{wrong:.0} of {checked:.0} counts are wrong");
    let outcome = if wrong > 0.0 { Outcome::Holds } else { Outcome::DoesNotHold };
    (checked > 0.0).then_some(Judged { figures, outcome })
}

fn of_engine<'f>(files: &[&'f RunFile], engine: &str) -> Vec<&'f RunFile> {
    let is_of = |file: &&RunFile| file.labels.get("engine").is_some_and(|name| name == engine);
    files.iter().copied().filter(is_of).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Outcome::{DoesNotHold, Holds, NotComparable, NotShown};
    use super::*;
    use crate::report::file::tests::file;
    use crate::report::posts::posts;

    const B_TREE: &str = "WiredTiger B-tree";
    const LSM: &str = "WiredTiger LSM";
    const INNODB: &str = "InnoDB";

    fn of_post(letter: &str) -> &'static Post {
        posts().iter().find(|post| post.letter == letter).expect("there is one")
    }

    /// A run of a suite.
    pub fn run(workload: &str, engine: &str, cache: &str, rate: f64) -> RunFile {
        let mut run = file(workload, 4, rate);
        for (name, text) in [("engine", engine), ("server", engine), ("cache", cache), ("run", workload)] {
            run.labels.insert(name.to_owned(), text.to_owned());
        }
        run
    }

    fn judged(runs: &[RunFile], post: &str) -> Vec<Option<Judged>> {
        let files: Vec<&RunFile> = runs.iter().collect();
        let post = of_post(post);
        post.verdicts.iter().map(|verdict| verdict.judge(post, &files)).collect()
    }

    fn verdicts(runs: &[RunFile], post: &str) -> Vec<Option<Outcome>> {
        judged(runs, post).into_iter().map(|judged| judged.map(|judged| judged.outcome)).collect()
    }

    #[test]
    fn inserts_are_judged_by_both_caches() {
        let mut runs = vec![
            run("iibench", B_TREE, "512 MB", 300.0),
            run("iibench", LSM, "512 MB", 200.0),
            run("iibench", B_TREE, "64 MB", 100.0),
            run("iibench", LSM, "64 MB", 190.0),
        ];
        runs[0].figures.per_operation.server_cpu_us = Some(20.0);
        runs[1].figures.per_operation.server_cpu_us = Some(9.0);
        assert_eq!(verdicts(&runs, "E"), [Some(Holds), Some(Holds), Some(Holds), Some(DoesNotHold)]);
        runs[3].figures.rate = 70.0;
        assert_eq!(verdicts(&runs, "E")[1..3], [Some(DoesNotHold), Some(DoesNotHold)]);
        assert_eq!(verdicts(&runs[..2], "E"), [None; 4], "one cache says nothing of the other");
    }

    #[test]
    fn figures_that_are_about_the_same_or_whose_repeats_overlap_show_nothing() {
        let kv = |engine, rate| run("kv", engine, "512 MB", rate);
        assert_eq!(verdicts(&[kv(B_TREE, 110.0), kv(INNODB, 100.0)], "C"), [Some(NotShown)]);
        assert_eq!(verdicts(&[kv(B_TREE, 90.0), kv(INNODB, 100.0)], "C"), [Some(NotShown)]);
        let overlapping =
            [kv(B_TREE, 90.0), kv(B_TREE, 200.0), kv(B_TREE, 210.0), kv(INNODB, 100.0), kv(INNODB, 101.0)];
        let judged = judged(&overlapping, "C").remove(0).expect("both are there");
        assert_eq!((judged.outcome, judged.verdict()), (NotShown, "not shown"));
        assert_eq!(verdicts(&overlapping[1..], "C"), [Some(Holds)]);
    }

    #[test]
    fn caches_are_judged_by_their_sizes_and_fast_and_slow_storage_are_not_mixed() {
        let of = |engine: &str, cache: &str, rate| run("sysbench", engine, cache, rate);
        let rate = |runs: &[RunFile]| judged(runs, "B")[0].clone();
        let sizes = [
            of("RocksDB", "512 MB", 10.0),
            of(B_TREE, "512 MB", 5.0),
            of("RocksDB", "8 GB", 10.0),
            of(B_TREE, "8 GB", 50.0),
        ];
        let least = rate(&sizes).expect("both are there");
        assert_eq!(least.outcome, Holds, "512 MB are less than 8 GB: {}", least.figures);
        assert!(least.figures.ends_with("transactions/s: 2.00 times (512 MB)"), "{}", least.figures);
        let mut storages = [
            of("RocksDB", "64 MB", 100.0),
            of(B_TREE, "64 MB", 50.0),
            of("RocksDB", "64 MB, slow", 1.0),
            of(B_TREE, "64 MB, slow", 30.0),
        ];
        for slow in &mut storages[2..] {
            slow.labels.insert("io_cap".into(), "200riops".into());
        }
        assert_eq!(rate(&storages).map(|judged| judged.outcome), Some(Holds));
        assert_eq!(rate(&storages[1..3]), None, "no label is on both sides");
        assert_eq!(rate(&storages[2..]).map(|judged| judged.outcome), Some(DoesNotHold));
        let named = [of("RocksDB", "as it is", 10.0), of(B_TREE, "as it is", 5.0)];
        assert_eq!(rate(&named).map(|judged| judged.outcome), Some(Holds), "one label needs no size");
    }

    #[test]
    fn sides_with_other_data_are_not_compared_and_the_row_says_so() {
        let mut runs = [
            run("iibench", B_TREE, "512 MB", 300.0),
            run("iibench", LSM, "512 MB", 200.0),
            run("iibench", B_TREE, "64 MB", 100.0),
            run("iibench", LSM, "64 MB", 190.0),
        ];
        for (run, documents) in runs.iter_mut().zip([600_000, 600_000, 1_500_000, 1_500_000]) {
            run.parameters = serde_json::json!({ "documents": documents });
        }
        assert_eq!(verdicts(&runs, "E")[..3], [Some(Holds), Some(Holds), Some(NotComparable)]);
        let judged = judged(&runs, "E")[2].clone().expect("it says why");
        let expected = "the data differs: documents 1500000 | documents 600000";
        assert_eq!((judged.figures.as_str(), judged.verdict()), (expected, "not comparable"));
    }

    #[test]
    fn a_conclusion_without_its_runs_or_with_flagged_ones_is_not_judged() {
        let mut runs = [run("kv", B_TREE, "512 MB", 50.0), run("kv", INNODB, "512 MB", 100.0)];
        assert_eq!(verdicts(&runs, "C"), [Some(DoesNotHold)]);
        assert_eq!(verdicts(&runs, "B"), [None, None]);
        runs[1].flagged = true;
        assert_eq!(verdicts(&runs, "C"), [None]);
        let mut runs = [
            run("iibench", B_TREE, "512 MB", 300.0),
            run("iibench", LSM, "512 MB", 200.0),
            run("iibench", B_TREE, "64 MB", 100.0),
            run("iibench", LSM, "64 MB", 190.0),
        ];
        runs[3].flagged = true;
        assert_eq!(verdicts(&runs, "E")[1..3], [None, None], "one cache is left of LSM");
    }

    #[test]
    fn wrong_counts_of_the_plugin_are_told_although_they_flag_their_run() {
        let mut runs = [run("linkbench", B_TREE, "64 MB", 50.0)];
        assert_eq!(verdicts(&runs, "D"), [None], "nothing was counted");
        runs[0].flagged = true;
        runs[0].findings = vec![crate::report::Finding { what: "counts".into(), checked: 10, wrong: 3 }];
        runs[0].parameters = serde_json::json!({ "mapping": "Own" });
        assert_eq!(verdicts(&runs, "D"), [None], "the lab's own mapping is not the plugin");
        runs[0].parameters = serde_json::json!({ "mapping": "Plugin" });
        let judged = judged(&runs, "D").remove(0).expect("there are counts");
        assert_eq!((judged.figures.as_str(), judged.verdict()), ("3 of 10 counts are wrong", "holds"));
    }
}
