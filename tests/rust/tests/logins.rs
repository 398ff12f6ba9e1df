//! Logins of the Rust driver to a server with access control: by each mechanism, and wrong ones.

mod certificates;
mod server;

use std::path::Path;

use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::sync::Client;

use certificates::Certificates;
use server::Server;

/// The user of the certificate `app`.
const APP: &str = "CN=app,O=org";
/// The user `ada` with the password `sécret`, as an address has them.
const ADA: &str = "ada:s%C3%A9cret@";
const ADA_WITH_A_WRONG_PASSWORD: &str = "ada:secret@";

/// A server with access control and TLS, and the files of its clients.
struct Guarded {
    server: Server,
    certificates: Certificates,
}

impl Guarded {
    fn start() -> Guarded {
        let certificates = Certificates::new();
        let (own, ca) = (certificates.issue("server"), certificates.ca());
        let server = Server::start(&[
            "--auth".as_ref(),
            "--auth-plain".as_ref(),
            "--tls-mode".as_ref(),
            "preferTLS".as_ref(),
            "--tls-certificate-key-file".as_ref(),
            own.as_ref(),
            "--tls-ca-file".as_ref(),
            ca.as_ref(),
            "--tls-allow-connections-without-certificates".as_ref(),
        ]);
        let first = server.client("").database("admin");
        first
            .run_command(doc! { "createUser": "ada", "pwd": "s\u{e9}cret", "roles": ["root"] })
            .run()
            .unwrap();
        let ada = server.client_of(ADA, "").database("$external");
        ada.run_command(doc! { "createUser": APP, "roles": [{ "role": "root", "db": "admin" }] })
            .run()
            .unwrap();
        Guarded { server, certificates }
    }

    fn client(&self, user: &str, options: &str) -> Client {
        self.server.client_of(user, &format!("&serverSelectionTimeoutMS=20000{options}"))
    }

    fn over_tls(&self, user: &str, options: &str) -> Client {
        self.client(user, &format!("&tls=true&tlsCAFile={}{options}", in_address(&self.certificates.ca())))
    }

    /// A client that shows the certificate of this name, and logs in by it.
    fn by_certificate(&self, name: &str) -> Client {
        let key = in_address(&self.certificates.issue(name));
        self.over_tls(
            "",
            &format!("&authMechanism=MONGODB-X509&authSource=%24external&tlsCertificateKeyFile={key}"),
        )
    }
}

/// A path as an address has it.
fn in_address(path: &Path) -> String {
    path.to_str().unwrap().replace('/', "%2F")
}

/// Writes and reads, and gives the user that has logged in.
fn user_of(client: &Client) -> Document {
    let things = client.database("rust").collection::<Document>("things");
    let id = things.insert_one(doc! { "text": "x".repeat(20_000) }).run().unwrap().inserted_id;
    assert!(things.find_one(doc! { "_id": id }).run().unwrap().is_some());
    let status = client.database("admin").run_command(doc! { "connectionStatus": 1 }).run().unwrap();
    let users = status.get_document("authInfo").unwrap().get_array("authenticatedUsers").unwrap();
    assert_eq!(users.len(), 1);
    users[0].as_document().unwrap().clone()
}

fn refusal(client: &Client) -> Error {
    client.database("rust").collection::<Document>("things").find_one(doc! {}).run().unwrap_err()
}

/// Asserts that the login was refused, and that nobody is told the password.
fn is_refused(client: &Client) {
    let error = refusal(client);
    assert!(matches!(*error.kind, ErrorKind::Authentication { .. }), "{error}");
    assert!(!format!("{error:?}").contains("cret"), "{error:?}");
}

/// The options of the mechanisms by which ada logs in. Without one the driver takes what the server names.
const BY_SCRAM: [&str; 3] = ["", "&authMechanism=SCRAM-SHA-1", "&authMechanism=SCRAM-SHA-256"];
const BY_PLAIN: &str = "&authMechanism=PLAIN&authSource=admin";

#[test]
fn a_user_logs_in_by_scram_with_tls_and_without() {
    let guarded = Guarded::start();
    for options in BY_SCRAM {
        for client in [guarded.client(ADA, options), guarded.over_tls(ADA, options)] {
            assert_eq!(user_of(&client), doc! { "user": "ada", "db": "admin" }, "{options}");
        }
    }
}

#[test]
fn a_certificate_logs_its_subject_in() {
    let guarded = Guarded::start();
    assert_eq!(user_of(&guarded.by_certificate("app")), doc! { "user": APP, "db": "$external" });
}

#[test]
fn a_password_goes_over_tls_as_it_is() {
    let guarded = Guarded::start();
    assert_eq!(user_of(&guarded.over_tls(ADA, BY_PLAIN)), doc! { "user": "ada", "db": "admin" });
}

#[test]
fn a_wrong_password_is_refused_by_every_mechanism() {
    let guarded = Guarded::start();
    for options in BY_SCRAM.into_iter().chain([BY_PLAIN]) {
        is_refused(&guarded.over_tls(ADA_WITH_A_WRONG_PASSWORD, options));
    }
}

#[test]
fn a_password_without_tls_a_user_of_another_database_and_another_certificate_are_refused() {
    let guarded = Guarded::start();
    is_refused(&guarded.client(ADA, BY_PLAIN));
    is_refused(&guarded.over_tls(ADA, "&authSource=rust"));
    is_refused(&guarded.by_certificate("stranger"));
}

#[test]
fn a_client_without_a_user_is_told_to_log_in() {
    let guarded = Guarded::start();
    let error = refusal(&guarded.over_tls("", ""));
    assert!(matches!(*error.kind, ErrorKind::Command(ref error) if error.code == 13), "{error}");
}
