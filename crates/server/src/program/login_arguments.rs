//! The arguments of a login and of TLS, in the spelling of MongoDB's tools. They become parts of the
//! connection string.
//!
//! A password comes from a file, because others on the machine can read a command line.

use std::io::{ErrorKind, IsTerminal, Read};

use clap::{Arg, ArgAction, ArgMatches};

use super::failure::UsageError;
use crate::uri_encoding::encoded;

/// Arguments with a value, and the option of the connection string that each becomes.
const VALUES: [(&str, &str); 6] = [
    ("authenticationDatabase", "authSource"),
    ("authenticationMechanism", "authMechanism"),
    ("tlsCAFile", "tlsCAFile"),
    ("tlsCertificateKeyFile", "tlsCertificateKeyFile"),
    ("sslCAFile", "tlsCAFile"),
    ("sslPEMKeyFile", "tlsCertificateKeyFile"),
];
/// Switches, and the option of the connection string that each becomes.
const SWITCHES: [(&str, &str); 6] = [
    ("tls", "tls"),
    ("ssl", "tls"),
    ("tlsInsecure", "tlsInsecure"),
    ("tlsAllowInvalidCertificates", "tlsInsecure"),
    ("sslAllowInvalidCertificates", "tlsInsecure"),
    ("tlsAllowInvalidHostnames", "tlsAllowInvalidHostnames"),
];
/// A file of passwords is longer than this by mistake.
const PASSWORD_BYTES_MAX: u64 = 64 * 1024;

/// The names of the arguments of one login.
pub(super) struct LoginArguments {
    username: &'static str,
    short_username: Option<char>,
    password_file: &'static str,
}

/// The login to the server of the command; of a copy, to the target.
pub(super) const OF_STORE: LoginArguments =
    LoginArguments { username: "username", short_username: Some('u'), password_file: "password-file" };
/// The login to the source of a copy.
pub(super) const OF_SOURCE: LoginArguments =
    LoginArguments { username: "from-username", short_username: None, password_file: "from-password-file" };

impl LoginArguments {
    /// The arguments; `place` says where the user logs in.
    pub(super) fn arguments(&self, place: &str) -> [Arg; 2] {
        let mut username = Arg::new(self.username).long(self.username).value_name("USER");
        if let Some(short) = self.short_username {
            username = username.short(short);
        }
        [
            username.help(format!("The user who logs in{place}")),
            Arg::new(self.password_file)
                .long(self.password_file)
                .value_name("FILE")
                .help("A file with the user's password on its first line; - is standard input"),
        ]
    }

    /// The connection string with this login.
    pub(super) fn completed(&self, uri: &str, matches: &ArgMatches) -> Result<String, UsageError> {
        let text = |name| matches.get_one::<String>(name).map(String::as_str);
        let password =
            text(self.password_file).map(|file| read_password(self.password_file, file)).transpose()?;
        let Some((scheme, rest)) = uri.split_once("://") else { return Ok(uri.to_owned()) };
        let (login, place) = rest.split_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let user = text(self.username).map(encoded).or(login.map(str::to_owned));
        match (user, password) {
            (None, None) => Ok(uri.to_owned()),
            (None, Some(_)) => Err(UsageError::new(format!(
                "--{} needs a user: name one with --{}",
                self.password_file, self.username
            ))),
            (Some(_), None) if text(self.username).is_some_and(|_| !has_password(login, rest, &text)) => {
                Err(UsageError::new(format!(
                    "--{} needs a password: name a file with --{}, or - for standard input",
                    self.username, self.password_file
                )))
            }
            (Some(user), None) => Ok(format!("{scheme}://{user}@{place}")),
            (Some(user), Some(password)) => {
                let user = user.split(':').next().unwrap_or_default().to_owned();
                Ok(format!("{scheme}://{user}:{}@{place}", encoded(&password)))
            }
        }
    }

    /// Refuses a login to a folder: it would have no effect.
    pub(super) fn refuse_for_folder(&self, matches: &ArgMatches) -> Result<(), UsageError> {
        refuse_first([self.username, self.password_file].into_iter().filter(|name| matches.contains_id(name)))
    }

    /// Whether there is a login.
    pub(super) fn is_given(&self, matches: &ArgMatches) -> bool {
        [self.username, self.password_file].into_iter().any(|name| matches.contains_id(name))
    }

    /// Whether the password comes from standard input.
    pub(super) fn is_from_standard_input(&self, matches: &ArgMatches) -> bool {
        matches.get_one::<String>(self.password_file).is_some_and(|file| file == "-")
    }
}

/// Whether a login needs no further password: the connection string has one, or a certificate stands for it.
fn has_password<'a>(
    login: Option<&str>,
    place: &str,
    text: &impl Fn(&'static str) -> Option<&'a str>,
) -> bool {
    let by_certificate = text("authenticationMechanism") == Some("MONGODB-X509");
    by_certificate || place.contains("authMechanism=MONGODB-X509") || login.is_some_and(|it| it.contains(':'))
}

