//! The fields of `find`, read and parsed.

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};
use pando_keyorder::Direction;
use pando_query::explain::{Choice, Display, ExplainedProjection, Purpose};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::DiskUse;
use pando_query::metadata::{Metadata, MetadataSet};
use pando_query::plan::{FindSpecification, Hint, ProjectionNeeds};
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use super::row_metadata::WantedMetadata;
use crate::arguments::{Argument, Arguments, collection_name};
use crate::collation::CollationChoice;
use crate::cursor_facts::Expiry;
use crate::cursor_reply::Keeping;
use crate::cursor_source::Tailing;
use crate::{CommandError, ErrorCode};

/// A `find` as the client sent it: checked, not yet parsed.
pub(crate) struct FindRequest<'a> {
    pub collection: &'a str,
    pub filter: &'a RawDocument,
    pub projection: Option<&'a RawDocument>,
    pub sort: Option<&'a RawDocument>,
    pub hint: Option<RawValue<'a>>,
    pub min: Option<&'a RawDocument>,
    pub max: Option<&'a RawDocument>,
    pub variables: &'a RawDocument,
    pub collation: CollationChoice<'a>,
    pub skip: u64,
    pub limit: Option<u64>,
    pub batch_size: Option<u64>,
    pub keeping: Keeping,
    pub expiry: Expiry,
    pub disk_use: DiskUse,
    pub allows_partial_results: bool,
    /// Of a tailable cursor.
    pub tailing: Option<Tailing>,
    pub metadata: WantedMetadata,
}

