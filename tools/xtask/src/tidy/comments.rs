//! The rules on the text of comments. Every file has a head, which begins with a noun. No comment is a note
//! to oneself or commented-out code.

use super::source::{Source, is_name_byte, words};
use crate::finding::Finding;

/// Notes to oneself, each cut in two so that this file does not contain them.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Words with which a riddle begins: the reader learns only at the end of the sentence what it is about.
const RIDDLE_BEGINS: [&str; 5] = ["What", "Who", "Whoever", "Nothing", "As many as"];

/// How a line of code begins that somebody did not dare to delete.
const CODE_BEGINS: [&str; 14] = [
    "let ", "pub ", "use ", "impl ", "impl<", "struct ", "enum ", "return ", "self.", "assert", "println!",
    "if ", "for ", "match ",
];

/// Every file begins with what it is.
pub fn module_doc(source: &Source) -> Option<Finding> {
    let message = "does not begin with `//!`: say what this file is";
    (!source.text.starts_with("//!")).then(|| Finding::new(&source.path, 1, "module-doc", message))
}

/// The head of a file begins with a noun.
pub fn head_first_word(source: &Source) -> Option<Finding> {
    let head = source.text.lines().next()?.strip_prefix("//!")?.trim_start();
    let begins = |word: &&&str| {
        head.strip_prefix(**word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let word = RIDDLE_BEGINS.iter().find(begins)?;
    let message = format!("the head begins with `{word}`: say what the file is, with the noun first");
    Some(Finding::new(&source.path, 1, "head", message))
}

/// Notes to oneself, in any text file.
pub fn notes_to_oneself(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for note in NOTES.into_iter().filter(|note| words(line, note).next().is_some()) {
            let message = format!("`{note}`: do it, or write an issue");
            findings.push(Finding::new(path, index + 1, "note", message));
        }
    }
    findings
}

/// Comments that read like code.
pub fn commented_out_code(source: &Source) -> Vec<Finding> {
    let looks_like_code = |comment: &&super::source::Comment| {
        let is_doc = comment.text.starts_with("///") || comment.text.starts_with("//!");
        !is_doc && comment.text.strip_prefix("//").is_some_and(|text| is_code(text.trim()))
    };
    let found = source.comments.iter().filter(looks_like_code);
    found
        .map(|comment| {
            let message = "reads like commented-out code: delete it, git remembers";
            Finding::new(&source.path, comment.line, "dead-code", message)
        })
        .collect()
}

fn is_code(text: &str) -> bool {
    let is_function = text.strip_prefix("fn ").or_else(|| text.strip_prefix("pub fn ")).is_some_and(|rest| {
        let name = rest.bytes().take_while(|byte| is_name_byte(*byte)).count();
        name > 0 && rest[name..].starts_with(['(', '<'])
    });
    let is_attribute = text.starts_with("#[") && text.ends_with(']');
    let is_statement =
        CODE_BEGINS.iter().any(|begin| text.starts_with(begin)) && text.ends_with([';', '{', '}']);
    is_function || is_attribute || is_statement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_begins_with_its_doc() {
        assert!(module_doc(&Source::scan("a.rs", "//! What it is.\nuse b;\n")).is_none());
        assert!(module_doc(&Source::scan("a.rs", "use b;\n//! Late.\n")).is_some());
        assert!(module_doc(&Source::scan("a.rs", "")).is_some());
    }

    #[test]
    fn a_head_begins_with_a_noun() {
        for head in
            ["What a call needs.", "Who may write", "As many as there are", "Nothing but", "What's new"]
        {
            assert!(head_first_word(&Source::scan("a.rs", &format!("//! {head}\n"))).is_some(), "{head}");
        }
        for head in
            ["Whole pages in memory.", "As a rule", "A pool of objects: what was used last serves next."]
        {
            assert!(head_first_word(&Source::scan("a.rs", &format!("//! {head}\n"))).is_none(), "{head}");
        }
    }

    #[test]
    fn notes_are_found_with_their_lines_and_only_as_words() {
        let text = format!("fine\n# {}: later\nprefix{}\n", NOTES[0], NOTES[1]);
        let found = notes_to_oneself("Makefile", &text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn commented_out_code_is_told_from_prose() {
        let code = ["// let a = 1;", "//fn f(a: u32) {", "// self.close();", "// #[test]", "// if a > b {"];
        let prose = [
            "// let the caller decide",
            "// use the newest snapshot",
            "// fn names are unique",
            "// for each page: read it.",
            "/// let a = 1;",
        ];
        let count = |lines: &[&str]| commented_out_code(&Source::scan("a.rs", &lines.join("\n"))).len();
        assert_eq!(count(&code), code.len());
        assert_eq!(count(&prose), 0);
    }
}
