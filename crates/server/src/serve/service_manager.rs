//! The notices to a service manager such as systemd (`sd_notify`): the server is ready, and it stops.
//!
//! The manager names a unix datagram socket in `NOTIFY_SOCKET`; a name that begins with `@` is in the
//! abstract namespace. Without that variable nobody is told. The server goes on after a notice that fails.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use tracing::warn;

const VARIABLE: &str = "NOTIFY_SOCKET";

/// A notice of the server's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Clients are served.
    Ready,
    /// The server is about to end.
    Stopping,
}

impl Notice {
    fn message(self) -> &'static str {
        match self {
            Notice::Ready => "READY=1",
            Notice::Stopping => "STOPPING=1",
        }
    }
}

/// The manager that has started the process, if there is one.
pub(super) struct ServiceManager {
    socket: Option<OsString>,
}

impl ServiceManager {
    /// The manager that the environment names.
    pub(super) fn of_environment() -> ServiceManager {
        ServiceManager { socket: std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) }
    }

    /// Sends a notice.
    pub(super) fn tell(&self, notice: Notice) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = send(socket, notice.message()) {
            warn!(
                "cannot tell the service manager {} ({error}); look at {VARIABLE}, or start the server without it",
                notice.message()
            );
        }
    }
}

fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    // A manager that does not read holds up nobody.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_told_by_a_path_and_by_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("pando-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        for (address, socket) in [
            (SocketAddr::from_pathname(&path).unwrap(), path.into_os_string()),
            (abstract_address, format!("@{name}").into()),
        ] {
            let manager = UnixDatagram::bind_addr(&address).unwrap();
            let told = ServiceManager { socket: Some(socket) };
            for notice in [Notice::Ready, Notice::Stopping] {
                told.tell(notice);
                let mut received = [0; 64];
                let length = manager.recv(&mut received).unwrap();
                assert_eq!(&received[..length], notice.message().as_bytes());
            }
        }
        // A path without a listener.
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
        ServiceManager { socket: None }.tell(Notice::Ready);
    }
}
