//! A replacement: the new document as it is, with the old one's `_id` in front unless it brings its own.
//!
//! A timestamp of zero at the top level stands for the moment of the write, unless the request keeps them;
//! `_id` and deeper ones are kept always.
//!
//! As in MongoDB, a replacement counts as a modification unless it was sent byte for byte as the old
//! document is stored. One without `_id`, as most drivers send it, therefore always counts: programs take a
//! write without a modification for one that another write has overtaken.

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Timestamp};

use super::reference::{self, dollar_prefixed};
use super::{Applied, EmptyTimestamps, UpdateContext};
use crate::error::QueryError;

#[derive(Debug)]
pub(super) struct Replacement {
    document: RawDocumentBuf,
}

impl Replacement {
    pub(super) fn parse(document: &RawDocument) -> Result<Replacement, QueryError> {
        for element in document.iter() {
            let (name, value) = element?;
            if let ("_id", RawValue::Document(id)) = (name, value) {
                reference::check_id(id)?;
            }
        }
        Ok(Replacement { document: document.to_owned() })
    }

    /// Refuses fields that look like operators: an upsert may bring them, a
    /// replacement of a document may not.
    pub(super) fn check_names(&self) -> Result<(), QueryError> {
        for element in self.document.iter() {
            let (name, _) = element?;
            if name.starts_with('$') {
                return Err(dollar_prefixed(name, name));
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, old: &RawDocument, context: &UpdateContext) -> Result<Applied, QueryError> {
        let has_gaps =
            context.empty_timestamps == EmptyTimestamps::Filled && has_empty_timestamp(&self.document)?;
        if !has_gaps && self.document.as_bytes() == old.as_bytes() {
            return Ok(Applied::Unchanged);
        }
        let mut new = match (self.document.get("_id")?, old.get("_id")?) {
            (None, Some(id)) => self.with_id(id)?,
            (Some(_), _) => with_own_id_first(&self.document)?,
            (None, None) => self.document.clone(),
        };
        if has_gaps {
            new = with_timestamps(&new, context.timestamp)?;
        }
        Ok(Applied::Changed(new))
    }

    fn with_id(&self, id: RawValue<'_>) -> Result<RawDocumentBuf, QueryError> {
        let mut bytes = Vec::with_capacity(self.document.as_bytes().len() + 32);
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append("_id", id);
        let fields = self.document.as_bytes();
        writer.append_raw_fields(&fields[4..fields.len() - 1]);
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }
}

fn is_empty_timestamp(name: &str, value: RawValue<'_>) -> bool {
    matches!(value, RawValue::Timestamp(Timestamp { time: 0, increment: 0 })) && name != "_id"
}

fn has_empty_timestamp(document: &RawDocument) -> Result<bool, QueryError> {
    for element in document.iter() {
        let (name, value) = element?;
        if is_empty_timestamp(name, value) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same fields, `now` in place of empty timestamps.
fn with_timestamps(document: &RawDocument, now: Timestamp) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::with_capacity(document.as_bytes().len());
    let mut writer = DocumentWriter::begin(&mut bytes);
    for element in document.iter() {
        let (name, value) = element?;
        let value = if is_empty_timestamp(name, value) { RawValue::Timestamp(now) } else { value };
        writer.append(name, value);
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// The same fields, `_id` before all others.
pub(super) fn with_own_id_first(document: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
    let Some(id) = document.get("_id")? else { return Ok(document.to_owned()) };
    if matches!(document.iter().next(), Some(Ok(("_id", _)))) {
        return Ok(document.to_owned());
    }
    let mut bytes = Vec::with_capacity(document.as_bytes().len());
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append("_id", id);
    for element in document.iter() {
        let (name, value) = element?;
        if name != "_id" {
            writer.append(name, value);
        }
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}
