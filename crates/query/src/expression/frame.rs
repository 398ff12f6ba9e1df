//! The frame of an evaluation: the document, and the values of the variables.
//!
//! # Memory
//! One computed value is bounded, but an expression may hold many at once: those of variables, and in each
//! call the arguments that are there while further ones are evaluated. The frame counts the bytes of both,
//! and refuses more than [`HELD_BYTES_MAX`].
//! - At its end a call gives back the bytes of its arguments. So the sum is that of the calls that are not
//!   finished.
//! - An operator that evaluates an argument again and again gives back each value that it no longer needs.

use std::sync::Arc;

use pando_document::{DocumentError, RawDocument, RawValue};

use super::array_table::{ArrayTable, ArrayTables};
use super::evaluated::Evaluated;
use super::field_path::FieldPath;
use super::watch::Steps;
use crate::error::{ErrorCode, QueryError};
use crate::field_tables::{Direct, FieldSource, FieldTables};

/// Bytes of computed values that an evaluation holds at once.
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// One evaluation, or several of one document: the root, the slots, and tables of what is asked often. Making
/// one allocates nothing.
#[derive(Debug)]
pub struct Frame<'a> {
    root: &'a RawDocument,
    /// A field that has another value than in the root.
    replaced: Option<Replaced<'a>>,
    slots: Vec<Slot<'a>>,
    fields: FieldTables<'a>,
    arrays: ArrayTables<'a>,
    steps: Steps,
    held: HeldBytes,
    /// The bytes of the values in slots.
    slot_bytes: usize,
}

/// The bytes of the values that unfinished calls hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldBytes(usize);

#[derive(Clone, Debug)]
struct Slot<'a> {
    value: Evaluated<'a>,
    /// The bytes that are counted for it.
    bytes: usize,
}

#[derive(Debug)]
struct Replaced<'a> {
    name: &'a str,
    value: Option<RawValue<'a>>,
}

impl<'a> Frame<'a> {
    /// A frame without variables.
    pub fn new(root: &'a RawDocument) -> Frame<'a> {
        Frame {
            root,
            replaced: None,
            slots: Vec::new(),
            fields: FieldTables::default(),
            arrays: ArrayTables::default(),
            steps: Steps::default(),
            held: HeldBytes::default(),
            slot_bytes: 0,
        }
    }

    /// The bytes that unfinished calls hold, for [`Frame::give_back`] and [`Frame::hold_besides`].
    #[inline]
    pub(super) fn held(&self) -> HeldBytes {
        self.held
    }

    /// Gives back what was held since.
    #[inline]
    pub(super) fn give_back(&mut self, before: HeldBytes) {
        self.held = before;
    }

    /// Counts bytes that a call holds.
    #[inline]
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.hold_besides(self.held, bytes)
    }

    /// Counts bytes besides what was held before, instead of those that were held since.
    #[inline]
    pub(super) fn hold_besides(&mut self, before: HeldBytes, bytes: usize) -> Result<(), QueryError> {
        self.held = HeldBytes(before.0.saturating_add(bytes));
        if self.held.0.saturating_add(self.slot_bytes) <= HELD_BYTES_MAX {
            return Ok(());
        }
        Err(held_too_much())
    }

    /// Counts the work on a value. True: it is time to check the operation.
    #[inline]
    pub(super) fn count_step(&mut self, value: &Evaluated<'_>) -> bool {
        self.steps.count(value)
    }

    /// Counts the work on so many bytes. True: it is time to check the operation.
    #[inline]
    pub(super) fn count_bytes(&mut self, bytes: usize) -> bool {
        self.steps.count_bytes(bytes)
    }

    /// Puts another value, or none, in the place of a field of the root: for expressions that read the root
    /// by paths only ([`Expression::reads_paths_only`](super::Expression::reads_paths_only)).
    pub(crate) fn replace_field(&mut self, name: &'a str, value: Option<RawValue<'a>>) {
        self.replaced = Some(Replaced { name, value });
    }

