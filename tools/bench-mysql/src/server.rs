//! The servers of a target: their endpoints, their engine, and their facts.
//!
//! Several endpoints are several servers over the same data, as NDB has them: clients are spread over them in
//! turn. That all of them see the tables is checked before a run.

use crate::driver::{of_sql, of_statement};
use crate::engine::SqlEngine;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use pando_bench::client::Address;
use pando_bench::error::BenchError;
use pando_bench::target::ServerFacts;
use pando_bench::target::uri::without_login;
use std::net::{SocketAddr, ToSocketAddrs};

/// What a target of this protocol begins with.
pub const SCHEME: &str = "mysql://";
/// What a server says that does not let a user in: access denied (to the server, to the database, without a
/// password), a way of logging in that one side does not have.
const LOGIN_REFUSED: [u16; 5] = [1044, 1045, 1251, 1275, 1698];
/// The largest packet that the driver sends: a batch of an insert.
const PACKET_BYTES: usize = 1 << 30;

/// How a row is read by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `SELECT`.
    Sql,
    /// `HANDLER … READ`, which goes around the optimizer.
    Handler,
}

/// Whose settings count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFrom {
    /// The server keeps its own.
    Server,
    /// The posts'.
    Posts,
}

/// What is to be done with the servers.
#[derive(Clone, Debug)]
pub struct SqlWays {
    /// The storage engine of the tables.
    pub engine: SqlEngine,
    /// How rows are read by their keys.
    pub api: Api,
    /// Whose settings count.
    pub settings: SettingsFrom,
    /// What stands behind each CREATE TABLE, after the engine.
    pub table_options: String,
}

/// The servers.
#[derive(Clone, Debug)]
pub struct SqlServer {
    endpoints: Vec<Endpoint>,
    ways: SqlWays,
}

#[derive(Clone, Debug)]
struct Endpoint {
    options: Opts,
    address: SocketAddr,
}

impl Endpoint {
    fn connect(&self) -> Result<Conn, BenchError> {
        Conn::new(self.options.clone()).map_err(|error| match error {
            mysql::Error::DriverError(_) | mysql::Error::IoError(_) => {
                let source = std::io::Error::other(error);
                BenchError::Connect { address: self.address.to_string(), source }
            }
            mysql::Error::MySqlError(error) if LOGIN_REFUSED.contains(&error.code) => {
                BenchError::LoginRefused {
                    address: self.address.to_string(),
                    code: error.code,
                    message: error.message,
                }
            }
            error => of_sql(error),
        })
    }
}

impl SqlServer {
    /// The servers of a URI `mysql://USER[:PASSWORD]@HOST[:PORT][,HOST[:PORT]…]`.
    pub fn of_uri(uri: &str, ways: SqlWays) -> Result<SqlServer, BenchError> {
        let rest = uri.strip_prefix(SCHEME).unwrap_or(uri);
        let (login, hosts) = rest.rsplit_once('@').unwrap_or(("", rest));
        let separator = if login.is_empty() { "" } else { "@" };
        let endpoints = hosts
            .split(',')
            .map(|host| endpoint(uri, &format!("{SCHEME}{login}{separator}{host}")))
            .collect::<Result<_, _>>()?;
        Ok(SqlServer { endpoints, ways })
    }

