//! Metadata of documents that a find or pipeline shows beside their fields: `showRecordId`, `returnKey`, and
//! `$meta`.
//!
//! | kind | value |
//! |---|---|
//! | record id | a number in a heap; elsewhere the bytes of the primary key, as in MongoDB's clustered ones |
//! | index key | the fields of the index that the plan goes through; none where it goes through no index |
//! | sort key | an array of the values by which documents are sorted; empty in a pipeline without a sort |
//!
//! Documents carry it in hidden fields ([`pando_query::metadata`]) to the projection. Scores and distances
//! are made by searches.

use pando_catalog::{FieldKind, IndexField, Layout};
use pando_collation::TextOrder;
use pando_document::{Document, DocumentWriter, RawBinary, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::metadata::{Metadata, MetadataSet};
use pando_query::plan::{Access, Plan, ReturnedKey};
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use crate::CommandError;

/// The metadata that a request asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedMetadata {
    /// `returnKey`: index keys in the place of documents.
    pub returns_key: bool,
    /// `showRecordId`.
    pub shows_record_id: bool,
    /// The kinds that the projection names.
    pub kinds: MetadataSet,
    /// The fields of the projection that are metadata and nothing else: they stand beside index keys too.
    fields: Vec<(String, Metadata)>,
}

/// The field of `showRecordId`.
const RECORD_ID_FIELD: &str = "$recordId";

impl WantedMetadata {
    /// Reads the kinds in a projection.
    pub fn read(&mut self, projection: &RawDocument) -> Result<(), CommandError> {
        self.kinds = MetadataSet::asked_in(projection);
        if self.returns_key && !self.kinds.is_empty() {
            for field in projection.iter() {
                let (path, value) = field?;
                self.fields.extend(kind_of(value).map(|kind| (path.to_owned(), kind)));
            }
        }
        Ok(())
    }

    /// Whether it asks for none.
    pub fn is_empty(&self) -> bool {
        !self.returns_key && !self.shows_record_id && self.kinds.is_empty()
    }

    /// The kinds that are made here, and not by a search.
    fn made(&self) -> MetadataSet {
        self.kinds.and(MetadataSet::of(&[Metadata::SortKey, Metadata::IndexKey, Metadata::RecordId]))
    }
}

fn kind_of(value: RawValue<'_>) -> Option<Metadata> {
    match value.as_document()?.iter().next()?.ok()? {
        ("$meta", RawValue::String(name)) => Metadata::of_name(name),
        _ => None,
    }
}

/// The maker of the metadata of one find.
pub(crate) struct RowMetadata {
    wanted: WantedMetadata,
    is_heap: bool,
    index_key: Option<ReturnedKey>,
    /// Whether documents are looked up by `_id`.
    is_by_id: bool,
    sort_fields: Vec<IndexField>,
    order: TextOrder,
}

impl RowMetadata {
    /// The metadata of a find; `None` where it asks for none. A plan that scans the collection is `None`.
    pub fn new(
        wanted: &WantedMetadata,
        layout: &Layout,
        (sort, order): (&Sort, &TextOrder),
        plan: Option<&Plan>,
    ) -> Result<Option<RowMetadata>, CommandError> {
        if !wanted.returns_key && !wanted.shows_record_id && wanted.made().is_empty() {
            return Ok(None);
        }
        let sort_fields = sort.pattern().map(|pattern| pattern.parts()).unwrap_or_default();
        let sort_fields: Vec<IndexField> = sort_fields
            .iter()
            .map(|part| IndexField {
                path: part.path.as_str().to_owned(),
                direction: part.direction,
                kind: FieldKind::Value,
            })
            .collect();
        let index_key = plan.and_then(|plan| ReturnedKey::of(&plan.access));
        let is_heap = *layout == Layout::Heap;
        let is_by_id = plan.is_some_and(|plan| matches!(plan.access, Access::Id(_)));
        Ok(Some(RowMetadata {
            wanted: wanted.clone(),
            is_heap,
            index_key,
            is_by_id,
            sort_fields,
            order: order.clone(),
        }))
    }

