//! A server of MySQL's protocol that answers everything at once. Its rate is the limit of the driver and of
//! this tool. A thread for each connection; each request costs it one read and one write.
//!
//! It speaks just enough of the protocol (version 10, no login, no TLS):
//! - a query is done, with one row affected; of a `SELECT` there is one row;
//! - a prepared statement has as many parameters as question marks, and as many columns as its `SELECT`
//!   names; executing it is done, or gives one row. What a column holds hangs on its name only
//!   ([`value_of`]).
//!
//! Replies are made when a statement is prepared: executing it copies.

use pando_bench::client::Listening;
use pando_bench::error::BenchError;
use pando_measuring::random::mask;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Long password, found rows, long flag, a database at login, protocol 4.1, transactions, secure connection,
/// plugins for authentication: what every driver has, and not the short end of results.
const CAPABILITIES: u32 = 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x0008_0000;
const AUTOCOMMIT: u16 = 2;
/// The type of all columns: text, which a client makes numbers of.
const VAR_STRING: u8 = 0xFD;
const UTF8: u16 = 33;
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;
/// Done: one row affected, no warnings.
const DONE: [u8; 7] = [0, 1, 0, AUTOCOMMIT as u8, 0, 0, 0];
/// The end of definitions and of rows.
const END: [u8; 5] = [0xFE, 0, 0, AUTOCOMMIT as u8, 0];

/// A null server that runs until it is dropped.
#[derive(Debug)]
pub struct NullSqlServer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NullSqlServer {
    /// Starts one on a free port of loopback.
    pub fn start() -> Result<NullSqlServer, BenchError> {
        let resource = |source| BenchError::Resource { what: "a listening socket", source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(resource)?;
        let address = listener.local_addr().map_err(resource)?;
        let ends = Arc::new(AtomicBool::new(false));
        let end = ends.clone();
        let accept = move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(Ordering::Acquire) {
                    return;
                }
                // A peer that leaves, or sends what is no request, ends its thread and nothing else.
                let serve = move || drop(Peer { stream, statements: Vec::new(), packet: Vec::new() }.serve());
                if std::thread::Builder::new().name("null-sql".into()).spawn(serve).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("null-sql".into()).spawn(accept);
        let thread = Some(thread.map_err(|source| BenchError::Resource { what: "a thread", source })?);
        Ok(NullSqlServer { address, ends, thread })
    }
}

impl Listening for NullSqlServer {
    fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NullSqlServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It does not panic; and if it did, the run it served has failed already.
            let _ = thread.join();
        }
    }
}

/// One connection.
struct Peer {
    stream: TcpStream,
    /// What executing each statement gives; its place is its number less one.
    statements: Vec<Vec<u8>>,
    packet: Vec<u8>,
}

impl Peer {
    fn serve(mut self) -> std::io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.write_all(&Packets::new(0).with(&greeting()).0)?;
        // Who logs in does not matter.
        let sequence = self.read()?;
        self.stream.write_all(&Packets::new(sequence.wrapping_add(1)).with(&DONE).0)?;
        loop {
            let sequence = self.read()?;
            let Some((command, argument)) = self.packet.split_first() else { return Ok(()) };
            match *command {
                QUIT => return Ok(()),
                CLOSE => {}
                EXECUTE => {
                    let number = argument.get(..4).and_then(|bytes| bytes.try_into().ok());
                    let place = number.map(u32::from_le_bytes).and_then(|number| number.checked_sub(1));
                    let reply = place.and_then(|place| self.statements.get(place as usize));
                    let reply = reply.ok_or(std::io::ErrorKind::InvalidData)?;
                    if sequence == 0 {
                        self.stream.write_all(reply)?;
                    } else {
                        let mut reply = reply.clone();
                        number_after(&mut reply, sequence);
                        self.stream.write_all(&reply)?;
                    }
                }
                PREPARE => {
                    let text = String::from_utf8_lossy(argument).into_owned();
                    self.statements.push(rows(&text, RowForm::Binary));
                    let number = u32::try_from(self.statements.len()).unwrap_or(u32::MAX);
                    self.stream.write_all(&prepared(&text, number))?;
                }
                QUERY => {
                    let mut reply = rows(&String::from_utf8_lossy(argument), RowForm::Text);
                    number_after(&mut reply, sequence);
                    self.stream.write_all(&reply)?;
                }
                _ => self.stream.write_all(&Packets::new(1).with(&DONE).0)?,
            }
        }
    }

    /// Reads a packet; gives its number in its sequence. One of 16 MB goes on in the next, whose reply is the
    /// reply to all.
    fn read(&mut self) -> std::io::Result<u8> {
        self.packet.clear();
        loop {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head)?;
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            let before = self.packet.len();
            self.packet.resize(before + length, 0);
            self.stream.read_exact(&mut self.packet[before..])?;
            if length < 0x00FF_FFFF {
                return Ok(head[3]);
            }
        }
    }
}

/// Numbers packets that begin with 1 from after this one on: a request of several packets had more numbers.
fn number_after(packets: &mut [u8], sequence: u8) {
    let mut at = 0;
    while let Some(head) = packets.get_mut(at..at + 4) {
        head[3] = head[3].wrapping_add(sequence);
        at += 4 + u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    }
}

