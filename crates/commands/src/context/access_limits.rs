//! The limits that access control sets to the answer of a request, and the owner of its sessions.

use pando_access::{Action, Target};
use pando_document::RawDocument;

use super::Context;
use crate::CommandError;
use crate::access::Login;
use crate::session_id::{SessionId, SessionOwner};

impl Context<'_> {
    /// The owner of the client's sessions.
    pub fn session_owner(&self) -> SessionOwner {
        self.shared.access.session_owner(self.connection.login())
    }

    /// The session that a document in the body identifies.
    pub fn named_session(&self, document: &RawDocument) -> Result<Option<SessionId>, CommandError> {
        self.shared.access.session_in(self.connection.login(), document)
    }

    /// The login of the client, where there is access control: it limits what the answer shows.
    pub fn limiting_login(&self) -> Option<&Login> {
        self.connection.login().filter(|_| self.shared.access.is_on())
    }

    /// Whether the client may do something that its request does not need in every case.
    pub fn may(&self, action: Action, target: Target<'_>) -> bool {
        self.limiting_login().is_none_or(|login| login.authority.allows(action, target))
    }
}
