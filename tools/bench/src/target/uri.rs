//! `mongodb://[USER:PASSWORD@]HOST[:PORT][/[DATABASE]][?authSource=DB&authMechanism=NAME&tls=true]`, as
//! MongoDB's drivers read it.
//!
//! One host: what is measured is one server. The options are those of a login and of TLS; what is sent stands
//! in the workload. User, password and database are percent-encoded, a unix socket is its path with `%2F` for
//! each slash.

use crate::client::Login;
use crate::error::BenchError;
use pando_access::scram::Mechanism;
use pando_tls::{ClientSettings, Verification};
use std::path::PathBuf;

/// The beginning of targets of MongoDB's protocol.
const SCHEME: &str = "mongodb://";
/// The database that knows users if nothing else is said.
const DEFAULT_SOURCE: &str = "admin";

#[derive(Debug)]
pub(crate) struct ParsedUri {
    /// The host, with its port if it has one.
    pub host: Host,
    pub login: Option<Login>,
    /// `None`: without TLS.
    pub tls: Option<ClientSettings>,
}

/// Where the server is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// A name or a number, and maybe a port.
    Name(String),
    /// A unix socket.
    Socket(PathBuf),
}

impl ParsedUri {
    pub(crate) fn parse(uri: &str) -> Result<ParsedUri, BenchError> {
        ParsedUri::read(uri).map_err(|cause| BenchError::Uri { uri: without_login(uri), cause })
    }

    fn read(uri: &str) -> Result<ParsedUri, &'static str> {
        if uri.starts_with("mysql://") {
            return Err("this program does not speak MySQL's protocol: use pando-bench-mysql");
        }
        let rest = uri.strip_prefix(SCHEME).ok_or("it does not begin with mongodb://")?;
        let (before, options) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may not have an @ that is not encoded, but is not to be shown if it has.
        let (user, host) = match before.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, before),
        };
        let (host, database) = host.split_once('/').unwrap_or((host, ""));
        if host.contains(',') {
            return Err("it names several hosts");
        }
        if host.is_empty() {
            return Err("it names no host");
        }
        let Options { source, mechanism, is_tls, settings } = Options::read(options)?;
        let tls = is_tls.then_some(settings);
        let Some(user) = user else {
            if !database.is_empty() {
                return Err("it names a database, which is --database here");
            }
            if source.is_some() || mechanism.is_some() {
                return Err("it says how to log in, but not as whom");
            }
            return Ok(ParsedUri { host: Host::of(host), login: None, tls });
        };
        let (user, password) = user.split_once(':').ok_or("it names a user without a password")?;
        if [user, password].iter().any(|part| part.contains([':', '/', '@', '[', ']'])) {
            return Err("`:`, `/`, `@`, `[` and `]` in a user's name or password are to be percent-encoded");
        }
        let (user, password) = (decoded(user)?, decoded(password)?);
        if user.is_empty() {
            return Err("it has an empty user's name");
        }
        let database = Some(decoded(database)?).filter(|database| !database.is_empty());
        let source = source.or(database).unwrap_or_else(|| DEFAULT_SOURCE.to_owned());
        let login = Some(Login::new(user, password, source, mechanism));
        Ok(ParsedUri { host: Host::of(host), login, tls })
    }
}

impl Host {
    fn of(text: &str) -> Host {
        let path = decoded(text).ok().filter(|path| path.starts_with('/') && text.contains('%'));
        path.map_or_else(|| Host::Name(text.to_owned()), |path| Host::Socket(path.into()))
    }
}

/// Options of drivers that change nothing of what this tool sends: it has one server, a connection for each
/// client, and no repetition. They are taken, since the line that a shell prints has them.
const WITHOUT_EFFECT: [&str; 11] = [
    "appname",
    "connecttimeoutms",
    "directconnection",
    "heartbeatfrequencyms",
    "maxpoolsize",
    "minpoolsize",
    "replicaset",
    "retryreads",
    "retrywrites",
    "serverselectiontimeoutms",
    "sockettimeoutms",
];

/// The options of a login and of TLS.
#[derive(Default)]
struct Options {
    source: Option<String>,
    mechanism: Option<Mechanism>,
    is_tls: bool,
    settings: ClientSettings,
}

impl Options {
    fn read(options: &str) -> Result<Options, &'static str> {
        let mut read = Options::default();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or("one of its options has no value")?;
            let value = decoded(value)?;
            match name.to_ascii_lowercase().as_str() {
                "authsource" => read.source = Some(value).filter(|source| !source.is_empty()),
                "authmechanism" => {
                    let found = Mechanism::of_name(&value);
                    read.mechanism =
                        Some(found.ok_or(
                            "its authMechanism is none that this tool has: SCRAM-SHA-256, SCRAM-SHA-1",
                        )?);
                }
                "tls" | "ssl" => read.is_tls = value == "true",
                "tlscafile" => read.settings.issuers = Some(PathBuf::from(value)),
                "tlscertificatekeyfile" => read.settings.certificate_key = Some(PathBuf::from(value)),
                "tlsinsecure" | "tlsallowinvalidcertificates" if value == "true" => {
                    read.settings.verification = Verification::Off;
                }
                "tlsinsecure" | "tlsallowinvalidcertificates" => {}
                name if WITHOUT_EFFECT.contains(&name) => {}
                _ => {
                    return Err(
                        "it has options that are neither of a login (authSource, authMechanism) nor of TLS",
                    );
                }
            }
        }
        Ok(read)
    }
}

