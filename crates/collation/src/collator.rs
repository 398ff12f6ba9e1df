//! The collator of a specification: ICU4X with the rules of the language and the options.

use std::cmp::Ordering;

use icu_collator::options::{
    AlternateHandling, CaseLevel, CollatorOptions, MaxVariable as IcuMaxVariable, Strength as IcuStrength,
};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{Collator as IcuCollator, CollatorPreferences};
use icu_locale_core::Locale as IcuLocale;
use pando_document::RawDocumentBuf;
use pando_keyorder::TextKeys;

use crate::SpecificationFault;
use crate::rules::Rules;
use crate::specification::{Alternate, CaseFirst, MaxVariable, Specification, Strength, Switch};

/// See the module's head.
pub struct Collator {
    document: RawDocumentBuf,
    icu: IcuCollator,
}

impl Collator {
    /// The collator of a specification.
    ///
    /// # Errors
    /// Rules that are not there.
    pub fn new(specification: &Specification) -> Result<Collator, SpecificationFault> {
        let locale = specification.rules()?;
        let malformed = |error: &dyn std::fmt::Display| SpecificationFault::Malformed(error.to_string());
        let tag: IcuLocale = locale.tag.parse().map_err(|error| malformed(&error))?;
        let mut preferences = CollatorPreferences::from(&tag);
        preferences.case_first = Some(match specification.case_first {
            CaseFirst::Off => CollationCaseFirst::False,
            CaseFirst::Upper => CollationCaseFirst::Upper,
            CaseFirst::Lower => CollationCaseFirst::Lower,
        });
        preferences.numeric_ordering = Some(match specification.numeric_ordering {
            Switch::Off => CollationNumericOrdering::False,
            Switch::On => CollationNumericOrdering::True,
        });
        let rules = Rules { backwards: specification.backwards };
        let icu = IcuCollator::try_new_unstable(&rules, preferences, options_of(specification))
            .map_err(|error| malformed(&error))?;
        Ok(Collator { document: specification.to_document().to_raw(), icu })
    }

    /// All options, as `listCollections` and `explain` show them.
    pub fn document(&self) -> &RawDocumentBuf {
        &self.document
    }

    /// The order of two strings.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        if a == b { Ordering::Equal } else { self.icu.as_borrowed().compare(a, b) }
    }
}

fn options_of(specification: &Specification) -> CollatorOptions {
    let mut options = CollatorOptions::default();
    options.strength = Some(match specification.strength {
        Strength::Primary => IcuStrength::Primary,
        Strength::Secondary => IcuStrength::Secondary,
        Strength::Tertiary => IcuStrength::Tertiary,
        Strength::Quaternary => IcuStrength::Quaternary,
        Strength::Identical => IcuStrength::Identical,
    });
    options.alternate_handling = Some(match specification.alternate {
        Alternate::NonIgnorable => AlternateHandling::NonIgnorable,
        Alternate::Shifted => AlternateHandling::Shifted,
    });
    options.max_variable = Some(match specification.max_variable {
        MaxVariable::Punctuation => IcuMaxVariable::Punctuation,
        MaxVariable::Space => IcuMaxVariable::Space,
    });
    options.case_level = Some(match specification.case_level {
        Switch::Off => CaseLevel::Off,
        Switch::On => CaseLevel::On,
    });
    options
}

impl std::fmt::Debug for Collator {
    /// Without the data of the rules, which are many.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collator").field("document", &self.document).finish_non_exhaustive()
    }
}

