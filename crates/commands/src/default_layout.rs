//! The layout of a collection that is created without one, by `create` or by its first document.

use pando_document::{Document, RawDocumentBuf, Value};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultLayout {
    /// Documents lie by `_id`.
    #[default]
    Clustered,
    /// Documents lie in the order of inserts.
    Heap,
}

/// Options of `create` that say themselves how documents lie, or that there are none.
const LAYOUT_OPTIONS: [&str; 7] =
    ["layout", "primaryKey", "clusteredIndex", "viewOn", "timeseries", "capped", "partitioned"];

impl DefaultLayout {
    /// All layouts.
    pub const ALL: [DefaultLayout; 2] = [DefaultLayout::Clustered, DefaultLayout::Heap];

    /// The name, as the option of a collection has it.
    pub const fn name(self) -> &'static str {
        match self {
            DefaultLayout::Clustered => "clustered",
            DefaultLayout::Heap => "heap",
        }
    }

    /// The options of a new collection, with this layout if they say none. The layout becomes an option of
    /// the collection, so that a server with another default reads it as it is.
    pub(crate) fn complete(self, options: RawDocumentBuf) -> RawDocumentBuf {
        if self == DefaultLayout::Clustered {
            return options;
        }
        // The catalog refuses options that cannot be read.
        let Ok(mut whole) = Document::from_raw(&options) else { return options };
        if LAYOUT_OPTIONS.iter().any(|name| whole.get(name).is_some()) {
            return options;
        }
        whole.push("layout", Value::from(self.name()));
        whole.to_raw()
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn only_options_without_a_layout_get_the_default_one() {
        let completed = |default: DefaultLayout, options: Document| {
            Document::from_raw(&default.complete(options.to_raw())).unwrap()
        };
        assert_eq!(completed(DefaultLayout::Heap, doc! { "a": 1 }), doc! { "a": 1, "layout": "heap" });
        assert_eq!(completed(DefaultLayout::Clustered, doc! { "a": 1 }), doc! { "a": 1 });
        for own in [
            doc! { "layout": "clustered" },
            doc! { "primaryKey": { "a": 1, "_id": 1 } },
            doc! { "clusteredIndex": { "key": { "_id": 1 } } },
            doc! { "viewOn": "c" },
        ] {
            assert_eq!(completed(DefaultLayout::Heap, own.clone()), own);
        }
    }
}
