//! The locales that MongoDB has collations for, and the tags by which the rules are found.
//!
//! The list was asked of MongoDB 6.0.27, which accepts the names of ICU 57 in their canonical spelling alone.
//! A name is a language with script or region, and may ask for one of the language's other rules:
//! `de@collation=phonebook`.

use crate::SpecificationFault;
use crate::specification::{Alternate, Backwards, CaseFirst, Switch};

/// A locale with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locale {
    /// The tag of the language and its rules, in the form of BCP 47.
    pub tag: String,
    pub habits: Habits,
}

/// The options of a locale where a specification says nothing of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habits {
    pub case_first: CaseFirst,
    pub alternate: Alternate,
    pub normalization: Switch,
    pub backwards: Backwards,
}

/// Languages whose texts MongoDB normalises unless it is told not to.
const NORMALISED: &[&str] = &[
    "as", "bn", "el", "fa", "fa_AF", "gu", "he", "hi", "ig", "km", "kn", "kok", "mr", "my", "or", "pa", "ps",
    "si", "ta", "te", "th", "vi", "yi", "yo",
];

impl Habits {
    fn of(language: &str) -> Habits {
        Habits {
            case_first: if matches!(language, "da" | "mt") { CaseFirst::Upper } else { CaseFirst::Off },
            alternate: if language == "th" { Alternate::Shifted } else { Alternate::NonIgnorable },
            normalization: if NORMALISED.contains(&language) { Switch::On } else { Switch::Off },
            backwards: if language == "fr_CA" { Backwards::On } else { Backwards::Off },
        }
    }
}

/// All languages without rules of their choice, by their names in MongoDB.
const LANGUAGES: &[&str] = &[
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bg",
    "bn",
    "bo",
    "bs",
    "bs_Cyrl",
    "ca",
    "chr",
    "cs",
    "cy",
    "da",
    "de",
    "de_AT",
    "dsb",
    "dz",
    "ee",
    "el",
    "en",
    "en_US",
    "en_US_POSIX",
    "eo",
    "es",
    "et",
    "fa",
    "fa_AF",
    "fi",
    "fil",
    "fo",
    "fr",
    "fr_CA",
    "ga",
    "gl",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hsb",
    "hu",
    "hy",
    "id",
    "ig",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "kl",
    "km",
    "kn",
    "ko",
    "kok",
    "ky",
    "lb",
    "lkt",
    "ln",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "nn",
    "om",
    "or",
    "pa",
    "pl",
    "ps",
    "pt",
    "ro",
    "ru",
    "se",
    "si",
    "sk",
    "sl",
    "smn",
    "sq",
    "sr",
    "sr_Latn",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "wae",
    "yi",
    "yo",
    "zh",
    "zh_Hant",
    "zu",
];

/// The rules that languages have besides their usual ones: the language, MongoDB's name of the rules, and the
/// type of BCP 47; none where the data do not have them.
const RULES: &[(&str, &str, Option<&str>)] = &[
    ("ar", "compat", Some("compat")),
    ("bn", "traditional", Some("trad")),
    ("de", "phonebook", Some("phonebk")),
    ("de_AT", "phonebook", Some("phonebk")),
    ("es", "traditional", Some("trad")),
    ("fi", "traditional", Some("trad")),
    ("ja", "unihan", Some("unihan")),
    ("kn", "traditional", Some("trad")),
    ("ko", "searchjl", None),
    ("ko", "unihan", Some("unihan")),
    ("ln", "phonetic", None),
    ("si", "dictionary", Some("dict")),
    // These rules were the usual ones of an older Swedish, and the usual ones of today were called
    // "reformed".
    ("sv", "standard", Some("trad")),
    ("vi", "traditional", Some("trad")),
    ("zh", "big5han", None),
    ("zh", "gb2312han", None),
    ("zh", "standard", Some("standard")),
    ("zh", "stroke", Some("stroke")),
    ("zh", "unihan", Some("unihan")),
    ("zh", "zhuyin", Some("zhuyin")),
    ("zh_Hant", "big5han", None),
    ("zh_Hant", "gb2312han", None),
    ("zh_Hant", "pinyin", Some("pinyin")),
    ("zh_Hant", "standard", Some("standard")),
    ("zh_Hant", "unihan", Some("unihan")),
    ("zh_Hant", "zhuyin", Some("zhuyin")),
];

/// The rules that every language has.
const RULES_OF_ALL: &[(&str, Option<&str>)] =
    &[("emoji", Some("emoji")), ("eor", Some("eor")), ("search", None)];

impl Locale {
    /// The locale of a name.
    pub fn of_name(name: &str) -> Result<Locale, SpecificationFault> {
        let (language, rules) = match name.split_once("@collation=") {
            None => (name, None),
            Some((language, rules)) => (language, Some(rules)),
        };
        if !LANGUAGES.contains(&language) {
            return Err(SpecificationFault::InvalidLocale(name.to_owned()));
        }
        let habits = Habits::of(language);
        let Some(rules) = rules else { return Ok(Locale { tag: tag(language, None), habits }) };
        let of_language = RULES.iter().find(|(of, known, _)| *of == language && *known == rules);
        let of_all = RULES_OF_ALL.iter().find(|(known, _)| *known == rules);
        match of_language.map(|(_, _, kind)| kind).or(of_all.map(|(_, kind)| kind)) {
            Some(Some(kind)) => Ok(Locale { tag: tag(language, Some(kind)), habits }),
            Some(None) => Err(SpecificationFault::RulesNotThere(name.to_owned(), rules.to_owned())),
            None => Err(SpecificationFault::InvalidLocale(name.to_owned())),
        }
    }

    /// The names of all locales whose rules are there.
    #[cfg(test)]
    pub fn all_names() -> Vec<String> {
        let of_all = LANGUAGES.iter().flat_map(|language| {
            RULES_OF_ALL
                .iter()
                .map(move |(rules, kind)| (format!("{language}@collation={rules}"), kind.is_some()))
        });
        let of_language = RULES
            .iter()
            .map(|(language, rules, kind)| (format!("{language}@collation={rules}"), kind.is_some()));
        let plain = LANGUAGES.iter().map(|language| ((*language).to_owned(), true));
        plain.chain(of_language).chain(of_all).filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
}

fn tag(language: &str, rules: Option<&str>) -> String {
    // The tag of a variant is written in lowercase, and the order of the others is the same.
    let language = language.replace("_POSIX", "_posix").replace('_', "-");
    match rules {
        // The usual rules of Chinese are an order of their own, and the root's are called standard.
        Some("standard") => "und".to_owned(),
        Some(rules) => format!("{language}-u-co-{rules}"),
        None => language,
    }
}
