//! Switches that administrators know from MongoDB, its build with RocksDB, and TokuMX. Each stands for an
//! option of the table, or has no meaning here; a log line says which.
//!
//! They are flags of the command line only, and take precedence as flags do. A switch and the option that it
//! stands for exclude each other.

use pando_commands::ByteSize;
use pandodb::EngineName;

use super::Configuration;
use super::error::ValueError;

/// A switch.
pub struct FamiliarSwitch {
    /// Its name, in the spelling of its origin.
    pub name: &'static str,
    /// The value, as help texts call it; empty for a switch that needs none.
    pub value: &'static str,
    /// The option that it stands for, if it sets one by itself.
    pub option: Option<&'static str>,
    /// The meaning here, for documentation.
    pub help: &'static str,
    /// Puts the value into the configuration; gives what the switch became.
    pub apply: fn(&mut Configuration, &str) -> Result<String, ValueError>,
}

/// The longest period between two checkpoints, for a server that is to make none.
const CHECKPOINT_SECONDS_MAX: u64 = 86_400;
/// The most that a cache can be said to be, in GiB.
const CACHE_GIB_MAX: f64 = 1e6;

/// The one switch that can be repeated.
pub(super) const SET_PARAMETER: &str = "setParameter";

/// All switches; that of the engine comes first, because others depend on the engine.
pub const FAMILIAR_SWITCHES: &[FamiliarSwitch] = &[
    FamiliarSwitch {
        name: "storageEngine",
        value: "ENGINE",
        option: Some("engine"),
        help: "`--engine ENGINE`, in any case of letters; `inMemory` is `memory`.",
        apply: |configuration, text| {
            configuration.engine = engine(text)?;
            Ok(format!("--engine {}", configuration.engine.as_str()))
        },
    },
    FamiliarSwitch {
        name: "wiredTigerCacheSizeGB",
        value: "GIB",
        option: Some("cache"),
        help: "`--cache`, of any engine.",
        apply: cache,
    },
    FamiliarSwitch {
        name: "rocksdbCacheSizeGB",
        value: "GIB",
        option: Some("cache"),
        help: "`--cache`, of any engine.",
        apply: cache,
    },
    FamiliarSwitch {
        name: "pd",
        value: "ADDRESSES",
        option: None,
        help: "`--engine-option pd=ADDRESSES`: the placement drivers of the engine `tikv`, as TiKV's own tools name them.",
        apply: |configuration, text| Ok(set_engine_option(configuration, "pd", text)),
    },
    FamiliarSwitch {
        name: "keyspace",
        value: "NAME",
        option: None,
        help: "`--engine-option keyspace=NAME`: the store within the cluster of the engine `tikv`.",
        apply: |configuration, text| Ok(set_engine_option(configuration, "keyspace", text)),
    },
    FamiliarSwitch {
        name: "syncdelay",
        value: "SECONDS",
        option: None,
        help: "`--engine-option checkpointPeriod=SECONDS`, of engines that have checkpoints; 0 is a day.",
        apply: |configuration, text| {
            let seconds: u64 = text.parse().map_err(|_| ValueError::Whole)?;
            let seconds = if seconds == 0 { CHECKPOINT_SECONDS_MAX } else { seconds };
            let engine = configuration.engine.as_str();
            if ["betree", "wiredtiger"].contains(&engine) {
                Ok(set_engine_option(configuration, "checkpointPeriod", &seconds.to_string()))
            } else {
                Ok(format!("nothing: the engine {engine} has no period of checkpoints"))
            }
        },
    },
    FamiliarSwitch {
        name: "journalCommitInterval",
        value: "MILLISECONDS",
        option: None,
        help: "Nothing: the log is on the device within 100 ms, and at once for a write with `j: true`.",
        apply: |_, text| {
            let _: u64 = text.parse().map_err(|_| ValueError::Whole)?;
            Ok("nothing: the log is on the device within 100 ms, and at once for a write with j: true"
                .to_owned())
        },
    },
    FamiliarSwitch {
        name: SET_PARAMETER,
        value: "NAME=VALUE",
        option: Some("set-parameter"),
        help: "`--set-parameter`; it can be repeated. `enableTestCommands=1` is `--test-commands on`.",
        apply: |configuration, text| {
            let before = std::mem::take(&mut configuration.monitoring.parameters);
            let became = as_option(configuration, "set-parameter", text)?;
            configuration.monitoring.parameters.splice(0..0, before);
            Ok(became)
        },
    },
    FamiliarSwitch {
        name: "slowms",
        value: "MILLISECONDS",
        option: Some("slow-ms"),
        help: "`--slow-ms`.",
        apply: |configuration, text| as_option(configuration, "slow-ms", text),
    },
    FamiliarSwitch {
        name: "slowOpSampleRate",
        value: "SHARE",
        option: Some("slow-sample-rate"),
        help: "`--slow-sample-rate`.",
        apply: |configuration, text| as_option(configuration, "slow-sample-rate", text),
    },
    FamiliarSwitch {
        name: "directoryperdb",
        value: "",
        option: None,
        help: "Nothing: a store keeps all databases in the same files.",
        apply: |_, _| Ok("nothing: a store keeps all databases in the same files".to_owned()),
    },
    FamiliarSwitch {
        name: "defaultCompression",
        value: "METHOD",
        option: None,
        help: "`--engine-option compression=METHOD`, with `quicklz` as `lz4`, `zlib` as `zstd` and `lzma` as `zstd-12`; of the engine `wiredtiger` `blockCompressor`, with `quicklz` as `snappy` and `lzma` as `zlib`.",
        apply: compression,
    },
    FamiliarSwitch {
        name: "defaultFanout",
        value: "COUNT",
        option: None,
        help: "`--engine-option fanout=COUNT`.",
        apply: |configuration, text| Ok(set_tree_option(configuration, "fanout", text)),
    },
    FamiliarSwitch {
        name: "defaultReadPageSize",
        value: "SIZE",
        option: None,
        help: "`--engine-option pageSize=SIZE`.",
        apply: |configuration, text| Ok(set_tree_option(configuration, "pageSize", text)),
    },
    FamiliarSwitch {
        name: "fastUpdates",
        value: "",
        option: None,
        help: "Nothing: updates with `w: 0` or `blind: true` read no document where they can.",
        apply: |_, _| Ok("nothing: an update asks for it by w: 0 or blind: true".to_owned()),
    },
    FamiliarSwitch {
        name: "enableEncryption",
        value: "",
        option: None,
        help: "A server without a key is refused: `--encryption-key-file` names it.",
        apply: |configuration, _| {
            configuration.encryption.is_required = true;
            Ok("the refusal of a server without a key".to_owned())
        },
    },
    FamiliarSwitch {
        name: "encryptionKeyFile",
        value: "FILE",
        option: Some("encryption-key-file"),
        help: "`--encryption-key-file`.",
        apply: |configuration, text| as_option(configuration, "encryption-key-file", text),
    },
    FamiliarSwitch {
        name: "encryptionCipherMode",
        value: "MODE",
        option: Some("encryption-cipher"),
        help: "`--encryption-cipher`; `AES256-CBC` is refused, because it does not notice changed bytes.",
        apply: |configuration, text| as_option(configuration, "encryption-cipher", text),
    },
    FamiliarSwitch {
        name: "tlsMode",
        value: "MODE",
        option: Some("tls-mode"),
        help: "`--tls-mode`.",
        apply: |configuration, text| as_option(configuration, "tls-mode", text),
    },
    FamiliarSwitch {
        name: "tlsCertificateKeyFile",
        value: "FILE",
        option: Some("tls-certificate-key-file"),
        help: "`--tls-certificate-key-file`.",
        apply: |configuration, text| as_option(configuration, "tls-certificate-key-file", text),
    },
    FamiliarSwitch {
        name: "tlsCAFile",
        value: "FILE",
        option: Some("tls-ca-file"),
        help: "`--tls-ca-file`.",
        apply: |configuration, text| as_option(configuration, "tls-ca-file", text),
    },
    FamiliarSwitch {
        name: "tlsCRLFile",
        value: "FILE",
        option: Some("tls-crl-file"),
        help: "`--tls-crl-file`.",
        apply: |configuration, text| as_option(configuration, "tls-crl-file", text),
    },
    FamiliarSwitch {
        name: "tlsAllowConnectionsWithoutCertificates",
        value: "",
        option: Some("tls-allow-connections-without-certificates"),
        help: "`--tls-allow-connections-without-certificates`.",
        apply: |configuration, text| {
            as_option(configuration, "tls-allow-connections-without-certificates", text)
        },
    },
    FamiliarSwitch {
        name: "tlsDisabledProtocols",
        value: "VERSIONS",
        option: Some("tls-minimum-version"),
        help: "`--tls-minimum-version 1.3` where TLS1_2 is among them. TLS 1.0 and 1.1 are never spoken.",
        apply: |configuration, text| {
            let words: Vec<&str> = text.split(',').map(str::trim).collect();
            let unknown = words.iter().any(|word| !["TLS1_0", "TLS1_1", "TLS1_2", "none"].contains(word));
            if unknown {
                return Err(ValueError::Choice { choices: &["TLS1_0", "TLS1_1", "TLS1_2", "none"] });
            }
            let minimum = if words.contains(&"TLS1_2") { "1.3" } else { "1.2" };
            as_option(configuration, "tls-minimum-version", minimum)
        },
    },
    FamiliarSwitch {
        name: "auditDestination",
        value: "PLACE",
        option: Some("audit-destination"),
        help: "`--audit-destination`, which knows `file`.",
        apply: |configuration, text| as_option(configuration, "audit-destination", text),
    },
    FamiliarSwitch {
        name: "auditPath",
        value: "FILE",
        option: Some("audit-path"),
        help: "`--audit-path`.",
        apply: |configuration, text| as_option(configuration, "audit-path", text),
    },
    FamiliarSwitch {
        name: "auditFilter",
        value: "QUERY",
        option: Some("audit-filter"),
        help: "`--audit-filter`.",
        apply: |configuration, text| as_option(configuration, "audit-filter", text),
    },
    FamiliarSwitch {
        name: "auditFormat",
        value: "FORMAT",
        option: None,
        help: "Nothing for `JSON`, which is the one format.",
        apply: |_, text| match text {
            "JSON" => Ok("nothing: the audit trail is JSON".to_owned()),
            _ => Err(ValueError::Choice { choices: &["JSON"] }),
        },
    },
];

