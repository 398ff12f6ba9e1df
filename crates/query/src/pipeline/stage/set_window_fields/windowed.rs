//! An accumulator over windows: the result over the window of one document after the other.
//!
//! # Ways
//! 1. The window is the whole partition: one result for all documents.
//! 2. The window only grows: one state takes one document after the other.
//! 3. The window slides, and states are small: *two stacks*. The front stack has a state for each document at
//!    the front of the window, of this document and all behind it in the stack. So a document leaves by a
//!    pop. The back has one state of all documents behind the stack; it moves to the front when the stack is
//!    empty. Each document is taken in twice, and no number is ever subtracted: results do not drift.
//! 4. The window slides, and states hold values: a new state takes in the whole window. The result is as long
//!    as the window mostly.

use pando_document::RawValue;

use super::bounds::{Bounds, Window};
use super::reader::Reader;
use crate::error::QueryError;
use crate::expression::accumulator::{Accumulator, Avg, Sum, absorb};
use crate::expression::{Evaluated, Frame, narrowed};
use crate::pipeline::accumulator::{AccumulatorCall, StateShape};
use crate::sort::Check;

/// Documents between two checks of the operation.
const DOCUMENTS_A_CHECK: usize = 256;
/// Memory of a state beside the values that it holds.
const STATE_BYTES: usize = 160;

/// See the module's head.
pub(super) struct Windowed {
    call: AccumulatorCall,
    bounds: Bounds,
    window: Window,
    way: Way,
}

enum Way {
    Whole(Option<Evaluated<'static>>),
    Growing { state: Option<Box<dyn Accumulator>>, taken: usize },
    Sliding(SlidingStates),
    Anew,
}

/// Two stacks of states: those of the commonest accumulators stand in them as they are.
enum SlidingStates {
    Sums(TwoStacks<Sum>),
    Averages(TwoStacks<Avg>),
    Others(TwoStacks<Box<dyn Accumulator>>),
}

/// A state of a window that slides.
trait SlidingState: Sized {
    fn start(call: &AccumulatorCall) -> Result<Self, QueryError>;

    fn accumulator(&mut self) -> &mut dyn Accumulator;

    /// Takes in the state of later documents.
    fn absorb(&mut self, later: &Self) -> Result<(), QueryError>;

    fn finish(&self) -> Result<Evaluated<'static>, QueryError>;
}

struct TwoStacks<S> {
    front: Vec<S>,
    back: Option<S>,
    /// The number of the first document of the window that was taken in, that of the first in the back, and
    /// that behind the last.
    begin: usize,
    middle: usize,
    end: usize,
}

impl Windowed {
    pub(super) fn new(call: &AccumulatorCall, bounds: &Bounds) -> Windowed {
        let way = if bounds.is_whole() {
            Way::Whole(None)
        } else if bounds.is_left_unbounded() {
            Way::Growing { state: None, taken: 0 }
        } else if call.has_small_states() {
            Way::Sliding(match call.state_shape() {
                StateShape::Sum => SlidingStates::Sums(TwoStacks::at(0)),
                StateShape::Average => SlidingStates::Averages(TwoStacks::at(0)),
                StateShape::Count | StateShape::Other => SlidingStates::Others(TwoStacks::at(0)),
            })
        } else {
            Way::Anew
        };
        Windowed { call: call.clone(), bounds: bounds.clone(), window: Window::default(), way }
    }

    /// The result for a document.
    pub(super) fn value(
        &mut self,
        at: usize,
        reader: &mut Reader,
        check: Check<'_>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let Windowed { call, bounds, window, way } = self;
        if let Way::Whole(Some(result)) = way {
            return Ok(result.clone());
        }
        let taking = Taking { call, reader };
        match way {
            Way::Whole(result) => {
                let mut state = call.start(RawValue::Null)?;
                taking.take_all(state.as_mut(), (0, usize::MAX), check)?;
                let whole = state.finish()?;
                *result = Some(whole.clone());
                Ok(whole)
            }
            Way::Growing { state, taken } => {
                window.move_to(bounds, at, taking.reader, check)?;
                let state = match state {
                    Some(state) => state,
                    None => state.insert(call.start(RawValue::Null)?),
                };
                taking.take_all(state.as_mut(), (*taken, window.end), check)?;
                *taken = window.end.max(*taken);
                state.finish()
            }
            Way::Sliding(states) => {
                window.move_to(bounds, at, taking.reader, check)?;
                match states {
                    SlidingStates::Sums(stacks) => stacks.value(window, taking, check),
                    SlidingStates::Averages(stacks) => stacks.value(window, taking, check),
                    SlidingStates::Others(stacks) => stacks.value(window, taking, check),
                }
            }
            Way::Anew => {
                window.move_to(bounds, at, taking.reader, check)?;
                let mut state = call.start(RawValue::Null)?;
                taking.take_all(state.as_mut(), (window.begin, window.end), check)?;
                state.finish()
            }
        }
    }

