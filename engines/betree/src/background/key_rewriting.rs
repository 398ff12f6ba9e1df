//! Key rewriting: brings all of a store under its newest data key, and forgets the older ones.
//!
//! A rotation adds a data key while the store is closed. From then on blocks and log records are sealed under
//! it. Those of before need the older keys, until they are gone.
//!
//! # Steps
//! 1. *Passes*. A pass goes through all trees by key and moves the blocks that were born up to the generation
//!    of the rotation ([`super::relocation`]). A pass that has found none to move is the last.
//! 2. Two checkpoints, after everything that was buffered is flushed. Then neither superblock reaches an old
//!    block, nor begins its replay before the records of this process.
//! 3. Wait until no reader holds a version of before, and no backup a generation.
//! 4. Forget the older keys.
//!
//! # After a crash or a restart
//! There is no record of the progress. A store with more than one data key begins with a pass, which reads
//! the directories of rewritten leaves and moves the rest.
//!
//! # Damage
//! A leaf, slice or node that cannot be read keeps the older keys. After an hour another pass looks whether
//! it is gone.
//!
//! This has a task of its own, which a store with one data key does not start: a key command may take long,
//! and checkpoints must not wait for it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use pando_environment::Step;
use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_storage::{ErrorKind, Lsn, TreeId};

use super::checkpointer::Checkpointer;
use super::relocation::{Chosen, MoveLimits, Relocated, relocate};
use super::write_buffers::WriteBuffers;
use crate::base::Generation;
use crate::commit_order::CommitGate;
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::options::live_options::LiveOptions;
use crate::space::{Shutdown, SpaceError};
use crate::tree::node::Child;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeVersion;

/// The time that it rests while commits wait for flushes, or its rate is 0.
const PAUSE: Duration = Duration::from_millis(200);
/// The time between two looks for readers and backups, and after a failure.
const RETRY: Duration = Duration::from_secs(2);
/// The time until another pass looks at damaged blocks.
const DAMAGE_RETRY: Duration = Duration::from_secs(3_600);
/// Bytes of one step: it holds the lock of flushes of a tree.
const STEP_BYTES_MAX: u64 = 4 << 20;

/// The phase that the work is in; the numbers are those of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    /// There is one data key.
    Idle = 0,
    /// A pass is under way.
    Rewriting = 1,
    /// Checkpoints, readers and backups are waited for.
    Settling = 2,
    /// Damaged blocks keep the older keys.
    Held = 3,
}

/// Progress, for statistics.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    phase: AtomicU64,
    passes: AtomicU64,
    /// Bytes of keys and values that the pass has looked at, and those of all trees at its beginning.
    done: AtomicU64,
    total: AtomicU64,
    damaged: AtomicU64,
}

/// See the module's head.
pub(crate) struct KeyRewriting {
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) progress: Progress,
    pub(crate) work: Mutex<Option<Work>>,
}

/// What is to be done, and how far it is.
pub(crate) struct Work {
    /// The newest data key.
    number: u32,
    /// Blocks born later are under that key.
    outdated: Generation,
    /// The last record that another process may have written.
    opened: Lsn,
    stage: Stage,
}

enum Stage {
    Pass(Pass),
    Settle {
        /// The generation that was built when the last pass ended.
        built: Generation,
        readers: Vec<Weak<TreeVersion>>,
    },
}

/// A pass, by number of tree and by key.
struct Pass {
    tree: TreeId,
    from: Vec<u8>,
    moved: u64,
    damaged: u64,
}

impl KeyRewriting {
    /// Whether a store that was opened has older data keys. The caller starts the task then, before which no
    /// checkpoint is made.
    pub(crate) fn begin(&self) -> bool {
        let Some(vault) = self.blocks.store().vault() else { return false };
        let keys = vault.data_keys();
        let Some((newest, _older)) = keys.split_last().filter(|(_, older)| !older.is_empty()) else {
            return false;
        };
        let outdated = Generation::new(newest.since_generation);
        self.blocks.store().outdate(outdated);
        let (number, opened) = (newest.number, self.gate.last_lsn());
        *self.work.lock() = Some(Work { number, outdated, opened, stage: Stage::Pass(self.new_pass()) });
        true
    }

