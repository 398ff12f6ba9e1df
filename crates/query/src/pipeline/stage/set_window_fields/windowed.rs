//! An accumulator over windows: the result over the window of one document after the other.
//!
//! # Ways
//! 1. The window is the whole partition: one result for all documents.
//! 2. The window only grows: one state takes one document after the other.
//! 3. The window slides, and states are small: two stacks of states ([`two_stacks`](super::two_stacks)).
//! 4. The window slides, and states hold values: a new state takes in the whole window. The result is as long
//!    as the window mostly.

use pando_document::RawValue;

use super::bounds::{Bounds, Window};
use super::reader::Reader;
use super::two_stacks::{SlidingStates, Taking};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::expression::accumulator::Accumulator;
use crate::pipeline::accumulator::AccumulatorCall;
use crate::sort::Check;

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

impl Windowed {
    pub(super) fn new(call: &AccumulatorCall, bounds: &Bounds) -> Windowed {
        let way = if bounds.is_whole() {
            Way::Whole(None)
        } else if bounds.is_left_unbounded() {
            Way::Growing { state: None, taken: 0 }
        } else if call.has_small_states() {
            Way::Sliding(SlidingStates::of(call))
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
                states.value(window, taking, check)
            }
            Way::Anew => {
                window.move_to(bounds, at, taking.reader, check)?;
                let mut state = call.start_in_sliding_window()?;
                taking.take_all(state.as_mut(), (window.begin, window.end), check)?;
                state.finish_in_sliding_window()
            }
        }
    }

    /// The number of the first document that later results may look at.
    pub(super) fn first_needed(&self) -> usize {
        match &self.way {
            Way::Whole(Some(_)) => usize::MAX,
            Way::Whole(None) => 0,
            Way::Growing { taken, .. } => *taken,
            // A window by values looks for its begin from that of the last one on.
            Way::Sliding(states) if self.bounds.is_by_values() => states.first_read().min(self.window.begin),
            Way::Sliding(states) => states.first_read(),
            Way::Anew => self.window.begin,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match &self.way {
            Way::Whole(result) => result.as_ref().and_then(Evaluated::raw).map_or(0, bytes_of),
            Way::Growing { state, .. } => state.as_ref().map_or(0, |state| state.held_bytes()),
            Way::Sliding(states) => states.held_bytes(),
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
