//! Logins of the Rust driver over TLS: by both SCRAMs, by certificate, and with the password itself (PLAIN).

mod server;

use std::path::{Path, PathBuf};

use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{AuthMechanism, ClientOptions, Credential, ServerAddress, Tls, TlsOptions};
use mongodb::sync::Client;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use server::Server;

const PASSWORD: &str = "s\u{e9}cret";
const APP: &str = "CN=app";

/// A server with access control and TLS, and the files of its clients.
struct Guarded {
    server: Server,
    issuer: PathBuf,
    app: PathBuf,
    _folder: tempfile::TempDir,
}

/// A file with a certificate for this machine and its key.
fn issue(folder: &Path, name: &str, issuer: &Issuer<'_, KeyPair>) -> PathBuf {
    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let path = folder.join(format!("{name}.pem"));
    std::fs::write(&path, certificate.pem() + &key.serialize_pem()).unwrap();
    path
}

impl Guarded {
    fn start() -> Guarded {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "issuer");
        let key = KeyPair::generate().unwrap();
        let issuer = folder.path().join("issuer.pem");
        std::fs::write(&issuer, params.self_signed(&key).unwrap().pem()).unwrap();
        let signer = Issuer::new(params, key);
        let own = issue(folder.path(), "server", &signer);
        let app = issue(folder.path(), "app", &signer);
        let text = |path: &Path| path.display().to_string();
        let server = Server::with_options(&[
            "--auth",
            "--auth-plain",
            "--tls-mode",
            "requireTLS",
            "--tls-certificate-key-file",
            &text(&own),
            "--tls-ca-file",
            &text(&issuer),
            "--tls-allow-connections-without-certificates",
        ]);
        let guarded = Guarded { server, issuer, app, _folder: folder };
        let first = guarded.client(None);
        let user = doc! { "createUser": "ada", "pwd": PASSWORD, "roles": ["root"] };
        first.database("admin").run_command(user).run().unwrap();
        let ada = guarded.client(Some(guarded.password(AuthMechanism::ScramSha256, PASSWORD)));
        let app = doc! { "createUser": APP, "roles": [{ "role": "root", "db": "admin" }] };
        ada.database("$external").run_command(app).run().unwrap();
        guarded
    }

    fn password(&self, mechanism: AuthMechanism, password: &str) -> Credential {
        let credential = Credential::builder().mechanism(mechanism).source("admin".to_owned());
        credential.username("ada".to_owned()).password(password.to_owned()).build()
    }

    fn client(&self, credential: Option<Credential>) -> Client {
        let mut tls = TlsOptions::builder().ca_file_path(self.issuer.clone()).build();
        if credential.as_ref().is_some_and(|credential| credential.mechanism == Some(AuthMechanism::MongoDbX509)) {
            tls.cert_key_file_path = Some(self.app.clone());
        }
        let address = ServerAddress::Tcp { host: "127.0.0.1".to_owned(), port: Some(self.server.port) };
        let options = ClientOptions::builder()
            .hosts(vec![address])
            .direct_connection(true)
            .tls(Tls::Enabled(tls))
            .credential(credential)
            .build();
        Client::with_options(options).unwrap()
    }
}

/// The users that a client has logged in as.
fn users(client: &Client) -> Vec<Document> {
    let status = client.database("admin").run_command(doc! { "connectionStatus": 1 }).run().unwrap();
    let users = status.get_document("authInfo").unwrap().get_array("authenticatedUsers").unwrap();
    users.iter().map(|user| user.as_document().unwrap().clone()).collect()
}

fn code(error: &mongodb::error::Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(error) => Some(error.code),
        _ => None,
    }
}

#[test]
fn a_user_logs_in_by_each_mechanism() {
    let guarded = Guarded::start();
    for mechanism in [AuthMechanism::ScramSha1, AuthMechanism::ScramSha256, AuthMechanism::Plain] {
        let client = guarded.client(Some(guarded.password(mechanism.clone(), PASSWORD)));
        client.database("rust").collection::<Document>("c").insert_one(doc! { "a": 1 }).run().unwrap();
        assert_eq!(users(&client), [doc! { "user": "ada", "db": "admin" }], "{mechanism:?}");
    }
    let certificate = Credential::builder().mechanism(AuthMechanism::MongoDbX509).build();
    let client = guarded.client(Some(certificate));
    let things = client.database("rust").collection::<Document>("c");
    assert_eq!(things.count_documents(doc! {}).run().unwrap(), 3);
    assert_eq!(users(&client), [doc! { "user": APP, "db": "$external" }]);
}

#[test]
fn the_mechanism_that_the_server_names_is_taken() {
    let guarded = Guarded::start();
    let credential = Credential::builder().username("ada".to_owned()).password(PASSWORD.to_owned()).build();
    let client = guarded.client(Some(credential));
    assert_eq!(users(&client), [doc! { "user": "ada", "db": "admin" }]);
}

#[test]
fn a_wrong_password_or_none_opens_no_data() {
    let guarded = Guarded::start();
    for mechanism in [AuthMechanism::ScramSha1, AuthMechanism::ScramSha256, AuthMechanism::Plain] {
        let client = guarded.client(Some(guarded.password(mechanism.clone(), "wrong")));
        let refused = client.database("rust").collection::<Document>("c").find_one(doc! {}).run().unwrap_err();
        assert!(matches!(&*refused.kind, ErrorKind::Authentication { .. }), "{mechanism:?}: {refused}");
    }
    let refused = guarded.client(None).database("rust").collection::<Document>("c").find_one(doc! {}).run().unwrap_err();
    assert_eq!(code(&refused), Some(13), "{refused}");
}
