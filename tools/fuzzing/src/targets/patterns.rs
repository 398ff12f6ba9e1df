//! Regular expressions of strangers: three lines of text, the pattern, its options, and the searched text. No
//! pattern panics, and the filter finds what the expression finds.

use pando_document::{Document, doc};
use pando_query::expression::{Expression, ParseScope};
use pando_query::filter::Filter;

/// Inputs that are sound.
pub fn examples() -> Vec<Vec<u8>> {
    const TEXTS: [&str; 8] = [
        "^a.*b$\nims\nA\nb",
        "(?<year>\\d{4})-(\\d\\d)\n\n2024-02",
        "(?=a)ab|\\bfoo\\b\nx\nab foo",
        "[[:alpha:]\\x{e9}-]+\\k<n>(?<n>a)\ni\n\u{e9}t\u{e9}-",
        "(a+)+$\n\naaaaaaaaaaaaaaaaaaaaab",
        "\\Qa.b\\E(?#comment)(?i:C)\n\na.bc",
        "a{2,5}?(?>b*)\\1\\p{Lu}\ns\naaab",
        "(?x) a b # c\nim\nab",
    ];
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(text: &str) {
    let mut lines = text.splitn(3, '\n').chain(std::iter::repeat(""));
    let (Some(pattern), Some(options), Some(subject)) = (lines.next(), lines.next(), lines.next()) else {
        return;
    };
    let root = doc! { "a": subject }.to_raw();
    let filter = doc! { "a": doc! { "$regex": pattern, "$options": options } }.to_raw();
    let matched = Filter::parse(&filter, &ParseScope::at(0)).and_then(|filter| filter.matches(&root));
    let expression = doc! {
        "value": doc! { "$regexMatch": doc! { "input": "$a", "regex": literal(pattern), "options": literal(options) } }
    };
    let expression = expression.to_raw();
    let Ok(Some(value)) = expression.get("value") else { panic!("it was put there") };
    let Ok(parsed) = Expression::parse(value, &ParseScope::at(0)) else { return };
    if let (Ok(matched), Ok(found)) = (matched, parsed.evaluate(&root)) {
        assert_eq!(found.to_bool(), matched);
    }
    let all = doc! { "value": doc! { "$regexFindAll": doc! { "input": "$a", "regex": literal(pattern) } } }
        .to_raw();
    if let Ok(Some(value)) = all.get("value")
        && let Ok(parsed) = Expression::parse(value, &ParseScope::at(0))
    {
        let _found = parsed.evaluate(&root);
    }
}

/// The text and not the field that it may name.
fn literal(text: &str) -> Document {
    doc! { "$literal": text }
}
