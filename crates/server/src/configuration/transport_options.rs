//! The options of the transport: TLS, and what clients may do before and after they are known.

use std::path::PathBuf;
use std::time::Duration;

use pando_commands::PlainLogins;
use pando_tls::{MinimumVersion, ServerSettings, WithoutCertificate};

use super::error::ValueError;
use super::options::{OptionEntry, Shape, count, path, seconds, switch};

/// Whether connections speak TLS, in MongoDB's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// None does.
    #[default]
    Disabled,
    /// Those do whose client begins a handshake.
    Allow,
    /// The same for a server that connects to no other.
    Prefer,
    /// All do.
    Require,
}

impl TlsMode {
    /// The word of each.
    const WORDS: [(&'static str, TlsMode); 4] = [
        ("disabled", TlsMode::Disabled),
        ("allowTLS", TlsMode::Allow),
        ("preferTLS", TlsMode::Prefer),
        ("requireTLS", TlsMode::Require),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, mode)| *mode == self).map_or("disabled", |(word, _)| word)
    }
}

/// Whether a crash leaves an image of the memory, keys and passwords included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreDumps {
    /// Where the server has no key of TLS.
    #[default]
    WithoutSecrets,
    /// Yes, as the limits of the process say.
    On,
    /// No.
    Off,
}

/// Whether the users of processes are logged in through the unix socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessLogins {
    /// No.
    #[default]
    Off,
    /// Yes, as users of `$external` with the same names.
    On,
}

/// The checked options.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    /// Whether connections speak TLS.
    pub tls_mode: TlsMode,
    /// The files of TLS; the path of the certificate is empty without one.
    pub tls: ServerSettings,
    /// The time for handshakes and for messages before the login; `None` is without end.
    pub handshake_timeout: Option<Duration>,
    /// The time without progress in sending replies; `None` is without end.
    pub write_timeout: Option<Duration>,
    /// Connections of one address.
    pub connections_per_address: Option<usize>,
    /// Requests a second of one address.
    pub requests_per_second: Option<u32>,
    /// Whether a crash leaves an image of the memory.
    pub core_dumps: CoreDumps,
    /// Whether clients may log in by sending their password as it is.
    pub plain_logins: PlainLogins,
    /// Whether the users of processes are logged in through the unix socket.
    pub process_logins: ProcessLogins,
    /// The file of the audit trail.
    pub audit: Audit,
    /// The user that the server becomes.
    pub user: Option<String>,
}

/// The audit trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Whether there is one.
    pub is_on: bool,
    /// Its file; `None` is `audit.json` in the data folder.
    pub path: Option<PathBuf>,
    /// The events that are kept, a query in Extended JSON; empty for all.
    pub filter: String,
    /// Whether its lines are chained.
    pub is_chained: bool,
}

const MODES: [&str; 4] = ["disabled", "allowTLS", "preferTLS", "requireTLS"];
const COUNT_MAX: usize = 1_000_000;

