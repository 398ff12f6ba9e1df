//! The calls of the audit trail: at the end of a request, where one is refused, and at the end of the
//! process.

use pando_access::UserName;
use pando_document::{Document, doc};

use super::Commands;
use crate::audit::{AuditEvent, Parties};
use crate::error::Failure;
use crate::{CommandError, ConnectionState, ErrorCode, Request};

impl Commands {
    /// Tells the audit trail of a request that has ended with this outcome.
    pub(super) fn audit_end(
        &self,
        connection: &ConnectionState,
        request: &Request<'_>,
        outcome: &Result<(), CommandError>,
    ) {
        if let Some(trail) = &self.shared.options.audit {
            let parties = || connection.audit_parties();
            trail.request_ended(parties, request, outcome, || self.shared.audit_stamp());
        }
    }

    /// Tells the audit trail of a request that its client has no right to.
    pub(super) fn audit_refusal(
        &self,
        connection: &ConnectionState,
        request: &Request<'_>,
        failure: &Failure,
    ) {
        if failure.code == ErrorCode::Unauthorized
            && let Some(trail) = &self.shared.options.audit
        {
            trail.request_refused(connection.audit_parties(), request, self.shared.audit_stamp());
        }
    }

    /// Tells the audit trail of a login that no request has asked for.
    pub(super) fn audit_login(&self, connection: &ConnectionState, user: &UserName, mechanism: &str) {
        if let Some(trail) = &self.shared.options.audit {
            let param = doc! { "user": &*user.name, "db": &*user.database, "mechanism": mechanism };
            let event = AuditEvent { kind: "authenticate", param, result: 0 };
            trail.record(connection.audit_parties(), self.shared.audit_stamp(), &event);
        }
    }

    /// Tells the audit trail that the process stops.
    pub fn audit_shutdown(&self) {
        if let Some(trail) = &self.shared.options.audit {
            let event = AuditEvent { kind: "shutdown", param: Document::new(), result: 0 };
            trail.record(Parties::own(), self.shared.audit_stamp(), &event);
        }
    }
}
