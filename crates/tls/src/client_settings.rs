//! The TLS of a client, from the options of a connection string.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::any_certificate::{AnyCertificate, AnyHostName};
use crate::{TlsError, pem_file, provider};

/// How much of a server's certificate a client verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Its issuer, its dates and its name.
    #[default]
    Full,
    /// Its issuer and its dates (`tlsAllowInvalidHostnames`).
    AnyHostName,
    /// Only that the server has its key (`tlsInsecure`, `tlsAllowInvalidCertificates`).
    Off,
}

/// The settings of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// The file with the certificates of trusted issuers (`tlsCAFile`); without it those of the machine.
    pub issuers: Option<PathBuf>,
    /// The file with the client's own certificate and its key (`tlsCertificateKeyFile`).
    pub certificate_key: Option<PathBuf>,
    /// How much is verified.
    pub verification: Verification,
}

impl ClientSettings {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`]: a file is missing or faulty.
    pub fn load(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Setup(error.to_string()))?;
        let verifier = || -> Result<Arc<WebPkiServerVerifier>, TlsError> {
            let built = WebPkiServerVerifier::builder_with_provider(self.trusted()?, provider()).build();
            built.map_err(|error| TlsError::Setup(error.to_string()))
        };
        let builder = match self.verification {
            Verification::Full => builder.with_webpki_verifier(verifier()?),
            Verification::AnyHostName => {
                let any_name = Arc::new(AnyHostName(verifier()?));
                builder.dangerous().with_custom_certificate_verifier(any_name)
            }
            Verification::Off => {
                let any = Arc::new(AnyCertificate(provider()));
                builder.dangerous().with_custom_certificate_verifier(any)
            }
        };
        let config = match &self.certificate_key {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let own = SingleCertAndKey::from(pem_file::certificate_and_key(file, None)?);
                builder.with_client_cert_resolver(Arc::new(own) as Arc<dyn ResolvesClientCert>)
            }
        };
        Ok(Arc::new(config))
    }

    fn trusted(&self) -> Result<Arc<RootCertStore>, TlsError> {
        if let Some(file) = &self.issuers {
            return pem_file::issuers(file);
        }
        let found = rustls_native_certs::load_native_certs();
        let mut store = RootCertStore::empty();
        // A machine may have certificates of old forms. The others are of use all the same.
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            let cause = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
            return Err(TlsError::NoIssuers { cause });
        }
        Ok(Arc::new(store))
    }
}

/// Begins the session of a client with the server of this host name or address.
///
/// # Errors
/// The name is none that a certificate can have.
pub fn client_session(config: Arc<ClientConfig>, host: &str) -> Result<ClientConnection, TlsError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name =
        ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::ServerName { name: host.to_owned() })?;
    ClientConnection::new(config, name).map_err(|error| TlsError::Setup(error.to_string()))
}
