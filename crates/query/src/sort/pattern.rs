//! The sort pattern, parsed.

use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_keyorder::Direction;

use super::fault::SortFault;
use crate::expression::FieldPath;
use crate::metadata::{Metadata, MetadataSet};
use crate::path::Path;
use crate::shell_text::{document_text, value_text};
use crate::{ErrorCode, QueryError};

/// Most parts of a pattern.
const PARTS_MAX: usize = 32;

/// How the results of a find are ordered.
#[derive(Clone, Debug)]
pub enum Sort {
    /// As they come.
    Unordered,
    /// `$natural`: in the order of the collection, or against it.
    Natural(Direction),
    /// By a pattern.
    By(SortPattern),
}

/// Paths with directions, at least one.
#[derive(Clone, Debug)]
pub struct SortPattern {
    parts: Vec<SortPart>,
    order: TextOrder,
}

/// One path with its direction.
#[derive(Clone, Debug)]
pub struct SortPart {
    /// Where the value is.
    pub path: Path,
    /// Which way it goes.
    pub direction: Direction,
}

impl Sort {
    /// Parses the `sort` of a request; an empty one orders nothing.
    pub fn parse(document: &RawDocument) -> Result<Sort, QueryError> {
        if let Some(natural) = document.get("$natural")? {
            if document.iter().count() > 1 {
                let message =
                    format!("Cannot include '$natural' in compound sort: {}", document_text(document));
                return Err(QueryError::bad_value(message));
            }
            return natural_direction(natural).map(Sort::Natural);
        }
        if document.is_empty() {
            return Ok(Sort::Unordered);
        }
        let mut rest = Document::new();
        for field in document {
            let (name, value) = field?;
            // No stage of a find gives a random value, so that all documents are equal there.
            if !is_random(value) {
                rest.push(name, value.to_owned());
            }
        }
        match rest.is_empty() {
            true => Ok(Sort::Unordered),
            false => SortPattern::parse(&rest.to_raw()).map(Sort::By),
        }
    }

    /// The metadata that it asks for.
    pub fn metadata(&self) -> MetadataSet {
        self.pattern().map_or(MetadataSet::EMPTY, SortPattern::metadata)
    }

    /// The same sort, in which strings compare in this order.
    #[must_use]
    pub fn collated_by(self, order: &TextOrder) -> Sort {
        match self {
            Sort::By(pattern) => Sort::By(pattern.collated_by(order)),
            Sort::Unordered | Sort::Natural(_) => self,
        }
    }

    /// The pattern, where there is one.
    pub fn pattern(&self) -> Option<&SortPattern> {
        match self {
            Sort::By(pattern) => Some(pattern),
            Sort::Unordered | Sort::Natural(_) => None,
        }
    }
}

/// The direction behind `$natural`: any number, by its sign.
pub(crate) fn natural_direction(value: RawValue<'_>) -> Result<Direction, QueryError> {
    match value {
        RawValue::Int32(number) if number < 0 => Ok(Direction::Descending),
        RawValue::Int64(number) if number < 0 => Ok(Direction::Descending),
        RawValue::Double(number) if number < 0.0 => Ok(Direction::Descending),
        value if value.is_number() => Ok(Direction::Ascending),
        _ => Err(QueryError::bad_value("$natural sort cannot be set to a value other than -1 or 1.")),
    }
}

impl SortPattern {
    /// The order of the values at one path.
    pub(crate) fn ascending(path: &str) -> SortPattern {
        let part = SortPart { path: Path::new(path), direction: Direction::Ascending };
        SortPattern { parts: vec![part], order: TextOrder::SIMPLE }
    }

    /// Parses a pattern that is not empty.
    ///
    /// # Errors
    /// [`BadSortDirection`](SortFault::BadDirection.code()), [`BadSortValue`](SortFault::BadValue.code()),
    /// [`SortTooWide`](SortFault::TooWide.code()), and those of field paths.
    pub fn parse(document: &RawDocument) -> Result<SortPattern, QueryError> {
        let mut parts = Vec::new();
        for field in document {
            let (name, value) = field?;
            if parts.len() == PARTS_MAX {
                return Err(SortFault::TooWide.error("too many compound keys"));
            }
            if let Some(kind) = metadata_of(value)? {
                FieldPath::parse(name)?;
                parts.push(SortPart { path: Path::new(kind.field()), direction: Direction::Descending });
                continue;
            }
            let direction = direction(name, value)?;
            // Sorts are stricter about paths than filters are, as expressions are.
            FieldPath::parse(name)?;
            parts.push(SortPart { path: Path::new(name), direction });
        }
        assert!(!parts.is_empty(), "callers keep empty sort patterns away");
        Ok(SortPattern { parts, order: TextOrder::SIMPLE })
    }

