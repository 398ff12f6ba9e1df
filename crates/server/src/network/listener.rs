//! Listeners: sockets that wait for connections on an internet address or a unix socket.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::peer_user;
use super::security::Security;
use super::stream::{Peer, Stream};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// Why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens there.
    #[error(
        "{address} is in use: another server listens there; stop it, or choose another address with --listen"
    )]
    InUse {
        /// Address and port.
        address: String,
    },
    /// Another process listens on the socket.
    #[error(
        "{path} is in use: another server listens there; stop it, or choose another path with --unix-socket"
    )]
    SocketInUse {
        /// The path.
        path: PathBuf,
    },
    /// There is a file of another kind at the path.
    #[error("{path} is there and is no socket; choose another path with --unix-socket")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The kernel refuses.
    #[error(
        "cannot listen on {endpoint}; choose another address with --listen, or another path with --unix-socket"
    )]
    Io {
        /// Address or path.
        endpoint: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// One open listener. A unix socket's file is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    security: Security,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf, ProcessUsers),
}

/// Whether a unix socket tells the users of the processes at its other ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessUsers {
    /// No. Only processes of the server's own user reach the socket.
    #[default]
    Untold,
    /// Yes. Processes of all users reach the socket.
    Told,
}

impl ProcessUsers {
    /// The mode of the socket's file.
    fn mode(self) -> u32 {
        match self {
            ProcessUsers::Untold => 0o700,
            ProcessUsers::Told => 0o777,
        }
    }
}

impl Listener {
    /// Listens on an internet address; port 0 takes a free one.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn tcp(address: SocketAddr) -> Result<Listener, ListenError> {
        let opened = open_tcp(address).map_err(|source| {
            let address = address.to_string();
            if source.kind() == io::ErrorKind::AddrInUse {
                ListenError::InUse { address }
            } else {
                ListenError::Io { endpoint: address, source }
            }
        });
        Ok(Listener { kind: Kind::Tcp(opened?), security: Security::Plain })
    }

    /// Listens on a unix socket, for processes of the same user or of all. Replaces the file of a server that
    /// has ended.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn unix(path: &Path, users: ProcessUsers) -> Result<Listener, ListenError> {
        let endpoint = path.display().to_string();
        let failed = |source| ListenError::Io { endpoint: endpoint.clone(), source };
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                UnixListener::bind(path).map_err(failed)?
            }
            other => other.map_err(failed)?,
        };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(users.mode())).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Listener { kind: Kind::Unix(listener, path.to_owned(), users), security: Security::Plain })
    }

    /// The same with this encryption.
    #[must_use]
    pub fn secured(mut self, security: Security) -> Listener {
        self.security = security;
        self
    }

    /// The encryption of its connections.
    pub(crate) fn security(&self) -> &Security {
        &self.security
    }

    /// The address with the port that was chosen, or the path.
    pub fn endpoint(&self) -> String {
        match &self.kind {
            Kind::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string())
            }
            Kind::Unix(_, path, _) => path.display().to_string(),
        }
    }

    /// The internet address, if it is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix(..) => None,
        }
    }

    pub(crate) fn raw_socket(&self) -> RawFd {
        match &self.kind {
            Kind::Tcp(listener) => listener.as_raw_fd(),
            Kind::Unix(listener, ..) => listener.as_raw_fd(),
        }
    }

    /// Takes one connection; `WouldBlock` if there is none.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Peer)> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, remote) = listener.accept()?;
                let local = stream.local_addr().ok();
                Ok((Stream::from_tcp(stream)?, Peer::Tcp { remote, local }))
            }
            Kind::Unix(listener, _, users) => {
                let (stream, _) = listener.accept()?;
                let user = if *users == ProcessUsers::Told { peer_user::of(&stream) } else { None };
                Ok((Stream::from_unix(stream)?, Peer::Unix { user }))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix(_, path, _) = &self.kind
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!(
                "cannot remove the unix socket {} ({error}); the next server that listens there replaces it",
                path.display()
            );
        }
    }
}

fn open_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    // A restarted server takes its port back while old connections linger in the kernel.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        // So that `[::]` and `0.0.0.0` can be listened on beside each other.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Removes the file of a unix socket that no process listens on any more.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let endpoint = path.display().to_string();
    let failed = |source| ListenError::Io { endpoint: endpoint.clone(), source };
    if !std::fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
        return Err(ListenError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Err(source) => Err(failed(source)),
        Ok(_) => Err(ListenError::SocketInUse { path: path.to_owned() }),
    }
}
