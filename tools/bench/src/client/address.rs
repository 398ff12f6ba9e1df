//! The address of a server, and a stream to it: TCP, or the unix socket of a server on this machine. An
//! engine in this process has an address, too, and no stream.
//!
//! A session logs in, if the address has a user: see [`crate::client::Session::open`].
//!
//! Over loopback a request and its reply pass the whole of the kernel's TCP twice, which on few cores costs
//! as much as a cached point query itself; a unix socket leaves that out, as an application beside its server
//! would.

use super::server_stream::{ServerStream, TlsOf};
use super::{EmbeddedStore, Login};
use pando_measuring::counters::ProcessId;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An address that nobody answers for would be tried for minutes.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Where a server listens, and who logs in there. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Address {
    place: Place,
    login: Option<Arc<Login>>,
    tls: Option<Arc<TlsOf>>,
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Place {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(Arc<Path>),
    /// Nowhere: an engine in this process.
    Embedded(Arc<EmbeddedStore>),
}

impl Address {
    pub(crate) fn unix(path: impl Into<Arc<Path>>) -> Address {
        Address::from(Place::Unix(path.into()))
    }

    pub(crate) fn embedded(store: Arc<EmbeddedStore>) -> Address {
        Address::from(Place::Embedded(store))
    }

    pub(crate) fn with_login(self, login: Login) -> Address {
        Address { login: Some(Arc::new(login)), ..self }
    }

    pub(crate) fn with_tls(self, tls: TlsOf) -> Address {
        Address { tls: Some(Arc::new(tls)), ..self }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The user who logs in there, if there is one.
    pub fn login(&self) -> Option<&Login> {
        self.login.as_deref()
    }

    /// The process that listens there, if it is on this machine and may be looked at.
    pub fn process(&self) -> Option<ProcessId> {
        match &self.place {
            Place::Tcp(address) => ProcessId::behind_port(*address),
            Place::Unix(path) => ProcessId::behind_socket(path),
            Place::Embedded(_) => Some(ProcessId::own()),
        }
    }

    /// Whether something listens there, whatever it speaks.
    pub(crate) fn is_taken(&self) -> bool {
        match &self.place {
            Place::Tcp(address) => TcpStream::connect_timeout(address, CONNECT_WITHIN).is_ok(),
            Place::Unix(path) => UnixStream::connect(path).is_ok(),
            Place::Embedded(_) => false,
        }
    }

    /// A blocking stream to the server.
    pub fn connect(&self) -> io::Result<ServerStream> {
        match &self.place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECT_WITHIN)?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    Some(tls) => tls.shake_hands(stream.into(), CONNECT_WITHIN),
                    None => Ok(ServerStream::Plain(stream.into())),
                }
            }
            Place::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                Ok(ServerStream::Plain(OwnedFd::from(stream).into()))
            }
            Place::Embedded(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "an engine in this process has no socket"))
            }
        }
    }
}

impl From<Place> for Address {
    fn from(place: Place) -> Address {
        Address { place, login: None, tls: None }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::from(Place::Tcp(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp(address) => address.fmt(f),
            Place::Unix(path) => path.display().fmt(f),
            Place::Embedded(store) => store.fmt(f),
        }
    }
}
