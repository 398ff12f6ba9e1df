//! The states of all groups, one column for each accumulator.
//!
//! The states of the commonest accumulators stand beside each other, so that a document costs one access to
//! memory in each column. Those of others, which hold values, stand behind a pointer.

use pando_document::RawValue;

use crate::error::QueryError;
use crate::expression::accumulator::{Accumulator, Avg, Count, Sum};
use crate::pipeline::accumulator::{AccumulatorCall, StateShape};

/// The states of one accumulator, by the number of the group.
pub(super) enum Column {
    Counts(Vec<Count>),
    Sums(Vec<Sum>),
    Averages(Vec<Avg>),
    Others(Vec<Box<dyn Accumulator>>),
}

/// Memory of a state behind a pointer beside its own bytes: its allocation and the pointer to it.
const POINTED_BYTES: usize = 32;

impl Column {
    /// The column of a call, without groups.
    pub fn of(call: &AccumulatorCall) -> Column {
        match call.state_shape() {
            StateShape::Count => Column::Counts(Vec::new()),
            StateShape::Sum => Column::Sums(Vec::new()),
            StateShape::Average => Column::Averages(Vec::new()),
            StateShape::Other => Column::Others(Vec::new()),
        }
    }

    /// Adds the state of a new group with this `_id`; the memory that it takes.
    pub fn push(&mut self, call: &AccumulatorCall, id: RawValue<'_>) -> Result<usize, QueryError> {
        Ok(match self {
            Column::Counts(states) => push(states, Count::default()),
            Column::Sums(states) => push(states, Sum::default()),
            Column::Averages(states) => push(states, Avg::default()),
            Column::Others(states) => {
                let state = call.start(id)?;
                let bytes = POINTED_BYTES + size_of_val(&*state);
                states.push(state);
                bytes
            }
        })
    }

    /// The state of a group.
    #[inline]
    pub fn state(&mut self, group: usize) -> &mut dyn Accumulator {
        match self {
            Column::Counts(states) => &mut states[group],
            Column::Sums(states) => &mut states[group],
            Column::Averages(states) => &mut states[group],
            Column::Others(states) => states[group].as_mut(),
        }
    }

    /// Whether states hold values beyond themselves.
    #[inline]
    pub fn holds_values(&self) -> bool {
        matches!(self, Column::Others(_))
    }

    /// Forgets the states of groups from a number on. Gives memory back when half of it is free.
    pub fn truncate(&mut self, groups: usize) {
        match self {
            Column::Counts(states) => truncate(states, groups),
            Column::Sums(states) => truncate(states, groups),
            Column::Averages(states) => truncate(states, groups),
            Column::Others(states) => truncate(states, groups),
        }
    }
}

/// Adds an element to a list that doubles when it is full; its share of the list's memory, about.
pub(super) fn push<T>(list: &mut Vec<T>, element: T) -> usize {
    list.push(element);
    size_of::<T>() * 3 / 2
}

/// Cuts a list. Gives memory back when half of it is free.
pub(super) fn truncate<T>(list: &mut Vec<T>, length: usize) {
    list.truncate(length);
    if list.len() <= list.capacity() / 2 {
        list.shrink_to_fit();
    }
}
