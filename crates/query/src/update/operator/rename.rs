//! `$rename`: a field moves to another path. It is two operators in the tree: the destination takes the value
//! that the old document has at the source, and the source goes.
//!
//! Neither path may lead through an array. A source that is missing, also in an array, is no change. An
//! existing destination is overwritten.

use pando_document::{RawDocument, RawValue};

use super::{Effect, OnBlockedPath, Operator, Surroundings, bad_value};
use crate::error::{ErrorCode, QueryError};
use crate::field_tables::FieldSource;
use crate::identity::is_identical;
use crate::shell_text;
use crate::update::path::{Step, UpdatePath};
use crate::update::trail::{Trail, document_text};
use crate::update::tree::FieldsNode;

/// At the destination.
#[derive(Debug)]
struct MoveHere {
    source: UpdatePath,
    destination: UpdatePath,
}

/// At the source.
#[derive(Debug)]
struct MoveAway;

pub(super) fn parse(
    path: &str,
    argument: RawValue<'_>,
    tree: &mut FieldsNode,
) -> Result<Vec<UpdatePath>, QueryError> {
    let shown = || format!("{path}: {}", shell_text::value_text(argument));
    let source = UpdatePath::parse(path)?;
    tree.insert(&source, Box::new(MoveAway))?;
    let RawValue::String(to) = argument else {
        return Err(bad_value(format!("The 'to' field for $rename must be a string: {}", shown())));
    };
    if to.contains('\0') {
        return Err(bad_value("The 'to' field for $rename cannot contain an embedded null byte".to_owned()));
    }
    let destination = UpdatePath::parse(to)?;
    if source == destination {
        return Err(bad_value(format!("The source and target field for $rename must differ: {}", shown())));
    }
    if source.overlaps(&destination) {
        return Err(bad_value(format!(
            "The source and target field for $rename must not be on the same path: {}",
            shown()
        )));
    }
    for (role, path) in [("source", &source), ("destination", &destination)] {
        if path.is_dynamic() {
            return Err(bad_value(format!(
                "The {role} field for $rename may not be dynamic: {}",
                path.text()
            )));
        }
    }
    let here = MoveHere { source: source.clone(), destination: destination.clone() };
    tree.insert(&destination, Box::new(here))?;
    Ok(vec![source, destination])
}

impl MoveHere {
    /// The value at the source, or none. A source within an array is refused, if it is there.
    fn look_up<'v>(&self, surroundings: &Surroundings<'v>) -> Result<Option<RawValue<'v>>, QueryError> {
        let (root, fields) = (surroundings.root, surroundings.fields);
        let mut here = RawValue::Document(root);
        let mut array = None;
        let mut name = "";
        for step in self.source.steps() {
            let Step::Field(next) = step else { unreachable!("the parser refuses dynamic paths in $rename") };
            let value = match here {
                RawValue::Document(document) => fields.field(document, next)?,
                RawValue::Array(elements) if is_index(next) => {
                    array.get_or_insert(name);
                    elements.as_document().get(next)?
                }
                blocking => return Err(self.blocked(name, blocking)),
            };
            let Some(value) = value else { return Ok(None) };
            (here, name) = (value, next);
        }
        match array {
            None => Ok(Some(here)),
            Some(array) => Err(bad_value(format!(
                "The source field cannot be an array element, '{}' in doc with {} has an array field called '{array}'",
                self.source.text(),
                unbraced(root)
            ))),
        }
    }

    fn blocked(&self, name: &str, blocking: RawValue<'_>) -> QueryError {
        QueryError::new(
            ErrorCode::PathNotViable,
            format!(
                "cannot use the part ({name} of {}) to traverse the element ({{{name}: {}}})",
                self.source.text(),
                shell_text::value_text(blocking)
            ),
        )
    }

    fn check_destination(&self, surroundings: &Surroundings<'_>) -> Result<(), QueryError> {
        match self.array_on_destination(surroundings)? {
            None => Ok(()),
            Some(array) => Err(bad_value(format!(
                "The destination field cannot be an array element, '{}' in doc with {} has an array field called '{array}'",
                self.destination.text(),
                unbraced(surroundings.root)
            ))),
        }
    }

    /// The name of the first array that the destination leads through.
    fn array_on_destination(&self, surroundings: &Surroundings<'_>) -> Result<Option<String>, QueryError> {
        let mut document = surroundings.root;
        let steps = self.destination.steps();
        for (depth, step) in steps.iter().enumerate() {
            let Step::Field(name) = step else { return Ok(None) };
            match surroundings.fields.field(document, name)? {
                Some(RawValue::Document(nested)) => document = nested,
                Some(RawValue::Array(_)) if depth + 1 < steps.len() => return Ok(Some(name.clone())),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

fn is_index(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

fn unbraced(root: &RawDocument) -> String {
    let text = document_text(root);
    text[1..text.len() - 1].to_owned()
}

impl Operator for MoveHere {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let Some(value) = self.look_up(surroundings)? else { return Ok(Effect::Keep) };
        self.check_destination(surroundings)?;
        if self.destination.text() == "_id" {
            // Refused even where the value is the same.
            return Err(QueryError::new(
                ErrorCode::ImmutableField,
                "Performing an update on the path '_id' would modify the immutable field '_id'",
            ));
        }
        Ok(if is_identical(old, value) { Effect::Keep } else { Effect::Put(value) })
    }

    fn create<'v>(
        &'v self,
        surroundings: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let Some(value) = self.look_up(surroundings)? else { return Ok(Effect::Keep) };
        self.check_destination(surroundings)?;
        Ok(Effect::Put(value))
    }

    fn creates(&self, surroundings: &Surroundings<'_>) -> bool {
        // An error at the source is met again, and reported, where the value is taken.
        !matches!(self.look_up(surroundings), Ok(None))
    }

    fn on_blocked_path(&self, surroundings: &Surroundings<'_>) -> Result<OnBlockedPath, QueryError> {
        if self.look_up(surroundings)?.is_none() {
            return Ok(OnBlockedPath::Ignore);
        }
        self.check_destination(surroundings)?;
        Ok(OnBlockedPath::CannotCreate)
    }
}

impl Operator for MoveAway {
    fn apply<'v>(
        &'v self,
        _: RawValue<'v>,
        _: &Surroundings<'v>,
        _: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Remove)
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::Keep)
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        false
    }

    fn on_blocked_path(&self, _: &Surroundings<'_>) -> Result<OnBlockedPath, QueryError> {
        // The destination's operator reports what stands in the way of the source.
        Ok(OnBlockedPath::Ignore)
    }
}
