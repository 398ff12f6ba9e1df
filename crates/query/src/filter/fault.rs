//! Faults of filters: the causes of errors that MongoDB gives a code without a name, a row each.

use crate::error::faults;

faults! {
    /// Why a filter does not parse.
    FilterFault {
        /// `$options` stands before a `$regex` that has options of its own.
        RegexOptionsBeforeRegex = 51_074,
        /// `$options` stands behind a `$regex` that has options of its own.
        RegexOptionsAfterRegex = 51_075,
    }
}