    /// The figures of progress, with their names in statistics.
    pub(crate) fn figures(&self) -> [(&'static str, u64); 5] {
        let progress = &self.progress;
        [
            ("encryption.rewrite_phase", &progress.phase),
            ("encryption.rewrite_passes", &progress.passes),
            ("encryption.rewrite_done_bytes", &progress.done),
            ("encryption.rewrite_total_bytes", &progress.total),
            ("encryption.rewrite_damaged", &progress.damaged),
        ]
        .map(|(name, figure)| (name, figure.load(Ordering::Relaxed)))
    }

    /// One step of the task.
    pub(crate) fn step(&self) -> Step {
        let mut held = self.work.lock();
        let Some(work) = &mut *held else { return Step::Done };
        if self.gate.check_open().is_err() {
            return Step::Done;
        }
        let outcome = match &mut work.stage {
            Stage::Pass(pass) => match self.move_some(work.outdated, pass) {
                Ok(Some(step)) => Ok(step),
                Ok(None) => self.end_pass(work),
                Err(error) => Err(error),
            },
            Stage::Settle { .. } => self.settle(work),
        };
        match outcome {
            Ok(Step::Done) => {
                self.set_phase(Phase::Idle);
                *held = None;
                Step::Done
            }
            Ok(step) => step,
            Err(_) => {
                self.counters.failed_rewrites.add(1);
                Step::Wait(RETRY)
            }
        }
    }

    fn set_phase(&self, phase: Phase) {
        self.progress.phase.store(phase as u64, Ordering::Relaxed);
    }

    fn new_pass(&self) -> Pass {
        let content = |tree: &Arc<Tree>| tree.view().version.root.as_ref().map_or(0, Child::content_bytes);
        self.progress.total.store(self.trees.all().values().map(content).sum(), Ordering::Relaxed);
        self.progress.done.store(0, Ordering::Relaxed);
        self.progress.passes.fetch_add(1, Ordering::Relaxed);
        self.set_phase(Phase::Rewriting);
        Pass { tree: TreeId::new(0), from: Vec::new(), moved: 0, damaged: 0 }
    }

    /// Moves a little; `None` at the end of the pass.
    fn move_some(&self, outdated: Generation, pass: &mut Pass) -> Result<Option<Step>, BetreeError> {
        let rate = self.options.key_rewrite_rate;
        if rate == 0 || self.buffers.bytes() > self.buffers.flush_from() {
            return Ok(Some(Step::Wait(PAUSE)));
        }
        let trees = self.trees.in_order();
        // Dropped trees go by themselves.
        let mut left = trees.iter().filter(|tree| tree.id >= pass.tree && !tree.is_dropped());
        let Some(tree) = left.next() else { return Ok(None) };
        if tree.id > pass.tree {
            (pass.tree, pass.from) = (tree.id, Vec::new());
        }
        let bytes = (rate / 8).clamp(1, STEP_BYTES_MAX);
        let outcome = {
            let _flushing = tree.lock_flush();
            relocate(
                &self.blocks,
                tree,
                MoveLimits { chosen: Chosen::BornBy(outdated), bytes, from: &pass.from },
            )
        };
        let outcome = match outcome {
            // A node that cannot be read hides the rest of the tree.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                Relocated { damaged: 1, ..Relocated::default() }
            }
            outcome => outcome?,
        };
        pass.moved += outcome.moved;
        pass.damaged += outcome.damaged;
        self.counters.rewritten_bytes.add(outcome.moved);
        self.progress.done.fetch_add(outcome.examined, Ordering::Relaxed);
        match outcome.next {
            Some(next) => pass.from = next,
            None => (pass.tree, pass.from) = (TreeId::new(tree.id.get() + 1), Vec::new()),
        }
        let used = outcome.moved + outcome.read;
        Ok(Some(Step::Wait(Duration::from_secs_f64(used as f64 / rate as f64))))
    }

    fn end_pass(&self, work: &mut Work) -> Result<Step, BetreeError> {
        let Stage::Pass(pass) = &work.stage else { return Ok(Step::Again) };
        self.progress.damaged.store(pass.damaged, Ordering::Relaxed);
        let (has_moved, is_damaged) = (pass.moved > 0, pass.damaged > 0);
        if is_damaged && !has_moved {
            work.stage = Stage::Pass(self.new_pass());
            self.set_phase(Phase::Held);
            return Ok(Step::Wait(DAMAGE_RETRY));
        }
        if has_moved {
            work.stage = Stage::Pass(self.new_pass());
            return Ok(Step::Again);
        }
        let built = self.blocks.store().generation();
        work.stage = Stage::Settle { built, readers: self.checkpointer.versions_of_readers() };
        self.set_phase(Phase::Settling);
        Ok(Step::Again)
    }

    /// Makes what has moved durable; forgets the older keys once none needs them.
    fn settle(&self, work: &mut Work) -> Result<Step, BetreeError> {
        let Stage::Settle { built, readers } = &mut work.stage else { return Ok(Step::Again) };
        let store = self.blocks.store();
        if !store.has_left_behind(*built, work.opened) {
            self.checkpointer.flush_everything()?;
            // A checkpoint that was under way may have captured trees before the last pass ended.
            for _ in 0..2 {
                self.checkpointer.checkpoint(Shutdown::Running)?;
            }
            if !store.has_left_behind(*built, work.opened) {
                return Ok(Step::Wait(RETRY));
            }
        }
        self.checkpointer.reclaim();
        readers.retain(|version| version.strong_count() > 0);
        // A generation that is pinned from now on is a new one.
        if !readers.is_empty() || store.is_pinned() {
            return Ok(Step::Wait(RETRY));
        }
        if let Some(vault) = store.vault() {
            vault.forget_before(work.number).map_err(SpaceError::from)?;
        }
        Ok(Step::Done)
    }
}
