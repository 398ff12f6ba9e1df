//! Partial flushes: steps that take messages pending in inner nodes further down, between flushes of buffers.
//!
//! 1. *Overdue*: a flush takes a bounded number of bytes down and leaves the rest for later
//!    ([`crate::tree::flush_debt`]). These messages go down before the next flush, as far as there is a quota
//!    for them.
//! 2. *Idle*: when nobody commits, all overdue messages go down, and so do slices and buffers that reads had
//!    to merge again and again. A store that is only read becomes as quick as if it had no buffers. The next
//!    commit ends this. Only one flush task does it.
//!
//! Once a second the checkpoint task checks whether the store is quiet, and collects the wanted places. The
//! flush tasks do the steps, one child each.

use pando_environment::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pando_environment::sync::{Mutex, MutexGuard};

use super::backlog::Backlog;
use super::buffer_flush::{BufferFlusher, Progress};
use crate::commit_order::Visibility;
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::tree::buffer::SharedBuffer;
use crate::tree::flush::FlushInput;
use crate::tree::flush_debt::{Moved, Payment, Wanted, wanted_by_reads};
use crate::tree::messages::Messages;
use crate::tree::partial_flush_step::{PartialFlush, Place, partial_flush};
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;

/// A flush for idle times.
enum WantedFlush {
    /// All overdue messages of a tree.
    Overdue(Arc<Tree>),
    Child(Arc<Tree>, Wanted),
    Buffer(Arc<Tree>, Arc<SharedBuffer>),
}

/// The state of idle times.
#[derive(Default)]
pub(crate) struct Idle {
    /// Commits and reads at the last look.
    commits: AtomicU64,
    reads: AtomicU64,
    is_quiet: AtomicBool,
    /// The last first.
    wanted: Mutex<Vec<WantedFlush>>,
    /// Held by the flush task that does such a flush: one at a time, so that readers have the other
    /// processors.
    flushing: Mutex<()>,
}

/// See the module's head.
pub(crate) struct PartialFlushes {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) flusher: Arc<BufferFlusher>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) idle: Idle,
}

impl PartialFlushes {
    /// Looks whether nobody has committed since the last look, and collects the flushes for idle times.
    pub(crate) fn look_for_idle(&self) {
        let idle = &self.idle;
        let commits = self.counters.commits.get();
        let reads = self.counters.gets.get() + self.counters.scans.get();
        let is_quiet = idle.commits.swap(commits, Ordering::Relaxed) == commits;
        let was_read = idle.reads.swap(reads, Ordering::Relaxed) != reads;
        idle.is_quiet.store(is_quiet, Ordering::Relaxed);
        if !is_quiet || !idle.wanted.lock().is_empty() {
            return;
        }
        let mut wanted = Vec::new();
        for tree in self.trees.all().values() {
            if was_read {
                let view = tree.view();
                wanted.extend(
                    wanted_by_reads(&view)
                        .into_iter()
                        .rev()
                        .map(|child| WantedFlush::Child(Arc::clone(tree), child)),
                );
                let buffers = view.partitions.iter().map(|partition| &partition.active);
                let buffers = buffers.filter(|buffer| buffer.is_wanted() && !buffer.is_empty());
                wanted
                    .extend(buffers.map(|buffer| WantedFlush::Buffer(Arc::clone(tree), Arc::clone(buffer))));
            }
            if tree.flush_debt.lock().bytes() > 0 {
                wanted.push(WantedFlush::Overdue(Arc::clone(tree)));
            }
        }
        if !wanted.is_empty() {
            *idle.wanted.lock() = wanted;
            self.backlog.wake_flushers();
        }
    }

    /// Whether nobody has committed between the last two looks, nor since.
    pub(crate) fn is_quiet(&self) -> bool {
        self.idle.is_quiet.load(Ordering::Relaxed)
            && self.counters.commits.get() == self.idle.commits.load(Ordering::Relaxed)
    }