/// Sets the option of another name to the same text.
fn as_option(configuration: &mut Configuration, name: &str, text: &str) -> Result<String, ValueError> {
    let entry = super::all_options().find(|entry| entry.name == name);
    let entry = entry.expect("a switch stands for an option of the table");
    (entry.apply)(configuration, text)?;
    configuration.note_given(entry.name, text);
    Ok(format!("--{name} {text}"))
}

fn engine(text: &str) -> Result<EngineName, ValueError> {
    let name = text.to_ascii_lowercase();
    let name = if name == "inmemory" { "memory" } else { &name };
    name.parse().map_err(|_| if name == "mmapv1" { ValueError::Mmapv1 } else { ValueError::Engine })
}

fn cache(configuration: &mut Configuration, text: &str) -> Result<String, ValueError> {
    let gib: f64 = text.parse().map_err(|_| ValueError::Gibibytes)?;
    let cache = ByteSize::from_bytes((gib * f64::from(1 << 30)).round() as u64);
    if !(0.0..=CACHE_GIB_MAX).contains(&gib) {
        return Err(ValueError::Gibibytes);
    }
    if cache < super::options::CACHE_BYTES_MIN {
        return Err(ValueError::TooSmall { min: super::options::CACHE_BYTES_MIN });
    }
    configuration.cache = cache;
    configuration.note_given("cache", &cache.to_string());
    Ok(format!("--cache {cache}"))
}

