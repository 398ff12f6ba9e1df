//! The address of a server, and a stream to it: TCP, or the unix socket of a server on this machine. An
//! engine in this process has an address, too, and no stream.
//!
//! Whoever connects logs in, if the address says as whom: see [`crate::client::Session::open`].
//!
//! Over loopback a request and its reply pass the whole of the kernel's TCP twice, which on few cores costs
//! as much as a cached point query itself; a unix socket leaves that out, as an application beside its server
//! would.

use super::{EmbeddedStore, Login};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use pando_measuring::counters::ProcessId;
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
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
    /// The unix socket at this path.
    pub fn unix(path: impl Into<Arc<Path>>) -> Address {
        Address::from(Place::Unix(path.into()))
    }

    /// An engine in this process.
    pub fn embedded(store: Arc<EmbeddedStore>) -> Address {
        Address::from(Place::Embedded(store))
    }

    /// The same for a user.
    pub fn with_login(self, login: Login) -> Address {
        Address { login: Some(Arc::new(login)), ..self }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Who logs in there, if anybody.
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

    /// A blocking stream to the server.
    pub fn connect(&self) -> io::Result<Stream> {
        match &self.place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECT_WITHIN)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Place::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Place::Embedded(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "an engine in this process has no socket"))
            }
        }
    }
}

impl From<Place> for Address {
    fn from(place: Place) -> Address {
        Address { place, login: None }
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

/// A blocking stream.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(buffer),
            Stream::Unix(stream) => stream.write(buffer),
        }
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(buffers),
            Stream::Unix(stream) => stream.write_vectored(buffers),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// How long a read may wait; forever without a time.
    pub fn set_read_timeout(&self, within: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(within),
            Stream::Unix(stream) => stream.set_read_timeout(within),
        }
    }

    /// The same stream for an event loop.
    pub fn into_watched(self) -> io::Result<WatchedStream> {
        Ok(match self {
            Stream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                WatchedStream::Tcp(mio::net::TcpStream::from_std(stream))
            }
            Stream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                WatchedStream::Unix(mio::net::UnixStream::from_std(stream))
            }
        })
    }
}

/// A stream that never blocks.
#[derive(Debug)]
pub enum WatchedStream {
    /// Over TCP.
    Tcp(mio::net::TcpStream),
    /// Over a unix socket.
    Unix(mio::net::UnixStream),
}

impl WatchedStream {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            WatchedStream::Tcp(stream) => stream,
            WatchedStream::Unix(stream) => stream,
        }
    }
}

impl Read for WatchedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            WatchedStream::Tcp(stream) => stream.read(buffer),
            WatchedStream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for WatchedStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            WatchedStream::Tcp(stream) => stream.write(buffer),
            WatchedStream::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for WatchedStream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.source().register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}
