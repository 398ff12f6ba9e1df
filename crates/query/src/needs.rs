//! The fields of a document that a query looks at, so that a plan can leave out the others.
//!
//! Each part of a query adds its own. A path that could be an index into an array counts as everything: an
//! index has another value there than an expression.

use std::collections::BTreeSet;

/// Which fields are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Whole documents.
    Everything,
    /// The values at these dotted paths. Without a path only the number of documents counts.
    Paths(BTreeSet<String>),
}

impl Needs {
    /// No field.
    pub fn nothing() -> Needs {
        Needs::Paths(BTreeSet::new())
    }

    /// Adds a dotted path.
    pub fn add(&mut self, path: &str) {
        let has_index = path.split('.').any(|name| crate::path::index_of(name).is_some());
        match self {
            Needs::Everything => {}
            Needs::Paths(_) if has_index => *self = Needs::Everything,
            Needs::Paths(paths) if paths.contains(path) => {}
            Needs::Paths(paths) => {
                paths.insert(path.to_owned());
            }
        }
    }

    /// Adds whole documents.
    pub fn add_everything(&mut self) {
        *self = Needs::Everything;
    }

    /// Whether a top-level field is looked at, or something below it.
    pub fn has_field(&self, name: &str) -> bool {
        match self {
            Needs::Everything => true,
            Needs::Paths(paths) => paths.iter().any(|path| first_name(path) == name),
        }
    }

    /// The top-level fields; `None` for all.
    pub fn fields(&self) -> Option<BTreeSet<&str>> {
        match self {
            Needs::Everything => None,
            Needs::Paths(paths) => Some(paths.iter().map(|path| first_name(path)).collect()),
        }
    }
}

/// The first name of a dotted path.
pub(crate) fn first_name(path: &str) -> &str {
    path.split_once('.').map_or(path, |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_add_up_and_an_array_index_is_everything() {
        let mut needs = Needs::nothing();
        for path in ["a.b", "a.b", "c"] {
            needs.add(path);
        }
        assert_eq!(needs.fields(), Some(BTreeSet::from(["a", "c"])));
        assert!(needs.has_field("a") && !needs.has_field("b"));
        needs.add("d.0");
        assert_eq!(needs, Needs::Everything);
        assert!(needs.has_field("b"));
    }
}
