//! Faults of certificates and keys, each with the file and the way to mend it.

use std::io;
use std::path::PathBuf;

/// Why the settings of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(
        "cannot read {}, which is to have {content}; correct the path, or let this user read the file",
        file.display()
    )]
    Read {
        /// The file.
        file: PathBuf,
        /// The expected content, for people.
        content: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is not PEM.
    #[error("{} is not a valid PEM file ({cause}); write it again", file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// The fault.
        cause: String,
    },
    /// A file has no certificate.
    #[error(
        "{} has no certificate; it is to have {content}, as PEM blocks that begin with -----BEGIN CERTIFICATE-----",
        file.display()
    )]
    NoCertificate {
        /// The file.
        file: PathBuf,
        /// The expected content, for people.
        content: &'static str,
    },
    /// A file has no list of revoked certificates.
    #[error(
        "{} has no list of revoked certificates; it is to have the lists of the issuers, as PEM blocks that begin with \
         -----BEGIN X509 CRL-----",
        file.display()
    )]
    NoRevoked {
        /// The file.
        file: PathBuf,
    },
    /// A file has no private key.
    #[error(
        "{} has no private key; append the key of its first certificate, a PEM block that begins with -----BEGIN PRIVATE KEY-----",
        file.display()
    )]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// The private key needs a password.
    #[error(
        "the private key in {} is encrypted; write its password into a file of its own and name that with \
         --tls-certificate-key-file-password-file, or decrypt the key with `openssl pkey` (a client has to), and let only this \
         user read the file (mode 0600)",
        file.display()
    )]
    EncryptedKey {
        /// The file.
        file: PathBuf,
    },
    /// The private key is encrypted in a form that is not supported.
    #[error(
        "the private key in {} is encrypted in an old form; write it again with `openssl pkcs8 -topk8 -v2 aes-256-cbc`",
        file.display()
    )]
    OldEncryption {
        /// The file.
        file: PathBuf,
    },
    /// The private key cannot be decrypted.
    #[error(
        "cannot decrypt the private key in {} ({cause}); correct the password, or write the key again with `openssl pkcs8 \
         -topk8 -v2 aes-256-cbc`",
        file.display()
    )]
    Decryption {
        /// The file.
        file: PathBuf,
        /// The fault.
        cause: String,
    },
    /// The private key belongs to another certificate.
    #[error(
        "the private key in {} does not belong to the first certificate there; put the matching key into the file, and the \
         server's own certificate first",
        file.display()
    )]
    WrongKey {
        /// The file.
        file: PathBuf,
    },
    /// A certificate or a key is of a form that is not supported.
    #[error("cannot use the certificate and key in {} ({cause}); make a new pair, such as ECDSA P-256 or RSA 2048", file.display())]
    Unusable {
        /// The file.
        file: PathBuf,
        /// The fault.
        cause: String,
    },
    /// The certificates of issuers cannot be used.
    #[error("cannot use the certificates of issuers in {} ({cause}); write the file again", file.display())]
    Issuers {
        /// The file.
        file: PathBuf,
        /// The fault.
        cause: String,
    },
    /// The machine has no certificates of issuers.
    #[error("this machine has no certificates of issuers ({cause}); name a file of them with tlsCAFile")]
    NoIssuers {
        /// The fault.
        cause: String,
    },
    /// The name of a server is none that a certificate can have.
    #[error("'{name}' is no name that a certificate can have; give a host name or an address")]
    ServerName {
        /// The name.
        name: String,
    },
    /// rustls refuses the settings.
    #[error("cannot set up TLS ({0}); report this defect")]
    Setup(String),
}
