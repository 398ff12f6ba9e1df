//! The guard behind a stage that puts values into others: it refuses documents that are nested too deep.

use pando_catalog::Bytes;
use pando_document::{Document, RawDocument};

use super::stage::{Gathering, Stage};
use super::{Sink, Source};
use crate::error::QueryError;
use crate::nesting;

/// See the module's head.
pub(super) struct DepthGuard {
    stage: Box<dyn Stage>,
}

impl DepthGuard {
    pub fn behind(stage: Box<dyn Stage>) -> DepthGuard {
        DepthGuard { stage }
    }
}

impl Stage for DepthGuard {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        let next = self.stage.next(input)?;
        if let Some(document) = &next {
            nesting::check(RawDocument::from_bytes(document)?)?;
        }
        Ok(next)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        self.stage.for_each(input, &mut |document, check| {
            nesting::check(document)?;
            sink(document, check)
        })
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        self.stage.gathering()
    }

    fn explain(&self, shown: &mut Document) {
        self.stage.explain(shown);
    }
}
