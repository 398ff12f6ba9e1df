//! No collator: the program was built without the rules of languages (feature `icu`).

use std::cmp::Ordering;

use pando_document::RawDocumentBuf;
use pando_keyorder::TextKeys;

use crate::SpecificationFault;
use crate::specification::Specification;

/// See the module's head. There is no value of it.
#[derive(Debug)]
pub enum Collator {}

impl Collator {
    /// Refuses a specification: its faults are told first, as with the rules.
    ///
    /// # Errors
    /// Always.
    pub fn new(specification: &Specification) -> Result<Collator, SpecificationFault> {
        specification.rules()?;
        Err(SpecificationFault::WithoutRules(specification.locale().to_owned()))
    }

    /// All options.
    pub fn document(&self) -> &RawDocumentBuf {
        match *self {}
    }

    /// The order of two strings.
    pub fn compare(&self, _: &str, _: &str) -> Ordering {
        match *self {}
    }
}

impl TextKeys for Collator {
    fn append(&self, _: &str, _: &mut Vec<u8>) {
        match *self {}
    }
}
