//! The options of the engine `tikv`: typed, each with a name. Unknown names are refused.

use std::path::PathBuf;
use std::time::Duration;

use pando_storage::{ByteSize, StorageError};

use crate::failure::invalid;
use crate::layout::KEYSPACE_BYTES_MAX;

/// Options of a store in a TiKV cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TikvOptions {
    /// The placement drivers of the cluster, as `host:port`. Default: `127.0.0.1:2379`.
    pub placement_drivers: Vec<String>,
    /// The store within the cluster: letters, digits, `-`, `_` and `.`. Default: `default`.
    pub keyspace: String,
    /// The certificates for connections to the cluster. Default: connections are not encrypted.
    pub certificates: Option<Certificates>,
    /// How long an operation waits for the cluster before it fails. Default: 30 s.
    pub patience: Duration,
    /// How transactions commit. Default: in two phases.
    pub commit: CommitMode,
    /// How long the versions of overwritten entries are kept; `None` leaves their removal to another program,
    /// such as TiDB on the same cluster. Default: 10 minutes.
    pub history: Option<Duration>,
    /// Bytes of keys and values that a transaction may write. Default: 256 MB.
    pub transaction_bytes: usize,
    /// How many servers may have the store open at once. Default: one.
    pub servers: Servers,
}

/// How many servers may have a store open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// One. A second one is refused.
    One,
    /// Any number that asks for the same. Heaps, capped and partitioned collections and serializable
    /// transactions are refused.
    Several,
}

/// The files for encrypted connections, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The certificate authority of the cluster.
    pub authority: PathBuf,
    /// The certificate of this server.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// How transactions commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// Prewrite, a timestamp, commit: snapshots are in the order in which transactions begin and commit.
    TwoPhase,
    /// Asynchronous commit, and one phase where a transaction touches one region: a round trip where
    /// [`TwoPhase`](CommitMode::TwoPhase) takes three. A transaction that has not read anything yet may see a
    /// commit that came after its begin.
    OnePhase,
}

const KNOWN: &str = "pd (host:port, …), keyspace, ca, certificate, key, patience (1s … 600s), \
                     commit (two-phase, one-phase), history (off, 1m … 1440m), transactionLimit (1MB … 1024MB), \
                     servers (one, several)";

impl TikvOptions {
    /// These options with some changed by name.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub fn with_entries(mut self, entries: &[(String, String)]) -> Result<TikvOptions, StorageError> {
        let mut files: [Option<PathBuf>; 3] = [None, None, None];
        for (name, value) in entries {
            let bad = || invalid(format!("the option `{name}` cannot be {value:?}: there are {KNOWN}"));
            match name.as_str() {
                "pd" => self.placement_drivers = addresses(value).ok_or_else(bad)?,
                "keyspace" => self.keyspace = keyspace(value).ok_or_else(bad)?,
                "ca" => files[0] = Some(PathBuf::from(value)),
                "certificate" => files[1] = Some(PathBuf::from(value)),
                "key" => files[2] = Some(PathBuf::from(value)),
                "patience" => self.patience = seconds(value).ok_or_else(bad)?,
                "commit" => self.commit = commit_mode(value).ok_or_else(bad)?,
                "history" => self.history = history(value).ok_or_else(bad)?,
                "transactionLimit" => self.transaction_bytes = transaction_bytes(value).ok_or_else(bad)?,
                "servers" => self.servers = servers(value).ok_or_else(bad)?,
                _ => {
                    return Err(invalid(format!(
                        "the engine `tikv` has no option `{name}`: there are {KNOWN}"
                    )));
                }
            }
        }
        match files {
            [None, None, None] => {}
            [Some(authority), Some(certificate), Some(key)] => {
                self.certificates = Some(Certificates { authority, certificate, key });
            }
            _ => {
                return Err(invalid("encrypted connections need all three of `ca`, `certificate` and `key`"));
            }
        }
        if self.servers == Servers::Several && self.commit == CommitMode::OnePhase {
            return Err(invalid(
                "several servers need `commit` to be two-phase: a commit in one phase may get a timestamp from before a \
                 snapshot of another server",
            ));
        }
        Ok(self)
    }
}

