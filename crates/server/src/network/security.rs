//! The encryption of a listener's connections: none, offered, or required.

use std::sync::Arc;

use pando_tls::ServerTls;

/// The kinds of connections that a listener takes, by their first bytes.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// Messages only. A client that begins a TLS handshake is told that there is none.
    #[default]
    Plain,
    /// A TLS handshake.
    Tls {
        /// Certificates and settings.
        tls: Arc<ServerTls>,
        /// Whether messages without TLS are answered as well.
        plain: PlainText,
    },
}

/// Whether connections without TLS are served beside those with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainText {
    /// Yes.
    Served,
    /// No.
    Refused,
}

/// The facts of a connection whose handshake is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The version of TLS, such as `1.3`.
    pub version: &'static str,
    /// The subject of the client's certificate, in the form of RFC 2253; `None` without a certificate. It was
    /// issued by one of the known issuers.
    pub client_subject: Option<String>,
}