impl TextKeys for Collator {
    fn append(&self, text: &str, out: &mut Vec<u8>) {
        let Ok(()) = self.icu.as_borrowed().write_sort_key_to(text, out);
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;
    use crate::locale::Locale;

    fn collator(document: Document) -> Collator {
        let specification = Specification::parse(&document.to_raw(), "collation").unwrap().unwrap();
        Collator::new(&specification).unwrap()
    }

    fn sorted<'t>(document: Document, texts: &[&'t str]) -> Vec<&'t str> {
        let collator = collator(document);
        let mut texts = texts.to_vec();
        texts.sort_by(|a, b| collator.compare(a, b));
        texts
    }

    #[test]
    fn every_locale_of_the_list_has_its_own_rules() {
        use icu_collator::provider::{Baked, CollationMetadataV1};
        use icu_provider::prelude::*;
        for name in Locale::all_names() {
            let locale = Locale::of_name(&name).unwrap();
            let tag: IcuLocale = locale.tag.parse().unwrap();
            let preferences = CollatorPreferences::from(&tag);
            // Without the type the usual rules would be taken in silence.
            if let Some(kind) = preferences.collation_type {
                let attributes = DataMarkerAttributes::from_str_or_panic(kind.as_str());
                let data_locale = CollationMetadataV1::make_locale(preferences.locale_preferences);
                let id = DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, &data_locale);
                let request = DataRequest { id, metadata: DataRequestMetadata::default() };
                let found: Result<DataResponse<CollationMetadataV1>, _> = Baked.load(request);
                assert!(found.is_ok(), "{name}");
            }
            collator(doc! { "locale": (name.as_str()) });
        }
    }

    #[test]
    fn strengths_count_more_and_more_differences() {
        let differences = [("a", "b"), ("a", "á"), ("a", "A"), ("a b", "ab"), ("ab", "a\u{0}b")];
        for strength in 1..=5 {
            let collator = collator(doc! { "locale": "en", "strength": strength, "alternate": "shifted" });
            for (level, (a, b)) in (1..).zip(differences) {
                assert_eq!(collator.compare(a, b).is_eq(), level > strength, "{strength}: {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn accents_compare_from_the_end_where_it_is_asked_for() {
        let texts = ["cote", "coté", "côte", "côté"];
        let backwards = ["cote", "côte", "coté", "côté"];
        assert_eq!(sorted(doc! { "locale": "fr" }, &texts), texts);
        assert_eq!(sorted(doc! { "locale": "fr_CA" }, &texts), backwards);
        assert_eq!(sorted(doc! { "locale": "fr_CA", "backwards": false }, &texts), texts);
        assert_eq!(sorted(doc! { "locale": "es", "backwards": true }, &texts), backwards);
    }

    #[test]
    fn digits_and_case_go_as_the_options_say() {
        assert_eq!(sorted(doc! { "locale": "en" }, &["a2", "a10"]), ["a10", "a2"]);
        assert_eq!(sorted(doc! { "locale": "en", "numericOrdering": true }, &["a2", "a10"]), ["a2", "a10"]);
        assert_eq!(sorted(doc! { "locale": "en" }, &["A", "a"]), ["a", "A"]);
        assert_eq!(sorted(doc! { "locale": "en", "caseFirst": "upper" }, &["A", "a"]), ["A", "a"]);
        assert_eq!(sorted(doc! { "locale": "da" }, &["a", "A"]), ["A", "a"]);
        assert_eq!(sorted(doc! { "locale": "da", "caseFirst": "off" }, &["A", "a"]), ["a", "A"]);
    }

    #[test]
    fn languages_differ() {
        assert_eq!(sorted(doc! { "locale": "de" }, &["z", "ä", "b"]), ["ä", "b", "z"]);
        assert_eq!(sorted(doc! { "locale": "sv" }, &["z", "ä", "b"]), ["b", "z", "ä"]);
        assert_eq!(sorted(doc! { "locale": "de" }, &["äb", "ad"]), ["äb", "ad"]);
        assert_eq!(sorted(doc! { "locale": "de@collation=phonebook" }, &["äb", "ad"]), ["ad", "äb"]);
        assert_eq!(sorted(doc! { "locale": "es@collation=traditional" }, &["ch", "cz"]), ["cz", "ch"]);
    }
}
