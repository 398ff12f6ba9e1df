//! A search: its terms, phrases and negations, and whether a document passes it.
//!
//! # The text of a search
//! - Words are terms: a document has to have one of them.
//! - `"a phrase"` has to stand in a string of the document. Its words are terms, too.
//! - `-word` and `-"a phrase"` must not stand in it. A minus behind a letter is a delimiter. A negation goes
//!   on to the next space: `-a-b` negates both.
//!
//! # Invariants
//! - Parsing goes through the text once. Hostile texts cost no more than their length.
//! - Terms of an index have no case and no diacritics. A search to which they count asks the documents again.

use std::collections::BTreeSet;

use pando_catalog::WriteError;
use pando_document::{Document, RawDocument, Value};

use super::keys::key_term;
use super::language::Language;
use super::phrase::Phrase;
use super::scores::{self, Tokenizers};
use super::specification::TextSpecification;
use super::strings;
use super::tokenizer::{Sensitivity, Tokenizer};
use crate::QueryError;

/// The arguments of `$text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchArguments {
    /// The text of the search.
    pub search: String,
    /// Its language; `None` for that of the index.
    pub language: Option<Language>,
    /// The language as it was written.
    pub written_language: Option<String>,
    /// Which differences count.
    pub sensitivity: Sensitivity,
}

/// A search in one index.
#[derive(Debug)]
pub struct TextSearch {
    specification: TextSpecification,
    sensitivity: Sensitivity,
    /// The terms by which entries are found.
    terms: BTreeSet<String>,
    /// The terms of which a document has one; the same ones unless case or diacritics count.
    wanted: BTreeSet<String>,
    negated: BTreeSet<String>,
    phrases: Vec<Phrase>,
    negated_phrases: Vec<Phrase>,
}

impl TextSearch {
    /// The search of these arguments in an index.
    pub fn new(arguments: &SearchArguments, specification: TextSpecification) -> TextSearch {
        let language = arguments.language.unwrap_or_else(|| specification.language());
        let parts = SearchText::parse(&arguments.search);
        let sensitivity = arguments.sensitivity;
        let plain = Tokenizer::new(language, Sensitivity::default());
        let exact = Tokenizer::new(language, sensitivity);
        TextSearch {
            specification,
            sensitivity,
            terms: plain.words(&parts.words).collect(),
            wanted: exact.words(&parts.words).collect(),
            negated: exact.words(&parts.negated_words).collect(),
            phrases: parts.phrases.iter().map(|text| Phrase::new(text)).collect(),
            negated_phrases: parts.negated_phrases.iter().map(|text| Phrase::new(text)).collect(),
        }
    }

    /// The terms as the keys of the index have them, in order.
    pub fn key_terms(&self) -> Vec<String> {
        self.terms.iter().map(|term| key_term(term).into_owned()).collect()
    }

    /// Whether a document that has one of the terms may fail.
    pub fn asks_documents(&self) -> bool {
        self.sensitivity.any()
            || !self.negated.is_empty()
            || !self.phrases.is_empty()
            || !self.negated_phrases.is_empty()
    }

    /// Whether a document passes.
    pub fn matches(&self, document: &RawDocument) -> Result<bool, QueryError> {
        let mut tokenizers = Tokenizers::new(self.sensitivity);
        let mut is_wanted = false;
        let mut is_negated = false;
        let mut missing: Vec<&Phrase> = self.phrases.iter().collect();
        let outcome = strings::for_each(&self.specification, document, &mut |string| {
            for term in tokenizers.of(string.language).words(string.text) {
                is_wanted |= self.wanted.contains(&term);
                is_negated |= self.negated.contains(&term);
            }
            let has = |phrase: &Phrase| phrase.is_in(string.text, string.language, self.sensitivity);
            missing.retain(|phrase| !has(phrase));
            is_negated |= self.negated_phrases.iter().any(has);
            Ok(())
        });
        outcome.map_err(of_document)?;
        Ok(is_wanted && !is_negated && missing.is_empty())
    }

    /// The score of a document.
    pub fn score_of(&self, document: &RawDocument) -> Result<f64, QueryError> {
        let scores = scores::of_document(&self.specification, document).map_err(of_document)?;
        Ok(self.terms.iter().filter_map(|term| scores.get(term)).sum())
    }

    /// The parts of the search, as `explain` shows them.
    pub fn shown(&self) -> Document {
        let texts = |texts: Vec<&str>| Value::Array(texts.into_iter().map(Value::from).collect());
        let mut shown = Document::new();
        shown.push("terms", texts(self.terms.iter().map(String::as_str).collect()));
        shown.push("negatedTerms", texts(self.negated.iter().map(String::as_str).collect()));
        shown.push("phrases", texts(self.phrases.iter().map(Phrase::text).collect()));
        shown.push("negatedPhrases", texts(self.negated_phrases.iter().map(Phrase::text).collect()));
        shown
    }
}

/// A document of the collection was indexed, so its languages are known.
fn of_document(error: WriteError) -> QueryError {
    match error {
        WriteError::Document(error) => error.into(),
        other => QueryError::bad_value(other.to_string()),
    }
}

/// The text of a search, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SearchText {
    /// The words that are wanted, one after the other.
    words: String,
    negated_words: String,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

/// Whether the parser stands within quotation marks; the place behind the first of them.
#[derive(Clone, Copy)]
enum Quotation {
    Outside,
    Since(usize),
}

impl SearchText {
    /// Takes a text apart. Every text is a search.
    pub fn parse(text: &str) -> SearchText {
        let mut parts = SearchText::default();
        let mut quotation = Quotation::Outside;
        let mut is_negated = false;
        let mut behind_space = true;
        let mut rest = text.char_indices().peekable();
        while let Some((at, letter)) = rest.next() {
            match letter {
                ' ' | '\t' | '\n' | '\r' | '\u{B}' | '\u{C}' => {
                    behind_space = true;
                    continue;
                }
                '-' => is_negated |= matches!(quotation, Quotation::Outside) && behind_space,
                '"' => match quotation {
                    Quotation::Outside => {
                        is_negated &= !behind_space;
                        quotation = Quotation::Since(at + 1);
                    }
                    Quotation::Since(begin) => {
                        let list = if is_negated { &mut parts.negated_phrases } else { &mut parts.phrases };
                        list.push(text[begin..at].to_owned());
                        quotation = Quotation::Outside;
                    }
                },
                _ => {
                    let is_inside = |letter: &(usize, char)| {
                        !matches!(letter.1, ' ' | '\t' | '\n' | '\r' | '\u{B}' | '\u{C}' | '-' | '"')
                    };
                    let mut end = at + letter.len_utf8();
                    while let Some((at, letter)) = rest.next_if(is_inside) {
                        end = at + letter.len_utf8();
                    }
                    let is_quoted = matches!(quotation, Quotation::Since(_));
                    if !(is_quoted && is_negated) {
                        is_negated &= !behind_space;
                        let words = if is_negated { &mut parts.negated_words } else { &mut parts.words };
                        words.push_str(&text[at..end]);
                        words.push(' ');
                    }
                }
            }
            behind_space = false;
        }
        parts
    }
}

#[cfg(test)]
mod tests;
