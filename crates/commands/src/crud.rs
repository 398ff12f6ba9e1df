//! Commands that read and write documents.

pub(crate) mod aggregate;
pub(crate) mod bulk_write;
mod bulk_write_results;
mod coll_stats_stage;
pub(crate) mod collation;
pub(crate) mod count;
mod current_op_stage;
pub(crate) mod delete;
pub(crate) mod distinct;
pub(crate) mod explain;
pub(crate) mod find;
pub(crate) mod find_and_modify;
pub(crate) mod find_request;
pub(crate) mod get_more;
pub(crate) mod insert;
pub(crate) mod kill_cursors;
mod load_insert;
mod selection;
mod statement_batch;
mod statement_parts;
mod steps;
mod stored_document;
pub(crate) mod update;
mod update_statement;
mod write_reply;
