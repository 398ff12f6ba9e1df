//! The connection string in `--uri`: one server, who logs in there, and TLS.
//!
//! `mongodb://[USER:PASSWORD@]HOST[:PORT][/[DATABASE]][?OPTION=VALUE&…]`, as MongoDB's drivers read it.
//! User, password and values are percent-encoded. Options that are not of the login or of TLS are passed
//! over: the command names its collection, and this client has no pool.

use std::path::PathBuf;

use pando_access::scram::Mechanism;
use pando_tls::{ClientSettings, Verification};

use super::address::{ServerAddress, unescape, without_password};
use super::error::TransferError;
use super::login::{Login, LoginMechanism};

/// The database that knows users where nothing else is said.
const SOURCE_DEFAULT: &str = "admin";
/// The database of users that certificates name.
const SOURCE_OF_CERTIFICATES: &str = "$external";

/// A server, and how it is reached.
#[derive(Debug)]
pub(super) struct ConnectionString {
    pub(super) address: ServerAddress,
    pub(super) login: Option<Login>,
    /// `None` without TLS.
    pub(super) tls: Option<ClientSettings>,
}

/// The options that count.
#[derive(Debug, Default)]
struct Options {
    source: Option<String>,
    mechanism: Option<LoginMechanism>,
    is_tls: bool,
    settings: ClientSettings,
}

impl ConnectionString {
    /// Reads it. Several hosts, and options of TLS that this client does not have, are refused rather than
    /// ignored.
    pub(super) fn parse(uri: &str) -> Result<ConnectionString, TransferError> {
        ConnectionString::read(uri)
            .map_err(|reason| TransferError::Uri { uri: without_password(uri), reason })
    }

    fn read(uri: &str) -> Result<ConnectionString, &'static str> {
        if uri.starts_with("mongodb+srv://") {
            return Err(
                "mongodb+srv is not looked up: name the host of the primary, as in mongodb://HOST:PORT/?tls=true",
            );
        }
        let rest = uri.strip_prefix("mongodb://").ok_or("it begins otherwise")?;
        let (before, options) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may not have an @ that is not encoded, but is not to be shown if it has.
        let (user, place) = match before.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, before),
        };
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        let address = ServerAddress::parse(host)?;
        let Options { source, mechanism, is_tls, settings } = Options::read(options)?;
        if matches!(address, ServerAddress::Unix(_)) && is_tls {
            return Err("a unix socket has no TLS; leave tls=true out");
        }
        let login = match (user, mechanism) {
            (None, Some(LoginMechanism::X509)) => Some(Login::of_certificate(None)),
            (None, Some(LoginMechanism::Scram(_))) => return Err("it says how to log in, but not as whom"),
            (None, None) => None,
            (Some(user), Some(LoginMechanism::X509)) => {
                Some(Login::of_certificate(Some(unescape(user).ok_or(ESCAPES)?)))
            }
            (Some(user), mechanism) => {
                let (user, password) = user.split_once(':').ok_or(
                    "it names a user without a password; add it, or name a file with --password-file (of the source of a copy: \
                     --from-password-file)",
                )?;
                if [user, password].iter().any(|part| part.contains([':', '/', '@', '[', ']'])) {
                    return Err(
                        "`:`, `/`, `@`, `[` and `]` in a user's name or password are to be percent-encoded",
                    );
                }
                let (user, password) = (unescape(user).ok_or(ESCAPES)?, unescape(password).ok_or(ESCAPES)?);
                if user.is_empty() {
                    return Err("it has an empty user's name");
                }
                let database = unescape(database).ok_or(ESCAPES)?;
                let database = Some(database).filter(|database| !database.is_empty());
                let source = source.or(database).unwrap_or_else(|| SOURCE_DEFAULT.to_owned());
                let mechanism = match mechanism {
                    Some(LoginMechanism::Scram(mechanism)) => Some(mechanism),
                    _ => None,
                };
                Some(Login::of_password(user, password, source, mechanism))
            }
        };
        let needs_certificate = login.as_ref().is_some_and(Login::is_of_certificate);
        if needs_certificate && (!is_tls || settings.certificate_key.is_none()) {
            return Err("MONGODB-X509 needs tls=true and tlsCertificateKeyFile");
        }
        Ok(ConnectionString { address, login, tls: is_tls.then_some(settings) })
    }
}

/// The fault of escapes.
const ESCAPES: &str = "a `%` in it is not followed by two hexadecimal digits of UTF-8";

