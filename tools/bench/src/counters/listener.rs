//! Who listens there: for a port the inode of the listening socket from `/proc/net/tcp` and `tcp6`, its owner from `/proc/*/fd`; for
//! a unix socket the kernel tells its peer.

use super::ProcessId;
use crate::address::{Address, Place};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The state of a listening socket in those files.
const LISTENING: &str = "0A";

/// The process that listens behind an address, if it is on this machine and may be looked at.
pub fn process_behind(address: &Address) -> Option<ProcessId> {
    match address.place() {
        Place::Tcp(address) => process_behind_port(*address),
        Place::Embedded(_) => Some(ProcessId::new(std::process::id())),
        Place::Unix(path) => {
            let stream = UnixStream::connect(path).ok()?;
            let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
            Some(ProcessId::new(peer.pid.as_raw_nonzero().get().cast_unsigned()))
        }
    }
}

fn process_behind_port(address: SocketAddr) -> Option<ProcessId> {
    if !is_on_this_machine(address) {
        return None;
    }
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|file| {
        let text = super::read(Path::new(file)).ok()?;
        listening_inode(&text, address.port())
    })?;
    let link = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .map(ProcessId::new)
        .find(|process| has_open(*process, &link))
}

/// A connection to this machine has the same address at both ends.
fn is_on_this_machine(address: SocketAddr) -> bool {
    let own = TcpStream::connect(address).and_then(|stream| stream.local_addr());
    own.is_ok_and(|own| own.ip() == address.ip())
}

fn has_open(process: ProcessId, link: &str) -> bool {
    let Ok(files) = std::fs::read_dir(process.path("fd")) else { return false };
    files.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == link))
}

/// `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …`, addresses in hexadecimal.
fn listening_inode(text: &str, port: u16) -> Option<u64> {
    let port = format!(":{port:04X}");
    text.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let matches = fields.get(1)?.ends_with(&port) && *fields.get(3)? == LISTENING;
        matches.then(|| fields.get(9)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_is_told_from_connections_of_the_same_port() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:6989 0100007F:A000 01 00000000:00000000 00:00000000 00000000  0 0 111 1\n\
            1: 0100007F:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 222 1\n";
        assert_eq!(listening_inode(text, 27017), Some(222));
        assert_eq!(listening_inode(text, 27018), None);
    }

    #[test]
    fn a_port_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        assert_eq!(process_behind(&address.into()), Some(ProcessId::new(std::process::id())));
    }

    #[test]
    fn a_unix_socket_of_this_process_is_found() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("a.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("it can be bound");
        let address = Address::unix(path);
        assert_eq!(process_behind(&address), Some(ProcessId::new(std::process::id())));
    }
}
