//! The process that listens on a port or on a unix socket of this machine. For a port, `/proc/net/tcp` and
//! `tcp6` name the inode of the listening socket, and `/proc/*/fd` its owner. The kernel names the peer of a
//! unix socket.

use super::ProcessId;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process, all_processes};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

impl ProcessId {
    /// The process that listens on a port, if it is on this machine and may be looked at.
    pub fn behind_port(address: SocketAddr) -> Option<ProcessId> {
        if !is_on_this_machine(address) {
            return None;
        }
        let entries = procfs::net::tcp().into_iter().chain(procfs::net::tcp6());
        let inode = entries.flatten().find_map(|entry| listening_inode(&entry, address.port()))?;
        let owner = all_processes().ok()?.flatten().find(|process| has_open(process, inode))?;
        Some(ProcessId::new(owner.pid.cast_unsigned()))
    }

    /// The process that listens on a unix socket.
    pub fn behind_socket(path: &Path) -> Option<ProcessId> {
        let stream = UnixStream::connect(path).ok()?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        Some(ProcessId::new(peer.pid.as_raw_nonzero().get().cast_unsigned()))
    }
}

/// A connection to this machine has the same address at both ends.
fn is_on_this_machine(address: SocketAddr) -> bool {
    let own = TcpStream::connect(address).and_then(|stream| stream.local_addr());
    own.is_ok_and(|own| own.ip() == address.ip())
}

fn has_open(process: &Process, inode: u64) -> bool {
    let is_it = |target: FDTarget| matches!(target, FDTarget::Socket(found) if found == inode);
    process.fd().is_ok_and(|files| files.flatten().any(|file| is_it(file.target)))
}

fn listening_inode(entry: &TcpNetEntry, port: u16) -> Option<u64> {
    (entry.state == TcpState::Listen && entry.local_address.port() == port).then_some(entry.inode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::net::TcpNetEntries;
    use procfs::{ExplicitSystemInfo, FromReadSI};

    #[test]
    fn the_listener_is_told_from_connections_of_the_same_port() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:6989 0100007F:A000 01 00000000:00000000 00:00000000 00000000  0 0 111 1\n\
            1: 0100007F:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 222 1\n";
        let system = ExplicitSystemInfo {
            boot_time_secs: 0,
            ticks_per_second: 100,
            page_size: 4096,
            is_little_endian: true,
        };
        let entries = TcpNetEntries::from_read(text.as_bytes(), &system).expect("the form of the kernel").0;
        let inode = |port| entries.iter().find_map(|entry| listening_inode(entry, port));
        assert_eq!((inode(27017), inode(27018)), (Some(222), None));
    }

    #[test]
    fn a_port_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        assert_eq!(ProcessId::behind_port(address), Some(ProcessId::own()));
    }

    #[test]
    fn a_unix_socket_of_this_process_is_found() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("a.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("it can be bound");
        assert_eq!(ProcessId::behind_socket(&path), Some(ProcessId::own()));
    }
}