    /// The number of the first document that later results may look at.
    pub(super) fn first_needed(&self) -> usize {
        match &self.way {
            Way::Whole(Some(_)) => usize::MAX,
            Way::Whole(None) => 0,
            Way::Growing { taken, .. } => *taken,
            Way::Sliding(_) | Way::Anew => self.window.begin,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match &self.way {
            Way::Whole(result) => result.as_ref().and_then(Evaluated::raw).map_or(0, bytes_of),
            Way::Growing { state, .. } => state.as_ref().map_or(0, |state| state.held_bytes()),
            Way::Sliding(states) => states.len() * STATE_BYTES,
            Way::Anew => 0,
        }
    }
}

fn bytes_of(value: RawValue<'_>) -> usize {
    match value {
        RawValue::Array(array) => array.as_bytes().len(),
        RawValue::Document(document) => document.as_bytes().len(),
        RawValue::String(text) => text.len(),
        _ => 0,
    }
}

/// Taking documents of the partition into states.
struct Taking<'t> {
    call: &'t AccumulatorCall,
    reader: &'t mut Reader,
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
    fn take_all(
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
}

impl SlidingState for Sum {
    fn start(_: &AccumulatorCall) -> Result<Sum, QueryError> {
        Ok(Sum::default())
    }

    fn accumulator(&mut self) -> &mut dyn Accumulator {
        self
    }

    fn absorb(&mut self, later: &Sum) -> Result<(), QueryError> {
        Sum::absorb(self, later);
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Accumulator::finish(self)
    }
}

impl SlidingState for Avg {
    fn start(_: &AccumulatorCall) -> Result<Avg, QueryError> {
        Ok(Avg::default())
    }

    fn accumulator(&mut self) -> &mut dyn Accumulator {
        self
    }

    fn absorb(&mut self, later: &Avg) -> Result<(), QueryError> {
        Avg::absorb(self, later);
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Accumulator::finish(self)
    }
}

impl SlidingState for Box<dyn Accumulator> {
    fn start(call: &AccumulatorCall) -> Result<Box<dyn Accumulator>, QueryError> {
        call.start(RawValue::Null)
    }

    fn accumulator(&mut self) -> &mut dyn Accumulator {
        self.as_mut()
    }

    fn absorb(&mut self, later: &Box<dyn Accumulator>) -> Result<(), QueryError> {
        absorb(self.as_mut(), later.as_ref())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        self.as_ref().finish()
    }
}

impl SlidingStates {
    /// The number of states in the front stack.
    fn len(&self) -> usize {
        match self {
            SlidingStates::Sums(stacks) => stacks.front.len(),
            SlidingStates::Averages(stacks) => stacks.front.len(),
            SlidingStates::Others(stacks) => stacks.front.len(),
        }
    }
}

impl<S: SlidingState> TwoStacks<S> {
    /// Empty stacks in front of a document.
    fn at(begin: usize) -> TwoStacks<S> {
        TwoStacks { front: Vec::new(), back: None, begin, middle: begin, end: begin }
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
            *self = TwoStacks::at(window.begin);
            self.back = Some(S::start(call)?);
        }
        while self.end < window.end {
            if let Some(back) = &mut self.back {
                taking.take(back.accumulator(), self.end, check)?;
            }
            self.end += 1;
        }
        if self.begin < window.begin && window.begin < self.middle {
            self.front.truncate(self.middle - window.begin);
        } else if self.begin < window.begin {
            self.turn(window.begin, &mut taking, check)?;
        }
        self.begin = window.begin;
        let result = match (self.front.last(), &self.back) {
            (None, Some(back)) => back.finish()?,
            (front, back) => {
                let mut both = S::start(call)?;
                for part in front.into_iter().chain(back) {
                    both.absorb(part)?;
                }
                both.finish()?
            }
        };
        Ok(match result.raw() {
            // An infinite number has no deviation from the mean.
            Some(RawValue::Double(number)) if number.is_nan() && call.is_deviation() => Evaluated::NULL,
            // A sum that slides gives an int32 wherever it fits.
            Some(RawValue::Int64(sum)) if call.is_sum() => Evaluated::number(narrowed(sum)),
            _ => result,
        })
    }

    /// Moves all documents from one on to the front.
    fn turn(&mut self, begin: usize, taking: &mut Taking<'_>, check: Check<'_>) -> Result<(), QueryError> {
        self.front.clear();
        for at in (begin..self.end).rev() {
            if at.is_multiple_of(DOCUMENTS_A_CHECK) {
                check()?;
            }
            let mut state = S::start(taking.call)?;
            taking.take(state.accumulator(), at, check)?;
            if let Some(behind) = self.front.last() {
                state.absorb(behind)?;
            }
            self.front.push(state);
        }
        self.middle = self.end;
        self.back = Some(S::start(taking.call)?);
        Ok(())
    }
}