    /// The same pattern, in which strings compare in this order.
    #[must_use]
    pub fn collated_by(self, order: &TextOrder) -> SortPattern {
        SortPattern { order: order.clone(), ..self }
    }

    /// The order of strings.
    pub fn text_order(&self) -> &TextOrder {
        &self.order
    }

    /// The paths with their directions.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// The metadata that it asks for.
    pub fn metadata(&self) -> MetadataSet {
        let kinds = self.parts.iter().filter_map(|part| Metadata::of_field(part.path.as_str()));
        kinds.fold(MetadataSet::EMPTY, MetadataSet::with)
    }

    /// The pattern as `explain` shows it.
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut document = Document::new();
        for (at, part) in self.parts.iter().enumerate() {
            if let Some(kind) = Metadata::of_field(part.path.as_str()) {
                let mut meta = Document::new();
                meta.push("$meta", kind.name());
                document.push(format!("$computed{at}"), meta);
                continue;
            }
            let sign = match part.direction {
                Direction::Ascending => 1,
                Direction::Descending => -1,
            };
            document.push(part.path.as_str(), Value::Int32(sign));
        }
        document.to_raw()
    }

    /// Appends the sort key of a document.
    ///
    /// # Errors
    /// Two paths of the pattern go through two arrays; malformed documents.
    pub fn append_key(&self, document: &RawDocument, out: &mut Vec<u8>) -> Result<(), QueryError> {
        super::key::append(&self.parts, &self.order, document, out)
    }

    /// Appends the key of a document where the pattern is that of an accumulator, or follows other parts of a
    /// key: then `_id` is a field as any other.
    ///
    /// # Errors
    /// As for [`append_key`](SortPattern::append_key).
    pub(crate) fn append_inner_key(
        &self,
        document: &RawDocument,
        out: &mut Vec<u8>,
    ) -> Result<(), QueryError> {
        super::key::append_unwound(&self.parts, &self.order, document, out)
    }
}

fn direction(name: &str, value: RawValue<'_>) -> Result<Direction, QueryError> {
    match value {
        number if number.is_number() => match whole_direction(number) {
            Some(1) => Ok(Direction::Ascending),
            Some(-1) => Ok(Direction::Descending),
            _ => Err(SortFault::BadDirection
                .error("$sort key ordering must be 1 (for ascending) or -1 (for descending)")),
        },
        RawValue::Document(meta) => meta_direction(meta),
        other => Err(SortFault::BadValue
            .error(format!("Illegal key in $sort specification: {name}: {}", value_text(other)))),
    }
}

/// Fractions are cut off: -1.5 is -1.
fn whole_direction(number: RawValue<'_>) -> Option<i64> {
    match number {
        RawValue::Double(number) if number.abs() < 2.0 => Some(number.trunc() as i64),
        other => other.as_i64_exact(),
    }
}

/// Whether a part of a pattern is `{$meta: "randVal"}`.
fn is_random(value: RawValue<'_>) -> bool {
    let Some(meta) = value.as_document() else { return false };
    let mut fields = meta.iter();
    matches!((fields.next(), fields.next()), (Some(Ok(("$meta", RawValue::String("randVal")))), None))
}

/// The metadata that stands for a direction, if it is of a kind that orders documents.
fn metadata_of(direction: RawValue<'_>) -> Result<Option<Metadata>, QueryError> {
    let RawValue::Document(meta) = direction else { return Ok(None) };
    let kind = meta.get("$meta")?.and_then(|what| what.as_str()).and_then(Metadata::of_name);
    let Some(kind @ (Metadata::TextScore | Metadata::GeoDistance | Metadata::RandomValue)) = kind else {
        return Ok(None);
    };
    if meta.iter().count() > 1 {
        return Err(QueryError::failed_to_parse("Cannot have additional keys in a $meta sort specification"));
    }
    Ok(Some(kind))
}

fn meta_direction(meta: &RawDocument) -> Result<Direction, QueryError> {
    let Some(what) = meta.get("$meta")? else {
        return Err(SortFault::NotMeta.error("$meta is the only expression supported by $sort right now"));
    };
    if meta.iter().count() > 1 {
        return Err(QueryError::new(
            ErrorCode::FailedToParse,
            "Cannot have additional keys in a $meta sort specification",
        ));
    }
    match what {
        RawValue::String("searchScore") => {
            Err(SortFault::SearchScore.error("$meta sort by 'searchScore' metadata is not supported"))
        }
        RawValue::String("searchHighlights") => {
            Err(SortFault::SearchHighlights
                .error("$meta sort by 'searchHighlights' metadata is not supported"))
        }
        other => {
            Err(SortFault::UnknownMeta.error(format!("Illegal $meta sort: $meta: {}", value_text(other))))
        }
    }
}