impl<'a> FindRequest<'a> {
    /// Reads the fields of a command document.
    pub fn read(body: &'a RawDocument) -> Result<FindRequest<'a>, CommandError> {
        let (_, collection) = match body.iter().next() {
            Some(first) => first?,
            None => return Err(CommandError::failed(ErrorCode::FailedToParse, "the find command is empty")),
        };
        let mut request = FindRequest {
            collection: collection_name(collection)?,
            filter: RawDocument::empty(),
            projection: None,
            sort: None,
            hint: None,
            min: None,
            max: None,
            variables: RawDocument::empty(),
            collation: CollationChoice::Inherited,
            skip: 0,
            limit: None,
            batch_size: None,
            keeping: Keeping::Keep,
            expiry: Expiry::TimesOut,
            disk_use: DiskUse::Allowed,
            allows_partial_results: false,
            tailing: None,
            metadata: WantedMetadata::default(),
        };
        let mut follows = Follows::default();
        for argument in Arguments::of_command("FindCommandRequest", body) {
            request.take(argument?, &mut follows)?;
        }
        request.tailing = match (follows.tailable, follows.awaits_data) {
            (false, false) => None,
            (false, true) => return Err(await_without_tailable()),
            (true, false) => Some(Tailing::Returns),
            (true, true) => Some(Tailing::Waits),
        };
        request.check_tailing()?;
        Ok(request)
    }

    /// Refuses options that do not go together with a tailable cursor.
    fn check_tailing(&self) -> Result<(), CommandError> {
        if self.tailing.is_none() {
            return Ok(());
        }
        let refused = |reason: &str| Err(CommandError::failed(ErrorCode::BadValue, reason));
        let is_in_order = |sort: &RawDocument| {
            let first = sort.get("$natural").ok().flatten();
            first.is_some_and(|direction| direction.as_i64_exact() == Some(1))
        };
        match self.sort {
            Some(sort) if !is_in_order(sort) => {
                refused("cannot use tailable option with a sort other than {$natural: 1}")
            }
            _ if self.keeping == Keeping::SingleBatch => {
                refused("cannot use tailable option with the 'singleBatch' option")
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, argument: Argument<'a>, follows: &mut Follows) -> Result<(), CommandError> {
        match argument.name {
            "filter" => self.filter = argument.object()?,
            "projection" => {
                self.projection = Some(argument.object()?).filter(|projection| !projection.is_empty())
            }
            "sort" => self.sort = Some(argument.object()?).filter(|sort| !sort.is_empty()),
            "hint" => self.hint = Some(argument.value),
            "min" => self.min = Some(argument.object()?).filter(|min| !min.is_empty()),
            "max" => self.max = Some(argument.object()?).filter(|max| !max.is_empty()),
            "let" => self.variables = argument.document()?.unwrap_or(self.variables),
            "skip" => self.skip = argument.natural()?.unwrap_or(0),
            "limit" => self.limit = argument.natural()?.filter(|limit| *limit > 0),
            "batchSize" => self.batch_size = argument.natural()?,
            "singleBatch" if argument.flag()? => self.keeping = Keeping::SingleBatch,
            "noCursorTimeout" if argument.flag()? => self.expiry = Expiry::Never,
            "allowDiskUse" => {
                self.disk_use = if argument.flag()? { DiskUse::Allowed } else { DiskUse::Forbidden };
            }
            "collation" => self.collation = CollationChoice::of(Some(argument.object()?)),
            "tailable" => follows.tailable = argument.flag()?,
            "awaitData" => follows.awaits_data = argument.flag()?,
            "returnKey" => self.metadata.returns_key = argument.flag()?,
            "showRecordId" => self.metadata.shows_record_id = argument.flag()?,
            "singleBatch" | "noCursorTimeout" => {}
            "allowPartialResults" => self.allows_partial_results = argument.flag()?,
            // MongoDB takes a boolean, which means nothing any more, and asks for an object in place of other
            // values.
            "oplogReplay" if matches!(argument.value, RawValue::Boolean(_)) => {}
            "oplogReplay" => return Err(argument.expected_object()),
            // They have a meaning for members of a replica set alone.
            "allowSpeculativeMajorityRead" | "readOnce" => {
                argument.flag()?;
            }
            "term" => {
                argument.integer()?;
            }
            "includeQueryStatsMetrics" => {}
            _ => argument.refuse_unless_generic()?,
        }
        Ok(())
    }
}

/// The flags of a cursor that follows the end of its collection.
#[derive(Default)]
struct Follows {
    tailable: bool,
    awaits_data: bool,
}

/// Only the end of a capped collection can be followed.
pub(super) fn not_capped() -> CommandError {
    CommandError::failed(
        ErrorCode::BadValue,
        "error processing query: tailable cursor requested on non capped collection",
    )
}

fn await_without_tailable() -> CommandError {
    CommandError::failed(ErrorCode::FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
}

/// A `find`, parsed: what is planned and executed.
pub(crate) struct ParsedFind<'a> {
    pub filter: Filter,
    pub sort: Sort,
    pub projection: Option<Projection>,
    /// The order of strings.
    pub order: TextOrder,
    hint: Option<Hint>,
    needed_paths: Option<Vec<String>>,
    pub metadata: WantedMetadata,
    pub skip: u64,
    pub limit: Option<u64>,
    min: Option<&'a RawDocument>,
    max: Option<&'a RawDocument>,
    /// The projection as the request spells it.
    written_projection: Option<&'a RawDocument>,
}

impl<'a> ParsedFind<'a> {
    /// Parses filter, sort, projection and hint.
    pub fn parse(request: &FindRequest<'a>, scope: &ParseScope) -> Result<ParsedFind<'a>, CommandError> {
        let scope = scope.with_let(request.variables)?;
        let filter = match request.projection.is_some_and(Projection::is_positional) {
            true => Filter::parse_for_plan(request.filter, &scope.beside_positional())?,
            false => Filter::parse_for_plan(request.filter, &scope)?,
        };
        let mut metadata = request.metadata.clone();
        let sort = request.sort.map_or(Ok(Sort::Unordered), Sort::parse)?.collated_by(scope.text_order());
        request.projection.map_or(Ok(()), |projection| metadata.read(projection))?;
        let given = metadata.kinds.or(sort.metadata()).and(given_metadata(&filter, &sort));
        let projection_scope = scope.with_metadata(given);
        let projection = match request.projection.filter(|projection| !projection.is_empty()) {
            Some(projection) => Some(Projection::parse(projection, &projection_scope)?),
            None => None,
        };
        let needed_paths = projection.as_ref().filter(|_| metadata.is_empty());
        Ok(ParsedFind {
            filter,
            sort,
            order: scope.text_order().clone(),
            needed_paths: needed_paths.and_then(Projection::needed_paths),
            metadata,
            projection,
            hint: request.hint.map_or(Ok(None), Hint::parse)?,
            skip: request.skip,
            limit: request.limit,
            min: request.min,
            max: request.max,
            written_projection: request.projection,
        })
    }

    /// Whether its scan of the collection goes from the end.
    pub fn is_backward(&self) -> bool {
        match (&self.hint, &self.sort) {
            (Some(Hint::Natural(direction)), _) | (None, Sort::Natural(direction)) => {
                *direction == Direction::Descending
            }
            _ => false,
        }
    }

    /// The question for the planner.
    pub fn specification(&self) -> FindSpecification<'_> {
        FindSpecification {
            sort: &self.sort,
            needs: match &self.needed_paths {
                Some(paths) => ProjectionNeeds::Paths(paths),
                None => ProjectionNeeds::Everything,
            },
            skip: self.skip,
            limit: self.limit,
            metadata: self.metadata.kinds.or(self.sort.metadata()),
            hint: self.hint.as_ref(),
            min: self.min,
            max: self.max,
            order: &self.order,
            ..FindSpecification::matching(&self.filter)
        }
    }

    /// How its plan is displayed.
    pub fn display(&self) -> Display<'a> {
        let projection = match self.written_projection {
            None => ExplainedProjection::Whole,
            Some(written) if self.is_simple_inclusion() => ExplainedProjection::Simple(written),
            Some(written) => ExplainedProjection::General(written),
        };
        let choice = if self.hint.is_some() { Choice::Hinted } else { Choice::Free };
        Display { projection, purpose: Purpose::Find, choice }
    }

    /// Whether the projection keeps whole top-level fields and nothing else.
    fn is_simple_inclusion(&self) -> bool {
        self.needed_paths.as_ref().is_some_and(|paths| paths.iter().all(|path| !path.contains('.')))
    }
}

/// The metadata that the documents of a find may come with.
fn given_metadata(filter: &Filter, sort: &Sort) -> MetadataSet {
    let mut given = MetadataSet::of(&[Metadata::IndexKey, Metadata::RecordId]);
    if filter.has_text() {
        given = given.with(Metadata::TextScore);
    }
    if filter.near().is_some() {
        given = given.with(Metadata::GeoDistance).with(Metadata::GeoPoint);
    }
    if sort.pattern().is_some() {
        given = given.with(Metadata::SortKey);
    }
    given
}
