//! Range deletes: the list that each tree keeps of them, and their stored form.
//!
//! | step | where |
//! |---|---|
//! | a transaction hides a range from itself | `pando_storage::SnapshotTransaction` |
//! | a tree lists the range deletes that its nodes and leaves do not have yet | [`list`] |
//! | the catalog and the log store them | [`encoding`] |
//! | reads hide older versions | `tree/lookup.rs`, `tree/scan.rs` |
//! | background work applies them, in steps | `background/range_delete_applier.rs`, `tree/range_delete_step.rs` |

pub(crate) mod encoding;
mod list;

pub(crate) use list::{DeletedRanges, FRAGMENTS_MAX, RangeFragment, floor_of};
