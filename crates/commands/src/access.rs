//! Access control: whether there is any, and the users that are logged in.
//!
//! # Terms
//! - *Login*: the user of a connection, with the rights that his roles give (`access/login.rs`).
//! - *Generation*: the number of changes of users and roles so far. A login remembers the one that it was
//!   made from. A request that finds a newer one has the login made again before it is carried out, so that a
//!   change takes effect with the next request of every connection. The comparison takes no lock.
//! - *Conversation*: a login under way (`access/conversation.rs`).
//!
//! # Not here
//! The stored documents (`accounts.rs`), and the check of a request against the rights.

mod conversation;
mod failed_logins;
mod login;
mod login_counters;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_access::scram::Decoys;
use pando_access::{Action, Target};
use pando_catalog::{BlockingMode, Catalog};
use pando_document::RawDocument;
use parking_lot::Mutex;

pub(crate) use self::conversation::{Answer, Conversation, Exchanges};
use self::failed_logins::FailedLogins;
pub(crate) use self::login::Login;
pub(crate) use self::login_counters::{LoginCounters, MECHANISMS as LOGIN_MECHANISMS, Place};
use crate::accounts::{Ends, store};
use crate::log_limiter::LogLimiter;
use crate::session_id::{SessionId, SessionOwner};
use crate::{CommandError, ErrorCode};

/// Whether a client has to log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessControl {
    /// No: every client may do everything. A login works, and gives no right that others do not have.
    #[default]
    Off,
    /// Yes: the roles of its user say what a client may do.
    On,
}

/// Whether a client on this machine may make the first user or role without a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocalhostException {
    /// Yes, as long as there are none.
    #[default]
    Granted,
    /// No: the first user is made while the server is stopped. For machines whose other users and containers
    /// reach the port by loopback.
    Refused,
}

/// Whether a client may log in by sending its password as it is (PLAIN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainLogins {
    /// No.
    #[default]
    Refused,
    /// Yes, over TLS or through the unix socket.
    Offered,
}

/// The standing of a client.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the check of rights reads the login")]
pub(crate) enum Standing<'l> {
    /// There is no access control.
    Unrestricted,
    /// It has logged in.
    User(&'l Login),
    /// There are no users and roles yet, and it is on this machine: it may create the first one.
    First,
    /// It has to log in first.
    Stranger,
}

/// The state of access control that all connections share.
pub(crate) struct AccessState {
    control: AccessControl,
    exception: LocalhostException,
    generation: AtomicU64,
    /// There is a user or a role. Stays until the store is closed, as in MongoDB.
    has_accounts: AtomicBool,
    pub failed_logins: FailedLogins,
    pub logins: LoginCounters,
    /// The log lines about logins that are refused.
    pub refused_lines: Mutex<LogLimiter>,
    /// Held by a request that changes users or roles.
    pub turn: Mutex<()>,
    /// The secret of decoys where the store has no users.
    seed: [u8; 32],
}

impl AccessState {
    /// The state at the start of a store. `seed` is random.
    pub fn new(control: AccessControl, exception: LocalhostException, seed: [u8; 32]) -> AccessState {
        AccessState {
            control,
            exception,
            generation: AtomicU64::new(1),
            has_accounts: AtomicBool::new(false),
            failed_logins: FailedLogins::default(),
            logins: LoginCounters::default(),
            refused_lines: Mutex::default(),
            turn: Mutex::default(),
            seed,
        }
    }

    /// Whether clients have to log in.
    pub fn is_on(&self) -> bool {
        self.control == AccessControl::On
    }

    /// The number of changes of users and roles so far.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Users or roles have changed, or may have.
    pub fn note_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The standing of a client with this login, and with these ends of its connection.
    ///
    /// # Errors
    /// Among others `WouldBlock`: without a login the store may have to be asked for users.
    pub fn standing<'l>(
        &self,
        login: Option<&'l Login>,
        ends: impl FnOnce() -> Ends,
        catalog: &Catalog,
        blocking: BlockingMode,
    ) -> Result<Standing<'l>, CommandError> {
        match login {
            _ if !self.is_on() => Ok(Standing::Unrestricted),
            Some(login) => Ok(Standing::User(login)),
            None if self.exception == LocalhostException::Refused => Ok(Standing::Stranger),
            None if ends().is_this_machine() && self.is_vacant(catalog, blocking)? => Ok(Standing::First),
            None => Ok(Standing::Stranger),
        }
    }

    /// The owner of the sessions of a client. Without access control all of them belong to nobody.
    #[inline]
    pub fn session_owner(&self, login: Option<&Login>) -> SessionOwner {
        match login {
            Some(login) if self.is_on() => login.session_owner,
            _ => SessionOwner::NOBODY,
        }
    }

    /// A session whose document names an owner. Without access control the name has no effect.
    ///
    /// # Errors
    /// The owner is another user, and the client may not act for others.
    pub fn session_of_named_owner(
        &self,
        login: Option<&Login>,
        session: SessionId,
        named: SessionOwner,
    ) -> Result<SessionId, CommandError> {
        match login {
            Some(login) if self.is_on() && named != login.session_owner => {
                match login.authority.allows(Action::Impersonate, Target::Cluster) {
                    true => Ok(session.of_owner(named)),
                    false => Err(CommandError::failed(
                        ErrorCode::Unauthorized,
                        "Unauthorized to set user digest in LogicalSessionId",
                    )),
                }
            }
            _ => Ok(session),
        }
    }

    /// The session that a document in the body of a request identifies.
    ///
    /// # Errors
    /// As for [`session_of_named_owner`](AccessState::session_of_named_owner).
    pub fn session_in(
        &self,
        login: Option<&Login>,
        document: &RawDocument,
    ) -> Result<Option<SessionId>, CommandError> {
        let Some(session) = SessionId::of(document, self.session_owner(login)) else { return Ok(None) };
        match SessionOwner::named(document) {
            Some(named) => self.session_of_named_owner(login, session, named).map(Some),
            None => Ok(Some(session)),
        }
    }

    /// Whether there are no users and roles, and have been none since the start.
    pub(crate) fn is_vacant(&self, catalog: &Catalog, blocking: BlockingMode) -> Result<bool, CommandError> {
        if self.has_accounts.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if blocking == BlockingMode::CachedOnly {
            return Err(CommandError::WouldBlock(None));
        }
        let is_vacant = store::is_vacant(catalog)?;
        if !is_vacant {
            self.has_accounts.store(true, Ordering::Relaxed);
        }
        Ok(is_vacant)
    }

    /// The credentials of users that there are not. They stay the same as long as the store keeps its users:
    /// the number of that collection, which only an administrator can see, is their secret.
    pub fn decoys(&self, catalog: &Catalog) -> Decoys {
        match store::number_of_users(catalog) {
            Some(number) => Decoys::new(&number),
            None => Decoys::new(&self.seed),
        }
    }
}
