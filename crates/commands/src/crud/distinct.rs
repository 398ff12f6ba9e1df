//! `distinct`: the different values of a field, arrays taken apart, in MongoDB's order of values.

use std::collections::BTreeMap;

use pando_document::{DocumentWriter, RawDocument, RawValue, Value};
use pando_keyorder::{Direction, TypeBits};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::path::{Leaves, Path};

use super::collation::refuse_collation;
use super::selection::{self, Selection};
use crate::arguments::{Arguments, collection_name_or, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Bytes of values at most: they have to fit one reply.
const VALUES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Answers the values.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let mut query = RawDocument::empty();
    let mut key = None;
    let mut hint = None;
    for argument in Arguments::of_command("distinct", request.body) {
        let argument = argument?;
        match argument.name {
            "key" => key = argument.string()?,
            "query" => query = argument.document()?.unwrap_or(query),
            "hint" => hint = Some(argument.value),
            "collation" => refuse_collation(argument.document()?)?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let key = key.ok_or_else(|| missing("distinct", "key"))?;
    if key.is_empty() {
        return Err(CommandError::failed(
            pando_query::expression::ExpressionFault::EmptyPath.code(),
            "FieldPath cannot be constructed with empty string",
        ));
    }
    let path = Path::new(key);
    let namespace = context.readable(name)?;
    let filter = Filter::parse(query, &ParseScope::at(context.shared.now_ms()))?;
    let transaction = context.begin_read()?;
    let mut values = Values::default();
    if let Some(collection) = context.catalog().collection(namespace.database(), namespace.collection()) {
        let selection = Selection::new(filter, None, hint, None)?;
        selection::for_each(&selection, &collection, &*transaction, context, |document| {
            values.add_leaves(document, &path)
        })?;
    }
    transaction.rollback();
    let mut list = reply.array("values");
    for value in values.by_key.values() {
        list.push_value(value);
    }
    list.finish();
    Ok(())
}

/// Values, each once, by their order-preserving keys.
#[derive(Default)]
struct Values {
    by_key: BTreeMap<Vec<u8>, Value>,
    bytes: usize,
}

impl Values {
    fn add_leaves(&mut self, document: &RawDocument, path: &Path) -> Result<(), CommandError> {
        let mut failed = None;
        path.any(document, Leaves::Whole, &mut |leaf| {
            let outcome = match leaf.value {
                Some(RawValue::Array(array)) => array.iter().try_for_each(|element| self.add(element?)),
                Some(value) => self.add(value),
                None => Ok(()),
            };
            failed = outcome.err();
            Ok(failed.is_some())
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Adds a value that is equal to none so far. Equal values have equal key bytes, whatever their types.
    fn add(&mut self, value: RawValue<'_>) -> Result<(), CommandError> {
        let mut key = Vec::new();
        pando_keyorder::encode(value, Direction::Ascending, &mut key, &mut TypeBits::new());
        if self.by_key.contains_key(&key) {
            return Ok(());
        }
        self.bytes += key.len();
        if self.bytes > VALUES_BYTES_MAX {
            return Err(CommandError::failed(ErrorCode::Location(17217), "distinct too big, 16mb cap"));
        }
        self.by_key.insert(key, value.to_owned());
        Ok(())
    }
}
