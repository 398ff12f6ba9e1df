//! The program itself: started as a user starts it, talked to over its sockets, ended by signals.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod administration;
mod connection;
mod copies;
mod damaged_input;
mod files_in_and_out;
mod idle_connections;
mod import_ends;
mod import_folders;
mod import_messages;
mod no_store_by_accident;
mod refusals;
mod running_server;
mod server_log;
mod shutdown;
mod sockets;
