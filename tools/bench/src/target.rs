//! The server that is measured: its address and its facts.

pub mod uri;

use crate::client::Address;
use crate::client::{Session, TlsOf};
use crate::error::BenchError;
use pando_document::{Document, Value, doc};
use std::net::{SocketAddr, ToSocketAddrs};
use uri::{Host, ParsedUri};

/// The port where servers of this protocol listen if nothing else is said.
const DEFAULT_PORT: u16 = 27017;

/// A server by its address.
#[derive(Clone, Debug)]
pub struct Target {
    address: Address,
}

impl Target {
    /// The server of a URI: see [`uri`].
    pub fn parse(uri: &str) -> Result<Target, BenchError> {
        let ParsedUri { host, login, tls } = ParsedUri::parse(uri)?;
        let address = match host {
            Host::Socket(path) => Address::unix(path),
            Host::Name(host) => {
                let address = Address::from(resolve(&host)?);
                match tls {
                    Some(settings) => {
                        let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
                        let name = name.map_or(host.as_str(), |(name, _)| name).to_owned();
                        address.with_tls(TlsOf { config: settings.load()?, host: name })
                    }
                    None => address,
                }
            }
        };
        Ok(Target::at(match login {
            Some(login) => address.with_login(login),
            None => address,
        }))
    }

    /// The server at an address.
    pub fn at(address: impl Into<Address>) -> Target {
        Target { address: address.into() }
    }

    /// Where it listens.
    pub fn address(&self) -> Address {
        self.address.clone()
    }
}

/// The address of a host with its port, or with the default one.
fn resolve(host: &str) -> Result<SocketAddr, BenchError> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") };
    let addresses = with_port
        .to_socket_addrs()
        .map_err(|source| BenchError::Resolve { host: host.to_owned(), source: Some(source) })?;
    // A server that listens on loopback only is most often on 127.0.0.1.
    let mut addresses: Vec<SocketAddr> = addresses.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.first().copied().ok_or_else(|| BenchError::Resolve { host: host.to_owned(), source: None })
}

/// A server's description of itself.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ServerFacts {
    /// What it is, and its version, by buildInfo: `MongoDB 6.0.27`.
    pub version: Option<String>,
    /// `gitVersion` of buildInfo.
    pub git_version: Option<String>,
    /// `allocator` of buildInfo.
    pub allocator: Option<String>,
    /// `setName` of hello: whether it poses as a member of a replica set.
    pub replica_set: Option<String>,
    /// `maxWireVersion` of hello.
    pub wire_version: Option<i64>,
    /// Settings that figures hang on, where the server's protocol has no other place for them.
    #[serde(default)]
    pub settings: Option<String>,
    /// The size of the cache that its serverStatus tells, in bytes.
    #[serde(default)]
    pub cache_bytes: Option<u64>,
}

impl ServerFacts {
    pub(crate) fn ask(target: &Target) -> Result<ServerFacts, BenchError> {
        let mut session = Session::open(target.address())?;
        let build = session.command("admin", doc! { "buildInfo": 1 })?;
        let hello = session.command("admin", doc! { "hello": 1 })?;
        let text = |document: &Document, name: &str| Some(document.get(name)?.as_str()?.to_owned());
        Ok(ServerFacts {
            version: version(&build),
            git_version: text(&build, "gitVersion"),
            allocator: text(&build, "allocator"),
            replica_set: text(&hello, "setName"),
            wire_version: hello.get("maxWireVersion").and_then(Value::as_i64_exact),
            settings: None,
            cache_bytes: None,
        })
    }
}

/// Servers that speak MongoDB's protocol and tell in buildInfo what they are: their name, and the document
/// that has their own version.
const SPEAKERS: [(&str, &str); 2] = [("Pando", "pando"), ("FerretDB", "ferretdb")];

/// The name of a server and its version; of one that only speaks MongoDB's protocol, MongoDB's version, too.
fn version(build: &Document) -> Option<String> {
    let spoken = build.get("version")?.as_str()?;
    let own = |key| build.get(key).and_then(Value::as_document)?.get("version")?.as_str();
    let speaker = SPEAKERS.into_iter().find_map(|(name, key)| Some((name, own(key)?)));
    Some(match speaker {
        Some((name, own)) => format!("{name} {own} (as MongoDB {spoken})"),
        None => format!("MongoDB {spoken}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_own_version_and_the_one_it_speaks() {
        let mongodb = doc! { "version": "6.0.27" };
        assert_eq!(version(&mongodb).as_deref(), Some("MongoDB 6.0.27"));
        let pando = doc! { "version": "8.0.0", "pando": { "version": "0.1.0" } };
        assert_eq!(version(&pando).as_deref(), Some("Pando 0.1.0 (as MongoDB 8.0.0)"));
        let ferret = doc! { "version": "7.0.77", "ferretdb": { "version": "v2.1.0" } };
        assert_eq!(version(&ferret).as_deref(), Some("FerretDB v2.1.0 (as MongoDB 7.0.77)"));
        assert_eq!(version(&doc! {}), None);
    }

    #[test]
    fn host_and_port_are_found_and_the_port_may_be_left_out() {
        let address = |uri| Target::parse(uri).map(|target| target.address().to_string()).ok();
        assert_eq!(address("mongodb://127.0.0.1:30000"), Some("127.0.0.1:30000".into()));
        assert_eq!(address("mongodb://127.0.0.1/"), Some("127.0.0.1:27017".into()));
        assert_eq!(address("mongodb://[::1]:5"), Some("[::1]:5".into()));
        assert_eq!(address("mongodb://%2Ftmp%2Fa%20b.sock"), Some("/tmp/a b.sock".into()));
        assert_eq!(address("mongodb://%2ftmp%2Fpando.sock/"), Some("/tmp/pando.sock".into()));
    }

    #[test]
    fn connection_strings_that_this_tool_cannot_follow_are_refused_rather_than_ignored() {
        for uri in [
            "127.0.0.1:1",
            "mongodb://",
            "mongodb://a,b",
            "mongodb://a/?w=2",
            "mongodb://a/db",
            "mongodb://127.0.0.1:99999",
            "mysql://root@127.0.0.1",
        ] {
            assert!(Target::parse(uri).is_err(), "{uri}");
        }
    }
}
