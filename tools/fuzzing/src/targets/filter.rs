//! Filters of strangers: parsing and matching never panic, and both ways of matching say the same.

use crate::requests::{FilterDocument, Stored};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// The grown input.
pub type Input = (FilterDocument, Stored);

/// See the module.
pub fn run(input: Input) {
    let (text, document) = &input;
    let Ok(filter) = Filter::parse(text, &ParseScope::at(0)) else { return };
    // `explain` prints a document whatever the filter is.
    crate::check::assert_sound(&filter.to_document().to_raw());
    let matched = filter.matches(document);
    let with_position = filter.matches_with_position(document);
    match (matched, with_position) {
        (Ok(matched), Ok((again, position))) => {
            assert_eq!(matched, again);
            assert!(matched || position.is_none());
        }
        (Err(_), Err(_)) => {}
        (matched, with_position) => panic!("{matched:?}, but with position {with_position:?}"),
    }
}