    /// The same with its only endpoint at this address, which wants no login.
    pub fn moved_to(&self, address: SocketAddr) -> SqlServer {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.ip().to_string()))
            .tcp_port(address.port())
            .max_allowed_packet(Some(PACKET_BYTES))
            .prefer_socket(false)
            .stmt_cache_size(0);
        let endpoints = vec![Endpoint { options: options.into(), address }];
        // A null server knows no HANDLER; to the driver a row is a row.
        SqlServer { endpoints, ways: SqlWays { api: Api::Sql, ..self.ways.clone() } }
    }

    /// Where the first one listens.
    pub fn address(&self) -> Address {
        self.endpoints[0].address.into()
    }

    /// Where all of them listen.
    pub fn addresses(&self) -> Vec<String> {
        self.endpoints.iter().map(|endpoint| endpoint.address.to_string()).collect()
    }

    /// The storage engine of the tables.
    pub fn engine(&self) -> SqlEngine {
        self.ways.engine
    }

    /// How rows are read by their keys.
    pub fn api(&self) -> Api {
        self.ways.api
    }

    /// What ends a CREATE TABLE.
    pub fn table_end(&self) -> String {
        format!("ENGINE={} {}", self.ways.engine.name(), self.ways.table_options)
    }

    /// In words: engine, way and endpoints.
    pub fn summary(&self) -> String {
        let api = match self.ways.api {
            Api::Sql => "SQL with prepared statements",
            Api::Handler => "HANDLER READ with prepared statements",
        };
        let endpoints = match self.endpoints.len() {
            1 => String::new(),
            count => format!(", {count} endpoints"),
        };
        format!("{api}, engine {}{endpoints}", self.engine().name())
    }

    /// What stands in the files.
    pub fn add_parameters(&self, parameters: &mut serde_json::Value) {
        parameters["engine"] = self.engine().name().into();
        parameters["api"] = format!("{:?}", self.ways.api).to_lowercase().into();
        parameters["endpoints"] = self.addresses().into();
        if !self.ways.table_options.is_empty() {
            parameters["table_options"] = self.ways.table_options.clone().into();
        }
    }

    /// That this workload can be done so: HANDLER reads single rows by key only.
    pub fn check_api(&self, workload: &str) -> Result<(), BenchError> {
        Err(BenchError::option(
            "api",
            match self.ways.api {
                Api::Sql => return Ok(()),
                Api::Handler if !self.engine().has_handler() => {
                    format!("HANDLER does not read tables of the engine {}", self.engine().name())
                }
                Api::Handler if ["point", "kv"].contains(&workload) => return Ok(()),
                Api::Handler => {
                    format!("HANDLER only reads rows by key: it is for point and kv, not for {workload}")
                }
            },
        ))
    }

    /// A connection to the first endpoint.
    pub fn connect(&self) -> Result<Conn, BenchError> {
        self.endpoints[0].connect()
    }

    /// A client's connection: the endpoints take turns.
    pub fn connect_client(&self, client: u32) -> Result<Conn, BenchError> {
        self.endpoints[client as usize % self.endpoints.len()].connect()
    }

    /// That every endpoint has a table which the first one has.
    pub fn check_endpoints(&self, table: &str) -> Result<(), BenchError> {
        for endpoint in self.endpoints.iter().skip(1) {
            let found = endpoint.connect()?.query_drop(format!("SELECT 1 FROM {table} LIMIT 1"));
            if let Err(error) = found {
                let error = of_statement("SELECT", error);
                return Err(BenchError::option(
                    "uri",
                    format!(
                        "the server at {} does not have the table {table} of the first one ({error}): several endpoints are \
                     several servers over the same data, as those of an NDB cluster",
                        endpoint.address
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Asks the first server, and checks that it can do what is asked.
    pub fn facts(&self) -> Result<ServerFacts, BenchError> {
        let mut connection = self.connect()?;
        self.engine().check(&mut connection)?;
        if self.ways.settings == SettingsFrom::Posts {
            self.engine().set_as_posts(&mut connection)?;
        }
        let version: Option<String> = connection.query_first("SELECT VERSION()").map_err(of_sql)?;
        let values = self.engine().values(&mut connection)?;
        let mut settings = self.engine().name().to_owned();
        for (setting, value) in values {
            settings += &format!(", {} = {value}", setting.name);
            if let Some(wanted) = setting.of_post.filter(|wanted| !value.eq_ignore_ascii_case(wanted)) {
                settings += &format!(" (the post: {wanted})");
            }
        }
        let (git_version, allocator, replica_set, wire_version) = (None, None, None, None);
        Ok(ServerFacts {
            version: version.map(named),
            git_version,
            allocator,
            replica_set,
            wire_version,
            settings: Some(settings),
            cache_bytes: None,
        })
    }
}

/// The name of a server and its version. MariaDB names itself in its version.
fn named(version: String) -> String {
    if version.contains("MariaDB") { version } else { format!("MySQL {version}") }
}

/// One endpoint of a URI that names one host.
fn endpoint(whole: &str, uri: &str) -> Result<Endpoint, BenchError> {
    let cause = "it is not mysql://USER[:PASSWORD]@HOST[:PORT][,HOST[:PORT]...]";
    let options = Opts::from_url(uri).map_err(|_| BenchError::Uri { uri: without_login(whole), cause })?;
    let host = options.get_ip_or_hostname().into_owned();
    let addresses = (host.as_str(), options.get_tcp_port()).to_socket_addrs();
    let mut addresses =
        addresses.map_err(|source| BenchError::Resolve { host: host.clone(), source: Some(source) })?;
    let address = addresses.next().ok_or(BenchError::Resolve { host, source: None })?;
    // A socket would be another way to the server than the one that was asked for.
    let options = OptsBuilder::from_opts(options).prefer_socket(false).stmt_cache_size(0).into();
    Ok(Endpoint { options, address })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Nothing but the engine is told.
    pub fn ways(engine: SqlEngine, api: Api) -> SqlWays {
        SqlWays { engine, api, settings: SettingsFrom::Server, table_options: String::new() }
    }

    fn server(uri: &str) -> Result<SqlServer, BenchError> {
        SqlServer::of_uri(uri, ways(SqlEngine::InnoDb, Api::Sql))
    }

    #[test]
    fn a_uri_names_user_hosts_and_ports() {
        let one = server("mysql://root:secret@127.0.0.1:3307").expect("it is usable");
        assert_eq!(one.addresses(), ["127.0.0.1:3307"]);
        let two = server("mysql://root@127.0.0.1:1,127.0.0.2:2").expect("it is usable");
        assert_eq!(two.addresses(), ["127.0.0.1:1", "127.0.0.2:2"]);
        assert!(server("mysql://127.0.0.1:x").is_err());
        let error = server("mysql://me:secret@127.0.0.1:1,:x").expect_err("the second is none").to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn handler_is_refused_where_it_cannot_be_before_anything_starts() {
        let with =
            |engine| SqlServer::of_uri("mysql://127.0.0.1", ways(engine, Api::Handler)).expect("usable");
        assert!(with(SqlEngine::InnoDb).check_api("kv").is_ok());
        let error = with(SqlEngine::InnoDb).check_api("linkbench").expect_err("it writes").to_string();
        assert!(error.contains("--api") && error.contains("linkbench"), "{error}");
        assert!(with(SqlEngine::Ndb).check_api("point").is_err());
    }
}
