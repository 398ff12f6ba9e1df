//! Metadata of documents that a find shows beside their fields: `showRecordId`, `returnKey`, and `$meta` in a
//! projection.
//!
//! | kind | value |
//! |---|---|
//! | record id | a number in a heap; elsewhere the bytes of the primary key, as in a clustered collection of MongoDB |
//! | index key | the fields of the index that the plan goes through; none where it goes through no index |
//! | sort key | an array of the values by which documents are sorted |
//! | random value | none: no stage of a find gives one |

use pando_catalog::{FieldKind, IndexField, Layout};
use pando_collation::TextOrder;
use pando_document::{Document, RawBinary, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::plan::{Plan, ReturnedKey};
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use crate::{CommandError, ErrorCode};

/// The metadata that a request asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedMetadata {
    /// `returnKey`: index keys in the place of documents.
    pub returns_key: bool,
    /// `showRecordId`.
    pub shows_record_id: bool,
    /// Fields of the projection, with the kind of each.
    fields: Vec<(String, Metadata)>,
}

/// A kind of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metadata {
    RecordId,
    IndexKey,
    SortKey,
    RandomValue,
}

/// The field of `showRecordId`.
const RECORD_ID_FIELD: &str = "$recordId";

impl WantedMetadata {
    /// Takes the metadata out of a projection. Gives the projection without them; `None` where it has none.
    pub fn take_fields(&mut self, projection: &RawDocument) -> Result<Option<RawDocumentBuf>, CommandError> {
        if !projection.iter().flatten().any(|(_, value)| kind_of(value).is_some()) {
            return Ok(None);
        }
        let mut rest = Document::new();
        for field in projection.iter() {
            let (path, value) = field?;
            match kind_of(value) {
                Some(kind) => self.fields.push((path.to_owned(), kind)),
                None => rest.push(path, value.to_owned()),
            }
        }
        Ok(Some(rest.to_raw()))
    }

    /// Whether it asks for none.
    pub fn is_empty(&self) -> bool {
        !self.returns_key && !self.shows_record_id && self.fields.is_empty()
    }
}

fn kind_of(value: RawValue<'_>) -> Option<Metadata> {
    match value.as_document()?.iter().next()?.ok()? {
        ("$meta", RawValue::String("recordId")) => Some(Metadata::RecordId),
        ("$meta", RawValue::String("indexKey")) => Some(Metadata::IndexKey),
        ("$meta", RawValue::String("sortKey")) => Some(Metadata::SortKey),
        ("$meta", RawValue::String("randVal")) => Some(Metadata::RandomValue),
        _ => None,
    }
}

/// The maker of the metadata of one find.
pub(super) struct RowMetadata {
    wanted: WantedMetadata,
    is_heap: bool,
    index_key: Option<ReturnedKey>,
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
        if wanted.is_empty() {
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
        if sort_fields.is_empty() && wanted.fields.iter().any(|(_, kind)| *kind == Metadata::SortKey) {
            return Err(CommandError::failed(
                ErrorCode::BadValue,
                "cannot use sortKey $meta projection without a sort",
            ));
        }
        let index_key = plan.and_then(|plan| ReturnedKey::of(&plan.access));
        let is_heap = *layout == Layout::Heap;
        Ok(Some(RowMetadata {
            wanted: wanted.clone(),
            is_heap,
            index_key,
            sort_fields,
            order: order.clone(),
        }))
    }

    /// Appends a document with its metadata. `projected` is the document as the projection leaves it.
    pub fn write(
        &self,
        key: &[u8],
        document: &RawDocument,
        projected: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let mut shown = match self.wanted.returns_key {
            true => self.key_of(document)?.to_raw(),
            false => RawDocument::from_bytes(projected)?.to_owned(),
        };
        let shows_record_id = self.wanted.shows_record_id && !self.wanted.returns_key;
        let record_id = (RECORD_ID_FIELD.to_owned(), Metadata::RecordId);
        let extra = shows_record_id.then_some(&record_id);
        for (path, kind) in self.wanted.fields.iter().chain(extra) {
            if let Some(value) = self.value(*kind, key, document)? {
                shown = placed(path, value, &shown)?;
            }
        }
        out.extend_from_slice(shown.as_bytes());
        Ok(())
    }

    fn value(
        &self,
        kind: Metadata,
        key: &[u8],
        document: &RawDocument,
    ) -> Result<Option<Value>, CommandError> {
        Ok(match kind {
            Metadata::RecordId => Some(self.record_id(key)),
            Metadata::IndexKey => self.index_key.is_some().then_some(self.key_of(document)?).map(Value::from),
            Metadata::SortKey => {
                let keys = ReturnedKey::sort_key(&self.sort_fields, &self.order, document)?;
                Some(Value::Array(keys))
            }
            Metadata::RandomValue => None,
        })
    }

    fn key_of(&self, document: &RawDocument) -> Result<Document, CommandError> {
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
    if path == RECORD_ID_FIELD {
        // A name that no projection takes.
        let mut whole = Document::from_raw(document)?;
        whole.remove(path);
        whole.push(path, value);
        return Ok(whole.to_raw());
    }
    let mut literal = Document::new();
    literal.push("$literal", value);
    let mut fields = Document::new();
    fields.push(path, literal);
    let projection = Projection::add_fields(&fields.to_raw(), &ParseScope::default())?;
    Ok(projection.project(RawDocument::from_bytes(bytes)?)?)
}
