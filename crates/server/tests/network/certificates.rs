//! Certificates of tests: made for one run, in a folder of its own.

use std::path::PathBuf;
use std::sync::Arc;

use pando_server::network::{PlainText, Security};
use pando_tls::{ClientSettings, ServerSettings, ServerTls, WithoutCertificate};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An issuer, and files of what it has issued.
pub struct Certificates {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub fn new() -> Certificates {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "issuer");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let made = Certificates { folder: tempfile::tempdir().unwrap(), issuer };
        std::fs::write(made.path("ca"), made.issuer.pem()).unwrap();
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file with a certificate of this name and its key.
    pub fn issue(&self, name: &str) -> PathBuf {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(name), certificate.pem() + &key.serialize_pem()).unwrap();
        self.path(name)
    }

    /// The security of a listener that serves clients with and without a certificate.
    pub fn security(&self, plain: PlainText) -> Security {
        let settings = ServerSettings {
            certificate_key: self.issue("server"),
            issuers: Some(self.path("ca")),
            without_certificate: WithoutCertificate::Allowed,
            ..ServerSettings::default()
        };
        Security::Tls { tls: Arc::new(ServerTls::load(settings).unwrap()), plain }
    }

    /// The settings of a client that trusts the issuer.
    pub fn client(&self) -> ClientSettings {
        ClientSettings { issuers: Some(self.path("ca")), ..ClientSettings::default() }
    }
}
