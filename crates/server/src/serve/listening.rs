//! The listeners that a configuration asks for, and the refusal of those that other machines could reach.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use pando_commands::AccessControl;
use pandodb::EngineName;
use tracing::warn;

use super::ServeError;
use crate::configuration::{Configuration, OpenToOthers, ProcessLogins, UnixSocket};
use crate::error_text::error_text;
use crate::network::{Listener, ProcessUsers, Security};
use crate::uri_encoding::socket_uri;

/// The longest path of a unix socket on Linux, without its final zero.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// The reason why an address is not listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenRefused {
    /// Other machines could reach it.
    #[error(
        "{address} can be reached from other machines, and clients need no login there; have them log in with --auth, listen \
         on 127.0.0.1, or let every client read and change everything with --allow-unauthenticated"
    )]
    OpenToOthers {
        /// The address.
        address: SocketAddr,
    },
    /// No system call takes the path of the unix socket.
    #[error(
        "cannot listen on the unix socket {}: its path has {bytes} bytes, and {UNIX_PATH_BYTES_MAX} are the limit; choose \
         a shorter one with --unix-socket", path.display()
    )]
    LongPath {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// Its name is not known.
    #[error("cannot find the address of {name}; correct --listen, or give the address itself")]
    Unknown {
        /// The name as configured.
        name: String,
        /// The error of the resolver.
        source: io::Error,
    },
}

/// Opens all listeners. Those on internet addresses have this security.
pub(super) fn listen(
    configuration: &Configuration,
    security: &Security,
) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = Vec::new();
    for address in addresses(configuration)? {
        listeners.push(Listener::tcp(address)?.secured(security.clone()));
    }
    match &configuration.unix_socket {
        UnixSocket::None => {}
        UnixSocket::At(path) if path_bytes(path) > UNIX_PATH_BYTES_MAX => {
            return Err(ListenRefused::LongPath { path: path.clone(), bytes: path_bytes(path) }.into());
        }
        UnixSocket::At(path) => listeners.push(Listener::unix(path, process_users(configuration))?),
        UnixSocket::InDataFolder => listeners.extend(listen_in_folder(configuration)),
    }
    Ok(listeners)
}

/// The connection string of the unix socket among the places that are listened on; empty where there is none.
pub(super) fn unix_socket_uri(endpoints: &[String]) -> String {
    let socket = endpoints.iter().find(|endpoint| endpoint.parse::<SocketAddr>().is_err());
    let whole = socket.and_then(|socket| std::path::absolute(socket).ok());
    whole.map(|path| socket_uri(&path)).unwrap_or_default()
}

/// The addresses to listen on. Each is allowed, and stands in the list once.
fn addresses(configuration: &Configuration) -> Result<Vec<SocketAddr>, ListenRefused> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for name in &configuration.listen {
        let resolved =
            name.to_socket_addrs().map_err(|source| ListenRefused::Unknown { name: name.clone(), source })?;
        for address in resolved {
            if !address.ip().to_canonical().is_loopback()
                && configuration.access_control == AccessControl::Off
                && configuration.open_to_others == OpenToOthers::Refused
            {
                return Err(ListenRefused::OpenToOthers { address });
            }
            // `localhost:0` may be two addresses, each of which takes a port of its own.
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    Ok(addresses)
}

/// The unix socket in the data folder. It is a default and not a demand, so a failure is logged and the
/// server goes on.
fn listen_in_folder(configuration: &Configuration) -> Option<Listener> {
    if configuration.engine == EngineName::Memory {
        // The folder need not be there.
        return None;
    }
    let path = configuration.data.join(pandodb::SOCKET_NAME);
    if path_bytes(&path) > UNIX_PATH_BYTES_MAX {
        warn!(
            "not listening on the unix socket {}: its path has {} bytes, and {UNIX_PATH_BYTES_MAX} are the limit; choose \
             another with --unix-socket",
            path.display(),
            path_bytes(&path)
        );
        return None;
    }
    // Other users cannot enter the folder.
    match Listener::unix(&path, process_users(configuration)) {
        Ok(listener) => Some(listener),
        Err(error) => {
            warn!("not listening on a unix socket: {}", error_text(&error));
            None
        }
    }
}

/// Without access control the socket is for the server's own user: whoever reaches it could do everything.
fn process_users(configuration: &Configuration) -> ProcessUsers {
    match (configuration.transport.process_logins, configuration.access_control) {
        (ProcessLogins::On, AccessControl::On) => ProcessUsers::Told,
        _ => ProcessUsers::Untold,
    }
}

fn path_bytes(path: &Path) -> usize {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().len()
}
