//! The source of a pipeline's documents: the executor of its plan, and searches in other collections.

use std::ops::ControlFlow;
use std::sync::Arc;

use pando_catalog::{
    BlockingMode, Bytes, Caller, Collection, FieldKind, ID_INDEX, IndexDescription, Operation, QueryAccount,
    Sparseness, Transaction, VIEWS_COLLECTION, Visibility,
};
use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument};
use pando_query::QueryError;
use pando_query::execute::{ExecutionFigures, Executor};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::metadata::{Metadata, MetadataSet};
use pando_query::partial_index::PARTIAL_FILTER;
use pando_query::pipeline::{
    Flow, ForeignAccess, ForeignPath, ForeignSearch, GeoNearSpecification, Pipeline, PipelineRun, RunOptions,
    RunSink, Searches, Sink, Source, Take,
};
use pando_query::plan::{Access, FindSpecification, Plan, plan};

use super::answer_size::check_size;
use super::input::Input;
use super::random_documents::{DrawnFrom, RandomDocuments};
use super::ranged_scan::{Gathered, RangedScan};
use super::{AggregateRequest, PlannedPipeline, geo_near};
use crate::CommandError;
use crate::ErrorCode;
use crate::context::Context;
use crate::cursor_source::CursorSource;
use crate::document_stream::{DocumentStream, StreamEnd};
use crate::reader::{HeldReader, Reader};
use crate::shared_state::SharedState;
use crate::views::{DEPTH_MAX, ViewReader, as_query_error, other_collation, too_deep};

/// The source of a pipeline's documents.
pub(in crate::crud) struct AggregateSource {
    pub shared: Arc<SharedState>,
    pub database: String,
    pub reader: Reader,
    pub(super) input: Input,
    /// The way to read all documents by several threads, as long as none is read.
    pub(super) ranged: Option<RangedScan>,
    pub run: PipelineRun,
    pub account: QueryAccount,
    /// The scope of views that stages search.
    pub view_scope: ParseScope,
}

impl CursorSource for AggregateSource {
    fn next(&mut self, caller: Caller<'_>, out: &mut Vec<u8>) -> Result<bool, CommandError> {
        let end = self.give(caller, &mut |document| {
            out.extend_from_slice(document.as_bytes());
            Flow::Enough
        })?;
        Ok(end == StreamEnd::Enough)
    }

    /// The transaction of a session is locked for one document at a time, so that others may end it.
    fn as_stream(&mut self) -> Option<&mut dyn DocumentStream> {
        if matches!(self.reader, Reader::Session(_)) { None } else { Some(self) }
    }

    fn has_stages(&self) -> bool {
        self.run.has_stages()
    }

    fn figures(&self) -> Option<ExecutionFigures> {
        // As in MongoDB only a pipeline that is a plan and nothing else is shown as one.
        self.input.figures().filter(|_| !self.run.has_stages())
    }
}

impl DocumentStream for AggregateSource {
    fn give(
        &mut self,
        caller: Caller<'_>,
        take: &mut dyn FnMut(&RawDocument) -> Flow,
    ) -> Result<StreamEnd, CommandError> {
        if caller.blocking == BlockingMode::CachedOnly && self.account.has_spilled() {
            return Err(CommandError::WouldBlock(None));
        }
        let held = self.reader.hold()?;
        if self.ranged.is_some() && caller.blocking == BlockingMode::CachedOnly {
            // What the first stages had read on the event loop would be read again by the ranges.
            return Err(CommandError::WouldBlock(None));
        }
        if let Some(ranged) = self.ranged.take() {
            let gathered = ranged.gather(&self.shared, held.transaction(), &mut self.run, caller);
            self.account.report(caller.operation);
            match gathered? {
                Gathered::Whole => self.input = Input::Given(Vec::new().into_iter()),
                Gathered::Sorted(sorted) => self.input = Input::Sorted(Box::new(sorted)),
                Gathered::Nothing => {}
            }
        }
        let mut source = CollectionSource {
            shared: &self.shared,
            database: &self.database,
            transaction: held.transaction(),
            held: &held,
            input: &mut self.input,
            caller,
            account: &self.account,
            memory: MemoryReport { account: &self.account, operation: caller.operation, documents: 0 },
            searched: None,
            searches: None,
            views_above: 0,
            view_scope: &self.view_scope,
        };
        let mut end = StreamEnd::Exhausted;
        let outcome = self.run.for_each(&mut source, &mut |document, _| {
            check_size(document)?;
            // A sort in memory gives its documents without looking whether the operation has to end.
            caller.operation.check()?;
            let flow = take(document);
            if flow == Flow::Enough {
                end = StreamEnd::Enough;
            }
            Ok(flow)
        });
        self.account.report(caller.operation);
        outcome?;
        Ok(end)
    }
}