fn decoded(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "a `%` in it is not followed by two hexadecimal digits of UTF-8";
    let bytes = text.as_bytes();
    let broken = |(place, byte): (usize, &u8)| {
        let digits = bytes.get(place + 1..place + 3);
        *byte == b'%' && !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if bytes.iter().enumerate().any(broken) {
        return Err(WRONG);
    }
    percent_encoding::percent_decode_str(text).decode_utf8().map(|text| text.into_owned()).map_err(|_| WRONG)
}

/// A text that may be shown and written down: in every URI of it, what stands before the host is left out.
pub fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // To the last @ of the word: a password may have one that is not encoded.
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (uri, behind) = rest.split_at(end);
    let uri = uri.rsplit_once('@').map_or_else(|| uri.to_owned(), |(_, host)| format!("...@{host}"));
    format!("{scheme}://{uri}{}", without_login(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(uri: &str) -> String {
        ParsedUri::parse(uri).expect_err(uri).to_string()
    }

    /// Where the user is known, and how the login goes; what a login is made of is tested where it is used.
    fn login(uri: &str) -> String {
        format!("{:?}", ParsedUri::parse(uri).expect(uri).login.expect("a login"))
    }

    #[test]
    fn a_login_has_its_database_from_the_option_or_the_path_or_is_known_to_admin() {
        assert_eq!(login("mongodb://u:p@h"), "Login(authSource admin)");
        assert_eq!(login("mongodb://u:p@h:1/"), "Login(authSource admin)");
        assert_eq!(login("mongodb://u:p@h/d"), "Login(authSource d)");
        assert_eq!(login("mongodb://u:p@h/d?authSource=x%20y"), "Login(authSource x y)");
        assert_eq!(login("mongodb://u:p@h?authMechanism=SCRAM-SHA-1"), "Login(authSource admin)");
    }

    #[test]
    fn options_of_drivers_without_effect_here_are_taken() {
        let uri = "mongodb://h:1/?directConnection=true&serverSelectionTimeoutMS=2000&appName=mongosh+2.5.0";
        let parsed = ParsedUri::parse(uri).expect("it is good");
        assert_eq!(parsed.host, Host::Name("h:1".to_owned()));
        assert!(parsed.login.is_none() && parsed.tls.is_none());
    }

    #[test]
    fn encoded_characters_are_decoded() {
        let parsed = ParsedUri::parse("mongodb://a%40b:%3Ap%2Fw%25@%2Ftmp%2Fa.sock").expect("it is good");
        assert_eq!(parsed.host, Host::Socket("/tmp/a.sock".into()));
        assert_eq!(parsed.login.expect("a login").asks_hello(), "admin.a@b");
        for uri in ["mongodb://u:p%@h", "mongodb://u:%zz@h", "mongodb://u:%ff@h"] {
            assert!(cause(uri).contains("hexadecimal"), "{uri}");
        }
    }

    #[test]
    fn a_fault_is_told_without_the_password() {
        for (uri, part) in [
            ("mongodb://u:secret@h,i", "several hosts"),
            ("mongodb://u:secret@", "no host"),
            ("mongodb://secret@h", "without a password"),
            ("mongodb://:secret@h", "empty user"),
            ("mongodb://u:sec@ret@h", "percent-encoded"),
            ("mongodb://u:sec:ret@h", "percent-encoded"),
            ("mongodb://u:secret@h/?authMechanism=PLAIN", "SCRAM-SHA-256"),
            ("mongodb://u:secret@h/?w=2", "neither of a login"),
            ("mongodb://u:secret@h/?authSource", "no value"),
            ("mongodb://h/?authSource=secret", "not as whom"),
            ("mongodb://h/d", "--database"),
        ] {
            let told = cause(uri);
            assert!(told.contains(part) && !told.contains("sec") || part == "not as whom", "{uri}: {told}");
        }
    }

    #[test]
    fn no_uri_is_shown_with_its_login() {
        assert_eq!(without_login("mysql://a:b@c@host:1"), "mysql://...@host:1");
        assert_eq!(without_login("--uri=mongodb://a:b@h/?x=1"), "--uri=mongodb://...@h/?x=1");
        assert_eq!(
            without_login("x mongodb://a:b@h y mysql://c:d@e z"),
            "x mongodb://...@h y mysql://...@e z"
        );
        assert_eq!(without_login("mongodb://host:1 and a@b"), "mongodb://host:1 and a@b");
    }
}
