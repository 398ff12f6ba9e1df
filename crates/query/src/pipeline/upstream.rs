//! The upstream of a stage: the stages before it, as its source.

use pando_catalog::Bytes;

use super::stage::Stage;
use super::{Flow, ForeignAccess, GeoNearSpecification, RunSink, Searches, Sink, Source, Take};
use crate::error::QueryError;
use crate::filter::Filter;
use crate::metadata::MetadataSet;

/// See the module's head.
pub(super) struct Upstream<'r> {
    pub stages: &'r mut [Box<dyn Stage>],
    pub source: &'r mut dyn Source,
}

impl Source for Upstream<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        match self.stages.split_last_mut() {
            None => self.source.next(),
            Some((last, stages)) => last.next(&mut Upstream { stages, source: self.source }),
        }
    }

    fn for_each(&mut self, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        match self.stages.split_last_mut() {
            None => self.source.for_each(sink),
            Some((last, stages)) => last.for_each(&mut Upstream { stages, source: self.source }, sink),
        }
    }

    fn for_each_run(&mut self, sink: &mut RunSink<'_>) -> Result<(), QueryError> {
        match self.stages {
            [] => self.source.for_each_run(sink),
            _ => self.for_each(&mut |document, check| sink(document, 1, check).map(|()| Flow::More)),
        }
    }

    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        self.source.find_in(collection, filter, take)
    }

    fn find_near(
        &mut self,
        collection: &str,
        near: &GeoNearSpecification,
        metadata: MetadataSet,
        take: Take<'_>,
    ) -> Result<(), QueryError> {
        self.source.find_near(collection, near, metadata, take)
    }

    fn foreign_access(&mut self, collection: &str, path: &str) -> Result<ForeignAccess, QueryError> {
        self.source.foreign_access(collection, path)
    }

    fn take_searches(&mut self) -> Searches {
        self.source.take_searches()
    }

    fn check(&self) -> Result<(), QueryError> {
        self.source.check()
    }
}
