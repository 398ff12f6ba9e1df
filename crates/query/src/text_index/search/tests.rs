//! Tests of searches: their parts, and the documents that pass.

use pando_document::{Value, doc};

use super::*;

fn parts(text: &str) -> (String, String, Vec<String>, Vec<String>) {
    let SearchText { words, negated_words, phrases, negated_phrases } = SearchText::parse(text);
    (words.trim_end().to_owned(), negated_words.trim_end().to_owned(), phrases, negated_phrases)
}

#[test]
fn texts_have_words_phrases_and_negations() {
    let of = |words: &str, negated: &str, phrases: &[&str], negated_phrases: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        (words.to_owned(), negated.to_owned(), owned(phrases), owned(negated_phrases))
    };
    assert_eq!(parts("a b"), of("a b", "", &[], &[]));
    assert_eq!(parts("a -b c"), of("a c", "b", &[], &[]));
    assert_eq!(parts("- a"), of("a", "", &[], &[]));
    assert_eq!(parts("a-b"), of("a b", "", &[], &[]));
    assert_eq!(parts("-a-b c"), of("c", "a b", &[], &[]));
    assert_eq!(parts("\"a b\" c"), of("a b c", "", &["a b"], &[]));
    assert_eq!(parts("-\"a b\" c"), of("c", "", &[], &["a b"]));
    assert_eq!(parts("a \"b"), of("a b", "", &[], &[]));
    assert_eq!(parts("\"\""), of("", "", &[""], &[]));
    assert_eq!(parts("ä\u{c}-ö"), of("ä", "ö", &[], &[]));
}

fn search(text: &str, sensitivity: Sensitivity) -> TextSearch {
    let specification = doc! {
        "key": { "_fts": "text", "_ftsx": 1 }, "weights": { "a": 3, "n.x": 1 }, "default_language": "english",
        "language_override": "language", "textIndexVersion": 3
    };
    let arguments =
        SearchArguments { search: text.to_owned(), language: None, written_language: None, sensitivity };
    TextSearch::new(&arguments, TextSpecification::of(&specification.to_raw()).unwrap())
}

/// The scores are those of MongoDB 6.0.
#[test]
fn scores_are_those_of_mongodb() {
    let score = |text: &str, document: pando_document::Document| {
        search(text, Sensitivity::default()).score_of(&document.to_raw()).unwrap()
    };
    let element = |text: &str| Value::Document(doc! { "x": text });
    let fox = doc! {
        "a": "The quick brown fox, the Fox!", "n": (Value::Array(vec![element("fox"), element("dog cat")]))
    };
    assert!((score("run", doc! { "a": "running runner runs" }) - 3.75).abs() < 1e-9);
    assert!((score("fox", fox.clone()) - 4.475).abs() < 1e-9);
    assert!((score("fox dog", fox.clone()) - 5.225).abs() < 1e-9);
    assert!((score("\"quick brown\"", fox) - 3.75).abs() < 1e-9);
    let strings = Value::Array(vec!["fox".into(), "dog fox dog".into(), Value::Array(vec!["fox".into()])]);
    assert!((score("Foxes", doc! { "a": (strings) }) - 5.3).abs() < 1e-9);
    assert!((score("cafe", doc! { "n": { "x": "café au lait" } }) - 2.0 / 3.0).abs() < 1e-9);
    assert!((score("fox", doc! { "a": "Fox" }) - 3.3).abs() < 1e-9);
}

#[test]
fn documents_pass_by_words_and_phrases() {
    let document = doc! { "a": "The quick brown Fox", "n": { "x": "café" } }.to_raw();
    let passes = |text: &str, case, diacritics| {
        search(text, Sensitivity { case, diacritics }).matches(&document).unwrap()
    };
    for text in ["fox", "foxes dog", "\"quick BROWN\"", "cafe -dog", "\"quick brown\" \"café\""] {
        assert!(passes(text, false, false), "{text}");
    }
    for text in ["dog", "fox -quick", "-dog", "\"brown quick\"", "fox -\"quick brown\"", "the", ""] {
        assert!(!passes(text, false, false), "{text}");
    }
    assert!(passes("Fox", true, false) && !passes("fox", true, false));
    assert!(passes("café", false, true) && !passes("cafe", false, true));
    assert!(!passes("\"Quick\" Fox", true, false));
}