/// A collection and the plan that finds the documents of a pipeline in it.
pub(crate) struct Subject {
    pub collection: Arc<Collection>,
    pub plan: Plan,
}

/// A pipeline that was carried out for `explain`.
pub(crate) struct MeasuredPipeline {
    /// The figures of the plan.
    pub figures: ExecutionFigures,
    /// Its stages, which are at their end.
    pub run: PipelineRun,
}

/// Carries out the stages behind a plan, and measures them; without a subject over no documents.
pub(crate) fn measure(
    context: &Context<'_>,
    reader: &HeldReader<'_>,
    subject: Option<Subject>,
    rest: &Pipeline,
    view_scope: &ParseScope,
    memory: &StageMemory,
) -> Result<MeasuredPipeline, CommandError> {
    let environment = &context.shared.environment;
    let options = RunOptions::new(memory.clone(), environment.random().next_u64());
    let mut run = rest.start(&options.measured_by(environment.clock()));
    let (account, usage) = memory.account.of_stage();
    let mut input = match subject {
        Some(Subject { collection, plan }) => {
            let transaction = reader.transaction();
            let from = DrawnFrom { collection: &collection, transaction, account: &account };
            let random = RandomDocuments::draw(context, from, &plan, rest)?;
            let memory = StageMemory::new(account, memory.disk_use);
            Input::of(collection, plan, rest, &memory)?.or_random(random)
        }
        None => Input::Given(Vec::new().into_iter()),
    };
    let mut source = CollectionSource {
        shared: context.shared,
        database: context.database,
        transaction: reader.transaction(),
        held: reader,
        input: &mut input,
        caller: context.caller(),
        account: &memory.account,
        memory: MemoryReport { account: &memory.account, operation: context.operation, documents: 0 },
        searched: None,
        searches: Some(Searches::default()),
        views_above: 0,
        view_scope,
    };
    let outcome = run.for_each(&mut source, &mut |_, _| Ok(Flow::More));
    memory.account.report(context.operation);
    outcome?;
    let mut figures = input.figures().unwrap_or_default();
    let spilled = usage.figures();
    (figures.spills, figures.spilled_bytes) = (spilled.spills, spilled.spilled_bytes);
    Ok(MeasuredPipeline { figures, run })
}

/// The documents of the collection, lent to the pipeline for one call.
struct CollectionSource<'s> {
    shared: &'s SharedState,
    database: &'s str,
    transaction: &'s dyn Transaction,
    /// The same, to look for other collections.
    held: &'s HeldReader<'s>,
    input: &'s mut Input,
    caller: Caller<'s>,
    account: &'s QueryAccount,
    memory: MemoryReport<'s>,
    /// The collection that was searched last, with its indexes as this snapshot may use them.
    searched: Option<Searched>,
    /// The work in other collections, where it is measured.
    searches: Option<Searches>,
    /// The views whose pipelines are carried out around this one.
    views_above: usize,
    /// The scope of the pipelines of views, with the order of strings of all searches.
    view_scope: &'s ParseScope,
}

/// Another collection, with the descriptions of its indexes. A call sees one snapshot, and the descriptions
/// are made after that has begun, so that they have all flags of the documents in it.
struct Searched {
    name: String,
    collection: Arc<Collection>,
    indexes: Vec<IndexDescription>,
}

/// Tells the operation about the memory of its query now and then within a long call.
struct MemoryReport<'s> {
    account: &'s QueryAccount,
    operation: &'s Operation,
    /// Documents since the last report.
    documents: u8,
}

impl MemoryReport<'_> {
    /// Counts a document that is drawn.
    fn note(&mut self) {
        self.documents = self.documents.wrapping_add(1);
        if self.documents == 0 {
            self.account.report(self.operation);
        }
    }
}