/// Every option of the transport, in the order in which help lists them.
pub(super) const TRANSPORT_OPTIONS: &[OptionEntry] = &[
    OptionEntry {
        name: "tls-mode",
        shape: Shape::Value("MODE"),
        default: "disabled",
        help: "TLS of the TCP listeners: 'disabled', 'allowTLS' or 'preferTLS' for clients with and without it, 'requireTLS'. The unix socket has none.",
        apply: |configuration, text| {
            let found = TlsMode::WORDS.iter().find(|(word, _)| *word == text);
            configuration.transport.tls_mode = found.ok_or(ValueError::Choice { choices: &MODES })?.1;
            Ok(())
        },
    },
    OptionEntry {
        name: "tls-certificate-key-file",
        shape: Shape::Value("FILE"),
        default: "none",
        help: "PEM file with the server's certificate, those of its issuers, and its private key. SIGHUP and rotateCertificates read it again.",
        apply: |configuration, text| {
            configuration.transport.tls.certificate_key = file(text)?.unwrap_or_default();
            Ok(())
        },
    },
    OptionEntry {
        name: "tls-certificate-key-file-password-file",
        shape: Shape::Value("FILE"),
        default: "none",
        help: "File whose first line is the password of the private key, if that is encrypted (PKCS #8, PBES2). It is read again with the key.",
        apply: |configuration, text| {
            configuration.transport.tls.key_password = file(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "tls-ca-file",
        shape: Shape::Value("FILE"),
        default: "none",
        help: "PEM file with the certificates of the issuers of clients' certificates. With it, every client has to show a certificate.",
        apply: |configuration, text| {
            configuration.transport.tls.issuers = file(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "tls-crl-file",
        shape: Shape::Value("FILE"),
        default: "none",
        help: "PEM file with lists of revoked certificates of clients.",
        apply: |configuration, text| {
            configuration.transport.tls.revoked = file(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "tls-allow-connections-without-certificates",
        shape: Shape::Switch,
        default: "false",
        help: "Serve clients without a certificate beside those with one. A certificate that a client shows is verified.",
        apply: |configuration, text| {
            configuration.transport.tls.without_certificate = match switch(text)? {
                true => WithoutCertificate::Allowed,
                false => WithoutCertificate::Refused,
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "tls-minimum-version",
        shape: Shape::Value("1.2|1.3"),
        default: "1.2",
        help: "The oldest version of TLS that is spoken.",
        apply: |configuration, text| {
            configuration.transport.tls.minimum = match text {
                "1.2" => MinimumVersion::V1_2,
                "1.3" => MinimumVersion::V1_3,
                _ => return Err(ValueError::Choice { choices: &["1.2", "1.3"] }),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "auth-plain",
        shape: Shape::Switch,
        default: "false",
        help: "Offer the mechanism PLAIN beside SCRAM: the client sends its password as it is, over TLS or through the unix socket only.",
        apply: |configuration, text| {
            configuration.transport.plain_logins =
                if switch(text)? { PlainLogins::Offered } else { PlainLogins::Refused };
            Ok(())
        },
    },
    OptionEntry {
        name: "auth-unix-peer",
        shape: Shape::Switch,
        default: "false",
        help: "Let processes of all users of this machine reach the unix socket, and log each in as the user of $external with the name of its user. It needs --auth.",
        apply: |configuration, text| {
            configuration.transport.process_logins =
                if switch(text)? { ProcessLogins::On } else { ProcessLogins::Off };
            Ok(())
        },
    },
    OptionEntry {
        name: "handshake-timeout",
        shape: Shape::Value("SECONDS"),
        default: "30s",
        help: "How long a client may take for a TLS handshake and its first message, and for each message before it has logged in; 0 is without end.",
        apply: |configuration, text| {
            configuration.transport.handshake_timeout = limit(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "write-timeout",
        shape: Shape::Value("SECONDS"),
        default: "120s",
        help: "How long a client may read nothing of a reply before its connection is closed; 0 is without end.",
        apply: |configuration, text| {
            configuration.transport.write_timeout = limit(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "max-connections-per-address",
        shape: Shape::Value("COUNT"),
        default: "none",
        help: "Connections of one internet address at the same time; the server closes further ones at once.",
        apply: |configuration, text| {
            configuration.transport.connections_per_address = optional_count(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "max-requests-per-second",
        shape: Shape::Value("COUNT"),
        default: "none",
        help: "Requests a second of one internet address, over all its connections; further ones wait.",
        apply: |configuration, text| {
            let count = optional_count(text)?;
            configuration.transport.requests_per_second = count.and_then(|count| u32::try_from(count).ok());
            Ok(())
        },
    },
    OptionEntry {
        name: "core-dumps",
        shape: Shape::Value("auto|on|off"),
        default: "auto",
        help: "Whether a crash may leave an image of the memory, with keys and passwords in it; 'auto' is 'off' where the server has a key of TLS.",
        apply: |configuration, text| {
            configuration.transport.core_dumps = match text {
                "auto" => CoreDumps::WithoutSecrets,
                "on" => CoreDumps::On,
                "off" => CoreDumps::Off,
                _ => return Err(ValueError::Choice { choices: &["auto", "on", "off"] }),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "audit-destination",
        shape: Shape::Value("none|file"),
        default: "none",
        help: "Where the audit trail goes: 'file' writes one JSON object a line about logins, refusals, users, collections and indexes.",
        apply: |configuration, text| {
            configuration.transport.audit.is_on = match text {
                "none" => false,
                "file" => true,
                _ => return Err(ValueError::Choice { choices: &["none", "file"] }),
            };
            Ok(())
        },
    },
    OptionEntry {
        name: "audit-path",
        shape: Shape::Value("FILE"),
        default: "auto",
        help: "File of the audit trail; 'auto' is audit.json in the data folder. logRotate begins a new one.",
        apply: |configuration, text| {
            configuration.transport.audit.path = if text == "auto" { None } else { Some(path(text)?) };
            Ok(())
        },
    },
    OptionEntry {
        name: "audit-filter",
        shape: Shape::Value("QUERY"),
        default: "{}",
        help: "Events of the audit trail that are kept, as a query, such as {\"atype\": {\"$in\": [\"authenticate\", \"createUser\"]}}.",
        apply: |configuration, text| {
            text.clone_into(&mut configuration.transport.audit.filter);
            Ok(())
        },
    },
    OptionEntry {
        name: "audit-chain",
        shape: Shape::Switch,
        default: "false",
        help: "Chain the lines of the audit trail by SHA-256, so that `pando audit verify FILE` finds lines that were changed or left out.",
        apply: |configuration, text| {
            configuration.transport.audit.is_chained = switch(text)?;
            Ok(())
        },
    },
    OptionEntry {
        name: "user",
        shape: Shape::Value("NAME"),
        default: "none",
        help: "User that a server started by root becomes once it has read the keys of TLS; the data folder has to be that user's.",
        apply: |configuration, text| {
            configuration.transport.user = if text == "none" { None } else { Some(text.to_owned()) };
            Ok(())
        },
    },
];

pub(super) fn file(text: &str) -> Result<Option<PathBuf>, ValueError> {
    if text == "none" { Ok(None) } else { path(text).map(Some) }
}

fn limit(text: &str) -> Result<Option<Duration>, ValueError> {
    Ok(Some(seconds(text)?).filter(|time| !time.is_zero()))
}

fn optional_count(text: &str) -> Result<Option<usize>, ValueError> {
    if text == "none" { Ok(None) } else { count(text, 1, COUNT_MAX).map(Some) }
}
