//! The run of one configuration through the stream.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options, verify};
use pando_conformance::change::Change;
use pando_environment::{Environment, SeededRandom, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckRequest, Claim, Direction, Durability, Engine, KeyRange, Transaction, TreeId,
    TreeOptions,
};

use super::backups::Backups;
use super::configurations::CHANGING;
use super::reading;
use super::seen::Seen;
use super::stream::{Reader, Step};
use super::trees::{Begun, Trees};
use super::writers::Writers;

const FOLDER: &str = "/store";

pub struct Run {
    seed: u64,
    simulation: Simulation,
    options: Options,
    engine: Option<Arc<Betree>>,
    trees: Trees,
    kept: Vec<Begun>,
    writers: Writers,
    backups: Backups,
    chance: SeededRandom,
    /// Whether trees are laid out anew now and then.
    is_changing: bool,
    pub answers: Vec<String>,
    seen: Seen,
}

impl Run {
    pub fn new(seed: u64, name: &str, options: Options) -> Run {
        let simulation = Environment::simulated(seed);
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options.clone());
        let engine = engine.expect("a new store opens");
        Run {
            seed,
            simulation,
            options,
            trees: Trees::new(&engine),
            engine: Some(engine),
            kept: Vec::new(),
            writers: Writers::default(),
            backups: Backups::default(),
            chance: SeededRandom::new(seed ^ 0x6d65_7461),
            is_changing: name == CHANGING,
            answers: Vec::new(),
            seen: Seen::default(),
        }
    }

    pub fn seen(&self) -> Seen {
        let (full_backups, incremental_backups) = (self.backups.full, self.backups.incremental);
        Seen { full_backups, incremental_backups, ..self.seen }
    }

    fn engine(&self) -> &Arc<Betree> {
        self.engine.as_ref().expect("the store is open between steps")
    }

    /// The step of this number. Its background work follows from the seed and the number, not from earlier
    /// steps.
    pub fn step(&mut self, number: usize, step: &Step) {
        self.chance = SeededRandom::new(self.seed ^ 0x6d65_7461 ^ ((number as u64 + 1) << 32));
        self.work_in_background();
        match step {
            Step::Commit(tree, writes) => self.commit(*tree, writes),
            Step::DeleteRange(tree, range) => self.delete_range(*tree, range),
            Step::Get(reader, tree, key) => {
                self.read(*reader, *tree, |reader, tree| reading::get(reader, tree, key));
            }
            Step::Scan(reader, tree, range, direction, batch) => {
                self.read(*reader, *tree, |reader, tree| {
                    reading::scan(reader, tree, range, *direction, *batch)
                });
            }
            Step::Snapshot => self.keep_snapshot(),
            Step::Write(writer, tree, writes) => {
                let engine = Arc::clone(self.engine());
                let answer = self.writers.write(&engine, &self.trees, *writer, *tree, writes);
                self.answers.push(answer);
            }
            Step::End(writer, ending) => self.answers.extend(self.writers.end(*writer, *ending)),
            Step::Load(load) => {
                let engine = Arc::clone(self.engine());
                let (name, deletable) = (format!("loaded {number}"), self.writers.leave(&KeyRange::all()));
                self.answers.extend(self.trees.load(&engine, &name, load, &deletable));
            }
            Step::DropTree(tree) => {
                let engine = Arc::clone(self.engine());
                self.answers.extend(self.trees.drop_tree(&engine, *tree));
            }
            Step::Backup(extent) => {
                self.finish_backup();
                let engine = Arc::clone(self.engine());
                self.backups.begin(&engine, &self.simulation.environment, number, *extent);
            }
            Step::FinishBackup => self.finish_backup(),
            Step::Compact(tree) => self.compact(*tree),
            Step::Check => self.check(),
            Step::Checkpoint => self.engine().checkpoint().expect("a checkpoint succeeds"),
            Step::Reopen => self.reopen(),
            Step::Kill => self.kill(),
        }
    }

    fn work_in_background(&mut self) {
        if self.chance.below(8) == 0 {
            // Time passes: old messages are merged, and slices that reads met often go down.
            self.simulation.clock.advance(Duration::from_secs(1));
        }
        if self.is_changing && self.chance.below(20) == 0 {
            self.lay_out_anew();
        }
        for _ in 0..self.chance.below(3) {
            self.simulation.tasks.run_one();
        }
        if self.chance.below(2) == 0 {
            self.backups.carry_on();
        }
    }

    /// From runs to a B-tree and back, with filters of leaves and without.
    fn lay_out_anew(&self) {
        let option = |name: &str, values: &[&str]| {
            let value = values[self.chance.below(values.len() as u64) as usize];
            (name.to_owned(), value.to_owned())
        };
        let entries = vec![
            option("bufferPercent", &["0", "40"]),
            option("leafFilterBits", &["0", "10"]),
            option("pageSize", &["128B", "256B"]),
            option("largeValueSize", &["16B", "100B", "16KB"]),
            ("leafSize".to_owned(), "1KB".to_owned()),
            ("fanout".to_owned(), "4".to_owned()),
            ("runSize".to_owned(), "512B".to_owned()),
        ];
        let tree = self.trees.live(self.chance.below(6) as usize);
        let changed = self.engine().change_tree_options(tree, &TreeOptions { entries });
        changed.expect("the layout can be changed while the store is open");
    }

    /// A commit of all these writes, or of none, where a writer has one of the keys.
    fn commit(&mut self, tree: usize, writes: &[(Vec<u8>, Change)]) {
        let mut writer = self.engine().begin(Begin::WRITE).expect("a writer begins");
        let tree = self.trees.live(tree);
        for (key, change) in writes {
            if let Err(error) = change.write(&mut *writer, tree, key, Claim::Blind) {
                writer.rollback();
                self.answers.push(format!("a write to {key:?}: {:?}", error.kind()));
                return;
            }
        }
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    fn delete_range(&self, tree: usize, range: &KeyRange) {
        let mut writer = self.engine().begin(Begin::WRITE).expect("a writer begins");
        let range = self.writers.leave(range);
        let deleted = writer.delete_range(self.trees.live(tree), &range, BlockingMode::MayBlock);
        deleted.expect("nobody else writes there");
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    /// Reads in a tree, if there is such a reader.
    fn read(&mut self, reader: Reader, tree: usize, answer: impl Fn(&dyn Transaction, TreeId) -> String) {
        let newest;
        let begun = match reader {
            Reader::Newest => {
                newest = self.trees.begin(self.engine(), Begin::READ);
                Some(&newest)
            }
            Reader::Kept(at) => self.kept.get(at.min(self.kept.len().saturating_sub(1))),
            Reader::Writer(number) => self.writers.get(number),
        };
        let Some(begun) = begun else { return };
        let tree = self.trees.readable(tree, begun);
        self.answers.push(answer(&*begun.transaction, tree));
    }

    fn keep_snapshot(&mut self) {
        if self.kept.len() == 3 {
            self.let_oldest_go();
        }
        self.kept.push(self.trees.begin(self.engine(), Begin::READ));
    }

    /// Lets the oldest snapshot go, which reads before what was dropped while it was kept.
    fn let_oldest_go(&mut self) {
        let oldest = self.kept.remove(0);
        for tree in self.trees.dropped_since(&oldest) {
            self.seen.reads_of_dropped += 1;
            self.answers.push(reading::content(&*oldest.transaction, *tree));
        }
    }

    fn finish_backup(&mut self) {
        self.answers.extend(self.backups.finish(&self.simulation.environment, &self.options));
    }

    fn compact(&self, tree: Option<usize>) {
        let tree = tree.map(|tree| self.trees.live(tree));
        self.engine()
            .compact(tree.as_slice(), &pando_storage::Operation::default())
            .expect("trees are compacted");
    }

    fn check(&self) {
        let report = self.engine().check(&CheckRequest::default()).expect("the open store can be checked");
        assert!(report.is_sound(), "{:?}: {:?}", self.options, report.problems);
    }

    pub fn reopen(&mut self) {
        while !self.kept.is_empty() {
            self.let_oldest_go();
        }
        self.end_all();
        let engine = self.engine.take().expect("the store is open between steps");
        self.seen.add_figures(&engine);
        engine.close().expect("the store closes");
        drop(engine);
        self.open();
    }

    fn kill(&mut self) {
        if self.trees.has_scratch() {
            // The remains after a crash differ.
            return self.reopen();
        }
        // All that came before it in the log is there afterwards, trees that came and went too.
        self.commit(0, &[(b"killed".to_vec(), Change::Add(1))]);
        self.simulation.disk.kill();
        self.end_all();
        let engine = self.engine.take().expect("the store is open between steps");
        self.seen.add_figures(&engine);
        self.seen.kills += 1;
        drop(engine);
        self.open();
    }

    /// Ends whatever is under way.
    fn end_all(&mut self) {
        self.kept.clear();
        self.writers.end_all();
        self.backups.give_up();
    }

    /// Checks the store, which is not open, and opens it again.
    fn open(&mut self) {
        self.simulation.tasks.forget_all();
        self.trees.reopened();
        self.verify();
        let engine = Betree::open(&self.simulation.environment, Path::new(FOLDER), self.options.clone());
        self.engine = Some(engine.expect("the store opens"));
    }

    fn verify(&mut self) {
        let report =
            verify(&self.simulation.environment, Path::new(FOLDER)).expect("the store can be checked");
        assert!(report.is_sound(), "{:?}: {:?}", self.options, report.damage);
        self.seen.slices += report.trees.iter().map(|tree| tree.slices).sum::<u64>();
    }

    /// Reads all that there is, forwards and backwards, after the store was closed; and closes it once more.
    pub fn finish(&mut self, number: usize) {
        self.reopen();
        let scans = (0..self.trees.count()).flat_map(|tree| {
            let scan = |direction, batch| Step::Scan(Reader::Newest, tree, KeyRange::all(), direction, batch);
            [scan(Direction::Forward, 100), scan(Direction::Backward, 7)]
        });
        let scans: Vec<Step> = scans.collect();
        scans.iter().enumerate().for_each(|(at, scan)| self.step(number + at, scan));
        self.reopen();
    }
}
