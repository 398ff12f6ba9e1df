//! `$replaceRoot` and `$replaceWith`: an expression's document takes the place of each document.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawDocument, RawValue};

use super::{Definition, Flow, RunOptions, Sink, Source, Stage, pulled};
use crate::error::{ErrorCode, QueryError};
use crate::expression::{Expression, ParseScope};
use crate::pipeline::PipelineFault;
use crate::shell_text;

#[derive(Clone, Debug)]
struct ReplaceRoot {
    new_root: Arc<Expression>,
    /// How messages name the expression.
    role: &'static str,
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
    Ok(Arc::new(ReplaceRoot { new_root: Arc::new(Expression::of_pipeline(new_root, scope)?), role }))
}

impl Definition for ReplaceRoot {
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
    fn replace(
        &self,
        root: &RawDocument,
        sink: &mut dyn FnMut(&RawDocument) -> Result<Flow, QueryError>,
    ) -> Result<Flow, QueryError> {
        let value = self.new_root.evaluate(root)?;
        match value.raw() {
            Some(RawValue::Document(document)) => sink(document),
            other => Err(PipelineFault::NewRootNotObject.error(format!(
                "{} must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. Input \
                 document: {}",
                self.role,
                other.map_or_else(|| "MISSING".to_owned(), shell_text::value_text),
                value.type_name(),
                shell_text::document_text(root)
            ))),
        }
    }
}
