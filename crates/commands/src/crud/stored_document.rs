//! The checks of a document before it is stored: valid BSON of at most 16 MiB, not nested too deeply, an
//! `_id` of an allowed type in front. Inserted and upserted documents are refused in different words, as in
//! MongoDB.

use pando_document::{DocumentError, DocumentWriter, Limits, RawDocument, RawValue, Timestamp, validate};
use pando_query::update::EmptyTimestamps;

use crate::error::Failure;
use crate::shared_state::SharedState;
use crate::{CommandError, ErrorCode};

/// Documents within one another that a stored document may have, itself not counted.
const STORED_NESTING_MAX: usize = 179;

/// The refusal of an inserted document, in MongoDB's words.
const TOO_DEEP: &str = "cannot insert document because it exceeds 180 levels of nesting";

/// Documents around a value of a measurement in its bucket: `control` and `min`.
const BUCKET_NESTING: usize = 2;

/// Checks a measurement of a time series, which is stored in a bucket and needs no `_id`.
pub(super) fn check_measurement(document: &RawDocument) -> Result<(), CommandError> {
    check_size(document.as_bytes().len())?;
    let nesting_max = STORED_NESTING_MAX - BUCKET_NESTING;
    check_nesting_within(document, nesting_max, TOO_DEEP)
}

/// Checks a document from a client and puts its bytes, with `_id` in front, into `out` (emptied first). A
/// timestamp of zero that stands in the document itself, not in one within it, becomes the time where the
/// request fills them.
pub(super) fn prepare(
    shared: &SharedState,
    document: &RawDocument,
    empty_timestamps: EmptyTimestamps,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    check_size(document.as_bytes().len())?;
    check_nesting(document, TOO_DEEP)?;
    let survey = Survey::of(document)?;
    if let Some(id) = survey.id {
        check_id(id)?;
        if let RawValue::Document(id) = id {
            check_id_fields(id)?;
        }
    }
    out.clear();
    match (survey.timestamps, empty_timestamps) {
        (Timestamps::Set, _) | (_, EmptyTimestamps::Kept) => put_id_first(shared, document, &survey, out)?,
        (Timestamps::Empty, EmptyTimestamps::Filled) => {
            let time = u32::try_from(shared.now_ms() / 1000).unwrap_or(u32::MAX);
            let id = survey.id.unwrap_or(RawValue::ObjectId(shared.new_object_id()));
            rewrite(document, id, Some(Timestamp { time, increment: 1 }), out)?;
        }
    }
    check_size(out.len())
}

/// Checks a document that an upsert has made and puts its bytes, with `_id` in front, into `out` (emptied
/// first).
pub(super) fn prepare_upserted(
    shared: &SharedState,
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    check_nesting(document, "Document exceeds maximum nesting depth of 180")?;
    let survey = Survey::of(document)?;
    if let Some(id) = survey.id {
        check_id(id)?;
    }
    out.clear();
    put_id_first(shared, document, &survey, out)?;
    let max = Limits::STORED.bytes_max;
    if out.len() > max {
        return Err(CommandError::failed(
            ErrorCode::Location(17_420),
            format!("Document to upsert is larger than {max}"),
        ));
    }
    Ok(())
}

fn check_nesting(document: &RawDocument, sentence: &str) -> Result<(), CommandError> {
    check_nesting_within(document, STORED_NESTING_MAX, sentence)
}

fn check_nesting_within(
    document: &RawDocument,
    nesting_max: usize,
    sentence: &str,
) -> Result<(), CommandError> {
    let limits = Limits { bytes_max: Limits::MESSAGE.bytes_max, nesting_max };
    match validate(document.as_bytes(), &limits) {
        Ok(()) => Ok(()),
        Err(DocumentError::TooDeep { .. }) => Err(CommandError::failed(ErrorCode::Overflow, sentence)),
        Err(error) => Err(error.into()),
    }
}

/// Whether timestamps of a document are still to be set.
#[derive(Clone, Copy)]
enum Timestamps {
    /// There is one of zero.
    Empty,
    /// There is none of zero.
    Set,
}

