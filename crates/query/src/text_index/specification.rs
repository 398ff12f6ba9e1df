//! The specification of a text index: fields with weights, languages, and the form in which it is kept.
//!
//! Two forms exist. A request names its fields as `{a: "text"}`; the kept form has `_fts` and `_ftsx` in
//! their place, and the fields as `weights`, in the order of their names.

use std::collections::BTreeMap;

use pando_catalog::WILDCARD;
use pando_document::{Document, Number, RawDocument, RawValue, Value};

use super::language::{Language, check_built};

/// The field of a key pattern that stands for the terms.
pub const TERM_FIELD: &str = "_fts";
/// The field that stands for their scores.
pub const TERM_SCORE_FIELD: &str = "_ftsx";
/// The value of the first in a key pattern.
pub const TEXT: &str = "text";
/// The version of the index that is carried out.
pub const TEXT_VERSION: i32 = 3;
/// Weights are below this.
const WEIGHT_LIMIT: i64 = 100_000;

/// The fields of a text index and their languages.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSpecification {
    weights: BTreeMap<String, f64>,
    is_wildcard: bool,
    language: Language,
    override_field: String,
}

/// Why a specification is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextRefusal {
    /// The index cannot be; the reason.
    Cannot(String),
    /// Pando does not carry it out.
    NotYet(String),
}

impl TextSpecification {
    /// That of an index by its kept form.
    pub fn of(specification: &RawDocument) -> Result<TextSpecification, String> {
        check_built()?;
        let text = |name: &str, default: &'static str| match specification.get(name) {
            Ok(Some(RawValue::String(given))) => given.to_owned(),
            _ => default.to_owned(),
        };
        let language = text("default_language", "english");
        let language =
            Language::of(&language).ok_or_else(|| format!("the language {language} is unknown"))?;
        let Ok(Some(RawValue::Document(given))) = specification.get("weights") else {
            return Err("the text index has no weights".to_owned());
        };
        let mut weights = BTreeMap::new();
        let mut is_wildcard = false;
        for field in given {
            let (name, weight) = field.map_err(|error| error.to_string())?;
            match name == WILDCARD {
                true => is_wildcard = true,
                false => {
                    let weight = Number::from_value(weight).map_or(1.0, Number::to_f64);
                    weights.insert(name.to_owned(), weight);
                }
            }
        }
        let override_field = text("language_override", "language");
        Ok(TextSpecification { weights, is_wildcard, language, override_field })
    }

    /// The language of documents that name none.
    pub fn language(&self) -> Language {
        self.language
    }

    pub(super) fn override_field(&self) -> &str {
        &self.override_field
    }

    pub(super) fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }

    pub(super) fn weight(&self, path: &str) -> Option<f64> {
        self.weights.get(path).copied()
    }

    pub(super) fn has_weights_below(&self, path: &str) -> bool {
        let from = (std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded);
        let mut behind = self.weights.range::<str, _>(from);
        let is_below = |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        // Names with characters below the dot may stand between.
        behind
            .find_map(|(name, _)| match name.strip_prefix(path) {
                None => Some(false),
                Some(_) if is_below(name) => Some(true),
                Some(_) => None,
            })
            .unwrap_or(false)
    }
}

/// Whether a key pattern is that of a text index.
pub fn is_text(key: &RawDocument) -> bool {
    key.iter().any(|field| matches!(field, Ok((_, RawValue::String(TEXT)))))
}