/// How documents are found by the values at a path.
fn path_by(indexes: &[IndexDescription], path: &str, order: &TextOrder) -> ForeignPath {
    let serves = |index: &IndexDescription| {
        let begins =
            index.fields.first().is_some_and(|field| field.path == path && field.kind == FieldKind::Value);
        let is_whole = matches!(index.specification.get(PARTIAL_FILTER), Ok(None));
        let is_visible = index.hidden == Visibility::Visible;
        // An index of another collation has no bounds for strings.
        let has_order = index.text_order == *order;
        begins && is_whole && is_visible && has_order && index.sparse == Sparseness::Dense
    };
    if indexes.iter().any(serves) { ForeignPath::Index } else { ForeignPath::Scan }
}

/// The same in a collection that nobody has searched yet. A view has no index of its own.
pub(crate) fn foreign_access(
    context: &Context<'_>,
    reader: &HeldReader<'_>,
    (name, path): (&str, &str),
    order: &TextOrder,
) -> Result<ForeignAccess, QueryError> {
    let found = reader.collection(context.catalog(), context.database, name);
    let found = found.map_err(|error| as_query_error(error.into()))?;
    let by = found.map_or(ForeignPath::Scan, |collection| {
        path_by(&collection.describe_indexes_at(reader.transaction().snapshot()), path, order)
    });
    Ok(ForeignAccess { by, ..ForeignAccess::default() })
}

