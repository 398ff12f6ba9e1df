//! The settings that a server was started with, as `getCmdLineOpts` shows them: under MongoDB's names where
//! it has the option, and in the section `pando` otherwise. Files of keys and passwords are named, never
//! shown.

use pando_commands::{LocalhostException, TestCommands};
use pando_document::Value;

use crate::configuration::{Configuration, Shape, UnixSocket, all_options};

/// MongoDB's names of options. The command itself adds `data`, `engine`, `auth` and `replica-set`.
const NAMES: &[(&str, &str)] = &[
    ("config", "config"),
    ("max-connections", "net.maxIncomingConnections"),
    ("tls-mode", "net.tls.mode"),
    ("tls-certificate-key-file", "net.tls.certificateKeyFile"),
    ("tls-ca-file", "net.tls.CAFile"),
    ("tls-crl-file", "net.tls.CRLFile"),
    ("tls-allow-connections-without-certificates", "net.tls.allowConnectionsWithoutCertificates"),
    ("audit-destination", "auditLog.destination"),
    ("audit-path", "auditLog.path"),
    ("audit-filter", "auditLog.filter"),
    ("slow-ms", "operationProfiling.slowOpThresholdMs"),
    ("slow-sample-rate", "operationProfiling.slowOpSampleRate"),
    ("encryption-key-file", "security.encryptionKeyFile"),
];
/// Options that are shown in another way.
const SHOWN_OTHERWISE: &[&str] = &["data", "engine", "auth", "replica-set", "engine-option", "set-parameter"];
/// MongoDB's words for the levels of the profiler.
const PROFILER_MODES: [&str; 3] = ["off", "slowOp", "all"];

/// The settings by their paths.
pub(super) fn of(configuration: &Configuration) -> Vec<(String, Value)> {
    let mut settings: Vec<(String, Value)> = configuration
        .given
        .iter()
        .filter(|(name, _)| !SHOWN_OTHERWISE.contains(name))
        .filter_map(|(name, text)| setting(configuration, name, text))
        .collect();
    let text = |text: &str| Value::String(text.to_owned());
    for (name, value) in &configuration.engine_options {
        settings.push((format!("pando.engine-option.{name}"), text(value)));
    }
    for (name, value) in &configuration.monitoring.parameters {
        settings.push((format!("setParameter.{name}"), text(value)));
    }
    let is_given = |wanted: &str| configuration.given.iter().any(|(name, _)| *name == wanted);
    if configuration.test_commands == TestCommands::On && !is_given("test-commands") {
        settings.push(("setParameter.enableTestCommands".to_owned(), text("1")));
    }
    if configuration.monitoring.localhost_exception == LocalhostException::Refused {
        settings.push(("setParameter.enableLocalhostAuthBypass".to_owned(), text("false")));
    }
    if configuration.encryption.is_required {
        settings.push(("security.enableEncryption".to_owned(), Value::Boolean(true)));
    }
    settings
}

/// An option that was given. One address is shown by the command itself.
fn setting(configuration: &Configuration, name: &str, text: &str) -> Option<(String, Value)> {
    let value = match name {
        "listen" if configuration.listen.len() == 1 => return None,
        "unix-socket" if configuration.unix_socket == UnixSocket::None => {
            return Some(("net.unixDomainSocket.enabled".to_owned(), Value::Boolean(false)));
        }
        "profile" => {
            let level = configuration.monitoring.profiler.level;
            let mode = usize::try_from(level).ok().and_then(|level| PROFILER_MODES.get(level))?;
            return Some(("operationProfiling.mode".to_owned(), Value::String((*mode).to_owned())));
        }
        _ => value(name, text),
    };
    let known = NAMES.iter().find(|(option, _)| *option == name);
    let path = known.map_or_else(|| format!("pando.{name}"), |(_, path)| (*path).to_owned());
    Some((path, value))
}

/// A value in the type that it has.
fn value(name: &str, text: &str) -> Value {
    let shape = all_options().find(|entry| entry.name == name).map(|entry| entry.shape);
    let number = match shape {
        Some(Shape::Switch) => return Value::Boolean(matches!(text, "true" | "1" | "yes" | "on")),
        Some(Shape::List(_)) => {
            return Value::Array(text.split(',').map(|part| Value::String(part.trim().to_owned())).collect());
        }
        Some(Shape::Value("COUNT" | "MILLISECONDS")) => text.parse().ok().map(Value::Int32),
        Some(Shape::Value("SHARE")) => text.parse().ok().map(Value::Double),
        _ => None,
    };
    number.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Sources;

    #[test]
    fn settings_that_were_given_are_shown_in_their_types_under_known_names() {
        let flags = [
            ("cache", "32MB"),
            ("tls-mode", "allowTLS"),
            ("listen", "127.0.0.1:1, [::1]:2"),
            ("unix-socket", "none"),
            ("auth-plain", "true"),
            ("profile", "2"),
            ("slow-ms", "20"),
            ("slow-sample-rate", "1"),
            ("engine-option", "fanout=16"),
            ("set-parameter", "betreeCache=64MB,enableTestCommands=1"),
        ];
        let flags = flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let familiar = vec![("tlsCAFile", "ca.pem".to_owned())];
        let configuration = Sources { flags, familiar, file: None }.resolve(|_| None).unwrap();
        let mut shown: Vec<String> =
            of(&configuration).into_iter().map(|(path, value)| format!("{path}: {value:?}")).collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                "net.tls.CAFile: String(\"ca.pem\")",
                "net.tls.mode: String(\"allowTLS\")",
                "net.unixDomainSocket.enabled: Boolean(false)",
                "operationProfiling.mode: String(\"all\")",
                "operationProfiling.slowOpSampleRate: Double(1.0)",
                "operationProfiling.slowOpThresholdMs: Int32(20)",
                "pando.auth-plain: Boolean(true)",
                "pando.cache: String(\"32MB\")",
                "pando.engine-option.fanout: String(\"16\")",
                "pando.listen: Array([String(\"127.0.0.1:1\"), String(\"[::1]:2\")])",
                "setParameter.betreeCache: String(\"64MB\")",
                "setParameter.enableTestCommands: String(\"1\")",
            ]
        );
        let defaults = Sources::default().resolve(|_| None).unwrap();
        assert!(of(&defaults).is_empty());
    }
}
