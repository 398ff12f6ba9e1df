//! The certificates of the process's TLS, as the commands see them.

use std::fmt;

/// The certificate that the server shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCertificate {
    /// Its subject, in the form of RFC 2253.
    pub subject: String,
    /// The end of its time, in milliseconds since 1970.
    pub valid_to_ms: i64,
}

/// Tells of the certificate, and reads the files of TLS again.
pub trait CertificateRotation: fmt::Debug + Send + Sync {
    /// Has new connections use what the files have now.
    ///
    /// # Errors
    /// The fault of a file, for people. The former certificates stay in use.
    fn rotate(&self) -> Result<(), String>;

    /// The certificate that new connections are shown.
    fn own(&self) -> Option<OwnCertificate>;
}
