//! `$replaceRoot` and `$replaceWith`: an expression's document takes the place of each document.

use std::collections::BTreeSet;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawDocument, RawValue};

use super::{Definition, FilterInFront, Flow, RunOptions, Sink, Source, Stage, pulled};
use crate::error::{ErrorCode, QueryError};
use crate::expression::{Expression, ParseScope};
use crate::metadata::{MetadataSet, handed_on};
use crate::pipeline::PipelineFault;
use crate::pipeline::optimiser::{self, Nulls};
use crate::shell_text;

#[derive(Clone, Debug)]
struct ReplaceRoot {
    new_root: Arc<Expression>,
    /// How messages name the expression.
    role: &'static str,
    /// The metadata that the new document has of the old one.
    metadata: MetadataSet,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(PipelineFault::ReplaceRootNotObject.error(format!(
            "expected an object as specification for $replaceRoot stage, got {}",
            argument.element_type().alias()
        )));
    };
    for option in options.iter() {
        let (name, _) = option?;
        if name != "newRoot" {
            return Err(QueryError::new(
                ErrorCode::IdlUnknownField,
                format!("BSON field '$replaceRoot.{name}' is an unknown field."),
            ));
        }
    }
    let Some(new_root) = options.get("newRoot")? else {
        return Err(QueryError::new(
            ErrorCode::IdlFailedToParse,
            "BSON field '$replaceRoot.newRoot' is missing but a required field",
        ));
    };
    definition(new_root, "'newRoot' expression ", scope)
}

pub(super) fn parse_replace_with(
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Arc<dyn Definition>, QueryError> {
    definition(argument, "'replacement document' ", scope)
}

fn definition(
    new_root: RawValue<'_>,
    role: &'static str,
    scope: &ParseScope,
) -> Result<Arc<dyn Definition>, QueryError> {
    let new_root = Arc::new(Expression::of_pipeline(new_root, scope)?);
    Ok(Arc::new(ReplaceRoot { new_root, role, metadata: scope.metadata() }))
}

impl Definition for ReplaceRoot {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn lets_filters_pass(&self) -> bool {
        self.field().is_some()
    }

    fn filter_in_front(
        &self,
        filter: &RawDocument,
        _: &BTreeSet<String>,
    ) -> Result<FilterInFront, QueryError> {
        let Some(root) = self.field() else { return Ok(FilterInFront::None) };
        let in_front = |path: &str| Some(format!("{root}.{path}"));
        let Some(renamed) = optimiser::renamed(filter, &in_front, Nulls::Kept)? else {
            return Ok(FilterInFront::None);
        };
        // A value that is no document is an error of this stage, so it is not filtered away.
        optimiser::with_root_check(&renamed, root).map(FilterInFront::Other)
    }

    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(self.clone())
    }
}

impl Stage for ReplaceRoot {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        pulled(self, input)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        input.for_each(&mut |root, check| self.replace(root, &mut |document| sink(document, &mut *check)))
    }
}

impl ReplaceRoot {
    /// The field whose document takes the place, if it is just one.
    fn field(&self) -> Option<&str> {
        match self.new_root.as_field_path()?.names() {
            [only] => Some(only),
            _ => None,
        }
    }

    fn replace(
        &self,
        root: &RawDocument,
        sink: &mut dyn FnMut(&RawDocument) -> Result<Flow, QueryError>,
    ) -> Result<Flow, QueryError> {
        let value = self.new_root.evaluate(root)?;
        match value.raw() {
            Some(RawValue::Document(document)) => sink(&handed_on(root, document, self.metadata)?),
            _ => Err(PipelineFault::NewRootNotObject.error(format!(
                "{} must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. Input \
                 document: {}",
                self.role,
                value.shell_text(),
                value.type_name(),
                shell_text::document_text(root)
            ))),
        }
    }
}
