//! Coverage: the features that a configuration exercised. A feature that it never met was not tested.

use std::ops::AddAssign;

use pando_betree::Betree;
use pando_storage::Engine;

#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Slices that wait in runs, counted whenever the store was closed.
    pub slices: u64,
    /// Times that writes of a transaction went out of memory.
    pub spilled_layers: u64,
    pub large_commits: u64,
    pub conflicts: u64,
    pub loaded_leaves: u64,
    pub reads_of_dropped: u64,
    pub kills: u64,
    pub full_backups: u64,
    pub incremental_backups: u64,
}

impl Seen {
    /// Adds the counters of an engine since it was opened.
    pub fn add_figures(&mut self, engine: &Betree) {
        let figures = engine.statistics();
        let figure = |name| figures.get(name).expect("the engine counts it");
        self.spilled_layers += figure("transactions.spilled_layers");
        self.large_commits += figure("commits.large");
        self.conflicts += figure("commits.conflicts");
        self.loaded_leaves += figure("loads.leaves");
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.slices += other.slices;
        self.spilled_layers += other.spilled_layers;
        self.large_commits += other.large_commits;
        self.conflicts += other.conflicts;
        self.loaded_leaves += other.loaded_leaves;
        self.reads_of_dropped += other.reads_of_dropped;
        self.kills += other.kills;
        self.full_backups += other.full_backups;
        self.incremental_backups += other.incremental_backups;
    }
}
