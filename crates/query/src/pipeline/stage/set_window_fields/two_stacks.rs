//! Two stacks of states: the result of an accumulator over a window that slides, without a removal.
//!
//! 1. The front stack has a state for each document at the front of the window, of this document and all
//!    behind it in the stack. So a document leaves by a pop.
//! 2. The back has one state of all documents behind the stack. It moves to the front when the stack is
//!    empty.
//! 3. The result is that of the state on top of the stack and the back together.
//!
//! Each document is taken in twice, and no number is ever subtracted: results do not drift. Sums and means
//! keep the numbers of the back, so that each document is read once and let go.

use pando_document::Number;

use super::bounds::Window;
use super::reader::Reader;
use crate::error::QueryError;
use crate::expression::accumulator::{Accumulator, Avg, Sum, absorb};
use crate::expression::{Evaluated, Frame};
use crate::pipeline::accumulator::{AccumulatorCall, StateShape};
use crate::sort::Check;

/// Documents between two checks of the operation.
const DOCUMENTS_A_CHECK: usize = 256;
/// Memory of a state beside the values that it holds.
const STATE_BYTES: usize = 160;

/// The stacks of an accumulator. Those of the commonest ones have their states in them as they are.
pub(super) enum SlidingStates {
    Sums(TwoStacks<Sum>),
    Averages(TwoStacks<Avg>),
    Others(TwoStacks<Box<dyn Accumulator>>),
}

/// See the module's head.
pub(super) struct TwoStacks<S: SlidingState> {
    front: Vec<S>,
    back: Option<S>,
    /// The parts of the documents in the back that are kept.
    kept: Vec<S::Kept>,
    /// The number of the first document of the window that was taken in, that of the first in the back, and
    /// that behind the last.
    begin: usize,
    middle: usize,
    end: usize,
}

/// A state of a window that slides.
pub(super) trait SlidingState: Sized {
    /// The part of a document that is kept, to take it in once more.
    type Kept: Copy;

    /// Whether documents that were taken in are read again.
    const READS_AGAIN: bool;

    fn start(call: &AccumulatorCall) -> Result<Self, QueryError>;

    /// Reads a document.
    fn keep(taking: &mut Taking<'_>, at: usize, check: Check<'_>) -> Result<Self::Kept, QueryError>;

    /// Takes in a document, of which this is kept.
    fn take(
        &mut self,
        kept: Self::Kept,
        taking: &mut Taking<'_>,
        at: usize,
        check: Check<'_>,
    ) -> Result<(), QueryError>;

    /// Takes in the state of later documents.
    fn absorb(&mut self, later: &Self) -> Result<(), QueryError>;

    fn finish(&self) -> Result<Evaluated<'static>, QueryError>;
}

/// Taking documents of the partition into states.
pub(super) struct Taking<'t> {
    pub(super) call: &'t AccumulatorCall,
    pub(super) reader: &'t mut Reader,
}

impl Taking<'_> {
    /// Takes a document in; false behind the last.
    fn take(&mut self, state: &mut dyn Accumulator, at: usize, check: Check<'_>) -> Result<bool, QueryError> {
        let call = self.call;
        let Some(document) = self.reader.document(at, check)? else { return Ok(false) };
        call.feed(state, &mut Frame::new(document), 1)?;
        Ok(true)
    }

    /// Takes the documents from one number up to another in.
    pub(super) fn take_all(
        mut self,
        state: &mut dyn Accumulator,
        (from, to): (usize, usize),
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        for at in from..to {
            if at.is_multiple_of(DOCUMENTS_A_CHECK) {
                check()?;
            }
            if !self.take(state, at, check)? {
                break;
            }
        }
        Ok(())
    }

    /// The number that a document gives; `None` of another value.
    fn number(&mut self, at: usize, check: Check<'_>) -> Result<Option<Number>, QueryError> {
        match self.reader.document(at, check)? {
            Some(document) => self.call.argument_number(document),
            None => Ok(None),
        }
    }
}

/// A state that takes in numbers alone.
pub(super) trait NumberState: Accumulator + Default {
    fn take_number(&mut self, number: Number);
    fn join(&mut self, later: &Self);
}

impl NumberState for Sum {
    fn take_number(&mut self, number: Number) {
        self.add_number(number);
    }

    fn join(&mut self, later: &Sum) {
        Sum::absorb(self, later);
    }
}

impl NumberState for Avg {
    fn take_number(&mut self, number: Number) {
        self.add_number(number);
    }

    fn join(&mut self, later: &Avg) {
        Avg::absorb(self, later);
    }
}

impl<S: NumberState> SlidingState for S {
    type Kept = Option<Number>;
    const READS_AGAIN: bool = false;

    fn start(_: &AccumulatorCall) -> Result<S, QueryError> {
        Ok(S::default())
    }

    fn keep(taking: &mut Taking<'_>, at: usize, check: Check<'_>) -> Result<Option<Number>, QueryError> {
        taking.number(at, check)
    }

