//! Deletes and updates of a time series, as those of its buckets: they may name the meta field alone.
//!
//! | of measurements | of buckets |
//! |---|---|
//! | a filter of the meta field `m`, or of a field in it, also within `$and`, `$or`, `$nor` | the same of `meta` |
//! | an operator that changes the meta field, or a field in it | the same of `meta` |
//! | another | refused |
//!
//! A fault of another kind is told when the filter and the update of buckets are parsed, as in MongoDB.

use pando_document::{Document, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};

use super::bucket::Series;
use super::bucket_filter::path_below;
use crate::{ErrorCode, QueryError};

fn invalid(reason: String) -> QueryError {
    QueryError::new(ErrorCode::InvalidOptions, reason)
}

impl Series {
    /// The filter of the buckets whose measurements match a filter of measurements.
    pub fn meta_filter(&self, filter: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
        Ok(self.renamed_filter(filter)?.to_raw())
    }

    /// The nesting is bounded by that of documents.
    fn renamed_filter(&self, filter: &RawDocument) -> Result<Document, QueryError> {
        let mut renamed = Document::new();
        for field in filter.iter() {
            let (path, value) = field?;
            match (path, value) {
                ("$and" | "$or" | "$nor", RawValue::Array(parts)) => {
                    renamed.push(path, Value::Array(self.renamed_filters(parts)?));
                }
                ("$expr" | "$where" | "$jsonSchema", _) => {
                    return Err(invalid(format!(
                        "Cannot use {path} when performing an update or delete on a time-series collection"
                    )));
                }
                (path, value) if path.starts_with('$') => renamed.push(path, value.to_owned()),
                (path, value) => match self.meta_path(path) {
                    Some(meta) => renamed.push(meta, value.to_owned()),
                    None => {
                        return Err(invalid(format!(
                            "Cannot perform an update or delete on a time-series collection when querying on a field that is not the metaField '{}'",
                            self.meta_field.as_deref().unwrap_or_default()
                        )));
                    }
                },
            }
        }
        Ok(renamed)
    }

    fn renamed_filters(&self, parts: &RawArray) -> Result<Vec<Value>, QueryError> {
        let mut renamed = Vec::new();
        for part in parts.iter() {
            renamed.push(match part? {
                RawValue::Document(part) => Value::Document(self.renamed_filter(part)?),
                other => other.to_owned(),
            });
        }
        Ok(renamed)
    }

    /// The update of buckets that is one of the meta values of their measurements. It consists of operators.
    pub fn meta_update(&self, update: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
        let other_field = || {
            invalid(format!(
                "Cannot perform an update on a time-series collection which updates a field that is not the metaField '{}'",
                self.meta_field.as_deref().unwrap_or_default()
            ))
        };
        let mut renamed = Document::new();
        for operator in update.iter() {
            let (operator, changes) = operator?;
            let RawValue::Document(changes) = changes else {
                renamed.push(operator, changes.to_owned());
                continue;
            };
            let mut fields = Document::new();
            for change in changes.iter() {
                let (path, value) = change?;
                let path = self.meta_path(path).ok_or_else(other_field)?;
                let value = match (operator, value) {
                    ("$rename", RawValue::String(to)) => {
                        Value::from(self.meta_path(to).ok_or_else(other_field)?)
                    }
                    (_, value) => value.to_owned(),
                };
                fields.push(path, value);
            }
            renamed.push(operator, Value::Document(fields));
        }
        Ok(renamed.to_raw())
    }

    /// The place in a bucket of a path that is the meta field or lies in it.
    fn meta_path(&self, path: &str) -> Option<String> {
        let below = path_below(path, self.meta_field.as_deref()?)?;
        Some(format!("meta{below}"))
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn series() -> Series {
        Series { time_field: "t".to_owned(), meta_field: Some("m".to_owned()), span_seconds: 3600 }
    }

    #[test]
    fn a_filter_of_the_meta_field_is_one_of_buckets() {
        let given =
            doc! { "m.a": 1, "$or": [{ "m": 2 }, { "$and": [{ "m.b.0": { "$gt": 1 } }] }], "$comment": "m" };
        let wanted = doc! { "meta.a": 1, "$or": [{ "meta": 2 }, { "$and": [{ "meta.b.0": { "$gt": 1 } }] }], "$comment": "m" };
        assert_eq!(series().meta_filter(&given.to_raw()).unwrap(), wanted.to_raw());
        for refused in [
            doc! { "t": 1 },
            doc! { "mm": 1 },
            doc! { "$or": [{ "m": 1 }, { "v": 1 }] },
            doc! { "$expr": true },
        ] {
            let error = series().meta_filter(&refused.to_raw()).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::InvalidOptions));
        }
    }

    #[test]
    fn an_update_of_the_meta_field_is_one_of_buckets() {
        let given = doc! { "$set": { "m.a": "m" }, "$rename": { "m.b": "m.c" } };
        let wanted = doc! { "$set": { "meta.a": "m" }, "$rename": { "meta.b": "meta.c" } };
        assert_eq!(series().meta_update(&given.to_raw()).unwrap(), wanted.to_raw());
        for refused in [
            doc! { "$set": { "m.a": 1, "v": 1 } },
            doc! { "$rename": { "m.b": "x" } },
            doc! { "$inc": { "t": 1 } },
        ] {
            assert!(series().meta_update(&refused.to_raw()).is_err());
        }
    }
}
