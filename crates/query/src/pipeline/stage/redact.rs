//! `$redact`: an expression decides for each document, and for each document within it, whether it is kept
//! whole, left out, or looked into.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::{Definition, Nesting, RunOptions, Source, Stage, document_in};
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Frame, ParseScope};
use crate::literal::Literal;
use crate::pipeline::PipelineFault;

/// The variables of the stage, and the strings that they are.
const DECISIONS: [(&str, &str); 3] = [("KEEP", "keep"), ("PRUNE", "prune"), ("DESCEND", "descend")];

#[derive(Clone, Debug)]
struct Redact {
    expression: Arc<Expression>,
    /// The slot of `$$ROOT`: fields are those of the document that is decided about.
    root_slot: usize,
}

/// The decision about a document.
enum Decision {
    Keep,
    Prune,
    Descend,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let constants = DECISIONS.map(|(name, text)| (name, Some(Literal::new(RawValue::String(text)))));
    let (scope, root_slot) = scope.with_constants(constants).with_root();
    Ok(Arc::new(Redact { expression: Arc::new(Expression::of_pipeline(argument, &scope)?), root_slot }))
}

impl Redact {
    fn decide(&self, root: &RawDocument, document: &RawDocument) -> Result<Decision, QueryError> {
        let mut frame = Frame::new(document);
        frame.set_root(self.root_slot, Evaluated::Raw(RawValue::Document(root)));
        let value = self.expression.run(&mut frame)?;
        match value.as_str() {
            Some("keep") => Ok(Decision::Keep),
            Some("prune") => Ok(Decision::Prune),
            Some("descend") => Ok(Decision::Descend),
            _ => Err(PipelineFault::RedactUndecided.error(format!(
                "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, \
                 but returned {}",
                value.shell_text()
            ))),
        }
    }

    /// The rest of a document; `None` where it is left out. A document nests 200 levels at most, and so does
    /// this.
    fn redacted(
        &self,
        root: &RawDocument,
        document: &RawDocument,
    ) -> Result<Option<RawDocumentBuf>, QueryError> {
        match self.decide(root, document)? {
            Decision::Keep => return Ok(Some(document.to_owned())),
            Decision::Prune => return Ok(None),
            Decision::Descend => {}
        }
        let mut bytes = Vec::with_capacity(document.as_bytes().len());
        let mut writer = DocumentWriter::begin(&mut bytes);
        for field in document.iter() {
            let (name, value) = field?;
            match value {
                RawValue::Document(inner) => {
                    if let Some(rest) = self.redacted(root, inner)? {
                        writer.append(name, RawValue::Document(&rest));
                    }
                }
                RawValue::Array(array) => {
                    let rest = self.redacted_array(root, array)?;
                    writer.append(name, RawValue::Array(RawArray::from_document(&rest)));
                }
                other => writer.append(name, other),
            }
        }
        writer.finish();
        Ok(Some(RawDocumentBuf::from_vec(bytes)?))
    }

    fn redacted_array(&self, root: &RawDocument, array: &RawArray) -> Result<RawDocumentBuf, QueryError> {
        let mut bytes = Vec::with_capacity(array.as_document().as_bytes().len());
        let mut writer = ArrayWriter::begin(&mut bytes);
        for element in array.iter() {
            match element? {
                RawValue::Document(inner) => {
                    if let Some(rest) = self.redacted(root, inner)? {
                        writer.push(RawValue::Document(&rest));
                    }
                }
                RawValue::Array(inner) => {
                    let rest = self.redacted_array(root, inner)?;
                    writer.push(RawValue::Array(RawArray::from_document(&rest)));
                }
                other => writer.push(other),
            }
        }
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }
}

impl Definition for Redact {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(self.clone())
    }
}

impl Stage for Redact {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        while let Some(bytes) = input.next()? {
            let root = document_in(&bytes)?;
            if let Some(rest) = self.redacted(root, root)? {
                return Ok(Some(Bytes::from(rest.into_vec())));
            }
        }
        Ok(None)
    }
}
