//! Searches of strangers: two lines, the search and the text of a document. No search panics; its parts stand
//! in it; a document that it finds has a score.

use pando_document::{RawValue, doc};
use pando_query::text_index::{Language, SearchArguments, Sensitivity, TextSearch, TextSpecification};

/// Inputs that are sound.
pub fn examples() -> Vec<Vec<u8>> {
    const TEXTS: [&str; 6] = [
        "fox -dog \"quick brown\"\nThe quick brown fox",
        "-\"a b\" c-d --e \"\nc d",
        "\u{e9}t\u{e9} Stra\u{df}e \u{130}\nSTRA\u{df}E \u{c9}t\u{e9}",
        "don't can't\ndon't stop",
        "\"\" - \"-\"\n-",
        "running runs\nrunner ran run",
    ];
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(text: &str) {
    let (search, stored) = text.split_once('\n').unwrap_or((text, text));
    for language in ["english", "german", "turkish", "none"] {
        let kept = doc! {
            "key": { "_fts": "text", "_ftsx": 1 }, "weights": { "a": 3 }, "default_language": language,
            "language_override": "language", "textIndexVersion": 3
        };
        let Ok(specification) = TextSpecification::of(&kept.to_raw()) else { panic!("it is sound") };
        let language = Language::of(language);
        let plain = SearchArguments {
            search: search.to_owned(),
            language,
            written_language: None,
            sensitivity: Sensitivity::default(),
        };
        let exact =
            SearchArguments { sensitivity: Sensitivity { case: true, diacritics: true }, ..plain.clone() };
        let document = doc! { "a": stored }.to_raw();
        for arguments in [plain, exact] {
            let searched = TextSearch::new(&arguments, specification.clone());
            let shown = searched.shown().to_raw();
            for part in ["phrases", "negatedPhrases"] {
                let Ok(Some(RawValue::Array(phrases))) = shown.get(part) else { panic!("it is shown") };
                for phrase in phrases.iter().filter_map(Result::ok) {
                    assert!(phrase.as_str().is_some_and(|phrase| search.contains(phrase)));
                }
            }
            // A search to which case counts is only asked of documents that have one of its plain terms.
            let is_plain = !arguments.sensitivity.any();
            if searched.matches(&document).is_ok_and(|is_found| is_found && is_plain) {
                assert!(searched.score_of(&document).is_ok_and(|score| score > 0.0));
            }
        }
    }
}
