//! Phrases: parts of strings, compared letter by letter.

use memchr::memmem::Finder;

use super::folding;
use super::language::Language;
use super::tokenizer::Sensitivity;

/// A phrase, ready to be looked for in strings of any language.
#[derive(Debug)]
pub(super) struct Phrase {
    text: String,
}

impl Phrase {
    pub fn new(text: &str) -> Phrase {
        Phrase { text: text.to_owned() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a string has the phrase.
    pub fn is_in(&self, string: &str, language: Language, sensitivity: Sensitivity) -> bool {
        let phrase = folded(&self.text, language, sensitivity);
        Finder::new(phrase.as_bytes()).find(folded(string, language, sensitivity).as_bytes()).is_some()
    }
}

fn folded(text: &str, language: Language, sensitivity: Sensitivity) -> String {
    let text = if sensitivity.case { text.to_owned() } else { folding::lower(text, language) };
    if sensitivity.diacritics { text } else { folding::without_diacritics(&text) }
}
