//! A `$lookup` at work: for each document it finds those that belong, and gives one document with their
//! array, or one for each of them.
//!
//! # Strategies
//! 1. *Search*: the other collection is asked once for each document, by a filter that its planner can use.
//!    It is an index join where an index begins with the foreign field, and a nested loop else.
//! 2. *Hash join*: all documents of the other collection stand in a [`HashTable`].
//! 3. *Hash join in blocks*: the documents are hashed instead, so many at a time ([`BlockJoin`]). Where a
//!    search is a request over a network, it is an index join of many documents at once.
//! 4. A pipeline without variables and fields gives the same for every document. It is carried out once.
//!
//! The documents of an array stay in memory as a whole. Where the stage gives them one by one, they spill
//! ([`Joined`]); what a pipeline of the fourth kind gives is then made again for each document.
//!
//! The first document is always searched for: there may be no second. From then on a collection without an
//! index is hashed; one with an index as soon as the searches have cost about as much as reading the
//! collection. Where the table does not fit into memory, searches go on if there is an index. Else blocks
//! take over, which spill; without disk use a nested loop does, as in MongoDB.

use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_document::{Document, RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::block_join::{BlockJoin, Reading};
use super::hash_table::{HashTable, Order};
use super::joined::{Joined, Rest, Wanted};
use super::{Specification, Unwind};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::memory::DiskUse;
use crate::pipeline::Pipeline;
use crate::pipeline::optimiser;
use crate::pipeline::searches_shown::show;
use crate::pipeline::stage::fetched::{self, Fetched};
use crate::pipeline::stage::unwind::put;
use crate::pipeline::stage::values_at_path::joined_values;
use crate::pipeline::stage::{
    ForeignAccess, ForeignPath, ForeignSearch, RunOptions, Searches, Source, Stage, document_in,
};
use crate::sort::Sorter;

/// Bytes that stay reserved from one document to the next.
pub(in crate::pipeline::stage) const KEPT_BYTES: usize = 64 << 10;
/// Documents that a scan reads in about the time of a search by an index.
const DOCUMENTS_A_SEARCH: u64 = 8;

/// See the module's head.
pub(super) struct Run {
    specification: Arc<Specification>,
    reservation: Reservation,
    options: RunOptions,
    placing: Placing,
    strategy: Strategy,
    /// How the other collection is searched, once it was asked for.
    access: Option<ForeignAccess>,
    /// Documents that were joined.
    joined: u64,
    /// Drawn, and not answered yet: the other collection may have said `WouldBlock`.
    pending: Option<Bytes>,
    /// The document whose joined documents go on one by one.
    unwound: Option<Unwound>,
    /// The work in the other collection, where the run is measured.
    searches: Option<Searches>,
}

enum Strategy {
    Search,
    Hash(Box<HashTable>),
    /// The documents of the input are hashed: the table had no room, or each search is a request.
    Blocks(Box<BlockJoin>),
    /// The table had no room.
    SearchForGood,
    /// The documents of every document.
    Constant(Arc<Joined>),
}

/// The documents that a pipeline begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// Those that its first filters let through.
    Filtered,
    /// All that belong by the fields.
    Joined,
}

/// A document and its joined ones.
struct Unwound {
    root: Bytes,
    joined: Arc<Joined>,
    /// Those behind, for which memory has no room.
    rest: Option<Rest>,
    /// The next one to give.
    at: usize,
}

/// How a joined document or their array comes to its place.
enum Placing {
    /// A top-level field.
    Field(String),
    /// A path.
    Path(Vec<String>),
    /// A path and that of the numbers.
    Numbered(Vec<String>, Vec<String>),
}

impl Run {
    pub fn new(specification: &Arc<Specification>, options: &RunOptions) -> Run {
        Run {
            specification: Arc::clone(specification),
            reservation: options.memory.account.reserve(),
            options: options.unmeasured(),
            placing: Placing::of(specification),
            strategy: Strategy::Search,
            access: None,
            joined: 0,
            pending: None,
            unwound: None,
            searches: options.clock.as_ref().map(|_| Searches::default()),
        }
    }

