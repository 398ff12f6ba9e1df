//! An open store: its parts, and how they are put together. The engine's faces (transactions, recovery,
//! backup, verification, statistics) hold a store; no part does, so that each part names what it uses.
//!
//! ```text
//!  faces        engine  transaction  recovery  backup  verify  statistics
//!                                   |
//!  store        ------------------------------------------------------------
//!  commits      Committer -> BackPressure -> Checkpointer, FlushScheduler
//!  background   FlushScheduler -> PartialFlushes, RangeDeleteApplier, AgedBuffers -> BufferFlusher
//!               Maintenance -> Checkpointer, MemorySharing, SpaceReturn      Compaction   KeyRewriting
//!  state        TreeRegistry  CommitGate  Visibility  LargeCommits  WriteBuffers  Backlog  FlushMonitor
//!  below        Blocks (page cache and data file)  LiveOptions  Counters
//! ```

pub(crate) mod settings;

use std::sync::Arc;

use pando_environment::Environment;
use pando_environment::sync::Mutex;
use pando_storage::SpillSpace;

use crate::background::back_pressure::BackPressure;
use crate::background::backlog::Backlog;
use crate::background::buffer_age::{AgedBuffers, Ages};
use crate::background::buffer_flush::BufferFlusher;
use crate::background::checkpointer::{CheckpointState, Checkpointer};
use crate::background::compaction::Compaction;
use crate::background::dropped_trees::DroppedTrees;
use crate::background::flush_monitor::FlushMonitor;
use crate::background::flush_scheduler::FlushScheduler;
use crate::background::key_rewriting::{KeyRewriting, Progress};
use crate::background::maintenance::Maintenance;
use crate::background::memory_sharing::MemorySharing;
use crate::background::partial_flush::{Idle, PartialFlushes};
use crate::background::range_delete_applier::RangeDeleteApplier;
use crate::background::space_return::SpaceReturn;
use crate::background::write_buffers::WriteBuffers;
use crate::base::LockWaits;
use crate::commit::Committer;
use crate::commit_order::{CommitGate, LargeCommits, Visibility};
use crate::counters::Counters;
use crate::memory::ResidentLimit;
use crate::options::Options;
use crate::options::live_options::LiveOptions;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;

/// See the module's head.
pub(crate) struct Store {
    pub(crate) environment: Environment,
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) waits: Arc<LockWaits>,
    pub(crate) spill: Arc<SpillSpace>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) large: Arc<LargeCommits>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) monitor: Arc<FlushMonitor>,
    pub(crate) memory: Arc<MemorySharing>,
    pub(crate) range_delete_applier: Arc<RangeDeleteApplier>,
    pub(crate) scheduler: Arc<FlushScheduler>,
    pub(crate) space_return: Arc<SpaceReturn>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) back_pressure: Arc<BackPressure>,
    pub(crate) maintenance: Maintenance,
    pub(crate) compaction: Compaction,
    pub(crate) key_rewriting: KeyRewriting,
    pub(crate) committer: Committer,
}

/// Clones the named parts into a new one.
macro_rules! part {
    ($part:ident { $($shared:ident),* $(; $own:ident: $value:expr)* $(,)? }) => {
        $part { $($shared: $shared.clone(),)* $($own: $value,)* }
    };
}

impl Store {
    /// The parts of a store whose log is not there yet.
    pub(crate) fn new(
        environment: Environment,
        options: Options,
        blocks: Blocks,
        spill: Arc<SpillSpace>,
    ) -> Store {
        let clock = Arc::clone(environment.clock());
        let runs_by_itself = environment.spawner().runs_by_itself();
        let options = Arc::new(LiveOptions::new(options));
        let blocks = Arc::new(blocks);
        let counters = Arc::new(Counters::default());
        let waits = Arc::new(LockWaits::new(&clock));
        let trees = Arc::new(TreeRegistry::new(Arc::clone(&waits)));
        let gate = Arc::new(CommitGate::new(Arc::clone(&waits)));
        let visibility = Arc::new(Visibility::default());
        let large = Arc::new(LargeCommits::default());
        let backlog = Arc::new(Backlog::default());
        let monitor = Arc::new(FlushMonitor::new(&clock));
        let buffers = Arc::new(WriteBuffers::new(&options, &trees, &gate, &visibility, &backlog));
        let memory = Arc::new(part!(MemorySharing {
            options, blocks, trees, visibility, buffers, spill; resident: ResidentLimit::default()
        }));
        let flusher = Arc::new(part!(BufferFlusher {
            clock,
            options,
            blocks,
            gate,
            visibility,
            buffers,
            backlog,
            monitor,
            counters
        }));
        let partial_flushes = Arc::new(part!(PartialFlushes {
            blocks, trees, visibility, backlog, flusher, counters; idle: Idle::default()
        }));
        let range_delete_applier = Arc::new(part!(RangeDeleteApplier {
            blocks,
            trees,
            gate,
            visibility,
            backlog,
            flusher,
            counters
        }));
        let aged_buffers = Arc::new(part!(AgedBuffers {
            clock, options, trees, gate, backlog, flusher, counters; ages: Ages::default()
        }));
        let scheduler = Arc::new(part!(FlushScheduler {
            trees,
            buffers,
            backlog,
            monitor,
            memory,
            flusher,
            partial_flushes,
            aged_buffers,
            range_delete_applier
        }));
        let space_return = Arc::new(SpaceReturn::new(&blocks, &trees, &buffers, &counters));
        let dropped_trees = part!(DroppedTrees { blocks, gate, buffers });
        let checkpointer = Arc::new(part!(Checkpointer {
            clock, options, blocks, trees, gate, visibility, large, buffers, monitor, flusher, partial_flushes,
            aged_buffers, space_return, counters, waits;
            dropped_trees: dropped_trees; state: CheckpointState::default()
        }));
        let back_pressure = Arc::new(part!(BackPressure {
            clock,
            runs_by_itself,
            options,
            gate,
            buffers,
            backlog,
            monitor,
            scheduler,
            checkpointer,
            counters
        }));
        let maintenance = part!(Maintenance {
            options,
            visibility,
            memory,
            aged_buffers,
            range_delete_applier,
            partial_flushes,
            space_return,
            checkpointer
        });
        let compaction =
            part!(Compaction { blocks, trees, gate, flusher, partial_flushes, range_delete_applier });
        let key_rewriting = part!(KeyRewriting {
            options, blocks, trees, gate, buffers, checkpointer, counters;
            progress: Progress::default(); work: Mutex::default()
        });
        let committer = part!(Committer {
            environment,
            runs_by_itself,
            options,
            blocks,
            trees,
            gate,
            visibility,
            large,
            buffers,
            backlog,
            monitor,
            scheduler,
            range_delete_applier,
            checkpointer,
            back_pressure,
            counters
        });
        Store {
            environment,
            options,
            blocks,
            counters,
            waits,
            spill,
            trees,
            gate,
            visibility,
            large,
            buffers,
            backlog,
            monitor,
            memory,
            range_delete_applier,
            scheduler,
            space_return,
            checkpointer,
            back_pressure,
            maintenance,
            compaction,
            key_rewriting,
            committer,
        }
    }
}
