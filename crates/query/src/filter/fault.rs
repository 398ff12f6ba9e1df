//! Faults of filters: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a filter does not parse.
    FilterFault {
        /// `$options` stands before a `$regex` that has options of its own.
        RegexOptionsBeforeRegex = 51_074,
        /// `$options` stands behind a `$regex` that has options of its own.
        RegexOptionsAfterRegex = 51_075,
        /// A path of more than 180 names.
        PathTooLong = 5_729_100,
    }
}
