//! The gate of access control: each request passes it before anything else is done with it.
//!
//! 1. A command for clients that have not logged in passes.
//! 2. Any other one needs a login. While there are no users, a client on this machine may create the first
//!    one.
//! 3. The authority of the user has to allow the access that the command's row names (`rights.rs`).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pando_access::{Action, ActionSet, Authority, Privilege, Resource, Target};
use pando_catalog::BlockingMode;
use pando_document::RawValue;

use super::Commands;
use crate::access::Standing;
use crate::command_name::Scope;
use crate::registry::{self, CommandRow};
use crate::rights::{Access, Claim, Denial, not_authorized, requires_login};
use crate::{CommandError, ConnectionState, ErrorCode, Request};

/// The authority of a client on this machine while there are no users.
static FIRST_CLIENT: LazyLock<Authority> = LazyLock::new(|| {
    let resource = Resource::Database("admin".to_owned());
    let actions = ActionSet::of(&[Action::CreateUser, Action::GrantRole]);
    let of_users = Privilege { resource, actions };
    // Test runners begin a replica set before they make its first user, as MongoDB lets them.
    let actions = ActionSet::of(&[Action::ReplSetConfigure, Action::ReplSetGetStatus]);
    let of_set = Privilege { resource: Resource::Cluster, actions };
    Authority::new(&[of_users, of_set].into_iter().collect())
});

/// The command for everybody that answers who is logged in.
const TELLS_LOGIN: &str = "connectionStatus";

impl Commands {
    /// Refuses a request whose client has not the rights for it. Without access control this is one branch.
    /// `position` is that of the command in the registry.
    #[inline]
    pub(super) fn authorize(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        position: Option<usize>,
        blocking: BlockingMode,
    ) -> Result<(), CommandError> {
        self.renew_login(connection, blocking)?;
        if !self.shared.access.is_on() {
            return Ok(());
        }
        // A command that there is not is refused as such.
        let Some(position) = position else { return Ok(()) };
        let command = &registry::COMMANDS[position];
        let needs_login = !matches!(command.access, Access::Anyone) || command.name == TELLS_LOGIN;
        if needs_login && self.may_be_logged_in(connection) {
            self.log_in_process_user(connection, blocking)?;
        }
        match command.access {
            Access::Anyone => Ok(()),
            _ => self.authorize_command(connection, request, command, blocking),
        }
    }

    fn authorize_command(
        &self,
        connection: &ConnectionState,
        request: &Request<'_>,
        command: &CommandRow,
        blocking: BlockingMode,
    ) -> Result<(), CommandError> {
        // A request without a database is refused as such.
        let database = request.body.get("$db")?.and_then(|database| database.as_str()).unwrap_or_default();
        let nobody = BTreeSet::new();
        let standing = self.standing(connection, blocking)?;
        let (user, roles, authority) = match &standing {
            Standing::Unrestricted => return Ok(()),
            Standing::User(login) => (Some(&login.user), &login.granted.roles, &*login.authority),
            Standing::First => (None, &nobody, &*FIRST_CLIENT),
            Standing::Stranger => return Err(requires_login(command.name)),
        };
        if command.scope == Scope::Admin && database != "admin" {
            // Refused as such, unless it ends the transaction of its connection.
            return Ok(());
        }
        let access_of = |name: &str| registry::position(name).map(|at| registry::COMMANDS[at].access);
        let claim = Claim { user, roles, authority, database, request, access_of };
        match claim.check(command.access).and_then(|()| self.check_cursor(&claim, command, &standing)) {
            Ok(()) => Ok(()),
            Err(Denial::Rights) => Err(not_authorized(request, database)),
            Err(Denial::Malformed(error)) => Err(error),
        }
    }

    /// A `getMore` needs the rights of the command that has opened its cursor, which may have ended since.
    fn check_cursor(
        &self,
        claim: &Claim<'_>,
        command: &CommandRow,
        standing: &Standing<'_>,
    ) -> Result<(), Denial> {
        let (Standing::User(login), "getMore") = (standing, command.name) else { return Ok(()) };
        let Ok((_, RawValue::Int64(id))) = claim.request.command() else { return Ok(()) };
        let Some(facts) = self.shared.cursors.facts(id) else { return Ok(()) };
        let Some(opening) = facts.opening.as_ref().filter(|opening| opening.generation != login.generation)
        else {
            return Ok(());
        };
        let request = Request::of(&opening.command);
        let (name, _) = request.command()?;
        match (claim.access_of)(name) {
            Some(access) => Claim { request: &request, ..*claim }.check(access),
            None => Ok(()),
        }
    }

    /// Refuses a request that is no command, unless its client may do this.
    pub(crate) fn authorize_action(
        &self,
        connection: &mut ConnectionState,
        action: Action,
        target: Target<'_>,
        blocking: BlockingMode,
    ) -> Result<(), CommandError> {
        self.renew_login(connection, blocking)?;
        if self.shared.access.is_on() && self.may_be_logged_in(connection) {
            self.log_in_process_user(connection, blocking)?;
        }
        let is_allowed = match self.standing(connection, blocking)? {
            Standing::Unrestricted => true,
            Standing::User(login) => login.authority.allows(action, target),
            Standing::First | Standing::Stranger => false,
        };
        match (is_allowed, target) {
            (true, _) => Ok(()),
            (false, Target::Database(database)) => Err(CommandError::failed(
                ErrorCode::Unauthorized,
                format!("not authorized on {database} to query its catalog"),
            )),
            (false, _) => Err(CommandError::failed(ErrorCode::Unauthorized, "not authorized")),
        }
    }

    fn standing<'c>(
        &self,
        connection: &'c ConnectionState,
        blocking: BlockingMode,
    ) -> Result<Standing<'c>, CommandError> {
        let ends = || connection.ends();
        self.shared.access.standing(connection.login(), ends, &self.shared.catalog, blocking)
    }
}