/// The kept form of a specification with the fields `key`, `weights`, `default_language`,
/// `language_override` and `textIndexVersion` as they were given.
pub fn kept_form(given: &RawDocument, key: &RawDocument) -> Result<(Document, Document), TextRefusal> {
    check_built().map_err(|reason| TextRefusal::NotYet(reason.to_owned()))?;
    let (kept_key, mut weights) = kept_key(key)?;
    add_weights(given, &mut weights)?;
    if weights.is_empty() {
        return cannot("text index option 'weights' must specify fields or the wildcard");
    }
    let mut options = Document::new();
    let mut shown = Document::new();
    weights.iter().for_each(|(name, weight)| shown.push(name.as_str(), Value::Int32(*weight)));
    options.push("weights", shown);
    let language = text_option(given, "default_language", "english");
    if Language::of(&language).is_none() {
        return cannot("default_language is not valid");
    }
    options.push("default_language", language);
    let field = text_option(given, "language_override", "language");
    if field.is_empty() || field.starts_with('$') || field.contains('.') {
        return cannot("language_override is not valid");
    }
    options.push("language_override", field);
    match given.get("textIndexVersion").ok().flatten().and_then(|version| version.as_i64_exact()) {
        None | Some(3) => options.push("textIndexVersion", TEXT_VERSION),
        Some(version @ (1 | 2)) => {
            return Err(TextRefusal::NotYet(format!("text indexes of version {version} are not supported")));
        }
        Some(other) => return cannot(&format!("bad textIndexVersion: {other}")),
    }
    Ok((kept_key, options))
}

fn cannot<T>(reason: &str) -> Result<T, TextRefusal> {
    Err(TextRefusal::Cannot(reason.to_owned()))
}

fn text_option(given: &RawDocument, name: &str, default: &str) -> String {
    match given.get(name) {
        Ok(Some(RawValue::String(text))) => text.to_owned(),
        _ => default.to_owned(),
    }
}

/// The kept key pattern, and the weights of the fields that it names.
fn kept_key(key: &RawDocument) -> Result<(Document, BTreeMap<String, i32>), TextRefusal> {
    let (mut kept, mut weights) = (Document::new(), BTreeMap::new());
    let mut place = Place::Before;
    for (name, order) in key.iter().filter_map(Result::ok) {
        let is_text = matches!(order, RawValue::String(TEXT));
        if is_text && place == Place::Behind {
            return cannot("'text' fields in index must all be adjacent");
        }
        match (name, is_text) {
            (TERM_FIELD, true) | (_, true) => {
                if place == Place::Before {
                    kept.push(TERM_FIELD, TEXT);
                    kept.push(TERM_SCORE_FIELD, 1);
                }
                place = Place::Within;
                if name != TERM_FIELD {
                    weights.insert(name.to_owned(), 1);
                }
            }
            (TERM_SCORE_FIELD, false) => {}
            (_, false) => {
                if place == Place::Within {
                    place = Place::Behind;
                }
                kept.push(name, order.to_owned());
            }
        }
    }
    Ok((kept, weights))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Within,
    Behind,
}

fn add_weights(given: &RawDocument, weights: &mut BTreeMap<String, i32>) -> Result<(), TextRefusal> {
    let given = match given.get("weights") {
        Ok(None) | Err(_) => return Ok(()),
        Ok(Some(RawValue::String(WILDCARD))) => {
            weights.insert(WILDCARD.to_owned(), 1);
            return Ok(());
        }
        Ok(Some(RawValue::Document(given))) => given,
        Ok(Some(_)) => return cannot("text index option 'weights' must be an object"),
    };
    for (name, weight) in given.iter().filter_map(Result::ok) {
        let Some(number) = Number::from_value(weight) else {
            return cannot("weight for text index needs numeric type");
        };
        let whole = number.to_f64() as i64;
        if whole <= 0 || whole >= WEIGHT_LIMIT {
            return cannot(&format!(
                "text index weight must be in the exclusive interval (0,{WEIGHT_LIMIT}) but found: {whole}"
            ));
        }
        if name != WILDCARD {
            if name.is_empty() {
                return cannot("weight cannot be on an empty field");
            }
            if name.split('.').any(str::is_empty) {
                return cannot("weight cannot have empty path component");
            }
            if name.split('.').any(|part| part.starts_with('$')) {
                return cannot("weight cannot have path component with $ prefix");
            }
        }
        weights.insert(name.to_owned(), whole as i32);
    }
    Ok(())
}
