//! Faults of regular expressions: causes of errors whose MongoDB code has no name, a row each.

use crate::error::faults;

faults! {
    /// Why a regular expression does not compile or gives up.
    RegexFault {
        /// A regular expression does not compile.
        Invalid = 51_091,
        /// A flag that regular expressions do not have.
        UnknownFlag = 51_108,
    }
}
