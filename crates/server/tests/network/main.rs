//! The network side by itself, over real sockets, with a handler that does what each request's name says.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod certificates;
mod client;
mod client_limits;
mod damaged_input;
mod encryption;
mod exchanges;
mod log_lines;
mod reads;
mod scripted_handler;
mod scripted_reads;
mod shutdown;
