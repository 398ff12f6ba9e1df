//! Faults of hints, `min` and `max`: the causes of errors that MongoDB gives a code without a name, a row
//! each.

use crate::error::faults;

faults! {
    /// Why there is no plan.
    PlanFault {
        /// `min` and `max` without `hint`.
        MinMaxWithoutHint = 51_173,
        /// The hint does not fit `min` or `max`.
        HintDoesNotFitMinMax = 51_174,
        /// `min` is not below `max`.
        MinNotBelowMax = 51_175,
        /// `min` and `max` name different fields.
        MinMaxDiffer = 51_176,
    }
}
