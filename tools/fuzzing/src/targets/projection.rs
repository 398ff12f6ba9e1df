//! Projections of strangers: parsing and applying never panic, and the result is a sound document.

use pando_query::expression::ParseScope;
use pando_query::projection::Projection;

use crate::check::assert_sound;
use crate::requests::{ProjectionDocument, Stored};

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// The grown input.
pub type Input = (ProjectionDocument, Stored);

/// See the module.
pub fn run(input: Input) {
    let (specification, document) = &input;
    let _is_positional = Projection::is_positional(specification);
    let scope = ParseScope::at(0);
    for projection in
        [Projection::parse(specification, &scope), Projection::parse_stage(specification, &scope)]
            .into_iter()
            .flatten()
    {
        let _paths = projection.needed_paths();
        if let Ok(shown) = projection.project(document) {
            assert_sound(&shown);
        }
        let mut out = Vec::new();
        if projection.apply(document, Some(1), &mut out).is_err() {
            assert!(out.is_empty(), "what failed leaves nothing behind");
        }
    }
}
