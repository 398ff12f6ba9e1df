//! Faults of filters: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a filter does not parse.
    FilterFault {
        /// `$options` stands before a `$regex` that has options of its own.
        RegexOptionsBeforeRegex = 51_074,
        /// `$options` stands behind a `$regex` that has options of its own.
        RegexOptionsAfterRegex = 51_075,
        /// `$minDistance` beside `$near` is no number.
        MinDistanceType = 16_893,
        /// `$minDistance` beside `$near` is negative.
        MinDistanceNegative = 16_894,
        /// `$maxDistance` beside `$near` is no number.
        MaxDistanceType = 16_895,
        /// `$maxDistance` beside `$near` is negative.
        MaxDistanceNegative = 16_896,
        /// The distance behind the coordinates of `$near` is negative.
        NearPointDistance = 18_522,
        /// `$near` stands beside other operators.
        NearSibling = 34_413,
        /// `$near` stands where documents are not found by a plan.
        NearOutOfPlace = 5_626_500,
        /// A path of more than 180 names.
        PathTooLong = 5_729_100,
    }
}
