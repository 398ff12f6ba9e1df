//! Indexes of a time series: they are indexes of its buckets.
//!
//! | field of the index | fields of the index of buckets |
//! |---|---|
//! | the meta field, or one in it | the same of `meta`, of the same kind |
//! | the time or a measurement, ascending | `control.min` and `control.max` of it, ascending |
//! | the time or a measurement, descending | `control.max` and `control.min` of it, descending |
//!
//! A specification from which the user's own one does not follow has that as `originalSpec`, as in MongoDB.
//!
//! # Not here
//! Geometries of measurements and partial indexes by them: they are refused. `{v: 1}` is kept for a
//! measurement, and no plan bounds it: an array may lie within the bounds of a bucket and match no less.

use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value};

use super::bucket::Series;
use super::bucket_filter::path_below;
use crate::shell_text::{document_text, value_text};
use crate::{ErrorCode, QueryError};

/// The field of the specification of an index of buckets with the user's own one.
pub const ORIGINAL_SPECIFICATION: &str = "originalSpec";

fn invalid(reason: &str) -> QueryError {
    QueryError::new(ErrorCode::InvalidOptions, reason)
}

fn cannot_create(reason: String) -> QueryError {
    QueryError::new(ErrorCode::CannotCreateIndex, reason)
}

/// The key pattern of an index of buckets.
struct BucketKey {
    fields: Document,
    /// Whether the user's pattern follows from it.
    is_reversible: bool,
}

impl Series {
    /// The specification of the index of buckets for one of the series, which is in the form in which
    /// specifications are kept.
    pub fn bucket_index(&self, specification: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
        let key = match specification.get("key")? {
            Some(RawValue::Document(key)) => key,
            _ => RawDocument::empty(),
        };
        for (option, sentence) in [
            ("unique", "Unique indexes are not supported on time-series collections"),
            ("expireAfterSeconds", "TTL indexes are not supported on time-series collections"),
        ] {
            if specification.get(option)?.is_some_and(|value| option != "unique" || value.to_bool()) {
                return Err(invalid(sentence));
            }
        }
        let BucketKey { fields, mut is_reversible } = self.bucket_key(key)?;
        if specification.get("sparse")?.is_some_and(|value| value.to_bool())
            && fields.iter().any(|(name, _)| name.starts_with("control."))
        {
            return Err(invalid("Sparse indexes are not supported on time-series measurements"));
        }
        let mut changed = Document::new();
        for option in specification {
            let (name, value) = option?;
            match (name, value) {
                ("key", _) => changed.push("key", fields.clone()),
                ("partialFilterExpression", RawValue::Document(filter)) => {
                    is_reversible = false;
                    let filter = self.meta_filter(filter).map_err(|_| {
                        QueryError::not_implemented(
                            "a partial index of a time series by something else than its meta field",
                        )
                    })?;
                    changed.push(name, RawValue::Document(&filter).to_owned());
                }
                ("wildcardProjection", _) => {
                    return Err(QueryError::not_implemented("a wildcardProjection of a time series"));
                }
                (name, value) => changed.push(name, value.to_owned()),
            }
        }
        if !is_reversible {
            changed.push(ORIGINAL_SPECIFICATION, RawValue::Document(specification).to_owned());
        }
        Ok(changed.to_raw())
    }

    fn bucket_key(&self, key: &RawDocument) -> Result<BucketKey, QueryError> {
        let mut fields = Document::new();
        let mut is_reversible = true;
        for field in key {
            let (path, kind) = field?;
            if kind.as_str() == Some("text") {
                return Err(invalid("Text indexes are not supported on time-series collections"));
            }
            if let Some(below) = self.below_meta(path) {
                fields.push(format!("meta{below}"), kind.to_owned());
                continue;
            }
            let is_wildcard = path == "$**" || path.ends_with(".$**");
            let bounds = bounds_of(path, kind).ok_or_else(|| refused_kind(key, path, kind))?;
            if is_wildcard {
                let names: Vec<String> = bounds.iter().map(|(name, _)| format!("{name}: 1")).collect();
                return Err(cannot_create(format!(
                    "Error in specification {{ key: {{ {} }} }} :: caused by :: wildcard indexes do not allow compounding",
                    names.join(", ")
                )));
            }
            is_reversible &= path == self.time_field;
            for (name, sign) in bounds {
                fields.push(name, sign);
            }
        }
        Ok(BucketKey { fields, is_reversible })
    }

    /// The key pattern of the index of buckets that a pattern of the series names, for hints and drops. A
    /// pattern of no index is one of no index of buckets either.
    pub fn bucket_key_pattern(&self, key: &RawDocument) -> RawDocumentBuf {
        self.bucket_key(key).map_or_else(|_| key.to_owned(), |key| key.fields.to_raw())
    }

