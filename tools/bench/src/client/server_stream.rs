//! A stream to a server: a socket, with TLS or without.

use pando_tls::{ClientConfig, ClientConnection, StreamOwned, client_session};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// The stream. With TLS a read gives the bytes of one record at most.
#[derive(Debug)]
pub enum ServerStream {
    Plain(Socket),
    Encrypted(Box<StreamOwned<ClientConnection, Socket>>),
}

/// The settings of TLS, and the name that the server's certificate has to have.
#[derive(Debug)]
pub struct TlsOf {
    pub config: Arc<ClientConfig>,
    pub host: String,
}

impl TlsOf {
    /// Shakes hands over a blocking socket.
    pub fn shake_hands(&self, mut socket: Socket, within: Duration) -> io::Result<ServerStream> {
        let mut session = client_session(Arc::clone(&self.config), &self.host).map_err(io::Error::other)?;
        socket.set_read_timeout(Some(within))?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        socket.set_read_timeout(None)?;
        Ok(ServerStream::Encrypted(Box::new(StreamOwned::new(session, socket))))
    }
}

impl ServerStream {
    fn socket(&self) -> &Socket {
        match self {
            ServerStream::Plain(socket) => socket,
            ServerStream::Encrypted(stream) => &stream.sock,
        }
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self, ServerStream::Encrypted(_))
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        self.socket().set_nonblocking(true)
    }

    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().set_read_timeout(timeout)
    }
}

impl AsRawFd for ServerStream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket().as_raw_fd()
    }
}

impl Read for ServerStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ServerStream::Plain(socket) => socket.read(buffer),
            ServerStream::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for ServerStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ServerStream::Plain(socket) => socket.write(bytes),
            ServerStream::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ServerStream::Plain(_) => Ok(()),
            ServerStream::Encrypted(stream) => stream.flush(),
        }
    }
}
