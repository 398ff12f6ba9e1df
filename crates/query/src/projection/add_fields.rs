//! `$addFields` as a projection: every field stays, and the ones that are named are computed.
//!
//! An object without operators is a path written out: `{a: {b: 1}}` is `{"a.b": 1}`. Numbers are values here.

use pando_document::{RawDocument, RawValue};

use super::Projection;
use super::fault::ProjectionFault;
use super::finish::Finish;
use super::tree::{Child, Computed, Fallback, Fields};
use crate::error::QueryError;
use crate::expression::{Expression, FieldPath, ParseScope};
use crate::shell_text;

pub(super) fn parse(specification: &RawDocument, scope: &ParseScope) -> Result<Projection, QueryError> {
    // The paths are judged before the expressions.
    tree_of(specification, &|_| Ok(Expression::constant(RawValue::Null)))?;
    let mut tree = tree_of(specification, &|value| Expression::parse(value, scope))?;
    tree.fold(&|expression| expression.folded_in(scope))?;
    Ok(Projection::new(tree, Fallback::Keep, Finish::default()))
}

/// How the value of a field becomes an expression.
type ParseValue<'p> = dyn Fn(RawValue<'_>) -> Result<Expression, QueryError> + 'p;

fn tree_of(specification: &RawDocument, parse: &ParseValue<'_>) -> Result<Fields, QueryError> {
    let mut tree = Fields::default();
    for element in specification.iter() {
        let (path, value) = element?;
        let path = FieldPath::parse(path)?;
        add(&mut tree, path.names().to_vec(), value, specification, parse)?;
    }
    Ok(tree)
}

fn add(
    tree: &mut Fields,
    path: Vec<String>,
    value: RawValue<'_>,
    whole: &RawDocument,
    parse: &ParseValue<'_>,
) -> Result<(), QueryError> {
    let RawValue::Document(document) = value else {
        return insert(tree, &path, parse(value)?, whole);
    };
    let count = document.iter().count();
    if count == 0 {
        return Err(ProjectionFault::AddFieldsEmptyObject.error(format!(
            "an empty object is not a valid value. Found empty object at path {}",
            path.join(".")
        )));
    }
    for element in document.iter() {
        let (name, value) = element?;
        if name.starts_with('$') {
            if count > 1 {
                return Err(ProjectionFault::AddFieldsOperatorAmongFields.error(format!(
                    "an expression specification must contain exactly one field, the name of the expression. Found \
                     {count} fields in {}, while parsing object {}",
                    shell_text::document_text(document),
                    shell_text::document_text(whole)
                )));
            }
            return insert(tree, &path, parse(RawValue::Document(document))?, whole);
        }
        if name.contains('.') {
            return Err(ProjectionFault::AddFieldsDottedName.error(format!(
                "cannot use dotted field name '{name}' in a sub object: {}",
                shell_text::document_text(whole)
            )));
        }
        let mut below = path.clone();
        below.extend(FieldPath::parse(name)?.names().iter().cloned());
        add(tree, below, value, whole, parse)?;
    }
    Ok(())
}

fn insert(
    tree: &mut Fields,
    path: &[String],
    expression: Expression,
    whole: &RawDocument,
) -> Result<(), QueryError> {
    let child = Child::Computed(Computed::Expression(expression));
    tree.insert(path, child).map_err(|collision| {
        ProjectionFault::AddFieldsConflict.error(format!(
            "specification contains two conflicting paths. Cannot specify both '{}' and '{}': {}",
            path.join("."),
            path[..=collision.depth].join("."),
            shell_text::document_text(whole)
        ))
    })
}
