//! The source of a cursor's documents: a find, a pipeline, a list, or the end of a capped collection.

use pando_catalog::{Caller, Collection, TailVersion};
use pando_query::execute::ExecutionFigures;

use crate::CommandError;
use crate::document_stream::DocumentStream;

/// Which of a cursor's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchPlace {
    /// The one that its command answers.
    First,
    /// One that a `getMore` answers.
    Later,
}

/// The source of a cursor's documents.
pub(crate) trait CursorSource: Send {
    /// The next document, appended to `out`; false at the end. At the end and after an error nothing is
    /// appended.
    /// After `WouldBlock` it may be called again with `MayBlock` and goes on where it stood.
    fn next(&mut self, caller: Caller<'_>, out: &mut Vec<u8>) -> Result<bool, CommandError>;

    /// Itself as a stream, where that costs less than its documents one by one.
    fn as_stream(&mut self) -> Option<&mut dyn DocumentStream> {
        None
    }

    /// Whether the source is known to be exhausted, without asking it for another document, when this batch
    /// is full.
    fn is_exhausted(&self, _batch: BatchPlace) -> bool {
        false
    }

    /// Gives up what it need not keep until the next batch.
    fn rest(&mut self) {}

    /// The end that it follows: such a source is never exhausted at its end.
    fn tail(&self) -> Option<TailPlace<'_>> {
        None
    }

    /// Whether its documents come out of stages, whose work on one batch has no bound but the batch's.
    fn has_stages(&self) -> bool {
        false
    }

    /// The figures of the plan so far, where the source is a plan and nothing else.
    fn figures(&self) -> Option<ExecutionFigures> {
        None
    }
}

/// Whether a tailable cursor waits at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tailing {
    /// It does not (`tailable`).
    Returns,
    /// It does (`awaitData`).
    Waits,
}

/// The end of a capped collection, as a tailable cursor has seen it.
pub(crate) struct TailPlace<'s> {
    pub collection: &'s Collection,
    /// The version of the end before its snapshot.
    pub version: TailVersion,
    pub tailing: Tailing,
    /// Whether it has looked at a document. One over an empty collection ends, as in MongoDB.
    pub has_position: bool,
}
