//! An update made of operators: parsed into a tree, applied by walking the document along it.

use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::apply::Application;
use super::array_filter::ArrayFilters;
use super::operator;
use super::path::{Step, UpdatePath};
use super::tree::FieldsNode;
use super::{Applied, UpdateContext};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::field_tables::FieldTables;
use crate::shell_text;

#[derive(Debug)]
pub(super) struct Operators {
    tree: FieldsNode,
    filters: ArrayFilters,
    paths: Vec<UpdatePath>,
    appends_to_id: bool,
}

impl Operators {
    pub(super) fn parse(
        update: &RawDocument,
        array_filters: Option<&RawArray>,
        scope: &ParseScope,
    ) -> Result<Operators, QueryError> {
        let filters = match array_filters {
            Some(filters) => ArrayFilters::parse(filters, scope)?,
            None => ArrayFilters::default(),
        };
        let mut parsed =
            Operators { tree: FieldsNode::default(), filters, paths: Vec::new(), appends_to_id: false };
        for element in update.iter() {
            let (name, argument) = element?;
            if !operator::is_known(name) {
                return Err(operator::unknown(name));
            }
            parsed.add(name, argument, scope)?;
        }
        parsed.filters.check_use(&parsed.paths, update)?;
        Ok(parsed)
    }

    fn add(&mut self, name: &str, argument: RawValue<'_>, scope: &ParseScope) -> Result<(), QueryError> {
        let RawValue::Document(fields) = argument else {
            return Err(QueryError::failed_to_parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not \
                 {{{name}: {}}}",
                argument.element_type().alias(),
                shell_text::value_text(argument)
            )));
        };
        for field in fields.iter() {
            let (path, argument) = field?;
            self.appends_to_id |=
                path == "_id" && matches!(name, "$push" | "$addToSet") && !adds_nothing(argument)?;
            self.paths.extend(operator::parse(name, path, argument, scope, &mut self.tree)?);
        }
        Ok(())
    }

    pub(super) fn needs_matched_index(&self) -> bool {
        self.paths.iter().any(|path| path.steps().contains(&Step::Positional))
    }

    /// Whether an operator makes an array of `_id`, where there is none.
    pub(super) fn appends_to_id(&self) -> bool {
        self.appends_to_id
    }

    /// The path that names `_id` or a field of it, if one does.
    pub(super) fn id_path(&self) -> Option<&str> {
        let is_id = |path: &&UpdatePath| matches!(&path.steps()[0], Step::Field(name) if name == "_id");
        self.paths.iter().find(is_id).map(UpdatePath::text)
    }

    /// `$` without a match is refused wherever the path leads, unless `$[]` stands before it: then there may
    /// be no element.
    fn check_match(&self, context: &UpdateContext) -> Result<(), QueryError> {
        let is_missed = |path: &UpdatePath| {
            path.steps().iter().find(|step| !matches!(step, Step::Field(_))) == Some(&Step::Positional)
        };
        if context.matched_index.is_none() && self.paths.iter().any(is_missed) {
            return Err(QueryError::bad_value(
                "The positional operator did not find the match needed from the query.",
            ));
        }
        Ok(())
    }

    pub(super) fn apply(
        &self,
        document: &RawDocument,
        context: &UpdateContext,
    ) -> Result<Applied, QueryError> {
        self.check_match(context)?;
        let mut bytes = Vec::with_capacity(document.as_bytes().len() + 64);
        let fields = FieldTables::default();
        let application = Application::new(document, &fields, context, &self.filters);
        let changed = application.run(&self.tree, &mut bytes)?;
        Ok(if changed { Applied::Changed(RawDocumentBuf::from_vec(bytes)?) } else { Applied::Unchanged })
    }
}

/// Whether this is `{$each: []}`.
fn adds_nothing(argument: RawValue<'_>) -> Result<bool, QueryError> {
    let RawValue::Document(modifiers) = argument else { return Ok(false) };
    Ok(matches!(modifiers.get("$each")?, Some(RawValue::Array(values)) if values.is_empty()))
}