/// Refuses the first of these arguments, which say how to reach a server.
fn refuse_first(mut given: impl Iterator<Item = &'static str>) -> Result<(), UsageError> {
    match given.next() {
        None => Ok(()),
        Some(name) => Err(UsageError::new(format!(
            "--{name}: a data folder that no server has open takes no login; leave the option out"
        ))),
    }
}

/// The arguments of a login and of TLS, for commands with one server.
pub(super) fn login_arguments() -> Vec<Arg> {
    let mut arguments = Vec::from(OF_STORE.arguments(""));
    // Taken so that the refusal can say what to do.
    arguments.push(
        Arg::new("password").long("password").short('p').hide(true).num_args(0..=1).default_missing_value(""),
    );
    arguments.extend(VALUES.map(|(name, _)| Arg::new(name).long(name).value_name("VALUE").hide(true)));
    arguments
        .extend(SWITCHES.map(|(name, _)| Arg::new(name).long(name).hide(true).action(ArgAction::SetTrue)));
    arguments
}

/// Refuses a login or TLS to a folder: it would have no effect.
pub(super) fn refuse_for_folder(matches: &ArgMatches) -> Result<(), UsageError> {
    OF_STORE.refuse_for_folder(matches)?;
    let values = VALUES.iter().map(|(name, _)| *name).chain(["password"]);
    let given = values.filter(|name| matches.contains_id(name));
    let switched = SWITCHES.iter().map(|(name, _)| *name).filter(|name| matches.get_flag(name));
    refuse_first(given.chain(switched))
}

/// The connection string with the login and the TLS of the other arguments.
pub(super) fn completed(uri: &str, matches: &ArgMatches) -> Result<String, UsageError> {
    let text = |name| matches.get_one::<String>(name).map(String::as_str);
    if text("password").is_some() {
        return Err(UsageError::new(
            "--password: others on this machine can read a command line; name a file with --password-file, or - for standard input",
        ));
    }
    let mut whole = OF_STORE.completed(uri, matches)?;
    let values = VALUES.iter().filter_map(|(name, option)| Some((*option, encoded(text(name)?))));
    let switches = SWITCHES
        .iter()
        .filter(|(name, _)| matches.get_flag(name))
        .map(|(_, option)| (*option, "true".to_owned()));
    for (option, value) in values.chain(switches) {
        if !whole.contains('?') {
            let has_path = whole.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
            whole.push_str(if has_path { "?" } else { "/?" });
        } else {
            whole.push('&');
        }
        whole.push_str(&format!("{option}={value}"));
    }
    Ok(whole)
}

/// The first line of the file that an option names, or of standard input.
fn read_password(option: &str, file: &str) -> Result<String, UsageError> {
    let mut content = String::new();
    let read = match file {
        "-" if std::io::stdin().is_terminal() => {
            return Err(UsageError::new(format!(
                "--{option} -: write the password into a pipe, or name a file"
            )));
        }
        "-" => std::io::stdin().lock().take(PASSWORD_BYTES_MAX).read_to_string(&mut content),
        path => std::fs::File::open(path)
            .and_then(|file| file.take(PASSWORD_BYTES_MAX).read_to_string(&mut content)),
    };
    let place = if file == "-" { "standard input" } else { file };
    read.map_err(|error| {
        UsageError::new(match error.kind() {
            ErrorKind::InvalidData => format!("--{option}: {place} is not UTF-8: write the password so"),
            _ => format!("--{option}: cannot read {place}: {error}"),
        })
    })?;
    match content.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(UsageError::new(format!("--{option}: the first line of {place} is empty"))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn of(uri: &str, arguments: &[&str]) -> Result<String, String> {
        let command = Command::new("x").args(login_arguments());
        let matches = command.try_get_matches_from([&["x"], arguments].concat()).unwrap();
        completed(uri, &matches).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_become_parts_of_the_connection_string() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "p@ss:w/rd\nmore").unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(of("mongodb://h:1", &[]).unwrap(), "mongodb://h:1");
        assert_eq!(
            of("mongodb://h:1", &["-u", "a@b", "--password-file", path, "--tls", "--tlsCAFile", "/c a.pem"])
                .unwrap(),
            "mongodb://a%40b:p%40ss%3Aw%2Frd@h:1/?tlsCAFile=%2Fc%20a.pem&tls=true"
        );
        assert_eq!(
            of("mongodb://ada@h/db?w=1", &["--password-file", path, "--authenticationDatabase", "admin"])
                .unwrap(),
            "mongodb://ada:p%40ss%3Aw%2Frd@h/db?w=1&authSource=admin"
        );
        assert!(of("mongodb://h", &["--password-file", path]).unwrap_err().contains("--username"));
        std::fs::write(file.path(), b"caf\xe9\n").unwrap();
        let refused = of("mongodb://h", &["-u", "a", "--password-file", path]).unwrap_err();
        assert!(refused.contains(&format!("{path} is not UTF-8")), "{refused}");
        assert!(of("mongodb://h", &["-u", "a", "-p", "secret"]).unwrap_err().contains("--password-file"));
    }
}
