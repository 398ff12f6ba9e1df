//! The causes of errors that only pipelines have.
