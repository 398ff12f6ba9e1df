//! A connected socket, TCP or unix: bytes in, bytes out, never blocking.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::sockopt;

/// How long a connection is silent before the kernel asks whether its peer is still there.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(120);

/// Who is on the other end, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An internet address.
    Tcp(SocketAddr),
    /// A process of this machine, through the unix socket.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix => f.write_str("unix socket"),
        }
    }
}

/// What came of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// The buffer was filled: there may be more.
    Filled,
    /// Less than the buffer holds came, possibly nothing: the socket is empty until it reports again.
    Drained,
    /// The peer has ended its side.
    Ended,
}

/// What came of writing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Everything is on its way.
    All,
    /// The socket took this many bytes and will report when it takes more.
    Partly(usize),
}

/// The socket. Shared between its I/O thread and, while a request of it is there, one thread of the blocking pool.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: OwnedFd,
}

impl Stream {
    pub(crate) fn from_tcp(stream: TcpStream) -> io::Result<Stream> {
        stream.set_nonblocking(true)?;
        // Replies are written whole: waiting for more to send would only delay them.
        stream.set_nodelay(true)?;
        // A client whose machine is gone says nothing: the kernel asks for it.
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE_AFTER)?;
        Ok(Stream { socket: stream.into() })
    }

    pub(crate) fn from_unix(stream: UnixStream) -> io::Result<Stream> {
        stream.set_nonblocking(true)?;
        Ok(Stream { socket: stream.into() })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Reads once into `into`, after what it holds, up to its capacity. On a stream socket a short read means that nothing is
    /// left, so there is no second read only to be told so.
    pub(crate) fn read(&self, into: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        let room = into.capacity() - into.len();
        assert!(room > 0, "a read needs room to read into");
        loop {
            return match rustix::io::read(self.socket.as_fd(), spare_capacity(into)) {
                Ok(0) => Ok(ReadOutcome::Ended),
                Ok(count) if count == room => Ok(ReadOutcome::Filled),
                Ok(_) => Ok(ReadOutcome::Drained),
                Err(Errno::AGAIN) => Ok(ReadOutcome::Drained),
                Err(Errno::INTR) => continue,
                Err(errno) => Err(errno.into()),
            };
        }
    }

    /// Writes until everything is written or the socket takes no more.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<WriteOutcome> {
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
