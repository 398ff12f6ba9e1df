//! A stream of documents: a source of a cursor that gives many documents in one call.

use pando_catalog::Caller;
use pando_document::RawDocument;
use pando_query::pipeline::Flow;

use crate::CommandError;

/// See the module's head.
pub(crate) trait DocumentStream {
    /// Gives documents to `take` until it has enough or there are no more. After `WouldBlock` a call with
    /// `MayBlock` goes on behind those that were taken.
    fn give(
        &mut self,
        caller: Caller<'_>,
        take: &mut dyn FnMut(&RawDocument) -> Flow,
    ) -> Result<StreamEnd, CommandError>;
}

/// Why a stream has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The caller has enough.
    Enough,
    /// There are no more documents.
    Exhausted,
}
