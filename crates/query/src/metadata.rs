//! Metadata of documents: figures about a document that are none of its fields, such as the score of a
//! search.
//!
//! A document that is asked for metadata carries each in a *hidden field*, the last ones of the document. The
//! names of hidden fields begin with `$`, so that no path of a query reads them. The last step of a find or
//! pipeline removes them.
//!
//! | kind | made by | removed by |
//! |---|---|---|
//! | text score | a search for words | `$group` and its kin |
//! | distance and point | `$geoNear`, `$near` | the same |
//! | sort key | the sort of the plan; an empty array without one | the same |
//! | index key | the plan, where it goes through an index | the same |
//! | random value | `$sample` | the same |
//! | record id | a find; no pipeline gives one | - |

use std::borrow::Cow;

use pando_document::{DocumentError, DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use crate::error::{QueryError, faults};

/// Levels of a request in which `$meta` is looked for: as deep as a document nests.
const DEPTH_MAX: usize = 200;

faults! {
    /// Why a request gets no metadata.
    MetadataFault {
        /// Metadata of a kind that no stage in front makes.
        NotAvailable = 40_218,
    }
}

/// A kind of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// The score of a search for words.
    TextScore,
    /// The distance from the point of a search.
    GeoDistance,
    /// The nearest geometry of the document.
    GeoPoint,
    /// The values by which the document is sorted.
    SortKey,
    /// The key of the index by which the document was found.
    IndexKey,
    /// The number by which a random choice took the document.
    RandomValue,
    /// The number of the document in its collection.
    RecordId,
}

impl Metadata {
    const ALL: [Metadata; 7] = [
        Metadata::TextScore,
        Metadata::GeoDistance,
        Metadata::GeoPoint,
        Metadata::SortKey,
        Metadata::IndexKey,
        Metadata::RandomValue,
        Metadata::RecordId,
    ];

    /// The kind that `$meta` calls so.
    pub fn of_name(name: &str) -> Option<Metadata> {
        Metadata::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name behind `$meta`.
    pub fn name(self) -> &'static str {
        match self {
            Metadata::TextScore => "textScore",
            Metadata::GeoDistance => "geoNearDistance",
            Metadata::GeoPoint => "geoNearPoint",
            Metadata::SortKey => "sortKey",
            Metadata::IndexKey => "indexKey",
            Metadata::RandomValue => "randVal",
            Metadata::RecordId => "recordId",
        }
    }

    /// The name of the hidden field.
    pub fn field(self) -> &'static str {
        match self {
            Metadata::TextScore => "$textScore",
            Metadata::GeoDistance => "$geoNearDistance",
            Metadata::GeoPoint => "$geoNearPoint",
            Metadata::SortKey => "$sortKey",
            Metadata::IndexKey => "$indexKey",
            Metadata::RandomValue => "$randVal",
            Metadata::RecordId => "$numberOfRecord",
        }
    }

    /// The kind in a hidden field of this name.
    pub(crate) fn of_field(name: &str) -> Option<Metadata> {
        name.starts_with('$').then(|| Metadata::ALL.into_iter().find(|kind| kind.field() == name)).flatten()
    }

    /// The name in errors.
    fn title(self) -> &'static str {
        match self {
            Metadata::TextScore => "text score",
            Metadata::GeoDistance => "$geoNear distance",
            Metadata::GeoPoint => "$geoNear point",
            Metadata::SortKey => "sort key",
            Metadata::IndexKey => "index key",
            Metadata::RandomValue => "rand val",
            Metadata::RecordId => "record ID",
        }
    }

    /// The error of metadata that nobody makes.
    pub fn not_available(self) -> QueryError {
        MetadataFault::NotAvailable.error(not_available_text(self.title()))
    }
}

/// The sentence about metadata that nobody makes.
pub(crate) fn not_available_text(title: &str) -> String {
    format!("query requires {title} metadata, but it is not available")
}

/// Whether an error is that of metadata that nobody makes.
pub(crate) fn is_not_available(error: &QueryError) -> bool {
    error.code() == Some(MetadataFault::NotAvailable.code())
}

/// Kinds of metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataSet(u8);

impl MetadataSet {
    /// None.
    pub const EMPTY: MetadataSet = MetadataSet(0);

    /// These kinds.
    pub fn of(kinds: &[Metadata]) -> MetadataSet {
        kinds.iter().fold(MetadataSet::EMPTY, |set, kind| set.with(*kind))
    }

    /// The kinds that a request, or a part of one, asks for by `$meta`.
    pub fn asked_in(request: &RawDocument) -> MetadataSet {
        let mut asked = MetadataSet::EMPTY;
        collect(request, 0, &mut asked);
        asked
    }

    /// These and another one.
    #[must_use]
    pub fn with(self, kind: Metadata) -> MetadataSet {
        MetadataSet(self.0 | bit(kind))
    }

