//! The note that a request may change users or roles.

use pando_catalog::Namespace;

use super::Context;
use crate::accounts::store;

/// How a request may change users or roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AccountChange {
    #[default]
    None,
    /// By a write to this collection itself.
    Direct(&'static str),
    /// By a command of users and roles.
    ByCommand,
}

impl Context<'_> {
    /// Notes that the request may change a collection. One of users or roles has all logins made again.
    pub fn note_target(&mut self, namespace: &Namespace) {
        if namespace.is_system() {
            let written =
                [store::USERS, store::ROLES].into_iter().find(|name| *name == namespace.collection());
            if let Some(name) = written.filter(|name| store::has(namespace.database(), name))
                && self.account_change == AccountChange::None
            {
                self.account_change = AccountChange::Direct(name);
            }
        }
    }

    /// Notes that the request changes users or roles: all logins are made again.
    pub fn note_account_change(&mut self) {
        self.account_change = AccountChange::ByCommand;
    }

    /// Whether the request may have changed users or roles.
    pub fn changes_accounts(&self) -> bool {
        self.account_change != AccountChange::None
    }

    /// The collection of users or roles that the request may have written to itself.
    pub fn written_accounts(&self) -> Option<&'static str> {
        match self.account_change {
            AccountChange::Direct(name) => Some(name),
            AccountChange::None | AccountChange::ByCommand => None,
        }
    }
}
