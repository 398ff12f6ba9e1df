//! The progress of a long operation, as lists of operations show it: the step under way, and how much of it
//! is done.

use pando_environment::sync::LeafMutex;

use super::Operation;

/// The step under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressFigures {
    /// The work of the step.
    pub step: &'static str,
    /// Units of work that are done.
    pub done: u64,
    /// All units, about.
    pub total: u64,
}

/// The step that an operation shows.
pub(super) type ShownStep = LeafMutex<Option<ProgressFigures>>;

/// A step that is shown until this is dropped.
#[derive(Debug)]
pub struct ProgressStep<'o> {
    operation: &'o Operation,
    figures: ProgressFigures,
}

impl Operation {
    /// Shows that a step begins.
    pub fn begin_step(&self, step: &'static str, total: u64) -> ProgressStep<'_> {
        let begun = ProgressStep { operation: self, figures: ProgressFigures { step, done: 0, total } };
        begun.show();
        begun
    }

    /// The step under way; `None` for an operation that shows none.
    pub fn progress(&self) -> Option<ProgressFigures> {
        *self.step.lock()
    }
}

impl ProgressStep<'_> {
    /// Shows that so many units are done.
    pub fn set_done(&mut self, done: u64) {
        self.figures.done = done;
        self.show();
    }

    fn show(&self) {
        *self.operation.step.lock() = Some(self.figures);
    }
}

impl Drop for ProgressStep<'_> {
    fn drop(&mut self) {
        *self.operation.step.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shown_as_long_as_it_lasts() {
        let operation = Operation::default();
        assert_eq!(operation.progress(), None);
        let mut step = operation.begin_step("reading", 7);
        step.set_done(3);
        assert_eq!(operation.progress(), Some(ProgressFigures { step: "reading", done: 3, total: 7 }));
        drop(step);
        assert_eq!(operation.progress(), None);
    }
}
