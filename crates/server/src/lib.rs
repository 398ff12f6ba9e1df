//! The process: listeners, connection loop, limits, shutdown, configuration and the choice of engine.

pub mod configuration;
pub mod network;

pub mod program;