impl Source for CollectionSource<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        match self.input {
            Input::Given(documents) => {
                self.caller.operation.check()?;
                Ok(documents.next())
            }
            Input::Collection(executor) => {
                self.memory.note();
                let row = executor.next(self.transaction, self.caller)?;
                Ok(row.map(|row| Bytes::copy_from_slice(row.document.as_bytes())))
            }
            Input::Filtered(executor, filter) => {
                self.memory.note();
                let mut next = None;
                filter.for_each(executor, self.transaction, self.caller, &mut |document| {
                    next = Some(Bytes::copy_from_slice(document.as_bytes()));
                    Ok(ControlFlow::Break(()))
                })?;
                Ok(next)
            }
            Input::Random(random) => {
                self.memory.note();
                random.next(self.transaction, self.caller)
            }
            Input::Sorted(sorted) => {
                let mut next = None;
                sorted.for_each(self.caller, &mut |document, _| {
                    next = Some(Bytes::copy_from_slice(document.as_bytes()));
                    Ok(Flow::Enough)
                })?;
                Ok(next)
            }
            Input::WithMetadata(executor, metadata) => {
                self.memory.note();
                let Some(row) = executor.next(self.transaction, self.caller)? else { return Ok(None) };
                let shown = metadata.with_hidden(row.primary_key, row.document)?;
                Ok(Some(Bytes::from(shown.into_vec())))
            }
        }
    }

    fn for_each(&mut self, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let caller = self.caller;
        let mut check = || Ok(caller.operation.check_now()?);
        let executor = match self.input {
            Input::Collection(executor) => executor,
            Input::Sorted(sorted) => return sorted.for_each(caller, sink),
            Input::Filtered(executor, filter) => {
                return filter.for_each(executor, self.transaction, caller, &mut |document| {
                    self.memory.note();
                    Ok(match sink(document, &mut check)? {
                        Flow::More => ControlFlow::Continue(()),
                        Flow::Enough => ControlFlow::Break(()),
                    })
                });
            }
            Input::WithMetadata(executor, metadata) => {
                return executor.for_each(self.transaction, caller, &mut |row| {
                    self.memory.note();
                    let shown = metadata.with_hidden(row.primary_key, row.document)?;
                    Ok(match sink(&shown, &mut check)? {
                        Flow::More => ControlFlow::Continue(()),
                        Flow::Enough => ControlFlow::Break(()),
                    })
                });
            }
            Input::Random(random) => {
                while let Some(document) = random.next(self.transaction, caller)? {
                    self.memory.note();
                    if sink(RawDocument::from_bytes(&document)?, &mut check)? == Flow::Enough {
                        break;
                    }
                }
                return Ok(());
            }
            Input::Given(documents) => {
                for document in documents {
                    caller.operation.check()?;
                    if sink(RawDocument::from_bytes(&document)?, &mut check)? == Flow::Enough {
                        break;
                    }
                }
                return Ok(());
            }
        };
        executor.for_each(self.transaction, caller, &mut |row| {
            self.memory.note();
            Ok(match sink(row.document, &mut check)? {
                Flow::More => ControlFlow::Continue(()),
                Flow::Enough => ControlFlow::Break(()),
            })
        })
    }

    fn for_each_run(&mut self, sink: &mut RunSink<'_>) -> Result<(), QueryError> {
        let Input::Collection(executor) = self.input else {
            return self.for_each(&mut |document, check| sink(document, 1, check).map(|()| Flow::More));
        };
        let caller = self.caller;
        let mut check = || Ok(caller.operation.check_now()?);
        executor.for_each_run(self.transaction, caller, &mut |run| {
            self.memory.note();
            sink(run.row.document, run.documents, &mut check)
        })
    }

    fn find_in(&mut self, collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        if collection.is_empty() {
            let sentence = format!("Namespace {}. is not a valid collection name", self.database);
            return Err(QueryError::new(ErrorCode::InvalidNamespace, sentence));
        }
        let Some(searched) = self.search_in(collection)? else {
            return self.find_in_view(collection, filter, take);
        };
        let collection = Arc::clone(&searched.collection);
        let scores = MetadataSet::of(&[Metadata::TextScore]);
        let metadata = if filter.has_text() { scores } else { MetadataSet::EMPTY };
        let specification = FindSpecification { metadata, ..FindSpecification::matching(filter) };
        let plan = plan(&specification, &searched.indexes)?;
        self.take_all(collection, plan, take)
    }

    fn find_near(
        &mut self,
        collection: &str,
        near: &GeoNearSpecification,
        metadata: MetadataSet,
        take: Take<'_>,
    ) -> Result<(), QueryError> {
        let Some(searched) = self.search_in(collection)? else {
            return Err(geo_near::no_collection(self.database, collection));
        };
        let collection = Arc::clone(&searched.collection);
        let filter = geo_near::filter(near, &searched.indexes).map_err(as_query_error)?;
        let specification = FindSpecification { metadata, ..FindSpecification::matching(&filter) };
        let mut plan = plan(&specification, &searched.indexes)?;
        geo_near::give_distances(near, &mut plan);
        self.take_all(collection, plan, take)
    }

    fn foreign_access(&mut self, collection: &str, path: &str) -> Result<ForeignAccess, QueryError> {
        let (shared, operation, order) = (self.shared, self.caller.operation, self.view_scope.text_order());
        let Some(Searched { collection, indexes, .. }) = self.search_in(collection)? else {
            return Ok(ForeignAccess::default());
        };
        let by = path_by(indexes, path, order);
        let documents = shared.catalog.counts(collection, operation).ok().map(|counts| counts.documents);
        let search = match self.transaction.sends_gets() {
            false => ForeignSearch::ByPages,
            true => ForeignSearch::ByRequests,
        };
        Ok(ForeignAccess { by, documents, search })
    }

    fn take_searches(&mut self) -> Searches {
        self.searches.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(self.caller.operation.check()?)
    }
}

