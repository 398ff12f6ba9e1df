//! The calls of the audit trail within a request: logins, and collections that a statement creates on its
//! way.

use pando_access::UserName;
use pando_catalog::Namespace;
use pando_document::doc;

use super::Context;
use crate::CommandError;
use crate::accounts::store;
use crate::audit::AuditEvent;

/// Commands that write documents. Others that touch a collection have events of their own.
const WRITERS: [&str; 7] =
    ["aggregate", "bulkWrite", "delete", "findAndModify", "findandmodify", "insert", "update"];

impl Context<'_> {
    /// Tells the audit trail of a login, or of one that has failed with this code.
    pub fn audit_login(&self, user: Option<&UserName>, mechanism: &str, result: i32) {
        if let Some(trail) = &self.shared.options.audit {
            let (name, database) = user.map_or(("", ""), |user| (&*user.name, &*user.database));
            let param = doc! { "user": name, "db": database, "mechanism": mechanism };
            let event = AuditEvent { kind: "authenticate", param, result };
            trail.record(self.connection.audit_parties(), self.shared.audit_stamp(), &event);
        }
    }

    /// Tells the audit trail of a request that may have written to the collection of users or roles itself.
    /// The documents stay out: they have keys.
    #[cold]
    pub fn audit_direct_change(&self, command: &str, outcome: &Result<(), CommandError>) {
        let (Some(trail), Some(name)) = (&self.shared.options.audit, self.written_accounts()) else { return };
        let result = match outcome {
            Ok(()) => 0,
            Err(CommandError::Failed(failure)) => failure.code.code(),
            // It is handled again.
            Err(CommandError::WouldBlock(_)) => return,
        };
        if WRITERS.contains(&command) {
            let param = doc! { "ns": format!("{}.{name}", store::DATABASE), "operation": command };
            let event = AuditEvent { kind: "directAuthMutation", param, result };
            trail.record(self.connection.audit_parties(), self.shared.audit_stamp(), &event);
        }
    }

    /// Tells the audit trail of a collection that a statement has created on its way.
    pub fn audit_creation(&self, namespace: &Namespace) {
        if let Some(trail) = &self.shared.options.audit {
            let param = doc! { "ns": namespace.to_string() };
            let event = AuditEvent { kind: "createCollection", param, result: 0 };
            trail.record(self.connection.audit_parties(), self.shared.audit_stamp(), &event);
        }
    }
}
