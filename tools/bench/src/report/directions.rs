//! What each post concluded, looked at in the runs at hand: the direction of a comparison, our two figures, and whether it still holds.
//!
//! Rates of two machines do not compare, but who is ahead of whom does. A direction needs runs of both engines that are measurements
//! (no flagged ones); engines are known by the suites' label `engine`, caches by the number in the label `cache`. Where a folder has runs
//! with several caches, posts A, B and D are looked at with the least, post C with the most, and post E wants both.

use super::chart::number;
use super::file::RunFile;

const B_TREE: &str = "WiredTiger B-tree";
const LSM: &str = "WiredTiger LSM";
const INNODB: &str = "InnoDB";
const ROCKSDB: &str = "RocksDB";
/// A rate that moves by less than this share "does not move": runs of a minute on a machine that is not wholly idle differ by as much.
const SAME: f64 = 0.2;

/// A conclusion.
#[derive(Debug)]
pub struct Direction {
    /// Of which post: A to E.
    pub post: &'static str,
    /// In words, with the post's figures.
    pub says: &'static str,
    judge: fn(&Runs<'_>) -> Option<Judged>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Ours, in words.
    pub figures: String,
    /// Whether the direction is the post's.
    pub holds: bool,
}

impl Direction {
    /// Looks at it in these runs; nothing if they have not what it needs.
    pub fn judge(&self, files: &[&RunFile]) -> Option<Judged> {
        (self.judge)(&Runs { files })
    }
}

impl Judged {
    /// For a table.
    pub fn verdict(&self) -> &'static str {
        if self.holds { "holds" } else { "does not hold" }
    }
}

/// All of them.
pub const DIRECTIONS: [Direction; 11] = [
    Direction {
        post: "A",
        says: "InnoDB reads the disk less a query than MongoDB (0.83 against 1.65 reads)",
        judge: |runs| {
            let reads =
                |engine| runs.least_cache("point", engine, |file| file.figures.per_operation.disk_reads);
            less(INNODB, reads(INNODB)?, "MongoDB", reads(B_TREE)?, "disk reads a query")
        },
    },
    Direction {
        post: "A",
        says: "InnoDB has fewer context switches a query than MongoDB (4.2 against 7.2)",
        judge: |runs| {
            let switches = |engine| {
                runs.least_cache("point", engine, |file| file.figures.per_operation.machine_switches)
            };
            less(INNODB, switches(INNODB)?, "MongoDB", switches(B_TREE)?, "switches a query")
        },
    },
    Direction {
        post: "A",
        says: "InnoDB takes less CPU of the server a query than MongoDB (186 against 228 us)",
        judge: |runs| {
            let cpu =
                |engine| runs.least_cache("point", engine, |file| file.figures.per_operation.server_cpu_us);
            less(INNODB, cpu(INNODB)?, "MongoDB", cpu(B_TREE)?, "us a query")
        },
    },
    Direction {
        post: "B",
        says: "RocksDB does more transactions than WiredTiger's B-tree (1.4 to 1.5 times)",
        judge: |runs| {
            let rate = |engine| runs.least_cache("sysbench", engine, |file| Some(file.figures.rate));
            more(ROCKSDB, rate(ROCKSDB)?, B_TREE, rate(B_TREE)?, "transactions/s")
        },
    },
    Direction {
        post: "B",
        says: "RocksDB writes less a transaction than WiredTiger's B-tree",
        judge: |runs| {
            let written =
                |engine| runs.least_cache("sysbench", engine, |file| file.figures.per_operation.written_kb);
            less(ROCKSDB, written(ROCKSDB)?, B_TREE, written(B_TREE)?, "KB a transaction")
        },
    },
    Direction {
        post: "C",
        says: "MongoDB reads more rows a second than InnoDB (110,000 against 30,000)",
        judge: |runs| {
            let rate = |engine| runs.most_cache("kv", engine, |file| Some(file.figures.rate));
            more("MongoDB", rate(B_TREE)?, INNODB, rate(INNODB)?, "reads/s")
        },
    },
    Direction {
        post: "D",
        says: "without transactions MongoDB's counts of links go wrong (said of the plugin by a later post)",
        judge: |runs| {
            let wrong =
                |file: &RunFile| Some(file.findings.iter().map(|found| found.wrong).sum::<u64>() as f64);
            let checked =
                |file: &RunFile| Some(file.findings.iter().map(|found| found.checked).sum::<u64>() as f64);
            let (wrong, checked) =
                (runs.any("linkbench", B_TREE, wrong)?, runs.any("linkbench", B_TREE, checked)?);
            (checked > 0.0).then(|| Judged {
                figures: format!("{wrong:.0} of {checked:.0} counts are wrong"),
                holds: wrong > 0.0,
            })
        },
    },
    Direction {
        post: "E",
        says: "while its secondary indexes fit in the cache, a B-tree inserts faster than an LSM tree",
        judge: |runs| {
            runs.has_two_caches("iibench")?;
            let rate = |engine| runs.most_cache("iibench", engine, |file| Some(file.figures.rate));
            more("B-tree", rate(B_TREE)?, "LSM", rate(LSM)?, "documents/s")
        },
    },
    Direction {
        post: "E",
        says: "when they do not fit, it loses",
        judge: |runs| {
            runs.has_two_caches("iibench")?;
            let rate = |engine| runs.least_cache("iibench", engine, |file| Some(file.figures.rate));
            less("B-tree", rate(B_TREE)?, "LSM", rate(LSM)?, "documents/s")
        },
    },
    Direction {
        post: "E",
        says: "an LSM tree's rate does not move with the cache",
        judge: |runs| {
            runs.has_two_caches("iibench")?;
            let rate = |file: &RunFile| Some(file.figures.rate);
            let (least, most) =
                (runs.least_cache("iibench", LSM, rate)?, runs.most_cache("iibench", LSM, rate)?);
            let figures =
                format!("{} with the least cache, {} documents/s with the most", number(least), number(most));
            Some(Judged { figures, holds: (least / most - 1.0).abs() < SAME })
        },
    },
    Direction {
        post: "E",
        says: "an LSM tree takes more CPU a document than a B-tree in the cache (3.6 times)",
        judge: |runs| {
            runs.has_two_caches("iibench")?;
            let cpu =
                |engine| runs.most_cache("iibench", engine, |file| file.figures.per_operation.server_cpu_us);
            more("LSM", cpu(LSM)?, "B-tree", cpu(B_TREE)?, "us a document")
        },
    },
];