    /// The metadata of the documents of a pipeline; `None` where it needs none from here.
    pub fn of_pipeline(
        kinds: MetadataSet,
        layout: &Layout,
        sort: (&Sort, &TextOrder),
        plan: &Plan,
    ) -> Result<Option<RowMetadata>, CommandError> {
        let wanted = WantedMetadata { kinds, ..WantedMetadata::default() };
        RowMetadata::new(&wanted, layout, sort, Some(plan))
    }

    /// A document with hidden fields for its metadata.
    pub fn with_hidden(&self, key: &[u8], document: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
        let whole = document.as_bytes();
        let mut bytes = Vec::with_capacity(whole.len() + 64);
        let mut writer = DocumentWriter::begin(&mut bytes);
        // A length stands before the fields, and a zero behind them.
        writer.append_raw_fields(&whole[4..whole.len() - 1]);
        for kind in self.wanted.made().iter() {
            if let Some(value) = self.value(kind, key, document)? {
                writer.append_value(kind.field(), &value);
            }
        }
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    /// Appends a document as the client sees it. `project` appends what the projection makes of a document
    /// with hidden fields.
    pub fn write(
        &self,
        key: &[u8],
        document: &RawDocument,
        project: &mut dyn FnMut(&RawDocument, &mut Vec<u8>) -> Result<(), CommandError>,
        out: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        if self.wanted.returns_key {
            let mut shown = self.key_of(document)?.to_raw();
            for (path, kind) in &self.wanted.fields {
                if let Some(value) = self.value(*kind, key, document)? {
                    shown = placed(path, value, &shown)?;
                }
            }
            out.extend_from_slice(shown.as_bytes());
            return Ok(());
        }
        let with_hidden;
        let document = match self.wanted.made().is_empty() {
            true => document,
            false => {
                with_hidden = self.with_hidden(key, document)?;
                &*with_hidden
            }
        };
        if !self.wanted.shows_record_id {
            return project(document, out);
        }
        let mut projected = Vec::new();
        project(document, &mut projected)?;
        let mut shown = Document::from_raw(RawDocument::from_bytes(&projected)?)?;
        shown.remove(RECORD_ID_FIELD);
        shown.push(RECORD_ID_FIELD, self.record_id(key));
        out.extend_from_slice(shown.to_raw().as_bytes());
        Ok(())
    }

    fn value(&self, kind: Metadata, key: &[u8], document: &RawDocument) -> Result<Option<Value>, QueryError> {
        Ok(match kind {
            Metadata::RecordId => Some(self.record_id(key)),
            // A lookup by `_id` goes through no index there.
            Metadata::IndexKey if self.is_by_id => None,
            Metadata::IndexKey => self.index_key.is_some().then_some(self.key_of(document)?).map(Value::from),
            Metadata::SortKey if self.sort_fields.is_empty() => Some(Value::Array(Vec::new())),
            Metadata::SortKey => {
                let keys = ReturnedKey::sort_key(&self.sort_fields, &self.order, document)?;
                Some(Value::Array(keys))
            }
            Metadata::TextScore | Metadata::GeoDistance | Metadata::GeoPoint | Metadata::RandomValue => None,
        })
    }

    fn key_of(&self, document: &RawDocument) -> Result<Document, QueryError> {
        match &self.index_key {
            Some(index_key) => Ok(index_key.of_document(document)?),
            None => Ok(Document::new()),
        }
    }

    fn record_id(&self, key: &[u8]) -> Value {
        match <[u8; 8]>::try_from(key) {
            Ok(number) if self.is_heap => Value::Int64(i64::from_be_bytes(number)),
            _ => RawValue::Binary(RawBinary { subtype: 0, bytes: key }).to_owned(),
        }
    }
}

/// A document with a value at a path.
fn placed(path: &str, value: Value, document: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let bytes = document.as_bytes();
    let mut literal = Document::new();
    literal.push("$literal", value);
    let mut fields = Document::new();
    fields.push(path, literal);
    let projection = Projection::add_fields(&fields.to_raw(), &ParseScope::default())?;
    Ok(projection.project(RawDocument::from_bytes(bytes)?)?)
}