/// The method of compression whose speed is about that of TokuMX's.
fn compression(configuration: &mut Configuration, text: &str) -> Result<String, ValueError> {
    let (option, method) = match (configuration.engine.as_str(), text) {
        ("wiredtiger", "quicklz") => ("blockCompressor", "snappy"),
        ("wiredtiger", "lzma") => ("blockCompressor", "zlib"),
        ("wiredtiger", own) => ("blockCompressor", own),
        (_, "quicklz") => ("compression", "lz4"),
        (_, "zlib") => ("compression", "zstd"),
        (_, "lzma") => ("compression", "zstd-12"),
        (_, own) => ("compression", own),
    };
    Ok(set_tree_option(configuration, option, method))
}

/// Sets an option of trees, if the engine has it.
fn set_tree_option(configuration: &mut Configuration, name: &str, value: &str) -> String {
    match (configuration.engine.as_str(), name) {
        ("betree", _) | ("rocksdb", "compression" | "pageSize") | ("wiredtiger", "blockCompressor") => {
            set_engine_option(configuration, name, value)
        }
        (other, _) => format!("nothing: the engine {other} has no option {name}"),
    }
}

/// Sets an option of the engine, unless it is set already under its own name.
fn set_engine_option(configuration: &mut Configuration, name: &str, value: &str) -> String {
    if let Some((_, own)) = configuration.engine_options.iter().find(|(own, _)| own == name) {
        return format!("nothing: --engine-option {name}={own} is set");
    }
    configuration.engine_options.push((name.to_owned(), value.to_owned()));
    format!("--engine-option {name}={value}")
}
