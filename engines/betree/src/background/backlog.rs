//! The backlog: queues of trees for background work, one for each kind, and the tasks to wake for it.
//!
//! | queue | who adds | who takes |
//! |---|---|---|
//! | full | a commit that filled a partition | the flush scheduler, first |
//! | overdue | a flush that left paid work for later | partial flushes, before any other flush |
//! | largest | the flush scheduler, where memory runs short | the flush scheduler |
//! | aged | the look for old buffers | the flush scheduler, when nothing is urgent |
//! | range deletes | a commit that deletes a range; a look once a second | the application of range deletes |
//!
//! A queue holds trees, not work: the worker that takes a tree looks at its newest view. A tree stands in
//! each queue once.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_environment::TaskWaker;
use pando_environment::sync::{Mutex, OnceLock};

use crate::tree::tree_state::Tree;

/// Trees in the order in which they came, each once.
#[derive(Default)]
pub(crate) struct TreeQueue(Mutex<VecDeque<Arc<Tree>>>);

impl TreeQueue {
    /// Adds a tree at the end, unless it is there.
    pub(crate) fn add(&self, tree: &Arc<Tree>) {
        let mut trees = self.0.lock();
        if !trees.iter().any(|other| Arc::ptr_eq(other, tree)) {
            trees.push_back(Arc::clone(tree));
        }
    }

    /// Takes the first tree.
    pub(crate) fn take(&self) -> Option<Arc<Tree>> {
        self.0.lock().pop_front()
    }

    /// Takes the first tree that no thread is flushing. The others stay.
    pub(crate) fn take_idle(&self) -> Option<Arc<Tree>> {
        let mut trees = self.0.lock();
        let at = trees.iter().position(|tree| tree.try_lock_flush().is_some())?;
        trees.remove(at)
    }

    /// Puts a tree before all others, unless it is there.
    pub(crate) fn put_first(&self, tree: Arc<Tree>) {
        let mut trees = self.0.lock();
        if !trees.iter().any(|other| Arc::ptr_eq(other, &tree)) {
            trees.push_front(tree);
        }
    }

    /// Replaces all trees.
    pub(crate) fn replace(&self, trees: impl IntoIterator<Item = Arc<Tree>>) {
        *self.0.lock() = trees.into_iter().collect();
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Trees that have a full partition.
    pub(crate) full: TreeQueue,
    /// Trees with overdue work that flushes have paid for.
    pub(crate) overdue: TreeQueue,
    /// Trees with the largest buffers, the largest first; filled anew when it is empty.
    pub(crate) largest: TreeQueue,
    /// Trees that may have old buffers.
    pub(crate) aged: TreeQueue,
    /// Trees that may have a range delete to apply.
    pub(crate) range_deletes: TreeQueue,
    flushers: OnceLock<Vec<TaskWaker>>,
    checkpointer: OnceLock<TaskWaker>,
}

impl Backlog {
    /// Adds a tree that has a full partition, and wakes the flush tasks.
    pub(crate) fn ask_for_flush(&self, tree: &Arc<Tree>) {
        self.full.add(tree);
        self.wake_flushers();
    }

    /// Adds a tree if flushes have paid for some of what is overdue in it.
    pub(crate) fn note_overdue(&self, tree: &Arc<Tree>) {
        if tree.flush_debt.lock().is_due() {
            self.overdue.add(tree);
        }
    }

    pub(crate) fn set_flushers(&self, wakers: Vec<TaskWaker>) {
        assert!(self.flushers.set(wakers).is_ok(), "the flush tasks are started once");
    }

    pub(crate) fn set_checkpointer(&self, waker: TaskWaker) {
        assert!(self.checkpointer.set(waker).is_ok(), "the checkpoint task is started once");
    }

    pub(crate) fn wake_flushers(&self) {
        for flusher in self.flushers.get().into_iter().flatten() {
            flusher.wake();
        }
    }

    pub(crate) fn wake_checkpointer(&self) {
        if let Some(checkpointer) = self.checkpointer.get() {
            checkpointer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use pando_storage::{Lsn, TreeId};

    use super::*;
    use crate::options::tree_settings::TreeSettings;
    use crate::tree::view::TreeView;

    fn tree(number: u32) -> Arc<Tree> {
        let view = TreeView::empty(Lsn::ZERO);
        Arc::new(Tree::new(TreeId::new(number), String::new(), Vec::new(), TreeSettings::default(), view))
    }

    #[test]
    fn a_tree_stands_in_a_queue_once_and_one_that_is_being_flushed_stays_there() {
        let backlog = Backlog::default();
        let (first, second) = (tree(1), tree(2));
        [&first, &second, &first].into_iter().for_each(|tree| backlog.full.add(tree));
        assert_eq!(backlog.full.len(), 2);
        let flushing = first.lock_flush();
        assert_eq!(backlog.full.take_idle().map(|tree| tree.id), Some(TreeId::new(2)));
        assert!(backlog.full.take_idle().is_none());
        drop(flushing);
        backlog.full.put_first(second);
        assert_eq!(backlog.full.take().map(|tree| tree.id), Some(TreeId::new(2)));
        assert_eq!(backlog.full.take().map(|tree| tree.id), Some(TreeId::new(1)));
    }
}
