//! The documents of a tailable cursor: a scan of a capped collection that goes on behind its last document.
//!
//! # Steps of a batch
//! 1. A new snapshot is taken, unless an interrupted batch has one.
//! 2. The document at the position, which is the last one that was looked at, has to be there still. Where it
//!    was removed, documents behind it may have been removed unseen, and the cursor ends.
//! 3. The scan goes on behind the position, in the order of inserts.
//! 4. The snapshot ends with the batch, so that a cursor at rest keeps no old versions alive.

use std::ops::Bound;
use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Collection, Direction, DocumentScan, KeyRange, StorageError, TailVersion,
    Transaction,
};
use pando_document::RawDocument;
use pando_query::QueryError;
use pando_query::filter::Filter;
use pando_query::projection::Projection;

use super::find_request::ParsedFind;
use super::row_metadata::RowMetadata;
use super::selection::project;
use crate::cursor_source::{BatchPlace, CursorSource, TailPlace, Tailing};
use crate::shared_state::SharedState;
use crate::{CommandError, ErrorCode};

/// Documents examined that must not block before the thread is given back.
const WORK_BUDGET: u32 = 256;

/// See the module's head.
pub(super) struct TailSource {
    shared: Arc<SharedState>,
    collection: Arc<Collection>,
    tailing: Tailing,
    direction: Direction,
    filter: Filter,
    projection: Option<Projection>,
    metadata: Option<RowMetadata>,
    skip: u64,
    left: Option<u64>,
    /// The key of the last document that was looked at.
    position: Option<Vec<u8>>,
    /// Whether the last batch came to the end.
    is_at_end: bool,
    /// The version of the tail before the snapshot.
    version: TailVersion,
    reading: Option<Reading>,
    budget: u32,
}

/// A batch under way.
struct Reading {
    transaction: Box<dyn Transaction>,
    scan: DocumentScan,
}

impl TailSource {
    pub fn new(
        shared: &Arc<SharedState>,
        collection: Arc<Collection>,
        tailing: Tailing,
        parsed: ParsedFind<'_>,
        metadata: Option<RowMetadata>,
    ) -> TailSource {
        let direction = if parsed.is_backward() { Direction::Backward } else { Direction::Forward };
        TailSource {
            shared: Arc::clone(shared),
            collection,
            tailing,
            direction,
            skip: parsed.skip,
            left: parsed.limit,
            filter: parsed.filter,
            projection: parsed.projection,
            metadata,
            position: None,
            is_at_end: false,
            version: TailVersion::default(),
            reading: None,
            budget: WORK_BUDGET,
        }
    }

    /// Takes a snapshot, and stands behind the position.
    fn begin(&mut self, blocking: BlockingMode) -> Result<(), CommandError> {
        if self.reading.is_some() {
            return Ok(());
        }
        self.version = self.collection.tail_version();
        let transaction = self.shared.catalog.begin(Begin::READ)?;
        if let Some(position) = &self.position
            && self.collection.fetch(&*transaction, position, blocking)?.is_none()
        {
            return Err(self.position_lost(position));
        }
        let beyond = self.position.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let range = match self.direction {
            Direction::Forward => KeyRange { lower: beyond, upper: Bound::Unbounded },
            Direction::Backward => KeyRange { lower: Bound::Unbounded, upper: beyond },
        };
        let scan = self.collection.scan_documents(range, self.direction);
        self.reading = Some(Reading { transaction, scan });
        Ok(())
    }

    fn position_lost(&self, position: &[u8]) -> CommandError {
        let record = position.try_into().map_or(0, u64::from_be_bytes);
        let reason = match self.is_at_end {
            true => {
                "Executor error during getMore :: caused by :: CollectionScan died due to failure to restore tailable cursor position"
            }
            false => "CollectionScan died due to position in capped collection being deleted",
        };
        let sentence = format!("{reason}. Last seen record id: RecordId({record})");
        CommandError::failed(ErrorCode::CappedPositionLost, sentence)
    }

    /// Counts one document, and gives the thread back after many that must not block.
    fn spend(&mut self, caller: Caller<'_>) -> Result<(), CommandError> {
        caller.operation.check().map_err(QueryError::from)?;
        match caller.blocking {
            BlockingMode::MayBlock => self.budget = WORK_BUDGET,
            BlockingMode::CachedOnly if self.budget == 0 => {
                self.budget = WORK_BUDGET;
                return Err(StorageError::would_block().into());
            }
            BlockingMode::CachedOnly => self.budget -= 1,
        }
        Ok(())
    }
}

impl CursorSource for TailSource {
    fn next(&mut self, caller: Caller<'_>, out: &mut Vec<u8>) -> Result<bool, CommandError> {
        self.begin(caller.blocking)?;
        loop {
            if self.left == Some(0) {
                self.is_at_end = false;
                return Ok(false);
            }
            self.spend(caller)?;
            let Some(Reading { transaction, scan }) = &mut self.reading else { return Ok(false) };
            let Some((key, document)) = scan.next(&**transaction, caller.blocking)? else {
                self.is_at_end = true;
                return Ok(false);
            };
            self.is_at_end = false;
            let position = self.position.get_or_insert_default();
            position.clear();
            position.extend_from_slice(key);
            let document = RawDocument::from_bytes(document)?;
            caller.operation.usage().add_examined(0, 1);
            if !self.filter.matches(document)? {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left = self.left.map(|left| left - 1);
            let mut shown = |document: &RawDocument, out: &mut Vec<u8>| {
                match &self.projection {
                    None => out.extend_from_slice(document.as_bytes()),
                    Some(projection) => project(projection, &self.filter, document, out)?,
                }
                Ok(())
            };
            match &self.metadata {
                None => shown(document, out)?,
                Some(metadata) => metadata.write(key, document, &mut shown, out)?,
            }
            return Ok(true);
        }
    }

    fn is_exhausted(&self, _batch: BatchPlace) -> bool {
        false
    }

    fn rest(&mut self) {
        self.reading = None;
    }

    fn tail(&self) -> Option<TailPlace<'_>> {
        Some(TailPlace {
            collection: &self.collection,
            version: self.version,
            tailing: self.tailing,
            has_position: self.position.is_some() || !self.is_at_end,
        })
    }
}