    /// The documents that belong to one, and those behind them that memory has no room for.
    fn join(
        &mut self,
        root: &RawDocument,
        input: &mut dyn Source,
    ) -> Result<(Arc<Joined>, Option<Rest>), QueryError> {
        let specification = Arc::clone(&self.specification);
        if let Strategy::Constant(joined) = &self.strategy {
            return Ok((Arc::clone(joined), None));
        }
        if let Some((_, foreign)) = &specification.fields {
            self.choose(&specification, foreign, input)?;
        }
        let mut joined = Joined::default();
        if specification.pipeline.is_some() {
            self.join_by_pipeline(&specification, root, &mut joined, input)?;
        } else {
            self.join_by_fields(&specification, root, &mut joined, input)?;
        }
        let rest = joined.take_rest();
        let joined = Arc::new(joined);
        if specification.is_constant() && rest.is_none() {
            self.strategy = Strategy::Constant(Arc::clone(&joined));
        }
        Ok((joined, rest))
    }

    /// Makes the table of a hash join as soon as it costs less than further searches.
    fn choose(
        &mut self,
        specification: &Specification,
        foreign: &str,
        input: &mut dyn Source,
    ) -> Result<(), QueryError> {
        if self.joined == 0 || !matches!(self.strategy, Strategy::Search) {
            return Ok(());
        }
        // Documents that the pipeline makes itself stand in no collection.
        if specification.parsed.as_ref().is_some_and(Pipeline::makes_documents)
            || specification.from.is_empty()
        {
            return Ok(());
        }
        let access = match self.access {
            Some(access) => access,
            None => *self.access.insert(input.foreign_access(&specification.from, foreign)?),
        };
        let searched = self.joined.saturating_mul(DOCUMENTS_A_SEARCH);
        let is_wanted = match access.by {
            ForeignPath::Scan => true,
            ForeignPath::Index => access.documents.is_some_and(|documents| searched >= documents),
        };
        if !is_wanted {
            let searches_at_once = access.search == ForeignSearch::ByRequests
                && self.options.memory.disk_use == DiskUse::Allowed;
            if searches_at_once {
                self.strategy = self.blocks(Reading::Search, foreign, specification);
            }
            return Ok(());
        }
        let order = if access.by == ForeignPath::Index { Order::Value } else { Order::Arrival };
        let text_order = specification.scope.text_order();
        let mut table = HashTable::new(foreign, order, text_order, self.options.memory.account.reserve());
        let filter = specification.constant_filter()?;
        let filled = input.find_in(&specification.from, &filter, &mut |found| table.push(found));
        self.strategy = match filled {
            Err(_) if table.is_full() => {
                drop(table);
                let memory = &self.options.memory;
                match (access.by, memory.disk_use) {
                    (ForeignPath::Scan, DiskUse::Allowed) => {
                        self.blocks(Reading::Scan, foreign, specification)
                    }
                    _ => Strategy::SearchForGood,
                }
            }
            other => {
                other?;
                Strategy::Hash(Box::new(table))
            }
        };
        Ok(())
    }

    fn blocks(&self, reading: Reading, foreign: &str, specification: &Specification) -> Strategy {
        let text_order = specification.scope.text_order();
        Strategy::Blocks(Box::new(BlockJoin::new(reading, foreign, text_order, &self.options.memory)))
    }

