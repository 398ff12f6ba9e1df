//! Folding of case and diacritics, letter by letter.

#[cfg(feature = "text")]
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::language::Language;

/// Appends the small letter of a letter.
pub(super) fn push_lower(letter: char, language: Language, out: &mut String) {
    match letter {
        'I' if language.has_dotless_i() => out.push('ı'),
        'İ' if language.has_dotless_i() => out.push('i'),
        letter if letter.is_ascii() => out.push(letter.to_ascii_lowercase()),
        letter => {
            // Letters whose small form has several letters stay as they are.
            let mut lower = letter.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(only), None) => out.push(only),
                _ => out.push(letter),
            }
        }
    }
}

/// A text in small letters.
pub(super) fn lower(text: &str, language: Language) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|letter| push_lower(letter, language, &mut out));
    out
}

/// A text without diacritics.
pub(super) fn without_diacritics(text: &str) -> String {
    text.chars().filter_map(base).collect()
}

/// A build without text indexes has no words to fold.
#[cfg(not(feature = "text"))]
fn base(letter: char) -> Option<char> {
    Some(letter)
}

/// A letter without its diacritics; `None` for a mark that stands alone.
#[cfg(feature = "text")]
fn base(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return Some(letter);
    }
    if is_combining_mark(letter) {
        return None;
    }
    let (mut first, mut is_marked) = (None, true);
    decompose_canonical(letter, |part| match first {
        None => first = Some(part),
        Some(_) => is_marked &= is_combining_mark(part),
    });
    first.filter(|_| is_marked).or(Some(letter))
}
