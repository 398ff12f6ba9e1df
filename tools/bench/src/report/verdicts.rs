//! The verdicts on the posts: whether the runs at hand agree with a conclusion, with our two figures.
//!
//! Rates of two machines do not compare, but the order of two engines does. A comparison needs runs of both
//! engines that are measurements: a flagged run is none. Where a folder has runs with several caches, the
//! file of the posts says whether the least or the most of them counts. Of several numbers of clients the
//! most counts. Runs with different settings are not judged.

use super::file::RunFile;
use super::posts::Post;
use pando_measuring::number::{median, number};
use serde::Deserialize;

/// A rate that moves by less than this share is the same: runs of a minute on a machine that is not wholly
/// idle differ by as much.
const SAME: f64 = 0.2;

/// A conclusion, and the question that decides whether it holds. Exactly one of the two questions is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub says: String,
    pub comparison: Option<Comparison>,
    /// Whether LinkBench's counts are wrong with this engine.
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

#[derive(Clone, Copy, Debug, Deserialize)]
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub figures: String,
    pub holds: bool,
}

impl Judged {
    pub fn verdict(&self) -> &'static str {
        if self.holds { "holds" } else { "does not hold" }
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
        let mut caches: Vec<u64> = files.iter().map(|file| cache_of(file)).collect();
        caches.sort_unstable();
        caches.dedup();
        if self.two_caches && caches.len() < 2 {
            return None;
        }
        let (first, second) =
            (self.first.median(files, self.figure)?, self.second.median(files, self.figure)?);
        let holds = match self.is {
            Relation::Less => first < second,
            Relation::More => first > second,
            Relation::Same => (first / second - 1.0).abs() < SAME,
        };
        let ratio = if second > 0.0 { format!(": {:.2} times", first / second) } else { String::new() };
        let figures = format!(
            "{} {}, {} {} {}{ratio}",
            self.first.name(),
            number(first),
            self.second.name(),
            number(second),
            self.unit
        );
        Some(Judged { figures, holds })
    }
}

impl Side {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.engine)
    }

    fn median(&self, files: &[&RunFile], figure: Figure) -> Option<f64> {
        let mut files = of_engine(files, &self.engine);
        files.retain(|file| !file.flagged);
        let caches = files.iter().map(|file| cache_of(file));
        let cache = match self.cache {
            Cache::Least => caches.min(),
            Cache::Most => caches.max(),
        }?;
        files.retain(|file| cache_of(file) == cache);
        let clients = files.iter().map(|file| file.plan.clients).max()?;
        files.retain(|file| file.plan.clients == clients);
        if files.iter().any(|file| file.settings_apart != files[0].settings_apart) {
            // They are no repeats: a median over them is nobody's figure.
            return None;
        }
        median(files.iter().filter_map(|file| figure.of(file)).collect())
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

/// Of all runs: wrong counts flag theirs.
fn wrong_counts(files: &[&RunFile], engine: &str) -> Option<Judged> {
    let files = of_engine(files, engine);
    let sum = |of: fn(&super::Finding) -> u64| {
        median(files.iter().map(|file| file.findings.iter().map(of).sum::<u64>() as f64).collect())
    };
    let (wrong, checked) = (sum(|found| found.wrong)?, sum(|found| found.checked)?);
    let figures = format!("{wrong:.0} of {checked:.0} counts are wrong");
    (checked > 0.0).then_some(Judged { figures, holds: wrong > 0.0 })
}

fn of_engine<'f>(files: &[&'f RunFile], engine: &str) -> Vec<&'f RunFile> {
    let is_of = |file: &&RunFile| file.labels.get("engine").is_some_and(|name| name == engine);
    files.iter().copied().filter(is_of).collect()
}

/// The number in the name of its cache; 0 if there is none.
fn cache_of(file: &RunFile) -> u64 {
    let name = file.labels.get("cache").map_or("", String::as_str);
    let end = name.find(|character: char| !character.is_ascii_digit()).unwrap_or(name.len());
    name[..end].parse().unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
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

    fn verdicts(runs: &[RunFile], post: &str) -> Vec<Option<bool>> {
        let files: Vec<&RunFile> = runs.iter().collect();
        let post = of_post(post);
        post.verdicts.iter().map(|verdict| verdict.judge(post, &files).map(|judged| judged.holds)).collect()
    }

    #[test]
    fn inserts_are_judged_by_both_caches() {
        let mut runs = vec![
            run("iibench", B_TREE, "512 MB", 300.0),
            run("iibench", LSM, "512 MB", 200.0),
            run("iibench", B_TREE, "64 MB", 100.0),
            run("iibench", LSM, "64 MB", 190.0),
        ];
        runs[0].figures.per_operation.server_cpu_us = Some(10.0);
        runs[1].figures.per_operation.server_cpu_us = Some(9.0);
        assert_eq!(verdicts(&runs, "E"), [Some(true), Some(true), Some(true), Some(false)]);
        runs[3].figures.rate = 90.0;
        assert_eq!(verdicts(&runs, "E")[1..3], [Some(false), Some(false)]);
        assert_eq!(verdicts(&runs[..2], "E"), [None; 4], "one cache says nothing of the other");
    }

    #[test]
    fn a_conclusion_without_its_runs_or_with_flagged_ones_is_not_judged() {
        let mut runs = [run("kv", B_TREE, "512 MB", 50.0), run("kv", INNODB, "512 MB", 100.0)];
        assert_eq!(verdicts(&runs, "C"), [Some(false)]);
        assert_eq!(verdicts(&runs, "B"), [None, None]);
        runs[1].flagged = true;
        assert_eq!(verdicts(&runs, "C"), [None]);
    }

    #[test]
    fn wrong_counts_are_told_although_they_flag_their_run() {
        let mut runs = [run("linkbench", B_TREE, "64 MB", 50.0)];
        assert_eq!(verdicts(&runs, "D"), [None], "nothing was counted");
        runs[0].flagged = true;
        runs[0].findings = vec![crate::report::Finding { what: "counts".into(), checked: 10, wrong: 3 }];
        let files: Vec<&RunFile> = runs.iter().collect();
        let judged = of_post("D").verdicts[0].judge(of_post("D"), &files);
        let judged = judged.expect("there are counts");
        assert_eq!((judged.figures.as_str(), judged.verdict()), ("3 of 10 counts are wrong", "holds"));
    }
}