    fn take(
        &mut self,
        kept: Option<Number>,
        _: &mut Taking<'_>,
        _: usize,
        _: Check<'_>,
    ) -> Result<(), QueryError> {
        kept.into_iter().for_each(|number| self.take_number(number));
        Ok(())
    }

    fn absorb(&mut self, later: &S) -> Result<(), QueryError> {
        self.join(later);
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        self.finish_in_sliding_window()
    }
}

impl SlidingState for Box<dyn Accumulator> {
    type Kept = ();
    const READS_AGAIN: bool = true;

    fn start(call: &AccumulatorCall) -> Result<Box<dyn Accumulator>, QueryError> {
        call.start_in_sliding_window()
    }

    fn keep(_: &mut Taking<'_>, _: usize, _: Check<'_>) -> Result<(), QueryError> {
        Ok(())
    }

    fn take(
        &mut self,
        (): (),
        taking: &mut Taking<'_>,
        at: usize,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        taking.take(self.as_mut(), at, check).map(|_| ())
    }

    fn absorb(&mut self, later: &Box<dyn Accumulator>) -> Result<(), QueryError> {
        absorb(self.as_mut(), later.as_ref())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        self.as_ref().finish_in_sliding_window()
    }
}

impl SlidingStates {
    /// Empty stacks of an accumulator whose states are small.
    pub(super) fn of(call: &AccumulatorCall) -> SlidingStates {
        match call.state_shape() {
            StateShape::Sum => SlidingStates::Sums(TwoStacks::new()),
            StateShape::Average => SlidingStates::Averages(TwoStacks::new()),
            StateShape::Count | StateShape::Other => SlidingStates::Others(TwoStacks::new()),
        }
    }

    /// The result over a window, which is not in front of the last one.
    pub(super) fn value(
        &mut self,
        window: &Window,
        taking: Taking<'_>,
        check: Check<'_>,
    ) -> Result<Evaluated<'static>, QueryError> {
        match self {
            SlidingStates::Sums(stacks) => stacks.value(window, taking, check),
            SlidingStates::Averages(stacks) => stacks.value(window, taking, check),
            SlidingStates::Others(stacks) => stacks.value(window, taking, check),
        }
    }

    /// The number of the first document that later results read.
    pub(super) fn first_read(&self) -> usize {
        match self {
            SlidingStates::Sums(stacks) => stacks.first_read(),
            SlidingStates::Averages(stacks) => stacks.first_read(),
            SlidingStates::Others(stacks) => stacks.first_read(),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            SlidingStates::Sums(stacks) => stacks.held_bytes(),
            SlidingStates::Averages(stacks) => stacks.held_bytes(),
            SlidingStates::Others(stacks) => stacks.held_bytes(),
        }
    }
}

impl<S: SlidingState> TwoStacks<S> {
    fn new() -> TwoStacks<S> {
        TwoStacks { front: Vec::new(), back: None, kept: Vec::new(), begin: 0, middle: 0, end: 0 }
    }

    fn first_read(&self) -> usize {
        if S::READS_AGAIN { self.begin } else { self.end }
    }

    fn held_bytes(&self) -> usize {
        self.front.len() * STATE_BYTES + self.kept.len() * size_of::<S::Kept>()
    }

    fn value(
        &mut self,
        window: &Window,
        mut taking: Taking<'_>,
        check: Check<'_>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let call = taking.call;
        if window.begin >= self.end || self.back.is_none() {
            // No document of the last window is in this one.
            self.front.clear();
            self.begin_back(window.begin, call)?;
        }
        if let Some(back) = &mut self.back {
            while self.end < window.end {
                let kept = S::keep(&mut taking, self.end, check)?;
                back.take(kept, &mut taking, self.end, check)?;
                self.kept.push(kept);
                self.end += 1;
            }
        }
        if self.begin < window.begin && window.begin < self.middle {
            self.front.truncate(self.middle - window.begin);
        } else if self.begin < window.begin {
            self.turn(window.begin, &mut taking, check)?;
        }
        self.begin = window.begin;
        match (self.front.last(), &self.back) {
            (None, Some(back)) => back.finish(),
            (front, back) => {
                let mut both = S::start(call)?;
                for part in front.into_iter().chain(back) {
                    both.absorb(part)?;
                }
                both.finish()
            }
        }
    }

    /// Begins an empty back in front of a document.
    fn begin_back(&mut self, at: usize, call: &AccumulatorCall) -> Result<(), QueryError> {
        (self.begin, self.middle, self.end) = (at, at, at);
        self.kept.clear();
        self.back = Some(S::start(call)?);
        Ok(())
    }

    /// Moves all documents from one on to the front.
    fn turn(&mut self, begin: usize, taking: &mut Taking<'_>, check: Check<'_>) -> Result<(), QueryError> {
        self.front.clear();
        for at in (begin..self.end).rev() {
            if at.is_multiple_of(DOCUMENTS_A_CHECK) {
                check()?;
            }
            let mut state = S::start(taking.call)?;
            state.take(self.kept[at - self.middle], taking, at, check)?;
            if let Some(behind) = self.front.last() {
                state.absorb(behind)?;
            }
            self.front.push(state);
        }
        self.begin_back(self.end, taking.call)
    }
}