    /// The kinds of both.
    #[must_use]
    pub fn and(self, other: MetadataSet) -> MetadataSet {
        MetadataSet(self.0 & other.0)
    }

    /// The kinds of either.
    #[must_use]
    pub fn or(self, other: MetadataSet) -> MetadataSet {
        MetadataSet(self.0 | other.0)
    }

    /// Whether it has a kind.
    pub fn has(self, kind: Metadata) -> bool {
        self.0 & bit(kind) != 0
    }

    /// Whether it has one of these.
    pub fn has_any(self, kinds: &[Metadata]) -> bool {
        kinds.iter().any(|kind| self.has(*kind))
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds.
    pub fn iter(self) -> impl Iterator<Item = Metadata> {
        Metadata::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

fn bit(kind: Metadata) -> u8 {
    1 << kind as u8
}

fn collect(document: &RawDocument, depth: usize, asked: &mut MetadataSet) {
    if depth == DEPTH_MAX {
        return;
    }
    for (name, value) in document.iter().filter_map(Result::ok) {
        match (name, value) {
            ("$meta", RawValue::String(name)) => {
                if let Some(kind) = Metadata::of_name(name) {
                    *asked = asked.with(kind);
                }
            }
            (_, RawValue::Document(inner)) => collect(inner, depth + 1, asked),
            (_, RawValue::Array(inner)) => collect(inner.as_document(), depth + 1, asked),
            _ => {}
        }
    }
}

/// A document with hidden fields behind its own.
pub fn with_hidden<'v>(
    document: &RawDocument,
    fields: impl IntoIterator<Item = (Metadata, RawValue<'v>)>,
) -> Result<RawDocumentBuf, DocumentError> {
    let bytes = document.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() + 32);
    let mut writer = DocumentWriter::begin(&mut out);
    // A length stands before the fields, and a zero behind them.
    writer.append_raw_fields(&bytes[4..bytes.len() - 1]);
    for (kind, value) in fields {
        writer.append(kind.field(), value);
    }
    writer.finish();
    RawDocumentBuf::from_vec(out)
}

/// A document with the hidden fields of another one.
pub(crate) fn handed_on<'d>(
    from: &RawDocument,
    to: &'d RawDocument,
    kinds: MetadataSet,
) -> Result<Cow<'d, RawDocument>, DocumentError> {
    let mut fields = Vec::new();
    for kind in kinds.iter() {
        fields.extend(from.get(kind.field())?.map(|value| (kind, value)));
    }
    match fields.is_empty() {
        true => Ok(Cow::Borrowed(to)),
        false => with_hidden(to, fields).map(Cow::Owned),
    }
}

/// A document without its hidden fields.
pub(crate) fn without_hidden(document: &RawDocument) -> Result<RawDocumentBuf, DocumentError> {
    let mut out = Vec::with_capacity(document.as_bytes().len());
    let mut writer = DocumentWriter::begin(&mut out);
    for field in document {
        let (name, value) = field?;
        if Metadata::of_field(name).is_none() {
            writer.append(name, value);
        }
    }
    writer.finish();
    RawDocumentBuf::from_vec(out)
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_request_asks_for_metadata_at_any_depth() {
        let request = doc! {
            "a": { "$add": [1, { "$meta": "geoNearDistance" }] }, "b": { "$meta": "sortKey" },
            "c": { "$meta": "unknown" }, "$meta": 5
        };
        let asked = MetadataSet::asked_in(&request.to_raw());
        assert_eq!(asked, MetadataSet::of(&[Metadata::GeoDistance, Metadata::SortKey]));
        assert!(!asked.has(Metadata::TextScore));
        assert_eq!(asked.iter().count(), 2);
    }

    #[test]
    fn hidden_fields_come_and_go() {
        let document = doc! { "a": 1, "$b": 2 }.to_raw();
        let fields = [(Metadata::TextScore, RawValue::Double(1.5)), (Metadata::SortKey, RawValue::Int32(3))];
        let with = with_hidden(&document, fields).unwrap();
        let expected = doc! { "a": 1, "$b": 2, "$textScore": 1.5, "$sortKey": 3 };
        assert_eq!(with, expected.to_raw());
        assert_eq!(without_hidden(&with).unwrap(), document);
        let other = doc! { "c": 1 }.to_raw();
        let handed = handed_on(&with, &other, MetadataSet::of(&[Metadata::SortKey])).unwrap();
        assert_eq!(&*handed, &*doc! { "c": 1, "$sortKey": 3 }.to_raw());
        for kind in Metadata::ALL {
            assert_eq!(Metadata::of_name(kind.name()), Some(kind));
            assert_eq!(Metadata::of_field(kind.field()), Some(kind));
        }
    }
}
