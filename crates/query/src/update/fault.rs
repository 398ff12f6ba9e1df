//! Faults of updates: the causes of errors that MongoDB gives a code without a name, a row each.

use crate::error::faults;

faults! {
    /// Why an update does not parse or cannot be applied.
    UpdateFault {
        /// An update's result is above 16 MB.
        DocumentTooLarge = 17_419,
    }
}
