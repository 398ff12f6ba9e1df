//! The bindings of WiredTiger's C interface, as `bindgen` reads them out of `wiredtiger.h`.
//!
//! The library is under the GNU General Public License; see the README of the engine `wiredtiger`.
//!
//! # Not here
//! Safe types: the module `library` of the engine `wiredtiger` has them, and is the only user of this crate.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(missing_docs, reason = "the header of WiredTiger has the documentation")]
#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    reason = "the names are those of the C interface"
)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks, reason = "the code is generated")]
#![allow(rust_2018_idioms, reason = "the code is generated")]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
