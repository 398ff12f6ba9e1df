//! The stored users and roles: the documents of `admin.system.users` and `admin.system.roles`, which have the
//! form of MongoDB's, so that its tools carry them from one server to the other.
//!
//! - [`UserRecord`] and [`RoleRecord`]: the fields of such documents that the server works with.
//! - [`ResolvedAccount`]: all that a list of roles leads to.
//! - [`Restriction`]: the addresses between which a user may log in.
//! - Module `store`: reading.

mod resolved_account;
mod restriction;
mod role_record;
pub(crate) mod store;
mod stored_names;
mod user_record;

pub(crate) use self::resolved_account::{ResolvedAccount, resolve_roles};
pub(crate) use self::restriction::{Ends, Restriction};
pub(crate) use self::role_record::RoleRecord;
pub(crate) use self::stored_names::stored_roles;
pub(crate) use self::user_record::{UserRecord, credentials_document};
