//! Fields gathered into one document: of two with one name the later value counts, in the earlier's place.
//!
//! A few names are compared one by one; of more a table knows the places.

use std::collections::HashMap;

use pando_document::{DocumentWriter, RawDocumentBuf, RawValue};

use crate::literal::Literal;

/// So many names are found faster by comparison than by a table.
const FEW_NAMES: usize = 16;

/// Fields in the order in which their names came.
#[derive(Debug, Default)]
pub(crate) struct MergedFields {
    fields: Vec<(String, Literal)>,
    /// The place of each name, once they are more than a few.
    places: HashMap<String, usize>,
}

impl MergedFields {
    /// Sets a field: in its place if there is one with this name, else at the end.
    pub(crate) fn insert(&mut self, name: &str, value: RawValue<'_>) {
        let value = Literal::new(value);
        let place = match self.places.is_empty() {
            true => self.fields.iter().position(|(known, _)| known == name),
            false => self.places.get(name).copied(),
        };
        if let Some(place) = place {
            self.fields[place].1 = value;
            return;
        }
        self.fields.push((name.to_owned(), value));
        let last = self.fields.len() - 1;
        if !self.places.is_empty() {
            self.places.insert(name.to_owned(), last);
        } else if last >= FEW_NAMES {
            let names = self.fields.iter().enumerate();
            self.places = names.map(|(place, (known, _))| (known.clone(), place)).collect();
        }
    }

    /// The document of all fields.
    pub(crate) fn to_document(&self) -> RawDocumentBuf {
        let mut bytes = Vec::with_capacity(64);
        let mut writer = DocumentWriter::begin(&mut bytes);
        for (name, value) in &self.fields {
            writer.append(name, value.raw());
        }
        writer.finish();
        RawDocumentBuf::from_vec(bytes).expect("a document just written is well formed")
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value};

    use super::*;

    #[test]
    fn the_later_value_takes_the_place_of_the_earlier_among_few_names_and_among_many() {
        for count in [3, 100] {
            let (mut merged, mut expected) = (MergedFields::default(), Document::new());
            for number in 0..3 * count {
                let name = format!("n{}", number % count);
                merged.insert(&name, RawValue::Int32(number));
                expected.insert(name, Value::Int32(number));
            }
            assert_eq!(merged.to_document(), expected.to_raw());
        }
    }
}