    fn join_by_fields(
        &mut self,
        specification: &Specification,
        root: &RawDocument,
        joined: &mut Joined,
        input: &mut dyn Source,
    ) -> Result<(), QueryError> {
        let (from, reservation) = (&specification.from, &mut self.reservation);
        let wanted = specification.wanted(&self.options);
        let mut take = |found: &RawDocument| joined.push(found.as_bytes(), from, reservation, wanted);
        match &mut self.strategy {
            Strategy::Hash(table) => {
                input.check()?;
                specification.look_up(root, table, &specification.scope, &mut take)
            }
            Strategy::Blocks(blocks) if blocks.is_taking() => {
                input.check()?;
                blocks.take_found(input, &mut take)
            }
            _ => {
                let filter = specification.filter_for(root, RawDocument::empty())?;
                let filter = Filter::parse(&filter, &specification.scope)?;
                input.find_in(from, &filter, &mut take)
            }
        }
    }

    fn join_by_pipeline(
        &mut self,
        specification: &Specification,
        root: &RawDocument,
        joined: &mut Joined,
        input: &mut dyn Source,
    ) -> Result<(), QueryError> {
        let scope = specification.scope_for(root)?;
        let with_variables;
        let pipeline = match (&specification.parsed, &specification.pipeline) {
            (Some(parsed), _) => parsed,
            (None, stages) => {
                let stages = stages.as_deref().unwrap_or(RawDocument::empty());
                with_variables = Pipeline::parse(RawArray::from_document(stages), &scope.within_stage()?)?;
                &with_variables
            }
        };
        let parsed = Parsed { pipeline, scope: &scope };
        let (mut documents, beginning) = self.documents_for(specification, root, parsed, input)?;
        let mut documents = Fetched { documents: &mut documents, others: input };
        // A search has been answered with the filter by which the documents were found, if that had it.
        let is_answered = specification.parsed.is_some() || beginning == Beginning::Filtered;
        let behind_search = if is_answered { pipeline.behind_search() } else { None };
        let mut stages = behind_search.as_ref().unwrap_or(pipeline).start(&self.options);
        // Documents that the pipeline makes itself are looked at behind it.
        let belonging = match pipeline.makes_documents() {
            true => Some(Filter::parse(&specification.filter_for(root, RawDocument::empty())?, &scope)?),
            false => None,
        };
        let matching = specification.matching.as_ref().map(|(_, filter)| filter);
        let wanted = specification.wanted(&self.options);
        while let Some(bytes) = stages.next(&mut documents)? {
            let document = document_in(&bytes)?;
            if belonging.as_ref().map_or(Ok(true), |filter| filter.matches(document))?
                && matching.map_or(Ok(true), |filter| filter.matches(document))?
            {
                joined.push(&bytes, &specification.from, &mut self.reservation, wanted)?;
            }
        }
        Ok(())
    }

    /// The documents that the pipeline begins with.
    fn documents_for(
        &mut self,
        specification: &Specification,
        root: &RawDocument,
        parsed: Parsed<'_>,
        input: &mut dyn Source,
    ) -> Result<(Sorter, Beginning), QueryError> {
        let memory = &self.options.memory;
        if parsed.pipeline.makes_documents() {
            return Ok((fetched::none(memory), Beginning::Filtered));
        }
        let mut documents = fetched::none(memory);
        let mut take = |found: &RawDocument| {
            // The caller checks before each document.
            documents.push(&[], &[], found.as_bytes(), &mut || Ok(()))
        };
        match &mut self.strategy {
            Strategy::Hash(table) => {
                input.check()?;
                specification.look_up(root, table, parsed.scope, &mut take)?;
                return Ok((documents, Beginning::Joined));
            }
            Strategy::Blocks(blocks) if blocks.is_taking() => {
                blocks.take_found(input, &mut take)?;
                return Ok((documents, Beginning::Joined));
            }
            _ => {}
        }
        let pushed = parsed.pipeline.clone().split_pushdown().filter;
        let filter = Filter::parse(&specification.filter_for(root, &pushed)?, parsed.scope)?;
        let fetched = fetched::fetch_for(&specification.from, parsed.pipeline, &filter, memory, input)?;
        Ok((fetched, Beginning::Filtered))
    }

    /// The next document of the input.
    fn draw(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        match &mut self.strategy {
            Strategy::Blocks(blocks) => blocks.next(&self.specification, input),
            _ => input.next(),
        }
    }

