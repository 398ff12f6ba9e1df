//! Certificates and keys in files: the faults are named with their files, and a sound pair makes a handshake.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pando_tls::{
    ClientSettings, ServerConnection, ServerSettings, ServerTls, TlsError, Validity, Verification,
    WithoutCertificate, client_session,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An issuer, and a folder for what it issues.
struct Issuer {
    folder: tempfile::TempDir,
    own: CertifiedIssuer<'static, KeyPair>,
}

impl Issuer {
    fn new() -> Issuer {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "issuer");
        let own = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let issuer = Issuer { folder: tempfile::tempdir().unwrap(), own };
        issuer.write("ca.pem", &issuer.own.pem());
        issuer
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The PEM of a certificate for `127.0.0.1`, and that of its key.
    fn pair(&self, common_name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Example, Inc.");
        params.distinguished_name.push(DnType::OrganizationalUnitName, "apps");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.own).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn file(&self, name: &str) -> PathBuf {
        let (certificate, key) = self.pair(name);
        self.write(name, &(certificate + &key))
    }

    fn server(&self, without_certificate: WithoutCertificate) -> ServerTls {
        ServerTls::load(ServerSettings {
            certificate_key: self.file("server"),
            issuers: Some(self.path("ca.pem")),
            without_certificate,
            ..ServerSettings::default()
        })
        .unwrap()
    }
}

fn refusal(certificate_key: &Path) -> TlsError {
    ServerTls::load(ServerSettings {
        certificate_key: certificate_key.to_owned(),
        ..ServerSettings::default()
    })
    .unwrap_err()
}

#[test]
fn a_faulty_file_is_named_with_its_fault() {
    let issuer = Issuer::new();
    let (certificate, key) = issuer.pair("a");
    let (_, other_key) = issuer.pair("b");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (text, part) in [
        (key.clone(), "has no certificate"),
        (certificate.clone(), "has no private key"),
        (certificate.clone() + &other_key, "does not belong to"),
        (certificate.clone() + encrypted, "is encrypted"),
        (certificate.replace("-----END", "----END"), "not a valid PEM file"),
        (String::new(), "has no certificate"),
    ] {
        let path = issuer.write("faulty.pem", &text);
        let told = refusal(&path).to_string();
        assert!(told.contains(part) && told.contains("faulty.pem"), "{told}");
    }
    assert!(refusal(&issuer.path("missing.pem")).to_string().contains("missing.pem"));
    let no_issuers = ServerSettings {
        certificate_key: issuer.write("good.pem", &(certificate + &key)),
        issuers: Some(issuer.write("empty.pem", "")),
        ..ServerSettings::default()
    };
    assert!(ServerTls::load(no_issuers).unwrap_err().to_string().contains("empty.pem"));
}

#[test]
fn a_certificate_has_a_name_and_dates() {
    let issuer = Issuer::new();
    let facts = issuer.server(WithoutCertificate::Allowed).certificate();
    assert_eq!(facts.subject, "CN=server,OU=apps,O=Example\\, Inc.");
    let at = |time: Duration| facts.validity(UNIX_EPOCH + time);
    assert_eq!(facts.validity(SystemTime::now()), Validity::Now);
    assert_eq!(at(facts.valid_to + Duration::from_secs(1)), Validity::Over);
    assert_eq!(at(facts.valid_to - Duration::from_secs(3 * 86_400 + 1)), Validity::EndsWithinDays(3));
    assert_eq!(at(facts.valid_from - Duration::from_secs(1)), Validity::NotYet);
}

/// Lets both sides talk until neither has more to say; `Err` is the fault of either.
fn handshake(server: &ServerTls, client: &ClientSettings, host: &str) -> Result<ServerConnection, String> {
    let mut server = server.session().unwrap();
    let mut client = client_session(client.load().unwrap(), host).unwrap();
    for _ in 0..10 {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut to_server).unwrap();
        }
        let mut left = to_server.as_slice();
        while !left.is_empty() {
            server.read_tls(&mut left).unwrap();
            server.process_new_packets().map_err(|error| error.to_string())?;
        }
        while server.wants_write() {
            server.write_tls(&mut to_client).unwrap();
        }
        let mut left = to_client.as_slice();
        while !left.is_empty() {
            client.read_tls(&mut left).unwrap();
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
    }
    assert!(!server.is_handshaking() && !client.is_handshaking());
    Ok(server)
}

#[test]
fn a_client_without_a_certificate_is_refused_unless_it_is_allowed() {
    let issuer = Issuer::new();
    let trusting = ClientSettings { issuers: Some(issuer.path("ca.pem")), ..ClientSettings::default() };
    let strict = issuer.server(WithoutCertificate::Refused);
    assert!(handshake(&strict, &trusting, "127.0.0.1").is_err());
    let own = ClientSettings { certificate_key: Some(issuer.file("app")), ..trusting.clone() };
    let session = handshake(&strict, &own, "127.0.0.1").unwrap();
    assert_eq!(session.peer_certificates().map(<[_]>::len), Some(1));
    let lax = issuer.server(WithoutCertificate::Allowed);
    assert!(handshake(&lax, &trusting, "127.0.0.1").unwrap().peer_certificates().is_none());
    let stranger = Issuer::new();
    let foreign = ClientSettings { certificate_key: Some(stranger.file("app")), ..trusting };
    assert!(handshake(&lax, &foreign, "127.0.0.1").is_err());
}

#[test]
fn a_client_verifies_issuer_and_name_as_far_as_it_is_told_to() {
    let issuer = Issuer::new();
    let server = issuer.server(WithoutCertificate::Allowed);
    let with = |issuer: &Issuer, verification| ClientSettings {
        issuers: Some(issuer.path("ca.pem")),
        verification,
        ..ClientSettings::default()
    };
    assert!(handshake(&server, &with(&issuer, Verification::Full), "127.0.0.2").is_err());
    handshake(&server, &with(&issuer, Verification::AnyHostName), "127.0.0.2").unwrap();
    let stranger = Issuer::new();
    assert!(handshake(&server, &with(&stranger, Verification::AnyHostName), "127.0.0.1").is_err());
    handshake(&server, &with(&stranger, Verification::Off), "example.org").unwrap();
    assert!(client_session(with(&issuer, Verification::Full).load().unwrap(), "a b").is_err());
}

#[test]
fn files_are_read_again_and_a_fault_leaves_the_former_ones_in_use() {
    let issuer = Issuer::new();
    let server = issuer.server(WithoutCertificate::Allowed);
    let file = server.settings().certificate_key.clone();
    let (certificate, key) = issuer.pair("renewed");
    std::fs::write(&file, &certificate).unwrap();
    assert!(server.reload().is_err());
    assert!(server.certificate().subject.starts_with("CN=server,"));
    std::fs::write(&file, certificate + &key).unwrap();
    server.reload().unwrap();
    assert!(server.certificate().subject.starts_with("CN=renewed,"));
}
