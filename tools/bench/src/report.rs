//! What comes out: a table for people, a file per run for programs.
//!
//! - [`Figures`]: every number of a run, rates and costs per operation; the table and the file are two faces of it.
//! - [`warnings`]: what makes a figure doubtful.
//! - [`table`]: aligned columns.
//! - [`file`]: one self-describing JSON document per run.

mod figures;
pub mod file;
pub mod table;
pub mod warnings;

pub use figures::Figures;