    /// The next document of the one at hand; `None` behind the last.
    fn next_unwound(&mut self, unwind: &Unwind, input: &dyn Source) -> Result<Option<Bytes>, QueryError> {
        let Some(Unwound { root, joined, rest, at }) = &mut self.unwound else { return Ok(None) };
        let document = document_in(root)?;
        let behind = match (joined.get(*at), rest) {
            (None, Some(rest)) => rest.next(&mut || input.check())?,
            _ => None,
        };
        let found = match &behind {
            Some(bytes) => Some(document_in(bytes)),
            None => joined.get(*at),
        };
        let next = match found {
            Some(found) => {
                let number = i64::try_from(*at).unwrap_or(i64::MAX);
                let values = [Some(RawValue::Document(found?)), Some(RawValue::Int64(number))];
                self.placing.place(document, values)?
            }
            None if *at == 0 && unwind.preserves() => {
                self.placing.place(document, [None, Some(RawValue::Null)])?
            }
            None => {
                self.unwound = None;
                self.reservation.shrink_to(KEPT_BYTES);
                return Ok(None);
            }
        };
        *at += 1;
        Ok(Some(next))
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        let specification = Arc::clone(&self.specification);
        loop {
            if let Some(unwind) = &specification.unwinding
                && self.unwound.is_some()
            {
                input.check()?;
                match self.next_unwound(unwind, input)? {
                    Some(row) => return Ok(Some(row)),
                    None => continue,
                }
            }
            if self.pending.is_none() {
                self.pending = self.draw(input)?;
            }
            let Some(bytes) = self.pending.clone() else { return Ok(None) };
            let root = document_in(&bytes)?;
            let (joined, rest) = self.join(root, input)?;
            if let Some(searches) = &mut self.searches {
                searches.add(input.take_searches());
            }
            self.pending = None;
            self.joined += 1;
            if specification.unwinding.is_some() {
                self.unwound = Some(Unwound { root: bytes, joined, rest, at: 0 });
                continue;
            }
            let array = RawDocumentBuf::from_vec(joined.to_array())?;
            let array = RawValue::Array(RawArray::from_document(&array));
            let answer = self.placing.place(root, [Some(array), None]);
            self.reservation.shrink_to(KEPT_BYTES);
            return answer.map(Some);
        }
    }

    fn explain(&self, shown: &mut Document) {
        let strategy = match (&self.strategy, self.access.map(|access| access.by)) {
            (Strategy::Hash(_), _) => "HashJoin",
            (_, Some(ForeignPath::Index)) => "IndexedLoopJoin",
            (Strategy::Blocks(_), _) => "HashJoin",
            _ => "NestedLoopJoin",
        };
        if self.searches.is_some() && self.specification.fields.is_some() {
            shown.push("strategy", strategy);
        }
        show(self.searches.as_ref(), shown);
    }
}

/// The pipeline with the variables of one document.
#[derive(Clone, Copy)]
struct Parsed<'p> {
    pipeline: &'p Pipeline,
    scope: &'p ParseScope,
}

impl Specification {
    /// Whether every document gets the same: what a pipeline without variables, fields and chance makes.
    fn is_constant(&self) -> bool {
        let has = |name: &str| {
            let stages = self.pipeline.as_deref().map_or(&[][..], |stages| stages.as_bytes());
            stages.windows(name.len()).any(|bytes| bytes == name.as_bytes())
        };
        self.fields.is_none() && self.parsed.is_some() && !has("$rand\0") && !has("$sample\0")
    }

