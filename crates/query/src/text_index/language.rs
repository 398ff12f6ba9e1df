//! Languages: their names, stop words and stemmers.
//!
//! Stemmers are those of Snowball, by the crate `rust-stemmers`; stop words come from the crate `stop-words`.
//! A build without the feature `text` has neither, and no language is known: it refuses text indexes and
//! searches ([`check_built`]).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

#[cfg(feature = "text")]
use rust_stemmers::{Algorithm, Stemmer};

/// Checks that this build has text indexes.
pub(crate) fn check_built() -> Result<(), &'static str> {
    match cfg!(feature = "text") {
        true => Ok(()),
        false => Err("this build has no text indexes: build it with the feature 'text' of pandodb"),
    }
}

/// A language of a text index or of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Language(usize);

struct Row {
    name: &'static str,
    code: &'static str,
}

const fn row(name: &'static str, code: &'static str) -> Row {
    Row { name, code }
}

/// The languages that MongoDB knows. The first has neither stop words nor a stemmer.
static ROWS: [Row; 16] = [
    row("none", "none"),
    row("danish", "da"),
    row("dutch", "nl"),
    row("english", "en"),
    row("finnish", "fi"),
    row("french", "fr"),
    row("german", "de"),
    row("hungarian", "hu"),
    row("italian", "it"),
    row("norwegian", "nb"),
    row("portuguese", "pt"),
    row("romanian", "ro"),
    row("russian", "ru"),
    row("spanish", "es"),
    row("swedish", "sv"),
    row("turkish", "tr"),
];

static STOP_WORDS: [OnceLock<HashSet<&'static str>>; 16] = [const { OnceLock::new() }; 16];

impl Language {
    /// The language of a name or a code, in whatever case.
    pub fn of(name: &str) -> Option<Language> {
        check_built().ok()?;
        let is_named = |row: &Row| row.name.eq_ignore_ascii_case(name) || row.code.eq_ignore_ascii_case(name);
        ROWS.iter().position(is_named).map(Language)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        ROWS[self.0].name
    }

    /// Whether an apostrophe is a part of a word.
    pub(super) fn keeps_apostrophes(self) -> bool {
        self.name() == "english"
    }

    /// Whether `I` is the capital of the dotless `ı`.
    pub(super) fn has_dotless_i(self) -> bool {
        self.name() == "turkish"
    }

    /// Whether a word in small letters is too common to be searched for.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        let words = STOP_WORDS[self.0].get_or_init(|| stop_words_of(&ROWS[self.0]));
        words.contains(word)
    }

    /// The stemmer of the language.
    pub(super) fn stemmer(self) -> WordStemmer {
        WordStemmer::of(ROWS[self.0].code)
    }
}

/// The words of the crate's list.
#[cfg(feature = "text")]
fn listed_words(code: &str) -> &'static [&'static str] {
    stop_words::lookup(code).unwrap_or_default()
}

#[cfg(not(feature = "text"))]
fn listed_words(_code: &str) -> &'static [&'static str] {
    &[]
}

/// Words in which MongoDB's lists differ from those of the crate: the language, the words that are no stop
/// words there, and the further ones (observed on MongoDB 6.0). The lists of French, Romanian, Russian and
/// Turkish differ by more words, and stay as they are.
const CORRECTIONS: [(&str, &str, &str); 6] = [
    (
        "english",
        "ain aren can couldn d didn doesn don hadn hasn haven isn it'd it'll just ll m ma mightn mightn't mustn \
         needn needn't now o re s shan should've shouldn t that'll ve wasn weren will won wouldn y",
        "can't cannot could here's how's let's ought that's there's what's when's where's who's why's would",
    ),
    ("finnish", "tallä tuotä", "tuota tällä"),
    ("german", "anderr unsere unserem unseren unseres", "unse unsem unsen unses"),
    (
        "italian",
        "",
        "adesso allora altre altri altro ancora avere dentro ecco fare fino fra me no però poco qua quasi qui \
         quindi senza sopra sotto stesso te vai",
    ),
    ("portuguese", "estar haver ser é", ""),
    ("spanish", "sentid sentida sentidas sentido sentidos siente sintiendo", "sido siendo"),
];

fn stop_words_of(row: &Row) -> HashSet<&'static str> {
    // The lists have Norwegian under the code of both its forms.
    let code = if row.code == "nb" { "no" } else { row.code };
    let mut words: HashSet<&'static str> = listed_words(code).iter().copied().collect();
    for (_, fewer, more) in CORRECTIONS.iter().filter(|(name, _, _)| *name == row.name) {
        fewer.split_whitespace().for_each(|word| {
            words.remove(word);
        });
        words.extend(more.split_whitespace());
    }
    words
}

/// Brings words to their stems.
pub(super) struct WordStemmer {
    #[cfg(feature = "text")]
    stemmer: Option<Stemmer>,
}

#[cfg(feature = "text")]
impl WordStemmer {
    fn of(code: &str) -> WordStemmer {
        let algorithm = match code {
            "da" => Algorithm::Danish,
            "nl" => Algorithm::Dutch,
            "en" => Algorithm::English,
            "fi" => Algorithm::Finnish,
            "fr" => Algorithm::French,
            "de" => Algorithm::German,
            "hu" => Algorithm::Hungarian,
            "it" => Algorithm::Italian,
            "nb" => Algorithm::Norwegian,
            "pt" => Algorithm::Portuguese,
            "ro" => Algorithm::Romanian,
            "ru" => Algorithm::Russian,
            "es" => Algorithm::Spanish,
            "sv" => Algorithm::Swedish,
            "tr" => Algorithm::Turkish,
            _ => return WordStemmer { stemmer: None },
        };
        WordStemmer { stemmer: Some(Stemmer::create(algorithm)) }
    }

    pub fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        match &self.stemmer {
            Some(stemmer) => stemmer.stem(word),
            None => Cow::Borrowed(word),
        }
    }
}

#[cfg(not(feature = "text"))]
impl WordStemmer {
    fn of(_code: &str) -> WordStemmer {
        WordStemmer {}
    }

    pub fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        Cow::Borrowed(word)
    }
}
