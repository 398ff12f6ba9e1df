//! A connected socket, TCP or unix: bytes in, bytes out, never blocking, with TLS or without.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};

use super::tls_session::TlsSession;

/// The silence after which the kernel asks whether the peer is still there.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(120);

/// The other end of a connection, as the log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An internet address.
    Tcp {
        /// The address of the other end.
        remote: SocketAddr,
        /// The address of this end, by which the client came in.
        local: Option<SocketAddr>,
    },
    /// A process of this machine, through the unix socket.
    Unix {
        /// Its user, where the listener asks for that.
        user: Option<Arc<str>>,
    },
}

impl Peer {
    /// The internet address of the other end.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Peer::Tcp { remote, .. } => Some(remote.ip()),
            Peer::Unix { .. } => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp { remote, .. } => remote.fmt(f),
            Peer::Unix { .. } => f.write_str("unix socket"),
        }
    }
}

/// The outcome of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// The buffer is full, and the socket may have more.
    Filled,
    /// Fewer bytes came than the buffer holds, possibly none. The socket is empty until it reports again.
    Drained,
    /// The peer has ended its side.
    Ended,
}

/// The outcome of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// The socket took all bytes.
    All,
    /// The socket took this many bytes and will report when it takes more.
    Partly(usize),
}

/// The socket. Its I/O thread shares it with one thread of the blocking pool, while a request of it is there.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: OwnedFd,
    /// One of the two threads works with it at a time, so that the lock is free.
    tls: Option<Box<Mutex<TlsSession>>>,
}

impl Stream {
    pub(crate) fn from_tcp(stream: TcpStream) -> io::Result<Stream> {
        stream.set_nonblocking(true)?;
        // Replies are written whole: waiting for more to send would only delay them.
        stream.set_nodelay(true)?;
        // A client whose machine is gone sends no end: the kernel finds out.
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE_AFTER)?;
        Ok(Stream { socket: stream.into(), tls: None })
    }

    pub(crate) fn from_unix(stream: UnixStream) -> io::Result<Stream> {
        stream.set_nonblocking(true)?;
        Ok(Stream { socket: stream.into(), tls: None })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Has all bytes from now on belong to this session, whose handshake is to come.
    pub(crate) fn start_tls(&mut self, session: TlsSession) -> &mut TlsSession {
        self.tls.insert(Box::new(Mutex::new(session))).get_mut()
    }

    /// The session and its socket, while this thread alone has the stream.
    pub(crate) fn tls_mut(&mut self) -> Option<(&mut TlsSession, BorrowedFd<'_>)> {
        self.tls.as_mut().map(|tls| (tls.get_mut(), self.socket.as_fd()))
    }

    /// Whether its bytes belong to a TLS session.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads once and appends to `into`: up to its capacity, or with TLS the bytes of the records that came.
    pub(crate) fn read(&self, into: &mut Vec<u8>, records: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        match &self.tls {
            None => read_socket(self.socket.as_fd(), into),
            Some(tls) => tls.lock().read(self.socket.as_fd(), records, into),
        }
    }

    /// Whether the peer is known to have ended its side, behind no further bytes.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(self.socket.as_fd(), &mut [0], flags) {
            Ok((_, count)) => count == 0,
            Err(errno) => !matches!(errno, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Sends bytes. Those that the socket does not take are appended to `unsent`, in the form in which they
    /// go to the socket. Where `unsent` has bytes already, all new ones follow them.
    pub(crate) fn send(&self, bytes: &[u8], unsent: &mut Vec<u8>) -> io::Result<()> {
        if let Some(tls) = &self.tls {
            return tls.lock().send(self.socket.as_fd(), bytes, unsent);
        }
        let written = match unsent.is_empty() {
            true => self.write_raw(bytes)?,
            false => WriteOutcome::Partly(0),
        };
        if let WriteOutcome::Partly(written) = written {
            unsent.extend_from_slice(&bytes[written..]);
        }
        Ok(())
    }

    /// Writes bytes that are in the form of the socket already, until everything is written or the socket
    /// takes no more.
    pub(crate) fn write_raw(&self, bytes: &[u8]) -> io::Result<WriteOutcome> {
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::write(self.socket.as_fd(), &bytes[written..]) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) => return Ok(WriteOutcome::Partly(written)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(WriteOutcome::All)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.get_mut().say_goodbye(self.socket.as_fd());
        }
    }
}

/// Reads a socket once and appends to `into`, up to its capacity. On a stream socket a short read means that
/// the socket is empty, so no second read is needed to learn that.
pub(super) fn read_socket(socket: BorrowedFd<'_>, into: &mut Vec<u8>) -> io::Result<ReadOutcome> {
    let room = into.capacity() - into.len();
    assert!(room > 0, "a read needs room to read into");
    loop {
        return match rustix::io::read(socket, spare_capacity(into)) {
            Ok(0) => Ok(ReadOutcome::Ended),
            Ok(count) if count == room => Ok(ReadOutcome::Filled),
            Ok(_) => Ok(ReadOutcome::Drained),
            Err(Errno::AGAIN) => Ok(ReadOutcome::Drained),
            Err(Errno::INTR) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}
