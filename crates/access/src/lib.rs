//! Passwords, users, roles and rights, without a store and without messages.
//!
//! - [`scram`]: the server's side of SCRAM-SHA-1 and SCRAM-SHA-256, and the credentials that are stored.
//! - `built_in_roles.txt`: the privileges of the built-in roles, as MongoDB 6.0.27 lists them. A line that
//!   begins with `database` or `admin` names a role; the lines below it name a resource and its actions.
//!
//! # Not here
//! The documents of users and roles, and the commands that change them: crate `commands`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod scram;