/// The findings of one pass over the fields of a document.
struct Survey<'d> {
    id: Option<RawValue<'d>>,
    /// Whether `_id` stands in front.
    id_is_first: bool,
    timestamps: Timestamps,
}

impl<'d> Survey<'d> {
    fn of(document: &'d RawDocument) -> Result<Survey<'d>, CommandError> {
        let mut survey = Survey { id: None, id_is_first: false, timestamps: Timestamps::Set };
        for (at, field) in document.iter().enumerate() {
            match field? {
                ("_id", id) if survey.id.is_none() => {
                    survey.id = Some(id);
                    survey.id_is_first = at == 0;
                }
                (_, RawValue::Timestamp(Timestamp { time: 0, increment: 0 })) => {
                    survey.timestamps = Timestamps::Empty;
                }
                _ => {}
            }
        }
        Ok(survey)
    }
}

fn put_id_first(
    shared: &SharedState,
    document: &RawDocument,
    survey: &Survey<'_>,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    match survey.id {
        Some(_) if survey.id_is_first => {
            out.extend_from_slice(document.as_bytes());
            Ok(())
        }
        Some(id) => rewrite(document, id, None, out),
        None => rewrite(document, RawValue::ObjectId(shared.new_object_id()), None, out),
    }
}

/// Writes the document with `_id` in front; `now` takes the place of empty timestamps.
fn rewrite(
    document: &RawDocument,
    id: RawValue<'_>,
    now: Option<Timestamp>,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    let mut writer = DocumentWriter::begin(out);
    writer.append("_id", id);
    for field in document.iter() {
        let (name, value) = field?;
        match (name, value, now) {
            ("_id", ..) => {}
            (name, RawValue::Timestamp(Timestamp { time: 0, increment: 0 }), Some(now)) => {
                writer.append(name, RawValue::Timestamp(now));
            }
            (name, value, _) => writer.append(name, value),
        }
    }
    writer.finish();
    Ok(())
}

/// Refuses a document that is too large.
fn check_size(bytes: usize) -> Result<(), CommandError> {
    let max = Limits::STORED.bytes_max;
    if bytes <= max {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::BadValue,
        format!("object to insert too large. size in bytes: {bytes}, max size: {max}"),
    )
    .into())
}

/// Refuses an `_id` of a type that cannot be one.
fn check_id(id: RawValue<'_>) -> Result<(), CommandError> {
    let refused = |kind: &str| {
        Err(Failure::new(ErrorCode::InvalidIdField, format!("The '_id' value cannot be of type {kind}"))
            .into())
    };
    match id {
        RawValue::Array(_) => refused("array"),
        RawValue::Regex(_) => refused("regex"),
        RawValue::Undefined => refused("undefined"),
        _ => Ok(()),
    }
}

/// No field of an `_id`, however deep, may look like an operator, but for those of references that stand in
/// front. The depth was checked before.
fn check_id_fields(document: &RawDocument) -> Result<(), CommandError> {
    let of_reference = reference_fields(document)?;
    // As in MongoDB, nothing of the document that a reference names is looked at.
    for field in document.iter().skip(of_reference) {
        let (name, value) = field?;
        if name.starts_with('$') {
            return Err(Failure::new(
                ErrorCode::DollarPrefixedFieldName,
                format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."),
            )
            .into());
        }
        match value {
            RawValue::Document(inner) => check_id_fields(inner)?,
            RawValue::Array(inner) => check_id_fields(inner.as_document())?,
            _ => {}
        }
    }
    Ok(())
}

/// The number of fields in front that make a reference to a document (a DBRef): `$ref` and `$id`, and `$db`.
fn reference_fields(document: &RawDocument) -> Result<usize, CommandError> {
    let mut fields = document.iter();
    let mut next = || fields.next().transpose();
    if !matches!(next()?, Some(("$ref", RawValue::String(_)))) || !matches!(next()?, Some(("$id", _))) {
        return Ok(0);
    }
    Ok(if matches!(next()?, Some(("$db", RawValue::String(_)))) { 3 } else { 2 })
}
