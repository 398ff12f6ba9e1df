//! Maintenance: the work of the checkpoint task once a second beside checkpoints. It looks for work and puts
//! it on the backlog, shares memory out anew, and gives room back to the device.

use std::sync::Arc;
use std::time::Duration;

use pando_environment::Step;

use super::buffer_age::AgedBuffers;
use super::checkpointer::Checkpointer;
use super::memory_sharing::MemorySharing;
use super::partial_flush::PartialFlushes;
use super::range_delete_applier::RangeDeleteApplier;
use super::space_return::SpaceReturn;
use crate::commit_order::Visibility;
use crate::options::live_options::LiveOptions;
use crate::space::Shutdown;

/// The time between two looks of a task that is not woken.
const TICK: Duration = Duration::from_secs(1);
/// The time that it rests after a failed checkpoint.
const RETRY: Duration = Duration::from_secs(2);

/// See the module's head.
pub(crate) struct Maintenance {
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) memory: Arc<MemorySharing>,
    pub(crate) aged_buffers: Arc<AgedBuffers>,
    pub(crate) range_delete_applier: Arc<RangeDeleteApplier>,
    pub(crate) partial_flushes: Arc<PartialFlushes>,
    pub(crate) space_return: Arc<SpaceReturn>,
    pub(crate) checkpointer: Arc<Checkpointer>,
}

impl Maintenance {
    /// One step of the checkpoint task.
    pub(crate) fn step(&self) -> Step {
        self.visibility.refresh();
        self.memory.share_out();
        self.checkpointer.reclaim();
        self.aged_buffers.look_for_old();
        self.range_delete_applier.look_for_due();
        self.partial_flushes.look_for_idle();
        self.space_return.return_some();
        self.checkpointer.shorten_log();
        if !self.checkpointer.is_due() {
            return Step::Wait(TICK.min(self.options.checkpoint_period));
        }
        match self.checkpointer.checkpoint(Shutdown::Running) {
            Ok(()) => Step::Wait(TICK.min(self.options.checkpoint_period)),
            Err(_) => Step::Wait(RETRY),
        }
    }
}
