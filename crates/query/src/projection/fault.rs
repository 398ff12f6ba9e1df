//! The causes of errors that only projections have.
