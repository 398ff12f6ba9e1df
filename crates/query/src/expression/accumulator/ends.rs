//! `$first`, `$last`, `$firstN`, `$lastN`: values by the order of the documents; missing counts as null.

use std::collections::VecDeque;

use pando_document::{ArrayWriter, RawValue};

use super::super::Evaluated;
use super::{Accumulator, bytes_of, for_saved, give, give_all, keep, save_all};
use crate::error::QueryError;
use crate::literal::Literal;

#[derive(Debug, Default)]
pub(crate) struct First {
    value: Option<Literal>,
    bytes: usize,
}

impl Accumulator for First {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if self.value.is_none() {
            self.bytes = bytes_of(value);
            self.value = Some(keep(value));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.value.is_some()
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.value.clone().map_or(Evaluated::NULL, give))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.value.iter(), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Last {
    value: Option<Literal>,
    bytes: usize,
}

impl Accumulator for Last {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        self.bytes = bytes_of(value);
        self.value = Some(keep(value));
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.value.clone().map_or(Evaluated::NULL, give))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.value.iter(), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}

#[derive(Debug)]
pub(crate) struct FirstN {
    n: usize,
    values: Vec<Literal>,
    bytes: usize,
}

impl FirstN {
    pub(crate) fn new(n: usize) -> FirstN {
        FirstN { n, values: Vec::new(), bytes: 0 }
    }
}

impl Accumulator for FirstN {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if self.values.len() < self.n {
            self.bytes += bytes_of(value) + size_of::<Literal>();
            self.values.push(keep(value));
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.values.iter())
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.values.iter(), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}

#[derive(Debug)]
pub(crate) struct LastN {
    n: usize,
    values: VecDeque<(Literal, usize)>,
    bytes: usize,
}

impl LastN {
    pub(crate) fn new(n: usize) -> LastN {
        LastN { n, values: VecDeque::new(), bytes: 0 }
    }
}

impl Accumulator for LastN {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        if self.values.len() == self.n {
            self.bytes -= self.values.pop_front().map_or(0, |(_, bytes)| bytes);
        }
        let bytes = bytes_of(value) + size_of::<(Literal, usize)>();
        self.bytes += bytes;
        self.values.push_back((keep(value), bytes));
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        give_all(self.values.iter().map(|(value, _)| value))
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        save_all(self.values.iter().map(|(value, _)| value), out);
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        for_saved(saved, |value| self.add(&Evaluated::Raw(value)))
    }
}
