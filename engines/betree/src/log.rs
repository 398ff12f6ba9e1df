//! The write-ahead log: positions in it, so far.
mod position;
pub(crate) use position::LogPosition;