fn addresses(value: &str) -> Option<Vec<String>> {
    let addresses: Vec<String> = value.split(',').map(|address| address.trim().to_owned()).collect();
    let is_address = |address: &String| {
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        port.is_some_and(|port| port.parse::<u16>().is_ok())
    };
    addresses.iter().all(is_address).then_some(addresses)
}

fn keyspace(value: &str) -> Option<String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = (1..=KEYSPACE_BYTES_MAX).contains(&value.len());
    (fits && value.bytes().all(is_fine)).then(|| value.to_owned())
}

fn seconds(value: &str) -> Option<Duration> {
    let seconds = value.strip_suffix('s')?.parse().ok().filter(|seconds| (1..=600).contains(seconds))?;
    Some(Duration::from_secs(seconds))
}

fn commit_mode(value: &str) -> Option<CommitMode> {
    match value {
        "two-phase" => Some(CommitMode::TwoPhase),
        "one-phase" => Some(CommitMode::OnePhase),
        _ => None,
    }
}

fn servers(value: &str) -> Option<Servers> {
    match value {
        "one" => Some(Servers::One),
        "several" => Some(Servers::Several),
        _ => None,
    }
}

fn history(value: &str) -> Option<Option<Duration>> {
    if value == "off" {
        return Some(None);
    }
    let minutes: u64 =
        value.strip_suffix('m')?.parse().ok().filter(|minutes| (1..=1_440).contains(minutes))?;
    Some(Some(Duration::from_secs(minutes * 60)))
}

fn transaction_bytes(value: &str) -> Option<usize> {
    let size = usize::try_from(value.parse::<ByteSize>().ok()?.bytes()).ok()?;
    (1 << 20..=1 << 30).contains(&size).then_some(size)
}

impl Default for TikvOptions {
    fn default() -> TikvOptions {
        TikvOptions {
            placement_drivers: vec!["127.0.0.1:2379".to_owned()],
            keyspace: "default".to_owned(),
            certificates: None,
            patience: Duration::from_secs(30),
            commit: CommitMode::TwoPhase,
            history: Some(Duration::from_secs(600)),
            transaction_bytes: 256 << 20,
            servers: Servers::One,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Result<TikvOptions, String> {
        let entries: Vec<_> =
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TikvOptions::default().with_entries(&entries).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_set_by_name_and_unknown_ones_refused() {
        let drivers =
            with(&[("pd", "10.0.0.1:2379, 10.0.0.2:2379")]).map(|options| options.placement_drivers);
        assert_eq!(drivers, Ok(vec!["10.0.0.1:2379".to_owned(), "10.0.0.2:2379".to_owned()]));
        assert_eq!(with(&[("history", "off")]).map(|options| options.history), Ok(None));
        assert_eq!(with(&[("patience", "5s")]).map(|options| options.patience), Ok(Duration::from_secs(5)));
        for entry in [
            ("pd", "nowhere"),
            ("pd", ":2379"),
            ("keyspace", ""),
            ("keyspace", "a/b"),
            ("patience", "0s"),
            ("commit", "soon"),
            ("history", "1s"),
            ("transactionLimit", "2GB"),
            ("cache", "1GB"),
            ("servers", "2"),
        ] {
            let refused = with(&[entry]).expect_err(entry.0);
            assert!(refused.contains(entry.0) && refused.contains("transactionLimit"), "{refused}");
        }
        assert_eq!(with(&[("servers", "several")]).map(|options| options.servers), Ok(Servers::Several));
        let early = with(&[("servers", "several"), ("commit", "one-phase")]).expect_err("it is refused");
        assert!(early.contains("two-phase"), "{early}");
        let half = with(&[("ca", "ca.pem")]).expect_err("the key is missing");
        assert!(half.contains("all three"), "{half}");
    }
}
