//! The terms of a document with their scores.

use std::collections::BTreeMap;
use std::collections::HashMap;

use pando_catalog::WriteError;
use pando_document::RawDocument;

use super::language::Language;
use super::specification::TextSpecification;
use super::strings::{self, IndexedString};
use super::tokenizer::{Sensitivity, Tokenizer};

/// The tokenizers of the languages of one document, as they are met.
pub(super) struct Tokenizers {
    made: Vec<Tokenizer>,
    sensitivity: Sensitivity,
}

impl Tokenizers {
    pub fn new(sensitivity: Sensitivity) -> Tokenizers {
        Tokenizers { made: Vec::new(), sensitivity }
    }

    pub fn of(&mut self, language: Language) -> &Tokenizer {
        let at = self.made.iter().position(|made| made.language() == language).unwrap_or_else(|| {
            self.made.push(Tokenizer::new(language, self.sensitivity));
            self.made.len() - 1
        });
        &self.made[at]
    }
}

/// A term within one string.
#[derive(Default)]
struct Occurrences {
    count: u32,
    frequency: f64,
    /// The denominator of the last summand of the frequency.
    last: f64,
}

/// The scores of all terms of a document, by term.
pub(super) fn of_document(
    specification: &TextSpecification,
    document: &RawDocument,
) -> Result<BTreeMap<String, f64>, WriteError> {
    let mut tokenizers = Tokenizers::new(Sensitivity::default());
    let mut scores = BTreeMap::new();
    strings::for_each(specification, document, &mut |string| {
        add_string(string, tokenizers.of(string.language), &mut scores);
        Ok(())
    })?;
    Ok(scores)
}

fn add_string(string: IndexedString<'_>, tokenizer: &Tokenizer, scores: &mut BTreeMap<String, f64>) {
    let mut terms: HashMap<String, Occurrences> = HashMap::new();
    let mut words = 0_u32;
    for term in tokenizer.words(string.text) {
        let occurrences = terms.entry(term).or_default();
        occurrences.last = if occurrences.last == 0.0 { 1.0 } else { occurrences.last * 2.0 };
        occurrences.count += 1;
        occurrences.frequency += 1.0 / occurrences.last;
        words += 1;
    }
    for (term, occurrences) in terms {
        let coefficient = 0.5 * f64::from(occurrences.count) / f64::from(words) + 0.5;
        let boost = if string.text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
        *scores.entry(term).or_default() += string.weight * occurrences.frequency * coefficient * boost;
    }
}
