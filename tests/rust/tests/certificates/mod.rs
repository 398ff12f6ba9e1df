//! Certificates of tests: made for one run, in a folder of its own.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};

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
        std::fs::write(made.ca(), made.issuer.pem()).unwrap();
        made
    }

    /// The file with the issuer's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A file with a certificate for this machine and its key. The subject is `CN=name,O=org`.
    pub fn issue(&self, name: &str) -> PathBuf {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "org");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = self.folder.path().join(format!("{name}.pem"));
        std::fs::write(&file, certificate.pem() + &key.serialize_pem()).unwrap();
        file
    }
}