    /// The way in which the joined documents are wanted.
    fn wanted<'w>(&self, options: &'w RunOptions) -> Wanted<'w> {
        match &self.unwinding {
            Some(_) => Wanted::OneByOne(&options.memory),
            None => Wanted::Array,
        }
    }

    /// A filter, and the part of the filters that is the same for every document.
    pub(super) fn with_constant(&self, filter: RawDocumentBuf) -> Result<RawDocumentBuf, QueryError> {
        let mut together = vec![filter];
        if let Some(pipeline) = &self.parsed {
            together.push(pipeline.clone().split_pushdown().filter);
        } else if let (Some((matching, _)), None) = (&self.matching, &self.pipeline) {
            together.push(matching.clone());
        }
        optimiser::all_of(&together)
    }

    /// The part of the filters that is the same for every document.
    pub(super) fn constant_filter(&self) -> Result<Filter, QueryError> {
        if let Some(pipeline) = &self.parsed {
            let pushed = pipeline.clone().split_pushdown().filter;
            return Filter::parse(&pushed, &self.scope);
        }
        match (&self.matching, &self.pipeline) {
            (Some((_, matching)), None) => Ok(matching.clone()),
            _ => Ok(Filter::everything()),
        }
    }

    /// Calls `take` with the documents of a table that belong to a document.
    fn look_up(
        &self,
        root: &RawDocument,
        table: &mut HashTable,
        scope: &ParseScope,
        take: &mut dyn FnMut(&RawDocument) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let Some((local, foreign)) = &self.fields else { return Ok(()) };
        let local = joined_values(root, local)?;
        let found = table.find(local.raw_or_null())?;
        let filter = match found.certainty {
            Some(_) => Some(Filter::parse(&super::equality(foreign, local.raw_or_null())?, scope)?),
            None => None,
        };
        for number in found.numbers {
            let document = table.document(number)?;
            if filter.as_ref().map_or(Ok(true), |filter| filter.matches(document))? {
                take(document)?;
            }
        }
        Ok(())
    }
}

impl Placing {
    fn of(specification: &Specification) -> Placing {
        let target = &specification.target;
        let index = specification.unwinding.as_ref().and_then(Unwind::index_path);
        match index {
            None if !target.contains('.') => Placing::Field(target.clone()),
            None => Placing::Path(names_of(target)),
            Some(index) => Placing::Numbered(names_of(target), names_of(&index)),
        }
    }

    /// A document with one value at the target, and another at the path of the numbers.
    fn place(&self, root: &RawDocument, values: [Option<RawValue<'_>>; 2]) -> Result<Bytes, QueryError> {
        match self {
            Placing::Field(name) => with_field(root, name, values[0]),
            Placing::Path(target) => Ok(Bytes::from(put(root, target, values[0])?)),
            Placing::Numbered(target, index) => {
                let placed = put(root, target, values[0])?;
                Ok(Bytes::from(put(RawDocument::from_bytes(&placed)?, index, values[1])?))
            }
        }
    }
}

fn names_of(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

/// The document with a value of a top-level field, or without the field.
fn with_field(root: &RawDocument, name: &str, value: Option<RawValue<'_>>) -> Result<Bytes, QueryError> {
    let room = match value {
        Some(RawValue::Document(document)) => document.as_bytes().len(),
        Some(RawValue::Array(array)) => array.as_document().as_bytes().len(),
        _ => 0,
    };
    let mut bytes = Vec::with_capacity(root.as_bytes().len() + name.len() + room + 8);
    let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
    let mut left = value;
    for field in root {
        let (old, old_value) = field?;
        if old != name {
            writer.append(old, old_value);
        } else if let Some(value) = left.take() {
            writer.append(name, value);
        }
    }
    if let Some(value) = left {
        writer.append(name, value);
    }
    writer.finish();
    Ok(Bytes::from(bytes))
}

/// The document with an array at a path.
pub(in crate::pipeline::stage) fn with_array(
    root: &RawDocument,
    target: &str,
    array: Vec<u8>,
) -> Result<Bytes, QueryError> {
    let array = RawDocumentBuf::from_vec(array)?;
    let array = RawValue::Array(RawArray::from_document(&array));
    Ok(Bytes::from(put(root, &names_of(target), Some(array))?))
}
