//! The address of one server, over TCP or through its unix socket.

use std::path::PathBuf;

/// The port of a connection string without one.
const PORT_DEFAULT: u16 = 27017;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerAddress {
    /// `host:port`.
    Tcp(String),
    /// A path.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Reads the host of a connection string, with its port if it has one.
    pub(super) fn parse(host: &str) -> Result<ServerAddress, &'static str> {
        if host.contains(',') {
            return Err("name one host");
        }
        if host.is_empty() {
            return Err("it names no host");
        }
        if host.contains('%') {
            let path = unescape(host).ok_or("its escapes are not valid")?;
            return Ok(ServerAddress::Unix(PathBuf::from(path)));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
            !port.is_empty() && port.parse::<u16>().is_ok() && (!name.contains(':') || name.ends_with(']'))
        });
        let needs_port = !host.contains(':') || host.ends_with(']');
        match (has_port, needs_port) {
            (true, _) => Ok(ServerAddress::Tcp(host.to_owned())),
            (false, true) => Ok(ServerAddress::Tcp(format!("{host}:{PORT_DEFAULT}"))),
            (false, false) => Err("its port is not a number, or its IPv6 address has no brackets"),
        }
    }

    /// The name that the certificate of the server has to have.
    pub(super) fn host(&self) -> &str {
        match self {
            ServerAddress::Tcp(place) => place.rsplit_once(':').map_or(place, |(host, _)| host),
            ServerAddress::Unix(_) => "localhost",
        }
    }
}

/// A connection string for people: the password is hidden.
pub fn without_password(uri: &str) -> String {
    let parts = uri.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)));
    match parts {
        Some((scheme, (login, rest))) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…@{rest}")
        }
        None => uri.to_owned(),
    }
}

/// The database that a connection string names: `mongodb://host/atlas`.
pub fn database_of(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    let (_, tail) = rest.split_once('/')?;
    let name = tail.split('?').next().unwrap_or_default();
    if name.is_empty() { None } else { unescape(name) }
}

/// Replaces `%2F` and the like.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        let plain = if byte == b'%' {
            let digits = [left.next()?, left.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        };
        bytes.push(plain);
    }
    String::from_utf8(bytes).ok()
}
