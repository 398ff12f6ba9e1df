//! The user of a connection, with the rights that his roles give.

use std::sync::Arc;

use pando_access::scram::Credential;
use pando_access::{Authority, ResolvedRoles, UserName};
use pando_catalog::Catalog;
use pando_query::expression::{UserRole, UserRoles};

use crate::CommandError;
use crate::accounts::{Ends, Restriction, UserRecord, resolve_roles, store};
use crate::session_id::SessionOwner;

/// A user that has logged in.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub user: UserName,
    /// The number of the user: another user of the same name has another one.
    id: Option<[u8; 16]>,
    /// His roles, those that they inherit, and the privileges of all.
    pub granted: ResolvedRoles,
    /// The same privileges, for the check of a request.
    pub authority: Arc<Authority>,
    /// The same roles, for expressions.
    pub user_roles: UserRoles,
    /// The owner of his sessions.
    pub session_owner: SessionOwner,
    /// The generation of users and roles that it was made from.
    pub generation: u64,
}

/// The reason why a user is not logged in, for the log of the server and never for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginFault {
    #[error("there is no such user")]
    NoUser,
    #[error("the user was changed meanwhile")]
    Changed,
    #[error("the restrictions of the user or of one of his roles do not allow this address")]
    Address,
}

impl Login {
    /// Logs a user in, whose client has proved that it knows the password of a credential. Blocks.
    ///
    /// `generation` was read before.
    pub fn of_credential(
        catalog: &Catalog,
        user: &UserName,
        credential: &Credential,
        ends: Ends,
        generation: u64,
    ) -> Result<Result<Login, LoginFault>, CommandError> {
        let Some(record) = store::user(catalog, user)? else { return Ok(Err(LoginFault::NoUser)) };
        if record.credential(credential.mechanism) != Some(credential) {
            return Ok(Err(LoginFault::Changed));
        }
        Login::of_record(catalog, &record, ends, generation)
    }

    /// Logs in a user whose name is known for sure: the subject of a certificate that TLS has verified, or
    /// the user of the client's process. `None` if there is no such user. Blocks.
    pub fn of_known_name(
        catalog: &Catalog,
        user: &UserName,
        ends: Ends,
        generation: u64,
    ) -> Result<Result<Option<Login>, LoginFault>, CommandError> {
        let Some(record) = store::user(catalog, user)? else { return Ok(Ok(None)) };
        Ok(Login::of_record(catalog, &record, ends, generation)?.map(Some))
    }

    /// The same login after users or roles have changed. Blocks.
    pub fn renewed(
        &self,
        catalog: &Catalog,
        ends: Ends,
        generation: u64,
    ) -> Result<Result<Login, LoginFault>, CommandError> {
        match store::user(catalog, &self.user)? {
            None => Ok(Err(LoginFault::NoUser)),
            // As in MongoDB, one that was dropped and created again is another user.
            Some(record) if record.id != self.id => Ok(Err(LoginFault::Changed)),
            Some(record) => Login::of_record(catalog, &record, ends, generation),
        }
    }

    fn of_record(
        catalog: &Catalog,
        record: &UserRecord,
        ends: Ends,
        generation: u64,
    ) -> Result<Result<Login, LoginFault>, CommandError> {
        let resolved = resolve_roles(catalog, &record.roles)?;
        if !Restriction::allow(&record.restrictions, ends) || !resolved.allows(ends) {
            return Ok(Err(LoginFault::Address));
        }
        let granted = resolved.granted;
        let authority = Arc::new(Authority::new(&granted.privileges));
        let user_roles = UserRoles::new(
            granted.roles.iter().map(|role| UserRole { name: &role.name, database: &role.database }),
        );
        let user = record.name.clone();
        let session_owner = SessionOwner::of_digest(user.digest());
        Ok(Ok(Login { user, id: record.id, granted, authority, user_roles, session_owner, generation }))
    }
}