    /// Does one flush for idle times, if nobody commits.
    pub(crate) fn flush_wanted(&self) -> Result<Progress, BetreeError> {
        let idle = &self.idle;
        let Some(_alone) = idle.flushing.try_lock() else { return Ok(Progress::Nothing) };
        while self.is_quiet() {
            let Some(wanted) = idle.wanted.lock().pop() else { return Ok(Progress::Nothing) };
            let flushed = match &wanted {
                WantedFlush::Overdue(tree) => self.flush_next_overdue(tree, Payment::Free),
                WantedFlush::Child(tree, wanted) => match tree.try_lock_flush() {
                    Some(flushing) => {
                        let place = Place { key: &wanted.key, height: wanted.height };
                        self.flush_at(tree, &flushing, place, PartialFlush::Child, Payment::Free)
                    }
                    None => Ok(Progress::Nothing),
                },
                WantedFlush::Buffer(tree, buffer) => Ok(self.flush_wanted_buffer(tree, buffer)?),
            };
            // No commit waits for it. After a failure it is left until the next look.
            let Ok(progress) = flushed else { break };
            if progress == Progress::Made && matches!(wanted, WantedFlush::Overdue(_)) {
                idle.wanted.lock().push(wanted);
            }
            if progress == Progress::Made {
                self.counters.idle_flushes.add(1);
                return Ok(Progress::Made);
            }
        }
        idle.wanted.lock().clear();
        Ok(Progress::Nothing)
    }

    fn flush_wanted_buffer(
        &self,
        tree: &Arc<Tree>,
        buffer: &Arc<SharedBuffer>,
    ) -> Result<Progress, BetreeError> {
        let Some(flushing) = tree.try_lock_flush() else { return Ok(Progress::Nothing) };
        let view = tree.view_owned();
        let Some(at) = view.partitions.iter().position(|partition| Arc::ptr_eq(&partition.active, buffer))
        else {
            return Ok(Progress::Nothing);
        };
        self.flusher.flush_partition(tree, &flushing, &view, at)?;
        Ok(Progress::Made)
    }

    /// Flushes some overdue messages for which there is a quota further down, if there are any.
    pub(crate) fn flush_overdue(&self) -> Result<Progress, BetreeError> {
        let Some(tree) = self.backlog.overdue.take() else { return Ok(Progress::Nothing) };
        let progress = self.flush_next_overdue(&tree, Payment::Quota);
        self.backlog.note_overdue(&tree);
        progress
    }

    /// A step at the next place with messages to flush. Other flushes have emptied many places since they
    /// were noted.
    fn flush_next_overdue(&self, tree: &Arc<Tree>, payment: Payment) -> Result<Progress, BetreeError> {
        // The task that is flushing the tree now puts it on the backlog again.
        let Some(flushing) = tree.try_lock_flush() else { return Ok(Progress::Nothing) };
        let places = tree.flush_debt.lock().places();
        for _ in 0..places {
            let next = tree.flush_debt.lock().take(payment);
            let Some(overdue) = next else { break };
            let place = Place { key: &overdue.key, height: overdue.height };
            if self.flush_at(tree, &flushing, place, PartialFlush::Due, payment)? == Progress::Made {
                return Ok(Progress::Made);
            }
        }
        Ok(Progress::Nothing)
    }

    pub(crate) fn flush_at(
        &self,
        tree: &Tree,
        _flushing: &MutexGuard<'_, ()>,
        place: Place<'_>,
        what: PartialFlush,
        payment: Payment,
    ) -> Result<Progress, BetreeError> {
        let before = tree.view_owned();
        let retained = self.visibility.retained();
        let retained = retained.with_ranges(Arc::clone(&tree.view().ranges));
        let input = FlushInput {
            blocks: &self.blocks,
            tree: tree.id,
            settings: tree.settings(),
            version: &before.version,
            messages: &Messages::default(),
            retained: &retained,
        };
        // Its outcome says nothing about the flushes that commits wait for.
        let mut flushed =
            partial_flush(input, place, what).inspect_err(|_| self.counters.failed_flushes.add(1))?;
        drop(before);
        let overdue = std::mem::take(&mut flushed.overdue);
        let paid = match payment {
            Payment::Quota => flushed.figures.moved,
            Payment::Free => Moved::default(),
        };
        tree.flush_debt.lock().note(0, paid, overdue);
        if flushed.replaced_nodes.is_empty() {
            return Ok(Progress::Nothing);
        }
        self.counters.partial_flushes.add(1);
        self.flusher.count_flush(flushed.figures);
        tree.growth.note(flushed.figures.leaves);
        tree.install(&self.blocks, None, flushed);
        Ok(Progress::Made)
    }
}
