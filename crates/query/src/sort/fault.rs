//! Faults of sorts: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a sort pattern does not parse or a document has no sort key.
    SortFault {
        /// A sort direction that is neither 1 nor -1.
        BadDirection = 15_975,
        /// A value that is neither number nor object stands for a direction.
        BadValue = 15_974,
        /// An object that is no `$meta` stands for a direction.
        NotMeta = 17_312,
        /// A `$meta` that there is not.
        UnknownMeta = 31_138,
        /// `$meta` of a search.
        SearchScore = 31_218,
        /// `$meta` of the highlights of a search.
        SearchHighlights = 31_219,
        /// A number in a sorted path is both an index into an array and a field of one of its documents.
        AmbiguousField = 16_746,
        /// A sort pattern with more than 32 parts.
        TooWide = 13_103,
    }
}
