//! The certificates of the process's TLS, as the commands see them.

use std::fmt;

/// Reads the files of TLS again.
pub trait CertificateRotation: fmt::Debug + Send + Sync {
    /// Has new connections use what the files have now.
    ///
    /// # Errors
    /// The fault of a file, for people. The former certificates stay in use.
    fn rotate(&self) -> Result<(), String>;
}
