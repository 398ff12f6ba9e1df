//! The address in `--uri`: one server, over TCP or through its unix socket.

use std::path::PathBuf;

use super::error::TransferError;

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
    /// Reads `mongodb://host:port/…?…`. Database and options are not used, since the command names its
    /// collection. Users, TLS and several hosts are refused rather than ignored.
    pub(super) fn parse(uri: &str) -> Result<ServerAddress, TransferError> {
        let refuse = |reason| TransferError::Uri { uri: without_password(uri), reason };
        let rest = uri.strip_prefix("mongodb://").ok_or_else(|| refuse("it begins otherwise"))?;
        let (authority, tail) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(refuse("users and passwords are not supported yet"));
        }
        if authority.contains(',') {
            return Err(refuse("name one host"));
        }
        if tail.contains("tls=true") || tail.contains("ssl=true") {
            return Err(refuse("TLS is not supported yet"));
        }
        if authority.is_empty() {
            return Err(refuse("it names no host"));
        }
        if authority.contains('%') {
            let path = unescape(authority).ok_or_else(|| refuse("its escapes are not valid"))?;
            return Ok(ServerAddress::Unix(PathBuf::from(path)));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
            !port.is_empty() && port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        let needs_port = !authority.contains(':') || authority.ends_with(']');
        match (has_port, needs_port) {
            (true, _) => Ok(ServerAddress::Tcp(authority.to_owned())),
            (false, true) => Ok(ServerAddress::Tcp(format!("{authority}:{PORT_DEFAULT}"))),
            (false, false) => Err(refuse("its port is not a number, or its IPv6 address has no brackets")),
        }
    }
}

/// A connection string for people: the password is hidden.
pub(super) fn without_password(uri: &str) -> String {
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
