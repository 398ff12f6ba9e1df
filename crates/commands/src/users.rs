//! The commands of users and roles, one file each.
//!
//! # Steps of a change
//! 1. The request is read and checked as far as that goes without the store.
//! 2. [`account_change::carry_out`] lets one change after the other in. It calls the command, which reads
//!    users and roles and decides what becomes of their documents.
//! 3. All documents change in one transaction, and the logins of all connections are made again.

mod account_change;
mod account_names;
pub(crate) mod create_role;
pub(crate) mod create_user;
pub(crate) mod drop_all_roles;
pub(crate) mod drop_all_users;
pub(crate) mod drop_role;
pub(crate) mod drop_user;
pub(crate) mod invalidate_user_cache;
pub(crate) mod merge_authz_collections;
mod new_credentials;
mod role_edit;
mod role_fields;
pub(crate) mod role_privileges;
pub(crate) mod role_roles;
pub(crate) mod roles_info;
pub(crate) mod update_role;
pub(crate) mod update_user;
mod user_fields;
pub(crate) mod user_roles;
pub(crate) mod users_info;
