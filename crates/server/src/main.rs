//! The process: listeners, connection loop, limits, shutdown, configuration and the choice of engine.
fn main() {}
