//! The TLS of a server: its settings, and what was read from its files last.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use crate::certificate::CertificateFacts;
use crate::{TlsError, pem_file, provider};

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinimumVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Whether clients without a certificate are served, where issuers of clients' certificates are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutCertificate {
    /// No.
    #[default]
    Refused,
    /// Yes. A certificate that a client shows is verified all the same.
    Allowed,
}

/// The settings of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// The file with the server's certificate, those of its issuers, and its private key.
    pub certificate_key: PathBuf,
    /// The file whose first line is the password of that key, if it is encrypted.
    pub key_password: Option<PathBuf>,
    /// The file with the certificates of the issuers of clients' certificates. Without it no client is asked
    /// for one.
    pub issuers: Option<PathBuf>,
    /// The file with lists of revoked certificates of clients.
    pub revoked: Option<PathBuf>,
    /// Whether clients without a certificate are served.
    pub without_certificate: WithoutCertificate,
    /// The oldest version.
    pub minimum: MinimumVersion,
}

const ONLY_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// The TLS of a running server. Reading the files again concerns new connections only.
#[derive(Debug)]
pub struct ServerTls {
    settings: ServerSettings,
    current: ArcSwap<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    certificate: CertificateFacts,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`]: a file is missing or faulty.
    pub fn load(settings: ServerSettings) -> Result<ServerTls, TlsError> {
        let current = ArcSwap::from_pointee(settings.load()?);
        Ok(ServerTls { settings, current })
    }

    /// Reads the files again. After a fault the former ones stay in use.
    ///
    /// # Errors
    /// As [`ServerTls::load`].
    pub fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(self.settings.load()?));
        Ok(())
    }

    /// The server's own certificate.
    pub fn certificate(&self) -> CertificateFacts {
        self.current.load().certificate.clone()
    }

    /// The settings.
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Begins the session of one connection. It keeps the certificate of now.
    ///
    /// # Errors
    /// rustls refuses the settings.
    pub fn session(&self) -> Result<ServerConnection, TlsError> {
        let config = Arc::clone(&self.current.load().config);
        ServerConnection::new(config).map_err(|error| TlsError::Setup(error.to_string()))
    }
}

impl ServerSettings {
    fn load(&self) -> Result<Loaded, TlsError> {
        let own = pem_file::certificate_and_key(&self.certificate_key, self.key_password.as_deref())?;
        let facts = own.end_entity_cert().ok().and_then(|first| CertificateFacts::of_der(first));
        let certificate = facts.ok_or_else(|| TlsError::Unusable {
            file: self.certificate_key.clone(),
            cause: "its first certificate cannot be read".to_owned(),
        })?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(self.minimum.versions())
            .map_err(|error| TlsError::Setup(error.to_string()))?;
        let builder = match &self.issuers {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let refused = |cause: String| TlsError::Issuers { file: file.clone(), cause };
                let mut clients =
                    WebPkiClientVerifier::builder_with_provider(pem_file::issuers(file)?, provider());
                if let Some(lists) = &self.revoked {
                    // Issuers without a list are those whose certificates are not revoked this way. An
                    // expired list may lack the newest revocations: no client of its issuer is let in.
                    clients = clients
                        .with_crls(pem_file::revoked(lists)?)
                        .allow_unknown_revocation_status()
                        .enforce_revocation_expiration();
                }
                if self.without_certificate == WithoutCertificate::Allowed {
                    clients = clients.allow_unauthenticated();
                }
                let verifier = clients.build().map_err(|error| refused(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let own: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(own));
        Ok(Loaded { config: Arc::new(builder.with_cert_resolver(own)), certificate })
    }
}

impl MinimumVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            MinimumVersion::V1_2 => rustls::ALL_VERSIONS,
            MinimumVersion::V1_3 => ONLY_1_3,
        }
    }
}
