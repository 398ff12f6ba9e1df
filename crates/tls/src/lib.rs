//! TLS of servers and clients, without sockets: certificates from PEM files, settings, and names of peers.
//!
//! - [`ServerTls`]: the settings of a server. Its files can be read again while it runs.
//! - [`ClientSettings`]: the settings of a client.
//! - [`CertificateFacts`]: name and dates of a certificate; [`name_of_der`]: a name alone.
//! - [`TlsError`]: a fault of a file, with the way to mend it.
//!
//! The protocol is that of rustls over ring, which needs a C compiler and no other native library.
//!
//! # Not here
//! Sockets and event loops: crate `server`. Users: crate `access`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod any_certificate;
mod certificate;
mod client_settings;
mod distinguished_name;
mod error;
mod handshake_fault;
mod pem_file;
mod server_settings;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use certificate::{CertificateFacts, Validity};
pub use client_settings::{ClientSettings, Verification, client_session};
pub use distinguished_name::{NameText, name_of_der};
pub use error::TlsError;
pub use handshake_fault::HandshakeFault;
pub use rustls::{ClientConfig, ClientConnection, ServerConnection, StreamOwned};
pub use server_settings::{MinimumVersion, ServerSettings, ServerTls, WithoutCertificate};

/// The cryptography of all sessions.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
