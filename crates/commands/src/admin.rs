//! Commands that create, list, change and drop databases, collections and indexes.

mod clustered_index;
pub(crate) mod coll_mod;
mod commit_quorum;
pub(crate) mod compact;
pub(crate) mod configure_fail_point;
pub(crate) mod create;
pub(crate) mod create_indexes;
pub(crate) mod default_rw_concern;
pub(crate) mod drop;
pub(crate) mod drop_database;
pub(crate) mod drop_indexes;
mod existing_indexes;
pub(crate) mod fsync;
mod index_key_pattern;
mod index_specification;
pub(crate) mod kill_op;
pub(crate) mod list_collections;
pub(crate) mod list_databases;
pub(crate) mod list_indexes;
pub(crate) mod load;
pub(crate) mod pando_backup;
pub(crate) mod re_index;
pub(crate) mod rename_collection;
pub(crate) mod rotate_certificates;
mod storage_engine_options;
mod view_definition;
mod wildcard_specification;
