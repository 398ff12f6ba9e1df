//! The states of all groups, one column for each accumulator.
//!
//! The states of the commonest accumulators stand beside each other, so that a document costs one access to
//! memory in each column. Those of others, which hold values, stand behind a pointer.

use pando_document::{ArrayWriter, RawArray, RawDocument, RawValue};

use super::GroupField;
use crate::error::QueryError;
use crate::expression::accumulator::{Accumulator, Avg, Count, Sum};
use crate::expression::{Evaluated, Frame};
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

    /// Takes in the next state of a column that leaves: into that of a group, or as that of a new one. The
    /// memory that it takes.
    pub fn absorb_next(
        &mut self,
        group: Option<usize>,
        later: &mut LeavingColumn,
    ) -> Result<usize, QueryError> {
        match (self, later) {
            (Column::Counts(states), LeavingColumn::Counts(later)) => {
                Ok(absorb(states, group, later.next(), |state, later| state.absorb(&later)))
            }
            (Column::Sums(states), LeavingColumn::Sums(later)) => {
                Ok(absorb(states, group, later.next(), |state, later| state.absorb(&later)))
            }
            (Column::Averages(states), LeavingColumn::Averages(later)) => {
                Ok(absorb(states, group, later.next(), |state, later| state.absorb(&later)))
            }
            (Column::Others(states), LeavingColumn::Others(later)) => {
                let Some(later) = later.next() else { return Ok(0) };
                absorb_pointed(states, group, later)
            }
            _ => unreachable!("columns of one call have one shape"),
        }
    }

    /// Takes the state of a group of a later column into that of one of its own. States that hold values are
    /// none of them.
    pub fn absorb_at(&mut self, group: usize, later: &Column, number: usize) {
        match (self, later) {
            (Column::Counts(states), Column::Counts(later)) => states[group].absorb(&later[number]),
            (Column::Sums(states), Column::Sums(later)) => states[group].absorb(&later[number]),
            (Column::Averages(states), Column::Averages(later)) => states[group].absorb(&later[number]),
            _ => unreachable!("columns of one call have one shape, and hold no values here"),
        }
    }

    /// The column, to be taken from state by state.
    pub fn leave(self) -> LeavingColumn {
        match self {
            Column::Counts(states) => LeavingColumn::Counts(states.into_iter()),
            Column::Sums(states) => LeavingColumn::Sums(states.into_iter()),
            Column::Averages(states) => LeavingColumn::Averages(states.into_iter()),
            Column::Others(states) => LeavingColumn::Others(states.into_iter()),
        }
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

    /// Feeds a document to the state of a group: a value of its argument that is known, or that of the frame.
    #[inline]
    pub fn feed<'a>(
        &mut self,
        group: usize,
        field: &'a GroupField,
        known: Option<&Evaluated<'_>>,
        frame: &mut Frame<'a>,
        bytes: &mut usize,
    ) -> Result<(), QueryError> {
        let holds_values = self.holds_values();
        let state = self.state(group);
        let before = if holds_values { state.held_bytes() } else { 0 };
        match known {
            Some(value) if !state.is_full() => state.add(value)?,
            Some(_) => {}
            None => field.call.feed(state, frame, 1)?,
        }
        if holds_values {
            *bytes = *bytes + state.held_bytes() - before;
        }
        Ok(())
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

/// A column that another one takes the states of, from the first group on.
pub(super) enum LeavingColumn {
    Counts(std::vec::IntoIter<Count>),
    Sums(std::vec::IntoIter<Sum>),
    Averages(std::vec::IntoIter<Avg>),
    Others(std::vec::IntoIter<Box<dyn Accumulator>>),
}

fn absorb<T>(
    states: &mut Vec<T>,
    group: Option<usize>,
    later: Option<T>,
    merge: impl FnOnce(&mut T, T),
) -> usize {
    match (group, later) {
        (_, None) => 0,
        (Some(group), Some(later)) => {
            merge(&mut states[group], later);
            0
        }
        (None, Some(later)) => push(states, later),
    }
}

fn absorb_pointed(
    states: &mut Vec<Box<dyn Accumulator>>,
    group: Option<usize>,
    later: Box<dyn Accumulator>,
) -> Result<usize, QueryError> {
    let Some(group) = group else {
        let bytes = POINTED_BYTES + size_of_val(&*later) + later.held_bytes();
        states.push(later);
        return Ok(bytes);
    };
    let mut saved = Vec::new();
    let mut array = ArrayWriter::begin(&mut saved);
    later.save(&mut array);
    array.finish();
    let state = &mut states[group];
    let before = state.held_bytes();
    let saved = RawArray::from_document(RawDocument::from_bytes(&saved)?);
    if let Some(saved) = saved.iter().next() {
        state.merge(saved?)?;
    }
    Ok(state.held_bytes().saturating_sub(before))
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
