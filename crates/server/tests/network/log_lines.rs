//! Log lines of the network side: each names the connection that it is about, by its address.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use pando_server::network::Limits;
use pando_wire::MsgFlags;

use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, start, wait_until};

/// The log of all tests of this process.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start_log() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        tracing_subscriber::fmt().with_ansi(false).with_writer(|| LogWriter).init();
    });
}

/// Waits until a line says this.
fn expect_line(text: &str) {
    let is_there = || String::from_utf8_lossy(&LOG.lock().unwrap()).contains(text);
    wait_until(text, is_there);
}

fn connect(server: SocketAddr) -> (Client, SocketAddr) {
    start_log();
    let client = Client::connect(server);
    let address = client.stream.local_addr().unwrap();
    (client, address)
}

/// A request with another value in one field of its header.
fn with_field(at: usize, value: i32) -> Vec<u8> {
    let mut frame = message(1, MsgFlags::NONE, &document("echo", 1));
    frame[at..at + 4].copy_from_slice(&value.to_le_bytes());
    frame
}

#[test]
fn a_malformed_message_that_closes_its_connection_is_logged_with_its_address_and_fault() {
    let server = start(LIMITS);
    let cases = [
        (with_field(0, 7), "length 7 is below the 16-byte header"),
        (with_field(0, -1), "length -1 is below the 16-byte header"),
        (with_field(0, 48_000_001), "length 48000001 is above the 48000000 bytes of the longest message"),
        (with_field(12, 77), "op code 77 is not supported"),
    ];
    for (frame, fault) in cases {
        let (mut client, address) = connect(server.address);
        client.send(&frame);
        client.expect_closed();
        expect_line(&format!("closing connection {address}: malformed message ({fault})"));
    }
}

#[test]
fn a_malformed_message_that_is_answered_is_logged_with_its_address() {
    let server = start(LIMITS);
    let (mut client, address) = connect(server.address);
    let mut frame = with_field(0, 20);
    frame.truncate(20);
    client.send(&frame);
    client.reply();
    expect_line(&format!("refused a malformed message of connection {address} (OP_MSG has no body section)"));
}

#[test]
fn a_reply_instead_of_a_request_is_logged_with_its_address() {
    let server = start(LIMITS);
    let (mut client, address) = connect(server.address);
    let body = document("echo", 1);
    let mut frame = with_field(12, 1);
    frame.truncate(16);
    frame.extend_from_slice(&[0; 16]);
    frame.extend_from_slice(&1_i32.to_le_bytes());
    frame.extend_from_slice(&body);
    let length = i32::try_from(frame.len()).unwrap();
    frame[..4].copy_from_slice(&length.to_le_bytes());
    client.send(&frame);
    client.expect_closed();
    expect_line(&format!("closing connection {address}: its message is no request (op code 1)"));
}

#[test]
fn a_panic_is_logged_with_the_address_and_the_command() {
    let server = start(LIMITS);
    let (mut client, address) = connect(server.address);
    client.ask(1, &document("panic", 1));
    client.expect_closed();
    expect_line(&format!(
        "closing connection {address}: its command 'panic' panicked (as the request asked); report this defect"
    ));
}

#[test]
fn a_write_that_cannot_be_made_durable_is_logged_with_its_address_and_cause() {
    let server = start(LIMITS);
    let (mut client, address) = connect(server.address);
    client.send(&message(1, MsgFlags::NONE, &document("never", 1)));
    client.expect_closed();
    expect_line(&format!("closing connection {address} without a reply: its write cannot be made durable ("));
    expect_line("as the request asked); mend the cause and restart the server");
}

#[test]
fn refused_connections_are_logged_with_the_last_address_and_the_limit() {
    let server = start(Limits { connections: 1, ..LIMITS });
    let (mut client, _) = connect(server.address);
    client.ask(1, &document("echo", 1));
    let (mut refused, address) = connect(server.address);
    refused.expect_closed();
    expect_line(&format!("refused 1 connections, the last from {address}: 1 are open, which is the limit"));
}

#[test]
fn a_stop_that_cuts_requests_off_is_logged_with_their_addresses() {
    let server = start(LIMITS);
    let (mut client, address) = connect(server.address);
    client.send(&message(1, MsgFlags::NONE, &document("block", 1_000)));
    wait_until("it is under way", || server.handler.handled.load(std::sync::atomic::Ordering::SeqCst) == 1);
    server.network.stop(Duration::from_millis(50), || {});
    expect_line(&format!(
        "stopping without a reply to 1 connections, whose requests did not end in time (first: {address})"
    ));
}
