//! Collations: the rules of languages by which strings compare, and the sort keys that indexes hold.
//!
//! # Terms
//! - *Specification*: a document of options, `{locale: "de", strength: 2}`. The *simple* collation compares
//!   bytes; it is what holds where there is no other.
//! - *Sort key*: bytes of a string whose order under `memcmp` is the order of the strings.
//! - [`TextOrder`]: how the strings of a query, an index or a collection compare: simply, or by a
//!   [`Collator`].
//!
//! # Steps
//! 1. [`Specification::parse`] reads the options, [`Collator::new`] finds the rules of the language.
//! 2. [`TextOrder::compare`] compares two values, [`TextOrder::encode`] makes key bytes of one. Without a
//!    collator they are those of `document` and `keyorder`, after one branch.
//!
//! # Invariants
//! - Key bytes of two values are in the order in which the values compare, and equal where they are equal.
//! - Strings and symbols compare by the rules wherever they stand in documents and arrays. Names of fields,
//!   code and patterns compare by bytes.
//!
//! # Feature `icu`
//! The rules themselves, by ICU4X. Without it each specification but the simple one has the fault
//! [`SpecificationFault::WithoutRules`], and a store whose collections have one is not opened.
//!
//! # Not here
//! MongoDB's error codes and the place of a collation in a request (`commands`); the parts of a query that
//! compare (`query`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg_attr(not(feature = "icu"), path = "no_collator.rs")]
mod collator;
mod fault;
mod locale;
#[cfg(feature = "icu")]
mod rules;
mod specification;
mod text_order;

pub use collator::Collator;
pub use fault::SpecificationFault;
pub use specification::Specification;
pub use text_order::TextOrder;

/// The version of the rules and of the sort keys. It changes with the version of ICU4X, and indexes whose
/// sort keys are of another version are refused.
pub const VERSION: &str = "icu4x-2.4";
