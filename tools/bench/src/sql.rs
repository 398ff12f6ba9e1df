//! A server that speaks MySQL's protocol: where it is, and what it says about itself. Only with the feature `mysql`.
//!
//! A kept driver does the talking, with prepared statements. It waits for each reply, so that its clients have a thread each;
//! and it costs more than this tool's own client: compare servers of one protocol by it, and see the client's CPU time.

use crate::address::Address;
use crate::error::BenchError;
use crate::target::{ServerFacts, without_password};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use std::net::{SocketAddr, ToSocketAddrs};

/// What a target of this protocol begins with.
const SCHEME: &str = "mysql://";

/// The server.
#[derive(Clone, Debug)]
pub struct SqlServer {
    options: Opts,
    address: SocketAddr,
    /// The storage engine of the tables, as MySQL calls it.
    engine: String,
}

impl SqlServer {
    /// The server of a URI `mysql://USER[:PASSWORD]@HOST[:PORT]`, with this storage engine; nothing if it is another URI.
    pub fn of_uri(uri: &str, engine: &str) -> Result<Option<SqlServer>, BenchError> {
        if !uri.starts_with(SCHEME) {
            return Ok(None);
        }
        let wrong = |cause| BenchError::Uri { uri: without_password(uri), cause };
        let options =
            Opts::from_url(uri).map_err(|_| wrong("it is not mysql://USER[:PASSWORD]@HOST[:PORT]"))?;
        if !engine.chars().all(|character| character.is_ascii_alphanumeric() || character == '_') {
            return Err(wrong("--mysql-engine is no name of an engine"));
        }
        let host = options.get_ip_or_hostname().into_owned();
        let addresses = (host.as_str(), options.get_tcp_port()).to_socket_addrs();
        let mut addresses =
            addresses.map_err(|source| BenchError::Resolve { host: host.clone(), source: Some(source) })?;
        let address = addresses.next().ok_or(BenchError::Resolve { host, source: None })?;
        // A socket would be another way to the server than the one that was asked for.
        let options = OptsBuilder::from_opts(options).prefer_socket(false).stmt_cache_size(0).into();
        Ok(Some(SqlServer { options, address, engine: engine.to_owned() }))
    }

    /// Where it listens.
    pub fn address(&self) -> Address {
        self.address.into()
    }

    /// The storage engine of the tables.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// A connection.
    pub fn connect(&self) -> Result<Conn, BenchError> {
        Conn::new(self.options.clone()).map_err(|source| BenchError::Sql { source: Box::new(source) })
    }

    /// Asks the server.
    pub fn facts(&self) -> Result<ServerFacts, BenchError> {
        let mut connection = self.connect()?;
        let version: Option<String> = connection.query_first("SELECT VERSION()").map_err(of_sql)?;
        // What an acknowledged commit means.
        let durability: Option<(String, String)> = connection
            .query_first("SHOW GLOBAL VARIABLES LIKE 'innodb_flush_log_at_trx_commit'")
            .map_err(of_sql)?;
        let settings = durability.map(|(name, value)| format!("{}, {name} = {value}", self.engine));
        let (git_version, allocator, replica_set, wire_version) = (None, None, None, None);
        Ok(ServerFacts { version, git_version, allocator, replica_set, wire_version, settings })
    }
}

/// An error of the driver as ours.
pub fn of_sql(source: mysql::Error) -> BenchError {
    BenchError::Sql { source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_user_host_and_port() {
        let server = SqlServer::of_uri("mysql://root:secret@127.0.0.1:3307", "InnoDB").expect("it is usable");
        assert_eq!(server.map(|server| server.address().to_string()), Some("127.0.0.1:3307".into()));
        assert!(SqlServer::of_uri("mongodb://127.0.0.1", "InnoDB").expect("it is another").is_none());
        assert!(SqlServer::of_uri("mysql://127.0.0.1:x", "InnoDB").is_err());
        assert!(SqlServer::of_uri("mysql://127.0.0.1", "InnoDB; DROP").is_err());
    }
}