impl CollectionSource<'_> {
    /// Carries a plan out, and gives all of its documents.
    fn take_all(
        &mut self,
        collection: Arc<Collection>,
        plan: Plan,
        take: Take<'_>,
    ) -> Result<(), QueryError> {
        let memory = StageMemory::new(self.account.clone(), DiskUse::Allowed);
        let mut searches = self.searches.as_ref().map(|_| search_of(&plan));
        let mut executor = Executor::new(collection, plan, &memory)?;
        while let Some(row) = executor.next(self.transaction, self.caller)? {
            take(row.document)?;
            self.memory.note();
        }
        if let (Some(all), Some(search)) = (&mut self.searches, &mut searches) {
            let counters = executor.counters();
            search.keys_examined = counters.keys_examined;
            search.documents_examined = counters.documents_examined;
            all.add(std::mem::take(search));
        }
        Ok(())
    }

    /// Another collection of the database; `None` where there is none of this name.
    fn search_in(&mut self, name: &str) -> Result<Option<&Searched>, QueryError> {
        if self.searched.as_ref().is_none_or(|searched| searched.name != name) {
            let found = self.held.collection(&self.shared.catalog, self.database, name);
            let found = found.map_err(|error| QueryError::Refused {
                code: ErrorCode::OperationNotSupportedInTransaction,
                message: error.to_string(),
            })?;
            self.searched = found.map(|collection| {
                let indexes = collection.describe_indexes_at(self.transaction.snapshot());
                Searched { name: name.to_owned(), collection, indexes }
            });
        }
        Ok(self.searched.as_ref())
    }

    /// The same in a view; a name that is none of a view is one of an empty collection.
    fn find_in_view(&mut self, name: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        if self.shared.catalog.collection(self.database, VIEWS_COLLECTION).is_none() {
            return Ok(());
        }
        let views = ViewReader {
            catalog: &self.shared.catalog,
            held: self.held,
            database: self.database,
            blocking: self.caller.blocking,
        };
        let Some(view) = views.resolve(name).map_err(as_query_error)? else { return Ok(()) };
        if view.order != *self.view_scope.text_order() {
            return Err(as_query_error(other_collation(name)));
        }
        if self.views_above == DEPTH_MAX {
            return Err(as_query_error(too_deep()));
        }
        let collection = self.held.collection(&self.shared.catalog, self.database, &view.collection);
        let collection = collection.map_err(|error| as_query_error(error.into()))?;
        // The optimiser moves the filter before the stages of the view where it can.
        let pushed = filter.to_match_stages();
        let stages = view.followed_by(RawArray::from_document(&pushed)).map_err(as_query_error)?;
        let scope = self.view_scope;
        let pipeline = Pipeline::parse(RawArray::from_document(&stages), scope)?;
        let memory = StageMemory::new(self.account.clone(), DiskUse::Allowed);
        let (mut input, rest) = match collection {
            Some(collection) => {
                let request =
                    AggregateRequest::of(&view.collection, RawArray::from_document(RawDocument::empty()));
                let planned = PlannedPipeline::new(&request, pipeline, scope, &collection, self.transaction);
                let PlannedPipeline { plan, rest, .. } = planned.map_err(as_query_error)?;
                if let Some(all) = &mut self.searches {
                    all.add(search_of(&plan));
                }
                (Input::of(collection, plan, &rest, &memory).map_err(as_query_error)?, rest)
            }
            None => (Input::Given(Vec::new().into_iter()), pipeline),
        };
        let options = RunOptions::new(memory, self.shared.environment.random().next_u64());
        let mut run = rest.start(&options);
        let mut source = CollectionSource {
            input: &mut input,
            memory: MemoryReport { account: self.account, operation: self.caller.operation, documents: 0 },
            searched: None,
            searches: self.searches.as_ref().map(|_| Searches::default()),
            views_above: self.views_above + 1,
            ..*self
        };
        run.for_each(&mut source, &mut |document, _| {
            if filter.matches(document)? {
                take(document)?;
            }
            Ok(Flow::More)
        })?;
        let within = source.take_searches();
        if let Some(all) = &mut self.searches {
            all.add(within);
            let figures = input.figures().unwrap_or_default();
            all.keys_examined += figures.counters.keys_examined;
            all.documents_examined += figures.counters.documents_examined;
        }
        Ok(())
    }
}

/// A search by this plan, before it is counted.
fn search_of(plan: &Plan) -> Searches {
    let mut search = Searches::default();
    match &plan.access {
        Access::Nothing => {}
        Access::Id(_) => search.indexes.extend([ID_INDEX.to_owned()]),
        Access::Collection(_) => search.collection_scans = 1,
        Access::Near(near) => search.indexes.extend([near.index.name.clone()]),
        Access::Index(scan) => search.indexes.extend([scan.index.name.clone()]),
        Access::Text(found) => {
            let others = found.others.iter().map(|scan| scan.index.name.clone());
            search.indexes.extend(std::iter::once(found.index.name.clone()).chain(others));
        }
        Access::Merge(merge) => search.indexes.extend(merge.scans.iter().map(|scan| scan.index.name.clone())),
        Access::Union(scans) => search.indexes.extend(scans.iter().map(|scan| scan.index.name.clone())),
        Access::Intersection(scans) => {
            search.indexes.extend(scans.iter().map(|scan| scan.index.name.clone()));
        }
    }
    search
}
