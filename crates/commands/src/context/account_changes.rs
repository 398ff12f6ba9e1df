//! The note that a request may change users or roles.

use pando_catalog::Namespace;

use super::Context;
use crate::accounts::store;

impl Context<'_> {
    /// Notes that the request may change a collection. One of users or roles has all logins made again.
    pub fn note_target(&mut self, namespace: &Namespace) {
        if namespace.is_system() {
            self.changes_accounts |= store::has(namespace.database(), namespace.collection());
        }
    }

    /// Notes that the request changes users or roles: all logins are made again.
    pub fn note_account_change(&mut self) {
        self.changes_accounts = true;
    }

    /// Whether the request may have changed users or roles.
    pub fn changes_accounts(&self) -> bool {
        self.changes_accounts
    }
}
