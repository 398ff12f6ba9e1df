//! The sections `security`, about logins, the certificate of the server and data keys, and
//! `transportSecurity`, about the versions of TLS that clients speak.

use pando_document::DocumentWriter;

use crate::access::{LOGIN_MECHANISMS, PlainLogins};
use crate::context::Context;
use crate::diagnostic::key_rewriting::KeyRewriting;
use crate::diagnostic::statistics_document::whole_number;
use crate::server_counters::Figure;

/// The logins by mechanism, and the certificate.
pub(super) fn write_security(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let counters = &context.shared.access.logins;
    let mut security = reply.document("security");
    let mut authentication = security.document("authentication");
    authentication.append_i64("saslSupportedMechsReceived", whole_number(counters.questions()));
    let mut mechanisms = authentication.document("mechanisms");
    let offers_plain = context.shared.options.plain_logins == PlainLogins::Offered;
    for name in LOGIN_MECHANISMS.into_iter().filter(|name| offers_plain || *name != "PLAIN") {
        let figures = counters.figures(name);
        let mut mechanism = mechanisms.document(name);
        for (kind, received, successful) in [
            ("speculativeAuthenticate", figures.begun_within_hello, figures.done_within_hello),
            // There is no cluster whose members log in.
            ("clusterAuthenticate", 0, 0),
            ("authenticate", figures.begun, figures.done),
        ] {
            let mut part = mechanism.document(kind);
            part.append_i64("received", whole_number(received));
            part.append_i64("successful", whole_number(successful));
            part.finish();
        }
        mechanism.finish();
    }
    mechanisms.finish();
    authentication.finish();
    let certificates = context.shared.options.certificates.as_ref();
    if let Some(certificate) = certificates.and_then(|certificates| certificates.own()) {
        security.append_str("SSLServerSubjectName", &certificate.subject);
        security.append_date_time("SSLServerCertificateExpirationDate", certificate.valid_to_ms);
    }
    if let Some(rewriting) = KeyRewriting::of(context.catalog()) {
        rewriting.write(&mut security);
    }
    security.finish();
}

/// The connections by version of TLS.
pub(super) fn write_transport(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let counters = &context.shared.counters;
    let mut transport = reply.document("transportSecurity");
    for (version, figure) in [
        // Older versions are never spoken.
        ("1.0", None),
        ("1.1", None),
        ("1.2", Some(Figure::Tls12)),
        ("1.3", Some(Figure::Tls13)),
        ("unknown", None),
    ] {
        let number = figure.map_or(0, |figure| counters.figure(figure));
        transport.append_i64(version, whole_number(number));
    }
    transport.finish();
}
