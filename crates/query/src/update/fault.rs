//! Faults of updates: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why an update does not parse or cannot be applied.
    UpdateFault {
        /// An update's result is above 16 MB.
        DocumentTooLarge = 17_419,
    }
}
