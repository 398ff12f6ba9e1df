//! Documents that were found in another collection, as the source of a pipeline within a stage. They wait in
//! a sorter, without keys: it keeps their order, and spills.

use pando_catalog::Bytes;

use super::{ForeignAccess, GeoNearSpecification, Searches, Source, Take};
use crate::error::QueryError;
use crate::filter::Filter;
use crate::memory::{DiskUse, StageMemory};
use crate::metadata::MetadataSet;
use crate::pipeline::Pipeline;
use crate::sort::Sorter;

/// The documents, lent to the pipeline for one call.
pub(super) struct Fetched<'f> {
    pub documents: &'f mut Sorter,
    pub others: &'f mut dyn Source,
}

/// No documents.
pub(super) fn none(memory: &StageMemory) -> Sorter {
    // MongoDB never holds these documents, so it does not ask whether the disk may be used.
    Sorter::new(None, &StageMemory { disk_use: DiskUse::Allowed, ..memory.clone() })
}

/// The documents of a collection that match a filter. A call after `WouldBlock` begins anew.
pub(super) fn fetch(
    collection: &str,
    filter: &Filter,
    memory: &StageMemory,
    others: &mut dyn Source,
) -> Result<Sorter, QueryError> {
    let mut documents = none(memory);
    // Each document that is found checks already.
    let mut no_check = || Ok(());
    others.find_in(collection, filter, &mut |found| {
        documents.push(&[], &[], found.as_bytes(), &mut no_check)
    })?;
    Ok(documents)
}

/// The documents of a collection that a pipeline begins with: those of its search, or those that match a
/// filter.
pub(super) fn fetch_for(
    collection: &str,
    pipeline: &Pipeline,
    filter: &Filter,
    memory: &StageMemory,
    others: &mut dyn Source,
) -> Result<Sorter, QueryError> {
    let Some(near) = pipeline.near() else { return fetch(collection, filter, memory, others) };
    let mut documents = none(memory);
    let mut no_check = || Ok(());
    others.find_near(collection, near, pipeline.metadata(), &mut |found| {
        documents.push(&[], &[], found.as_bytes(), &mut no_check)
    })?;
    Ok(documents)
}

impl Source for Fetched<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        self.others.check()?;
        let next = self.documents.next(&mut || self.others.check())?;
        Ok(next.map(|sorted| Bytes::copy_from_slice(sorted.document)))
    }

    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        self.others.find_in(collection, filter, take)
    }

    fn find_near(
        &mut self,
        collection: &str,
        near: &GeoNearSpecification,
        metadata: MetadataSet,
        take: Take<'_>,
    ) -> Result<(), QueryError> {
        self.others.find_near(collection, near, metadata, take)
    }

    fn foreign_access(&mut self, collection: &str, path: &str) -> Result<ForeignAccess, QueryError> {
        self.others.foreign_access(collection, path)
    }

    fn take_searches(&mut self) -> Searches {
        self.others.take_searches()
    }

    fn check(&self) -> Result<(), QueryError> {
        self.others.check()
    }
}
