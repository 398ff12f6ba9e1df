//! Projections.
