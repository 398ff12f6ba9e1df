//! The words of a string.
//!
//! # Steps for each word
//! 1. A word ends at a delimiter ([`DELIMITERS`]). In English an apostrophe is none.
//! 2. Stop words are left out. They are known by their small letters, with diacritics.
//! 3. The word is brought to its stem, in small letters unless case counts.
//! 4. Diacritics go, unless they count.

use std::borrow::Cow;

use super::folding;
use super::language::{Language, WordStemmer};

/// Code points between words, in order: those with one of the Unicode properties Dash, Hyphen,
/// Pattern_Syntax, Quotation_Mark, Terminal_Punctuation, White_Space (observed on MongoDB 6.0).
const DELIMITERS: [(u32, u32); 93] = [
    (0x9, 0xD),
    (0x20, 0x2F),
    (0x3A, 0x40),
    (0x5B, 0x5E),
    (0x60, 0x60),
    (0x7B, 0x7E),
    (0x85, 0x85),
    (0xA0, 0xA7),
    (0xA9, 0xA9),
    (0xAB, 0xAE),
    (0xB0, 0xB1),
    (0xB6, 0xB6),
    (0xBB, 0xBB),
    (0xBF, 0xBF),
    (0xD7, 0xD7),
    (0xF7, 0xF7),
    (0x37E, 0x37E),
    (0x387, 0x387),
    (0x589, 0x58A),
    (0x5BE, 0x5BE),
    (0x5C3, 0x5C3),
    (0x60C, 0x60C),
    (0x61B, 0x61B),
    (0x61F, 0x61F),
    (0x6D4, 0x6D4),
    (0x700, 0x70A),
    (0x70C, 0x70C),
    (0x7F8, 0x7F9),
    (0x830, 0x83E),
    (0x85E, 0x85E),
    (0x964, 0x965),
    (0xE5A, 0xE5B),
    (0xF08, 0xF08),
    (0xF0D, 0xF12),
    (0x104A, 0x104B),
    (0x1361, 0x1368),
    (0x1400, 0x1400),
    (0x166D, 0x166E),
    (0x1680, 0x1680),
    (0x16EB, 0x16ED),
    (0x1735, 0x1736),
    (0x17D4, 0x17D6),
    (0x17DA, 0x17DA),
    (0x1802, 0x1806),
    (0x1808, 0x1809),
    (0x1944, 0x1945),
    (0x1AA8, 0x1AAB),
    (0x1B5A, 0x1B5B),
    (0x1B5D, 0x1B5F),
    (0x1C3B, 0x1C3F),
    (0x1C7E, 0x1C7F),
    (0x2000, 0x200A),
    (0x2010, 0x2029),
    (0x202F, 0x203E),
    (0x2041, 0x2053),
    (0x2055, 0x205F),
    (0x207B, 0x207B),
    (0x208B, 0x208B),
    (0x2190, 0x2426),
    (0x2440, 0x244A),
    (0x2500, 0x2775),
    (0x2794, 0x2B73),
    (0x2B76, 0x2B95),
    (0x2B97, 0x2BFF),
    (0x2E00, 0x2E5D),
    (0x3000, 0x3003),
    (0x3008, 0x3020),
    (0x3030, 0x3030),
    (0x30A0, 0x30A0),
    (0x30FB, 0x30FB),
    (0xA4FE, 0xA4FF),
    (0xA60D, 0xA60F),
    (0xA6F3, 0xA6F7),
    (0xA876, 0xA877),
    (0xA8CE, 0xA8CF),
    (0xA92F, 0xA92F),
    (0xA9C7, 0xA9C9),
    (0xAA5D, 0xAA5F),
    (0xAADF, 0xAADF),
    (0xAAF0, 0xAAF1),
    (0xABEB, 0xABEB),
    (0xFD3E, 0xFD3F),
    (0xFE31, 0xFE32),
    (0xFE41, 0xFE46),
    (0xFE50, 0xFE52),
    (0xFE54, 0xFE58),
    (0xFE63, 0xFE63),
    (0xFF01, 0xFF02),
    (0xFF07, 0xFF07),
    (0xFF0C, 0xFF0E),
    (0xFF1A, 0xFF1B),
    (0xFF1F, 0xFF1F),
    (0xFF61, 0xFF65),
];

/// Which differences between words count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensitivity {
    /// `A` and `a` differ.
    pub case: bool,
    /// `é` and `e` differ.
    pub diacritics: bool,
}

impl Sensitivity {
    /// Whether any counts.
    pub fn any(self) -> bool {
        self.case || self.diacritics
    }
}

/// Cuts strings of one language into words.
pub(super) struct Tokenizer {
    language: Language,
    stemmer: WordStemmer,
    sensitivity: Sensitivity,
}

fn is_delimiter(letter: char, language: Language) -> bool {
    if letter == '\'' {
        return !language.keeps_apostrophes();
    }
    let code = u32::from(letter);
    let place = DELIMITERS.partition_point(|(_, last)| *last < code);
    DELIMITERS.get(place).is_some_and(|(first, _)| *first <= code)
}

impl Tokenizer {
    pub fn new(language: Language, sensitivity: Sensitivity) -> Tokenizer {
        Tokenizer { language, stemmer: language.stemmer(), sensitivity }
    }

    /// The language of its strings.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The words of a string, folded and stemmed.
    pub fn words<'t>(&'t self, text: &'t str) -> impl Iterator<Item = String> + 't {
        text.split(|letter| is_delimiter(letter, self.language))
            .filter(|word| !word.is_empty())
            .filter_map(|word| self.term(word))
    }

    fn term(&self, word: &str) -> Option<String> {
        let lower = folding::lower(word, self.language);
        if self.language.is_stop_word(&lower) {
            return None;
        }
        let stem = self.stemmer.stem(if self.sensitivity.case { word } else { &lower });
        Some(match (self.sensitivity.diacritics, stem) {
            (true, Cow::Owned(stem)) => stem,
            (true, Cow::Borrowed(stem)) => stem.to_owned(),
            (false, stem) => folding::without_diacritics(&stem),
        })
    }
}
