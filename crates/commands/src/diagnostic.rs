//! Commands that tell the identity and the state of the server.

pub(crate) mod build_info;
pub(crate) mod coll_stats;
pub(crate) mod connection_status;
pub(crate) mod current_op;
pub(crate) mod data_size;
pub(crate) mod db_stats;
pub(crate) mod get_cmd_line_opts;
pub(crate) mod get_diagnostic_data;
pub(crate) mod get_last_error;
pub(crate) mod get_log;
pub(crate) mod get_nonce;
pub(crate) mod get_parameter;
pub(crate) mod hello;
pub(crate) mod host_info;
mod idle_session;
pub(crate) mod latency_document;
pub(crate) mod list_commands;
pub(crate) mod pando_verify;
pub(crate) mod ping;
pub(crate) mod profile;
pub(crate) mod replica_set;
pub(crate) mod server_status;
pub(crate) mod set_parameter;
pub(crate) mod statistics_document;
pub(crate) mod top;
pub(crate) mod validate;
pub(crate) mod whatsmyuri;
