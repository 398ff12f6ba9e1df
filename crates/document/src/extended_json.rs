//! Extended JSON, version 2: documents as JSON without loss of types.
//!
//! *Canonical* JSON wraps every type that JSON does not have, numbers too: `{"$numberInt":"1"}`. *Relaxed*
//! JSON writes numbers and the dates from 1970 to 9999 as people do, and loses of an integer only whether it
//! was an Int64.
//!
//! Reading takes both, mixed, and the older spellings of binaries and dates. An integer that is written
//! plainly becomes an Int32 if it fits, else an Int64 if it fits, else a double. A document whose `$…` name
//! is no type stays a document, so that filters can be read. Numbers go from digits to value directly, never
//! through a double that they are not.
//!
//! 1. `parse` turns characters into values, and hands a finished document that starts with a `$…` name to
//! 2. `type_wrapper`, which makes a value of it.
//! 3. `print` is the way back.
//!
//! The format is that of the specification of MongoDB's drivers.

mod date_text;
mod error;
mod parse;
mod print;
mod type_wrapper;

pub use date_text::write_date;
pub use error::{JsonError, JsonFault};
pub use parse::{parse_json_line, parse_json_prefix, parse_json_value};
pub use print::{JsonFormat, to_json, write_json};

#[cfg(test)]
mod tests;
