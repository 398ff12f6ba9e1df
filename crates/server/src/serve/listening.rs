//! Which listeners a configuration asks for, and which of them are refused.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use pandodb::EngineName;
use tracing::warn;

use super::ServeError;
use crate::configuration::{Configuration, OpenToOthers, UnixSocket};
use crate::network::Listener;

/// A unix socket's path has this many bytes at most on Linux, its final zero not counted.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// Why an address is not listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenRefused {
    /// Other machines could reach it.
    #[error(
        "{address} can be reached from other machines, and there are no users and passwords yet: listen on 127.0.0.1, or \
         allow everybody everything with --allow-unauthenticated"
    )]
    OpenToOthers {
        /// The address.
        address: SocketAddr,
    },
    /// Its name is not known.
    #[error("cannot find the address of {name}")]
    Unknown {
        /// The name as configured.
        name: String,
        /// What the resolver says.
        source: io::Error,
    },
}

/// Opens all listeners.
pub(super) fn listen(configuration: &Configuration) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = Vec::new();
    for address in addresses(configuration)? {
        listeners.push(Listener::tcp(address)?);
    }
    match &configuration.unix_socket {
        UnixSocket::None => {}
        UnixSocket::At(path) => listeners.push(Listener::unix(path)?),
        UnixSocket::InDataFolder => listeners.extend(listen_in_folder(configuration)),
    }
    Ok(listeners)
}

/// The addresses to listen on, each allowed and each once.
fn addresses(configuration: &Configuration) -> Result<Vec<SocketAddr>, ListenRefused> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for name in &configuration.listen {
        let resolved =
            name.to_socket_addrs().map_err(|source| ListenRefused::Unknown { name: name.clone(), source })?;
        for address in resolved {
            if !address.ip().to_canonical().is_loopback()
                && configuration.open_to_others == OpenToOthers::Refused
            {
                return Err(ListenRefused::OpenToOthers { address });
            }
            // `localhost:0` is two addresses, which take a port each.
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    Ok(addresses)
}

/// The socket that nobody asked for explicitly: without it the server runs as well, so what fails is only said.
fn listen_in_folder(configuration: &Configuration) -> Option<Listener> {
    if configuration.engine == EngineName::Memory {
        // The folder need not be there.
        return None;
    }
    let path = configuration.data.join("pando.sock");
    if path_bytes(&path) > UNIX_PATH_BYTES_MAX {
        warn!(path = %path.display(), "no unix socket: its path would be too long; choose one with --unix-socket");
        return None;
    }
    match Listener::unix(&path) {
        Ok(listener) => Some(listener),
        Err(error) => {
            warn!(
                error = &error as &dyn std::error::Error,
                "no unix socket; choose another path with --unix-socket"
            );
            None
        }
    }
}

fn path_bytes(path: &Path) -> usize {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().len()
}