fn less(one: &str, a: f64, other: &str, b: f64, unit: &str) -> Option<Judged> {
    Some(Judged { figures: compared(one, a, other, b, unit), holds: a < b })
}

fn more(one: &str, a: f64, other: &str, b: f64, unit: &str) -> Option<Judged> {
    Some(Judged { figures: compared(one, a, other, b, unit), holds: a > b })
}

fn compared(one: &str, a: f64, other: &str, b: f64, unit: &str) -> String {
    let ratio = if b > 0.0 { format!(": {:.2} times", a / b) } else { String::new() };
    format!("{one} {}, {other} {} {unit}{ratio}", number(a), number(b))
}

/// Runs to look at.
struct Runs<'a> {
    files: &'a [&'a RunFile],
}

impl Runs<'_> {
    fn of(&self, workload: &str, engine: &str) -> Vec<&RunFile> {
        let is_of = |file: &&&RunFile| {
            file.workload == workload && file.labels.get("engine").is_some_and(|name| name == engine)
        };
        self.files.iter().filter(is_of).copied().collect()
    }

    /// The median of a figure over these runs.
    fn median(files: &[&RunFile], figure: impl Fn(&RunFile) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = files.iter().filter_map(|file| figure(file)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Of all runs, flagged ones too.
    fn any(&self, workload: &str, engine: &str, figure: impl Fn(&RunFile) -> Option<f64>) -> Option<f64> {
        Self::median(&self.of(workload, engine), figure)
    }

    fn with_cache(
        &self,
        workload: &str,
        engine: &str,
        choose: fn(std::vec::IntoIter<u64>) -> Option<u64>,
        figure: impl Fn(&RunFile) -> Option<f64>,
    ) -> Option<f64> {
        let mut files = self.of(workload, engine);
        files.retain(|file| !file.flagged);
        let cache = choose(files.iter().map(|file| cache_of(file)).collect::<Vec<_>>().into_iter())?;
        files.retain(|file| cache_of(file) == cache);
        // With several numbers of clients, the most.
        let clients = files.iter().map(|file| file.plan.clients).max()?;
        files.retain(|file| file.plan.clients == clients);
        Self::median(&files, figure)
    }

    fn least_cache(
        &self,
        workload: &str,
        engine: &str,
        figure: impl Fn(&RunFile) -> Option<f64>,
    ) -> Option<f64> {
        self.with_cache(workload, engine, Iterator::min, figure)
    }

    fn most_cache(
        &self,
        workload: &str,
        engine: &str,
        figure: impl Fn(&RunFile) -> Option<f64>,
    ) -> Option<f64> {
        self.with_cache(workload, engine, Iterator::max, figure)
    }

    fn has_two_caches(&self, workload: &str) -> Option<()> {
        let mut caches: Vec<u64> =
            self.files.iter().filter(|file| file.workload == workload).map(|file| cache_of(file)).collect();
        caches.sort_unstable();
        caches.dedup();
        (caches.len() > 1).then_some(())
    }
}

/// The number in the name of its cache; 0 if there is none.
fn cache_of(file: &RunFile) -> u64 {
    let digits: String = file
        .labels
        .get("cache")
        .map_or(String::new(), |name| name.chars().take_while(char::is_ascii_digit).collect());
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::file::tests::file;

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
        let of_post = DIRECTIONS.iter().filter(|direction| direction.post == post);
        of_post.map(|direction| direction.judge(&files).map(|judged| judged.holds)).collect()
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
    fn a_direction_without_its_runs_or_with_flagged_ones_is_not_judged() {
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
        runs[0].findings = vec![crate::workload::Finding { what: "counts".into(), checked: 10, wrong: 3 }];
        let files: Vec<&RunFile> = runs.iter().collect();
        let judged = DIRECTIONS.iter().find(|direction| direction.post == "D").and_then(|d| d.judge(&files));
        let judged = judged.expect("there are counts");
        assert_eq!((judged.figures.as_str(), judged.verdict()), ("3 of 10 counts are wrong", "holds"));
    }
}
