//! The shapes of requests, each grown from a fuzzer's bytes and printed as Extended JSON.

use std::fmt;
use std::ops::Deref;

use arbitrary::{Arbitrary, Result, Unstructured};
use pando_document::{Document, JsonFormat, RawArray, RawDocument, RawDocumentBuf, RawValue, to_json};

use crate::grown::Grower;
use crate::words;

macro_rules! shape {
    ($(#[$doc:meta])* $name:ident, $grow:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(RawDocumentBuf);

        impl<'a> Arbitrary<'a> for $name {
            fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
                let grow: fn(&mut Unstructured<'a>) -> Result<Document> = $grow;
                Ok(Self(grow(bytes)?.to_raw()))
            }
        }

        impl Deref for $name {
            type Target = RawDocument;

            fn deref(&self) -> &RawDocument {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&to_json(&**self, JsonFormat::Canonical))
            }
        }
    };
}

shape!(
    /// A document as it may be stored: any types, few names, no operators.
    Stored,
    |bytes| Grower::new(bytes, &[]).document()
);

shape!(
    /// A filter, or something like one.
    FilterDocument,
    |bytes| Grower::new(bytes, words::FILTER).document()
);

shape!(
    /// A schema, or something like one.
    SchemaDocument,
    |bytes| Grower::new(bytes, words::SCHEMA).document_of(words::SCHEMA)
);

shape!(
    /// The operators of an update, or a replacement.
    UpdateDocument,
    |bytes| match bytes.ratio(7, 8)? {
        true => Grower::new(bytes, words::UPDATE).document_of(words::UPDATE_OPERATORS),
        false => Grower::new(bytes, words::UPDATE).document(),
    }
);

shape!(
    /// A projection, or something like one.
    ProjectionDocument,
    |bytes| Grower::new(bytes, words::PROJECTION).document()
);

shape!(
    /// Stages, as the values of a document.
    Stages,
    |bytes| {
        let mut stages = Document::new();
        for place in 0..bytes.int_in_range(0..=4)? {
            let stage = Grower::new(bytes, words::EXPRESSION).document_of(words::STAGES)?;
            // A stage has one field; now and then it is left with more, or none.
            let stage = if stage.len() > 1 && bytes.ratio(9, 10)? { stage.into_iter().take(1).collect() } else { stage };
            stages.push(place.to_string(), stage);
        }
        Ok(stages)
    }
);

impl Stages {
    /// The stages as the array that a request has.
    pub fn array(&self) -> &RawArray {
        RawArray::from_document(self)
    }
}

/// An update in either form.
#[derive(Arbitrary, Clone, Debug)]
pub enum UpdateText {
    /// Operators or a replacement.
    Document(UpdateDocument),
    /// A pipeline.
    Pipeline(Stages),
}

impl UpdateText {
    /// The argument `u` of an update.
    pub fn value(&self) -> RawValue<'_> {
        match self {
            Self::Document(document) => RawValue::Document(document),
            Self::Pipeline(stages) => RawValue::Array(stages.array()),
        }
    }
}
