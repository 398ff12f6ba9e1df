//! Passwords, users, roles and rights, without a store and without messages.
//!
//! - [`scram_client`]: the client's side of SCRAM.
//! - [`scram`]: the server's side of SCRAM-SHA-1 and SCRAM-SHA-256, and the credentials that are stored.
//! - [`plain`]: the message of PLAIN.
//! - [`Privilege`]: actions ([`Action`]) on a resource ([`Resource`]).
//! - [`Role`]: privileges, and roles that are inherited. [`built_in_roles`] has those that are always there;
//!   [`role::resolve`] follows the inheritance.
//! - [`Authority`]: the privileges of the users of a connection, and the check of a request against them.
//!
//! `built_in_roles.txt` has the privileges of the built-in roles, as MongoDB 6.0.27 lists them. A line that
//! begins with `database` or `admin` names a role; the lines below it name a resource and its actions.
//!
//! # Not here
//! The documents of users and roles, and the commands that change them: crate `commands`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod action;
mod action_set;
mod authority;
pub mod built_in_roles;
mod name;
pub mod plain;
mod privilege;
mod resource;
pub mod role;
pub mod scram;
pub mod scram_client;

pub use action::Action;
pub use action_set::ActionSet;
pub use authority::{Authority, Target};
pub use name::{RoleName, UserName};
pub use privilege::{Privilege, PrivilegeList};
pub use resource::{PrivilegeFault, Resource};
pub use role::{ResolvedRoles, Role};
