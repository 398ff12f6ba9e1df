//! The document of a query: a filter, or a filter in `$query` with modifiers beside it.

use pando_document::{DocumentError, RawDocument, RawValue};

use super::translation::{refusal, unreadable};
use crate::ErrorCode;
use crate::last_write::WriteFailure;

/// The answer that the client wants: the result of its query, or the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Documents,
    Explanation,
}

/// A query, taken apart. The fields behind the filter bear the names of the fields of `find`.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryParts<'a> {
    pub filter: &'a RawDocument,
    pub sort: Option<RawValue<'a>>,
    pub hint: Option<RawValue<'a>>,
    pub min: Option<RawValue<'a>>,
    pub max: Option<RawValue<'a>>,
    pub max_time: Option<RawValue<'a>>,
    pub comment: Option<RawValue<'a>>,
    pub read_preference: Option<RawValue<'a>>,
    pub return_key: Option<RawValue<'a>>,
    pub show_record_id: Option<RawValue<'a>>,
    /// The client wants each document once, even if it moves: an order by `_id` does that.
    pub is_snapshot: bool,
    pub wish: Wish,
}

impl<'a> QueryParts<'a> {
    /// Reads the document of a query.
    pub fn read(query: &'a RawDocument) -> Result<QueryParts<'a>, WriteFailure> {
        let Some(filter) = wrapped_filter(query).map_err(|error| unreadable(&error))? else {
            return Ok(QueryParts::of_filter(query));
        };
        let mut parts = QueryParts::of_filter(filter);
        for field in query.iter() {
            let (name, value) = field.map_err(|error| unreadable(&error))?;
            parts.take(name, value)?;
        }
        Ok(parts)
    }

    fn of_filter(filter: &'a RawDocument) -> QueryParts<'a> {
        QueryParts {
            filter,
            sort: None,
            hint: None,
            min: None,
            max: None,
            max_time: None,
            comment: None,
            read_preference: None,
            return_key: None,
            show_record_id: None,
            is_snapshot: false,
            wish: Wish::Documents,
        }
    }

    fn take(&mut self, name: &str, value: RawValue<'a>) -> Result<(), WriteFailure> {
        match name {
            "$query" | "query" => {}
            "$orderby" | "orderby" => self.sort = Some(value),
            "$hint" => self.hint = Some(value),
            "$min" => self.min = Some(value),
            "$max" => self.max = Some(value),
            "$maxTimeMS" => self.max_time = Some(value),
            "$comment" => self.comment = Some(value),
            "$readPreference" => self.read_preference = Some(value),
            "$returnKey" => self.return_key = Some(value),
            "$showDiskLoc" => self.show_record_id = Some(value),
            "$snapshot" => self.is_snapshot = value.to_bool(),
            "$explain" if value.to_bool() => self.wish = Wish::Explanation,
            "$explain" => {}
            "$maxScan" if !value.to_bool() => {}
            _ => {
                return Err(refusal(
                    ErrorCode::BadValue,
                    format!("the query modifier {name} is not supported"),
                ));
            }
        }
        Ok(())
    }
}

/// The filter of a query that may have modifiers, wherever `$query` stands. Without the dollar sign a query
/// on a field named `query` looks alike: only the first field counts, and only modifiers may follow it.
fn wrapped_filter(query: &RawDocument) -> Result<Option<&RawDocument>, DocumentError> {
    if let Some(RawValue::Document(filter)) = query.get("$query")? {
        return Ok(Some(filter));
    }
    let mut fields = query.iter();
    let Some(("query", RawValue::Document(filter))) = fields.next().transpose()? else { return Ok(None) };
    for field in fields {
        let (name, _) = field?;
        if !(name == "orderby" || name.starts_with('$')) {
            return Ok(None);
        }
    }
    Ok(Some(filter))
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_filter_stands_alone_or_beside_its_modifiers() {
        for (query, filter) in [
            (doc! { "a": 1 }, doc! { "a": 1 }),
            (doc! { "$query": { "a": 1 }, "$orderby": { "b": 1 } }, doc! { "a": 1 }),
            (doc! { "$orderby": { "b": 1 }, "$query": { "a": 1 } }, doc! { "a": 1 }),
            (doc! { "query": { "a": 1 }, "orderby": { "b": 1 } }, doc! { "a": 1 }),
            (doc! { "query": { "a": 1 }, "b": 2 }, doc! { "query": { "a": 1 }, "b": 2 }),
            (doc! { "query": 1 }, doc! { "query": 1 }),
        ] {
            let raw = query.to_raw();
            let parts = QueryParts::read(&raw).unwrap();
            assert_eq!(parts.filter.as_bytes(), filter.to_raw().as_bytes(), "{query:?}");
        }
    }

    #[test]
    fn an_unknown_modifier_is_refused() {
        for name in ["$maxScan", "$bogus", "bogus"] {
            let mut query = doc! { "$query": {} };
            query.push(name, 5);
            let failure = QueryParts::read(&query.to_raw()).expect_err("it cannot be obeyed");
            assert!(failure.message.contains(name), "{}", failure.message);
        }
        assert!(QueryParts::read(&doc! { "$query": {}, "$maxScan": 0 }.to_raw()).is_ok());
    }
}