/// Packets with their lengths and numbers.
struct Packets(Vec<u8>, u8);

impl Packets {
    fn new(sequence: u8) -> Packets {
        Packets(Vec::new(), sequence)
    }

    fn with(mut self, payload: &[u8]) -> Packets {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
        self.0.extend_from_slice(&[length[0], length[1], length[2], self.1]);
        self.0.extend_from_slice(payload);
        self.1 = self.1.wrapping_add(1);
        self
    }
}

fn greeting() -> Vec<u8> {
    let [low, more, high, highest] = CAPABILITIES.to_le_bytes();
    let mut payload = vec![10];
    payload.extend_from_slice(b"5.7.0-null\0");
    payload.extend_from_slice(&1_u32.to_le_bytes());
    payload.extend_from_slice(b"saltsalt\0");
    payload.extend_from_slice(&[low, more, UTF8 as u8]);
    payload.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
    payload.extend_from_slice(&[high, highest, 21]);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"saltsaltsalt\0mysql_native_password\0");
    payload
}

/// The names of what a `SELECT` gives; none of another statement.
fn columns(text: &str) -> Vec<&str> {
    let Some(rest) = text.strip_prefix("SELECT ") else { return Vec::new() };
    let rest = rest.strip_prefix("DISTINCT ").unwrap_or(rest);
    let list = rest.split_once(" FROM ").map_or(rest, |(list, _)| list);
    list.split(',').map(str::trim).collect()
}

/// What a column holds.
fn value_of(column: &str) -> &str {
    match column {
        "c" => mask::C,
        "value2" => "0.5",
        // LinkBench's only type of nodes.
        "type" => "2048",
        "data" => "12345678",
        _ => "1",
    }
}

fn text_of_length(out: &mut Vec<u8>, text: &str) {
    // All that is sent here is shorter than the first form's 250 bytes.
    out.push(u8::try_from(text.len()).unwrap_or(0));
    out.extend_from_slice(text.as_bytes());
}

fn definition(name: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    for text in ["def", "", "", "", name, name] {
        text_of_length(&mut payload, text.get(..200).unwrap_or(text));
    }
    payload.push(0x0C);
    payload.extend_from_slice(&UTF8.to_le_bytes());
    payload.extend_from_slice(&1024_u32.to_le_bytes());
    payload.extend_from_slice(&[VAR_STRING, 0, 0, 0, 0, 0]);
    payload
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowForm {
    Text,
    Binary,
}

/// The reply to a statement that is executed: one row, or that it is done.
fn rows(text: &str, form: RowForm) -> Vec<u8> {
    let names = columns(text);
    if names.is_empty() {
        return Packets::new(1).with(&DONE).0;
    }
    let mut packets = Packets::new(1).with(&[u8::try_from(names.len()).unwrap_or(u8::MAX)]);
    for name in &names {
        packets = packets.with(&definition(name));
    }
    let mut row = Vec::new();
    if form == RowForm::Binary {
        // A mark, and no bit of a null.
        row.resize(1 + (names.len() + 9) / 8, 0);
    }
    names.iter().for_each(|name| text_of_length(&mut row, value_of(name)));
    packets.with(&END).with(&row).with(&END).0
}

/// The reply to a statement that is prepared.
fn prepared(text: &str, number: u32) -> Vec<u8> {
    let names = columns(text);
    let parameters = text.matches('?').count();
    let mut head = vec![0];
    head.extend_from_slice(&number.to_le_bytes());
    for count in [names.len(), parameters] {
        head.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
    }
    head.extend_from_slice(&[0; 3]);
    let mut packets = Packets::new(1).with(&head);
    for definitions in [vec!["?"; parameters], names] {
        if !definitions.is_empty() {
            for name in definitions {
                packets = packets.with(&definition(name));
            }
            packets = packets.with(&END);
        }
    }
    packets.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SqlEngine;
    use crate::server::tests::ways;
    use crate::server::{Api, SqlServer};
    use mysql::prelude::Queryable;

    #[test]
    fn the_driver_is_content_with_it() {
        let server = NullSqlServer::start().expect("loopback is there");
        let target = SqlServer::of_uri("mysql://127.0.0.1:1", ways(SqlEngine::InnoDb, Api::Sql));
        let target = target.expect("usable").moved_to(server.address());
        let mut connection = target.connect().expect("it answers");
        let prepared = connection.prep("SELECT id, value1, value2 FROM t WHERE id = ?").expect("prepared");
        let row: Option<(i64, i32, f64)> = connection.exec_first(&prepared, (7,)).expect("a row");
        assert_eq!(row, Some((1, 1, 0.5)));
        let insert = connection.prep("INSERT INTO t VALUES (?, ?)").expect("prepared");
        connection.exec_drop(&insert, (1, "x")).expect("done");
        assert_eq!(connection.affected_rows(), 1);
        let row: Option<String> = connection.query_first("SELECT c FROM t").expect("a row");
        assert_eq!(row.as_deref(), Some(mask::C));
        let big = "x".repeat(20_000_000);
        connection.query_drop(format!("INSERT INTO t VALUES ('{big}')")).expect("in two packets");
    }
}
