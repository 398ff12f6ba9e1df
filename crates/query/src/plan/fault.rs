//! Faults of `hint`, `min` and `max`: causes of errors whose MongoDB code has no name, a row each.

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
        /// The point of `$near` lies outside of the bounds of a `2d` index.
        NearOutOfBounds = 16_433,
        /// `min` and `max` name different fields.
        MinMaxDiffer = 51_176,
    }
}
