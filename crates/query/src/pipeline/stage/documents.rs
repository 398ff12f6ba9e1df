//! `$documents`: the documents of an array that an expression gives. It stands first and reads no
//! collection.

use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_document::{RawDocument, RawDocumentBuf, RawValue, doc};

use super::{Definition, Memory, RunOptions, Source, Stage};
use crate::error::QueryError;
use crate::expression::{Expression, ParseScope};
use crate::memory::hold_value;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::shell_text;

#[derive(Clone, Debug)]
struct Documents {
    expression: Arc<Expression>,
}

struct Run {
    expression: Arc<Expression>,
    /// The elements that are left, each as the field `d` of a document; `None` before the first call.
    left: Option<std::vec::IntoIter<RawDocumentBuf>>,
    reservation: Reservation,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    Ok(Arc::new(Documents { expression: Arc::new(Expression::of_pipeline(argument, scope)?) }))
}

impl Definition for Documents {
    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn needs(&self, _behind: Needs) -> Needs {
        Needs::nothing()
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            expression: Arc::clone(&self.expression),
            left: None,
            reservation: options.memory.account.reserve(),
        })
    }
}

impl Run {
    fn evaluate(&mut self) -> Result<(), QueryError> {
        let value = self.expression.evaluate(RawDocument::empty())?;
        let Some(array) = value.as_array() else {
            return Err(PipelineFault::DocumentsNotArray.error("an array is expected"));
        };
        hold_value(&mut self.reservation, array.as_document().as_bytes().len(), "$documents")?;
        let mut elements = Vec::new();
        for element in array.iter() {
            elements.push(match element? {
                RawValue::Document(document) => document.to_owned(),
                other => return Err(not_document(other)),
            });
        }
        self.left = Some(elements.into_iter());
        Ok(())
    }
}

fn not_document(value: RawValue<'_>) -> QueryError {
    let input = doc! { "_tempDocumentsField": (value.to_owned()) }.to_raw();
    PipelineFault::NewRootNotObject.error(format!(
        "elements within the array passed to $documents must evaluate to an object, but resulting value was: {}. Type of \
         resulting value: '{}'. Input document: {}",
        shell_text::value_text(value),
        value.element_type().alias(),
        shell_text::document_text(&input)
    ))
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        input.check()?;
        if self.left.is_none() {
            self.evaluate()?;
        }
        let next = self.left.as_mut().and_then(Iterator::next);
        if next.is_none() {
            self.reservation.hold(0);
        }
        Ok(next.map(|document| Bytes::from(document.into_vec())))
    }
}
