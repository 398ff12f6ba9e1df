//! The server that is measured: its address, and what it says about itself.

use crate::address::Address;
use crate::client::Session;
use crate::error::BenchError;
use pando_document::{Document, doc};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The port where servers of this protocol listen if nothing else is said.
const DEFAULT_PORT: u16 = 27017;
const SCHEME: &str = "mongodb://";

/// A server by its address.
#[derive(Clone, Debug)]
pub struct Target {
    address: Address,
}

impl Target {
    /// The server of a URI: `mongodb://HOST[:PORT][/]`, or `mongodb://%2Fpath%2Fto.sock` for a unix socket. One host, no credentials, no options: what is measured is one
    /// server, and what is sent to it stands in the workload.
    pub fn parse(uri: &str) -> Result<Target, BenchError> {
        let wrong = |cause| BenchError::Uri { uri: without_password(uri), cause };
        if uri.starts_with("mysql://") {
            return Err(wrong("this build does not speak MySQL's protocol: build with --features mysql"));
        }
        let rest = uri.strip_prefix(SCHEME).ok_or_else(|| wrong("it does not begin with mongodb://"))?;
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let unwanted = [
            ('@', "this tool does not log in"),
            (',', "it names several hosts"),
            ('?', "it has options"),
            ('/', "it names a database, which is --database here"),
        ];
        if let Some((_, cause)) = unwanted.into_iter().find(|(character, _)| host.contains(*character)) {
            return Err(wrong(cause));
        }
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        if let Some(path) = socket_path(host) {
            return Ok(Target::at(Address::Unix(path.into())));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let with_port = if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") };
        let addresses = with_port
            .to_socket_addrs()
            .map_err(|source| BenchError::Resolve { host: host.to_owned(), source: Some(source) })?;
        // A server that listens on loopback only is most often on 127.0.0.1.
        let mut addresses: Vec<SocketAddr> = addresses.collect();
        addresses.sort_by_key(SocketAddr::is_ipv6);
        let address =
            addresses.first().ok_or_else(|| BenchError::Resolve { host: host.to_owned(), source: None })?;
        Ok(Target::at(*address))
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

/// A URI that may be shown and written down: what stands between the user's name and the host is left out.
pub fn without_password(text: &str) -> String {
    let parts = text.split_once("://").and_then(|(scheme, rest)| {
        let (login, host) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:...@{host}"))
    });
    parts.unwrap_or_else(|| text.to_owned())
}

/// The path that a host stands for, if it is one: its slashes are written `%2F`, as MongoDB's drivers want it.
fn socket_path(host: &str) -> Option<PathBuf> {
    let mut path = String::new();
    let mut rest = host;
    while let Some((before, after)) = rest.split_once('%') {
        let code = u8::from_str_radix(after.get(..2)?, 16).ok().filter(u8::is_ascii)?;
        path.push_str(before);
        path.push(char::from(code));
        rest = &after[2..];
    }
    path.push_str(rest);
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// What a server says about itself.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ServerFacts {
    /// `version` of buildInfo.
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
}

impl ServerFacts {
    /// Asks the server.
    pub fn ask(session: &mut Session) -> Result<ServerFacts, BenchError> {
        let build = session.command("admin", doc! { "buildInfo": 1 })?;
        let hello = session.command("admin", doc! { "hello": 1 })?;
        let text = |document: &Document, name: &str| Some(document.get(name)?.as_str()?.to_owned());
        Ok(ServerFacts {
            version: text(&build, "version"),
            git_version: text(&build, "gitVersion"),
            allocator: text(&build, "allocator"),
            replica_set: text(&hello, "setName"),
            wire_version: hello.get("maxWireVersion").and_then(pando_document::Value::as_i64_exact),
            settings: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn passwords_are_not_shown() {
        assert_eq!(without_password("mysql://a:b@c@host:1"), "mysql://a:...@host:1");
        assert_eq!(without_password("mongodb://host:1"), "mongodb://host:1");
        let error = Target::parse("mongodb://me:secret@host").expect_err("it does not log in");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn what_this_tool_does_not_do_is_refused_rather_than_ignored() {
        for uri in [
            "127.0.0.1:1",
            "mongodb://",
            "mongodb://u:p@h",
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
