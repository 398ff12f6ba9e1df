//! `$pull`: every element that meets a condition goes.
//!
//! The condition is one of three things:
//! - a document without operators, `{a: 1, b: {$gt: 2}}`: a filter on elements that are documents;
//! - an object of operators, `{$gt: 5}`, or a regular expression: a test of the element itself;
//! - any other value: elements that equal it.

use pando_collation::TextOrder;
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use super::pop::collect;
use super::{Effect, OnBlockedPath, Operator, Surroundings, bad_value};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::literal::Literal;
use crate::update::trail::Trail;
use crate::update::value_match::ValueMatch;

/// The name under which a condition of operators knows the element.
const ELEMENT_NAME: &str = "element";

/// Operators that test one value; all others stand at a filter's top level.
const VALUE_OPERATORS: [&str; 17] = [
    "$eq",
    "$ne",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$in",
    "$nin",
    "$exists",
    "$type",
    "$regex",
    "$options",
    "$mod",
    "$elemMatch",
    "$size",
    "$all",
    "$comment",
];

#[derive(Debug)]
enum Pull {
    Document(Filter),
    Value(ValueMatch),
    Equal(Literal, TextOrder),
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Box<dyn Operator>, QueryError> {
    Ok(Box::new(match argument {
        RawValue::Document(condition) if tests_the_value(condition)? => {
            Pull::Value(value_match(argument, scope)?)
        }
        RawValue::Document(condition) => Pull::Document(Filter::parse(condition, scope)?),
        RawValue::Regex(_) => Pull::Value(value_match(argument, scope)?),
        other => Pull::Equal(Literal::new(other), scope.text_order().clone()),
    }))
}

fn tests_the_value(condition: &RawDocument) -> Result<bool, QueryError> {
    match condition.iter().next() {
        Some(first) => {
            let (name, _) = first?;
            Ok(VALUE_OPERATORS.contains(&name) || name.starts_with("$bits"))
        }
        None => Ok(false),
    }
}

fn value_match(condition: RawValue<'_>, scope: &ParseScope) -> Result<ValueMatch, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append(ELEMENT_NAME, condition);
    writer.finish();
    let filter = RawDocumentBuf::from_vec(bytes)?;
    Ok(ValueMatch::new(Filter::parse(&filter, scope)?, ELEMENT_NAME))
}

impl Pull {
    fn removes(&self, element: RawValue<'_>) -> Result<bool, QueryError> {
        match self {
            Pull::Document(filter) => match element {
                RawValue::Document(document) => filter.matches(document),
                _ => Ok(false),
            },
            Pull::Value(condition) => condition.accepts(element),
            Pull::Equal(value, order) => Ok(order.is_equal(value.raw(), element)),
        }
    }
}

/// The array without the elements that `removes` names.
pub(super) fn cull<'v>(
    old: RawValue<'v>,
    removes: impl Fn(RawValue<'v>) -> Result<bool, QueryError>,
) -> Result<Effect<'v>, QueryError> {
    let RawValue::Array(array) = old else {
        return Err(bad_value("Cannot apply $pull to a non-array value".to_owned()));
    };
    let elements = collect(array)?;
    let mut kept = Vec::with_capacity(elements.len());
    for element in &elements {
        if !removes(*element)? {
            kept.push(*element);
        }
    }
    Ok(if kept.len() == elements.len() { Effect::Keep } else { Effect::PutArray(build_array(kept)) })
}

impl Operator for Pull {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        _: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        cull(old, |element| self.removes(element))
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Keep)
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        false
    }

    fn on_blocked_path(&self, _: &Surroundings<'_>) -> Result<OnBlockedPath, QueryError> {
        Ok(OnBlockedPath::CannotTraverse)
    }
}
