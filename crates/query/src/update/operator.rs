//! The update operators, one file each, and the contract between them and the walk
//! over the document (`apply`).
//!
//! An operator sees one place at a time: the value there, or that there is none. It answers with an
//! [`Effect`] and never writes itself, so every operator works in documents, in arrays, behind `$`, `$[]` and
//! `$[x]` alike.

mod add_to_set;
mod arithmetic;
mod bit;
mod current_date;
mod pop;
mod pull;
mod pull_all;
mod push;
mod rename;
mod select;
mod set;
mod set_on_insert;
mod unset;

use std::fmt::Debug;

use pando_document::{RawDocument, RawDocumentBuf, RawValue, Value};

use super::UpdateContext;
use super::path::UpdatePath;
use super::trail::Trail;
use super::tree::FieldsNode;
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::field_tables::FieldTables;
use crate::shell_text;

/// The surroundings that an operator sees besides its place.
#[derive(Clone, Copy, Debug)]
pub(in crate::update) struct Surroundings<'a> {
    /// The whole old document.
    pub(in crate::update) root: &'a RawDocument,
    /// The fields of the old document and of those within it, for operators that look elsewhere.
    pub(in crate::update) fields: &'a FieldTables<'a>,
    pub(in crate::update) context: &'a UpdateContext,
}

/// The effect of an operator on a place.
#[derive(Debug)]
pub(in crate::update) enum Effect<'v> {
    /// It stays as it is; a missing place stays missing.
    Keep,
    /// The field goes; an array element becomes null.
    Remove,
    /// It gets this value, whose bytes are copied.
    Put(RawValue<'v>),
    /// It gets this computed value, never a document or an array.
    PutValue(Value),
    /// It gets this array.
    PutArray(RawDocumentBuf),
}

/// The answer of an operator to a path that ends at a value without children (`a.b` where `a` is 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::update) enum OnBlockedPath {
    /// No change.
    Ignore,
    /// It would have to create a field there.
    CannotCreate,
    /// It would have to look there.
    CannotTraverse,
}

/// One update operator with its parsed argument.
pub(in crate::update) trait Operator: Debug + Send + Sync {
    /// The place holds `old`.
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError>;

    /// The place does not exist, and everything above it can be made.
    fn create<'v>(
        &'v self,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError>;

    /// Whether [`Operator::create`] writes anything: else nothing above the place is made for it.
    fn creates(&self, surroundings: &Surroundings<'_>) -> bool;

    /// See [`OnBlockedPath`].
    fn on_blocked_path(&self, surroundings: &Surroundings<'_>) -> Result<OnBlockedPath, QueryError> {
        Ok(if self.creates(surroundings) { OnBlockedPath::CannotCreate } else { OnBlockedPath::Ignore })
    }
}

/// Parses one field of `{$operator: {path: argument, …}}` and puts it into the tree.
///
/// `used_identifiers` collects nothing here: the caller reads the identifiers from the paths.
pub(in crate::update) fn parse(
    operator: &str,
    path: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
    tree: &mut FieldsNode,
) -> Result<Vec<UpdatePath>, QueryError> {
    if operator == "$rename" {
        return rename::parse(path, argument, tree);
    }
    // A path that is none is reported before an argument that is none.
    let steps = UpdatePath::parse(path)?;
    let order = scope.text_order();
    let parsed: Box<dyn Operator> = match operator {
        "$set" => set::parse(argument),
        "$unset" => unset::parse(),
        "$setOnInsert" => set_on_insert::parse(argument),
        "$inc" => arithmetic::parse(arithmetic::Arithmetic::Add, path, argument)?,
        "$mul" => arithmetic::parse(arithmetic::Arithmetic::Multiply, path, argument)?,
        "$min" => select::parse(select::Selection::Least, argument, order),
        "$max" => select::parse(select::Selection::Greatest, argument, order),
        "$currentDate" => current_date::parse(argument)?,
        "$push" => push::parse(argument, order)?,
        "$pull" => pull::parse(argument, scope)?,
        "$pullAll" => pull_all::parse(argument, order)?,
        "$addToSet" => add_to_set::parse(argument, order)?,
        "$pop" => pop::parse(path, argument)?,
        "$bit" => bit::parse(argument)?,
        _ => return Err(unknown(operator)),
    };
    tree.insert(&steps, parsed)?;
    Ok(vec![steps])
}

/// Whether an update operator has this name.
pub(in crate::update) fn is_known(operator: &str) -> bool {
    matches!(
        operator,
        "$set"
            | "$unset"
            | "$setOnInsert"
            | "$inc"
            | "$mul"
            | "$min"
            | "$max"
            | "$rename"
            | "$currentDate"
            | "$push"
            | "$pull"
            | "$pullAll"
            | "$addToSet"
            | "$pop"
            | "$bit"
    )
}

/// The error for a name that no operator has.
pub(in crate::update) fn unknown(operator: &str) -> QueryError {
    QueryError::new(
        ErrorCode::FailedToParse,
        format!(
            "Unknown modifier: {operator}. Expected a valid update modifier or pipeline-style update specified as an \
             array"
        ),
    )
}

fn bad_value(message: String) -> QueryError {
    QueryError::new(ErrorCode::BadValue, message)
}

fn type_mismatch(message: String) -> QueryError {
    QueryError::new(ErrorCode::TypeMismatch, message)
}

/// `{a: 1}`, as messages show an operator's argument.
fn argument_text(path: &str, argument: RawValue<'_>) -> String {
    format!("{{{path}: {}}}", shell_text::value_text(argument))
}