    /// The specification that the user sees of an index of buckets; `None` for one that is none of the
    /// series.
    pub fn index_of_series(&self, specification: &RawDocument) -> Result<Option<RawDocumentBuf>, QueryError> {
        let mut shown = match specification.get(ORIGINAL_SPECIFICATION)? {
            Some(RawValue::Document(original)) => Document::from_raw(original)?,
            _ => Document::from_raw(specification)?,
        };
        if specification.get(ORIGINAL_SPECIFICATION)?.is_some() {
            // Its visibility may have changed since.
            shown.remove("hidden");
            if specification.get("hidden")?.is_some_and(|hidden| hidden.to_bool()) {
                shown.push("hidden", true);
            }
            return Ok(Some(shown.to_raw()));
        }
        let Some(Value::Document(key)) = shown.get("key") else { return Ok(None) };
        let mut fields = Document::new();
        for (path, kind) in key.iter() {
            let bound = |which: &str| path.strip_prefix(which).filter(|name| *name == self.time_field);
            if let (Some(below), Some(meta)) = (path_below(path, "meta"), &self.meta_field) {
                fields.push(format!("{meta}{below}"), kind.clone());
            } else if bound("control.min.").or_else(|| bound("control.max.")).is_some() {
                // The pair of both bounds is one field.
                if fields.get(&self.time_field).is_none() {
                    fields.push(self.time_field.clone(), kind.clone());
                }
            } else {
                return Ok(None);
            }
        }
        shown.insert("key", fields);
        Ok(Some(shown.to_raw()))
    }

    /// The rest of a path that is the meta field or lies in it.
    fn below_meta<'p>(&self, path: &'p str) -> Option<&'p str> {
        path_below(path, self.meta_field.as_deref()?)
    }
}

/// The fields of a bucket with the bounds of a measurement; `None` for a kind of index that is none of
/// values.
fn bounds_of(path: &str, kind: RawValue<'_>) -> Option<[(String, Value); 2]> {
    let sign = pando_document::Number::from_value(kind)?.to_f64();
    let (min, max) = (format!("control.min.{path}"), format!("control.max.{path}"));
    Some(match sign < 0.0 {
        false => [(min, kind.to_owned()), (max, kind.to_owned())],
        true => [(max, kind.to_owned()), (min, kind.to_owned())],
    })
}

fn refused_kind(key: &RawDocument, path: &str, kind: RawValue<'_>) -> QueryError {
    if kind.as_str() == Some("2dsphere") {
        return QueryError::not_implemented(
            "an index on geometries of a time series outside of its meta field",
        );
    }
    cannot_create(format!(
        "Invalid index spec for time-series collection: {}. Indexes on measurement fields must be ascending or descending (numbers only), or '2dsphere': {path}: {}",
        document_text(key),
        value_text(kind)
    ))
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn series() -> Series {
        Series { time_field: "t".to_owned(), meta_field: Some("m".to_owned()), span_seconds: 3600 }
    }

    #[test]
    fn an_index_of_a_series_is_one_of_its_buckets() {
        for (given, wanted, original) in [
            (doc! { "m": 1 }, doc! { "meta": 1 }, false),
            (
                doc! { "m.a": -1, "t": 1 },
                doc! { "meta.a": -1, "control.min.t": 1, "control.max.t": 1 },
                false,
            ),
            (doc! { "t": -1 }, doc! { "control.max.t": -1, "control.min.t": -1 }, false),
            (doc! { "v": 1 }, doc! { "control.min.v": 1, "control.max.v": 1 }, true),
            (doc! { "m.g": "2dsphere" }, doc! { "meta.g": "2dsphere" }, false),
            (doc! { "mm": 1 }, doc! { "control.min.mm": 1, "control.max.mm": 1 }, true),
        ] {
            let specification = doc! { "v": 2, "key": (given.clone()), "name": "i" }.to_raw();
            let of_buckets = series().bucket_index(&specification).unwrap();
            let Ok(Some(RawValue::Document(key))) = of_buckets.get("key") else { panic!("it has a key") };
            assert_eq!(key, &*wanted.to_raw());
            assert_eq!(of_buckets.get(ORIGINAL_SPECIFICATION).unwrap().is_some(), original);
            assert_eq!(series().index_of_series(&of_buckets).unwrap(), Some(specification));
            assert_eq!(series().bucket_key_pattern(&given.to_raw()), wanted.to_raw());
        }
        let id = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }.to_raw();
        assert_eq!(series().index_of_series(&id).unwrap(), None);
    }

    #[test]
    fn other_indexes_of_a_series_are_refused() {
        for (options, code) in [
            (doc! { "key": { "m": 1 }, "unique": true }, ErrorCode::InvalidOptions),
            (doc! { "key": { "t": 1 }, "expireAfterSeconds": 5 }, ErrorCode::InvalidOptions),
            (doc! { "key": { "m": "text" } }, ErrorCode::InvalidOptions),
            (doc! { "key": { "v": 1 }, "sparse": true }, ErrorCode::InvalidOptions),
            (doc! { "key": { "v": "hashed" } }, ErrorCode::CannotCreateIndex),
            (doc! { "key": { "$**": 1 } }, ErrorCode::CannotCreateIndex),
            (doc! { "key": { "g": "2dsphere" } }, ErrorCode::NotImplemented),
        ] {
            let error = series().bucket_index(&options.to_raw()).unwrap_err();
            assert_eq!(error.code(), Some(code), "{options:?}");
        }
    }
}
