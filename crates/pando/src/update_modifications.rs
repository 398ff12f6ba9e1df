//! Changes of an update: a document of operators, or a pipeline. A replacement is neither, so that a
//! forgotten operator does not silently replace a document.

use bson::{Bson, Document};

use crate::Error;

/// The changes of an update.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateModifications {
    /// Operators: `doc! { "$inc": { "n": 1 } }`.
    Document(Document),
    /// Stages that make the new document of the old one.
    Pipeline(Vec<Document>),
}

impl Default for UpdateModifications {
    fn default() -> UpdateModifications {
        UpdateModifications::Document(Document::new())
    }
}

impl From<Document> for UpdateModifications {
    fn from(operators: Document) -> UpdateModifications {
        UpdateModifications::Document(operators)
    }
}

impl From<Vec<Document>> for UpdateModifications {
    fn from(stages: Vec<Document>) -> UpdateModifications {
        UpdateModifications::Pipeline(stages)
    }
}

impl UpdateModifications {
    /// The value of the command's field.
    ///
    /// # Errors
    /// A document that does not begin with an operator.
    pub(crate) fn checked(self) -> Result<Bson, Error> {
        match self {
            UpdateModifications::Pipeline(stages) => {
                Ok(Bson::Array(stages.into_iter().map(Bson::Document).collect()))
            }
            UpdateModifications::Document(operators) => match operators.keys().next() {
                Some(first) if first.starts_with('$') => Ok(Bson::Document(operators)),
                Some(first) => Err(Error::InvalidArgument(format!(
                    "an update needs operators: write {{ \"$set\": {{ \"{first}\": … }} }} to set the field \
                     \"{first}\", or call replace_one to replace the whole document"
                ))),
                None => Err(Error::InvalidArgument(
                    "an update needs at least one operator, such as $set; this one is empty".to_owned(),
                )),
            },
        }
    }
}

/// The replacement itself.
///
/// # Errors
/// A document that begins with an operator.
pub(crate) fn checked_replacement(replacement: Document) -> Result<Document, Error> {
    match replacement.keys().next() {
        Some(first) if first.starts_with('$') => Err(Error::InvalidArgument(format!(
            "a replacement is a whole document and cannot begin with the operator {first}: call update_one for \
             operators"
        ))),
        _ => Ok(replacement),
    }
}