impl Options {
    fn read(text: &str) -> Result<Options, &'static str> {
        let mut options = Options::default();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or("one of its options has no value")?;
            let value = unescape(value).ok_or(ESCAPES)?;
            match name.to_ascii_lowercase().as_str() {
                "authsource" => options.source = Some(value).filter(|source| !source.is_empty()),
                "authmechanism" => options.mechanism = Some(mechanism(&value)?),
                "tls" | "ssl" => options.is_tls = truth(&value)?,
                "tlscafile" => options.settings.issuers = Some(PathBuf::from(value)),
                "tlscertificatekeyfile" => options.settings.certificate_key = Some(PathBuf::from(value)),
                "tlsinsecure" | "tlsallowinvalidcertificates" if truth(&value)? => {
                    options.settings.verification = Verification::Off;
                }
                "tlsallowinvalidhostnames"
                    if truth(&value)? && options.settings.verification == Verification::Full =>
                {
                    options.settings.verification = Verification::AnyHostName;
                }
                "tlscertificatekeyfilepassword" => {
                    return Err(
                        "keys with a password are not supported; decrypt the file with `openssl pkey`",
                    );
                }
                _ => {}
            }
        }
        let external = options.source.as_deref() == Some(SOURCE_OF_CERTIFICATES);
        if options.mechanism == Some(LoginMechanism::X509) && options.source.is_some() && !external {
            return Err("the authSource of MONGODB-X509 is $external");
        }
        Ok(options)
    }
}

fn mechanism(name: &str) -> Result<LoginMechanism, &'static str> {
    match Mechanism::of_name(name) {
        Some(scram) => Ok(LoginMechanism::Scram(scram)),
        None if name == "MONGODB-X509" => Ok(LoginMechanism::X509),
        None => Err("its authMechanism is none of SCRAM-SHA-256, SCRAM-SHA-1 and MONGODB-X509"),
    }
}

fn truth(value: &str) -> Result<bool, &'static str> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("an option of TLS is neither true nor false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(uri: &str) -> String {
        ConnectionString::parse(uri).expect_err(uri).to_string()
    }

    #[test]
    fn a_login_and_tls_are_read_and_other_options_passed_over() {
        let plain = ConnectionString::parse("mongodb://h/db?w=1&replicaSet=rs0").unwrap();
        assert!(plain.login.is_none() && plain.tls.is_none());
        let uri = "mongodb://a%40b:p%3Aw@h:1/db?tls=true&tlsCAFile=%2Fca.pem&tlsAllowInvalidHostnames=true";
        let secure = ConnectionString::parse(uri).unwrap();
        let settings = secure.tls.unwrap();
        assert_eq!(settings.issuers, Some(PathBuf::from("/ca.pem")));
        assert_eq!(settings.verification, Verification::AnyHostName);
        assert_eq!(secure.login.unwrap().asks_hello().as_deref(), Some("db.a@b"));
        let source = "mongodb://u:p@h/db?authSource=users&authMechanism=SCRAM-SHA-1";
        let login = ConnectionString::parse(source).unwrap().login.unwrap();
        assert_eq!(login.asks_hello().as_deref(), Some("users.u"));
        let uri =
            "mongodb://h/?tls=true&tlsCertificateKeyFile=a.pem&authMechanism=MONGODB-X509&tlsInsecure=true";
        let by_certificate = ConnectionString::parse(uri).unwrap();
        assert!(by_certificate.login.unwrap().is_of_certificate());
        assert_eq!(by_certificate.tls.unwrap().verification, Verification::Off);
    }

    #[test]
    fn a_fault_is_told_without_the_password() {
        for (uri, part) in [
            ("mongodb://u:secret@h,i", "one host"),
            ("mongodb+srv://u:secret@cluster0.example", "not looked up"),
            ("mongodb://u:secret@", "no host"),
            ("mongodb://u@h", "without a password"),
            ("mongodb://:secret@h", "empty user"),
            ("mongodb://u:sec@ret@h", "percent-encoded"),
            ("mongodb://u:%zz@h", "hexadecimal"),
            ("mongodb://u:secret@h/?authMechanism=PLAIN", "SCRAM-SHA-256"),
            ("mongodb://h/?authMechanism=SCRAM-SHA-1", "not as whom"),
            ("mongodb://h/?authMechanism=MONGODB-X509", "tlsCertificateKeyFile"),
            ("mongodb://h/?tls=yes", "neither true nor false"),
            ("mongodb://h/?tls", "no value"),
            ("mongodb://%2Ftmp%2Fa.sock/?tls=true", "no TLS"),
            ("mongodb://h/?tlsCertificateKeyFilePassword=x", "decrypt"),
        ] {
            let told = fault(uri);
            assert!(told.contains(part) && !told.contains("secret"), "{uri}: {told}");
        }
    }
}