    /// The document that expressions start from.
    pub fn root(&self) -> &'a RawDocument {
        self.root
    }

    /// A field of the root, or of a document within it.
    pub(crate) fn field(
        &self,
        document: &'a RawDocument,
        name: &str,
    ) -> Result<Option<RawValue<'a>>, DocumentError> {
        (&self.fields).field(document, name)
    }

    /// The table of an array, where it is asked for often.
    pub(super) fn array_table(&self, value: &Evaluated<'a>) -> Result<Option<Arc<ArrayTable>>, QueryError> {
        match value {
            Evaluated::Raw(RawValue::Array(array)) => self.arrays.ask(array),
            Evaluated::Shared(shared) => shared.array_table(),
            _ => Ok(None),
        }
    }

    /// Sets `$$ROOT` where it is a variable ([`ParseScope::with_root`](super::ParseScope::with_root)).
    pub(crate) fn set_root(&mut self, slot: usize, root: Evaluated<'a>) {
        self.write(slot, root);
    }

    /// Sets a variable. Slots are numbered by nesting, so an inner one never overwrites an outer one.
    pub(crate) fn write(&mut self, slot: usize, value: Evaluated<'a>) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Slot { value: Evaluated::Missing, bytes: 0 });
        }
        let bytes = value.computed_bytes();
        self.slot_bytes = self.slot_bytes - self.slots[slot].bytes + bytes;
        // A variable may be read for each element of an array: a computed value is not copied each time.
        self.slots[slot] = Slot { value: value.shared(), bytes };
    }

    /// The variable's value, or the part of it below a path.
    pub(super) fn read(&self, slot: usize, path: Option<&FieldPath>) -> Result<Evaluated<'a>, QueryError> {
        let Some(Slot { value, .. }) = self.slots.get(slot) else {
            unreachable!("the scope gives out slots that their operator sets before use")
        };
        match (value, path) {
            (value, None) => Ok(value.clone()),
            (Evaluated::Raw(value), Some(path)) => path.evaluate_below(*value, &self.fields),
            (computed, Some(path)) => {
                let below = path.evaluate_below(computed.raw().unwrap_or(RawValue::Null), Direct)?;
                Ok(below.raw().map_or(Evaluated::Missing, Evaluated::owned))
            }
        }
    }

    /// The value at a path of the root.
    pub(super) fn at_path(&self, path: &FieldPath) -> Result<Evaluated<'a>, QueryError> {
        match &self.replaced {
            Some(Replaced { name, value }) if path.first() == *name => {
                value.map_or(Ok(Evaluated::Missing), |value| path.evaluate_from(value, &self.fields))
            }
            _ => path.evaluate_in(self.root, &self.fields),
        }
    }
}

#[cold]
fn held_too_much() -> QueryError {
    QueryError::new(
        ErrorCode::ExceededMemoryLimit,
        format!("an expression holds more than {HELD_BYTES_MAX} bytes of computed values at once"),
    )
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value, doc};

    use crate::error::{ErrorCode, QueryError};
    use crate::expression::{Expression, ParseScope};

    const TEXT_BYTES: usize = 4 << 20;

    /// Evaluates an expression over a text `t` of 4 MB and an array `a` of 2,000 numbers.
    fn evaluate(expression: Document) -> Result<usize, QueryError> {
        let holder = doc! { "e": expression }.to_raw();
        let parsed = Expression::parse(holder.get("e").unwrap().unwrap(), &ParseScope::at(0))?;
        let numbers: Vec<Value> = (0..2_000).map(Value::Int32).collect();
        let root = doc! { "t": ("x".repeat(TEXT_BYTES)), "a": numbers, "one": [1] }.to_raw();
        let size = |value: &crate::expression::Evaluated<'_>| value.as_str().map_or(0, str::len);
        parsed.evaluate(&root).map(|value| size(&value))
    }

    /// A computed text of 12 MB.
    fn text() -> Document {
        doc! { "$concat": ["$t", "$t", "$t"] }
    }

    fn is_refused(expression: Document) -> bool {
        evaluate(expression).is_err_and(|error| error.code() == Some(ErrorCode::ExceededMemoryLimit))
    }

    #[test]
    fn an_expression_that_holds_many_large_values_at_once_is_refused() {
        let one = doc! { "$add": [1, 0] };
        let (mut variables, mut lists, mut maps) = (one.clone(), doc! {}, one);
        for level in 0..40 {
            let names = doc! { (format!("v{level}")): (text()) };
            variables = doc! { "$let": { "vars": names, "in": variables } };
            lists = doc! { "x": (text()), "y": lists };
            maps = doc! { "$map": { "input": [(text())], "in": maps } };
        }
        assert!(is_refused(variables));
        assert!(is_refused(lists));
        assert!(is_refused(maps));
        let many: Document = (0..40).map(|at| (format!("v{at}"), Value::Document(text()))).collect();
        assert!(is_refused(doc! { "$let": { "vars": many, "in": 1 } }));
        let calls = (0..40).fold(doc! { "$concat": ["", ""] }, |inner, _| {
            doc! { "$concat": ["", { "$substrBytes": [inner, 0, 1] }, (text()), (text())] }
        });
        assert!(!is_refused(calls), "the inner calls end before the outer ones hold anything");
    }

    #[test]
    fn values_that_are_gone_are_not_counted() {
        // Each of the texts is there for one step only.
        let length = doc! { "$strLenBytes": (text()) };
        let sum = doc! { "$add": ["$$value", (length.clone())] };
        let in_turn = |sum: Document| {
            doc! { "$reduce": { "input": { "$slice": ["$a", 100] }, "initialValue": 0, "in": sum } }
        };
        assert!(evaluate(in_turn(sum)).is_ok());
        let grown = doc! { "$concat": ["$$value", ("y".repeat(200))] };
        let grown = doc! { "$reduce": { "input": "$a", "initialValue": "", "in": grown } };
        assert_eq!(evaluate(grown).unwrap(), 400_000);
        let lengths: Vec<Value> = (0..60).map(|_| Value::Document(length.clone())).collect();
        assert!(evaluate(doc! { "$add": lengths }).is_ok());
        let long = doc! { "$gt": [{ "$strLenBytes": { "$concat": ["$t", "y"] } }, 1] };
        let some = doc! { "$slice": ["$a", 200] };
        assert!(evaluate(doc! { "$size": { "$filter": { "input": some, "cond": long } } }).is_ok());
    }
}
