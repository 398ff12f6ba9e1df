//! TLS: handshakes, replies of every kind through one session, and clients that do not go on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use pando_server::network::{Limits, Patiences, PlainText};
use pando_tls::{ClientConnection, ClientSettings, StreamOwned, client_session};
use pando_wire::{Body, FrameBuffer, Message, MsgFlags};

use crate::certificates::Certificates;
use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, start_secured, wait_until};

/// A client that speaks TLS.
struct SecureClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
    input: FrameBuffer,
}

impl SecureClient {
    fn connect(address: SocketAddr, settings: &ClientSettings) -> SecureClient {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let session = client_session(settings.load().unwrap(), "127.0.0.1").unwrap();
        SecureClient { stream: StreamOwned::new(session, socket), input: FrameBuffer::new() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next reply: the request that it answers, and its length.
    fn reply(&mut self) -> (i32, usize) {
        loop {
            if let Some(frame) = self.input.next_frame().unwrap() {
                let message = Message::decode(frame).unwrap();
                let Body::Msg(msg) = message.body else { panic!("an OP_MSG") };
                return (message.header.response_to, msg.body().len());
            }
            assert_ne!(self.input.fill_from(&mut self.stream).unwrap(), 0, "a reply, not the end");
        }
    }

    fn ask(&mut self, id: i32, body: &[u8]) -> usize {
        self.send(&message(id, MsgFlags::NONE, body));
        let (response_to, length) = self.reply();
        assert_eq!(response_to, id);
        length
    }
}

#[test]
fn replies_of_every_kind_go_through_one_session_in_their_order() {
    let certificates = Certificates::new();
    let server = start_secured(LIMITS, certificates.security(PlainText::Served));
    let mut client = SecureClient::connect(server.address, &certificates.client());
    let kinds = [
        ("echo", 1),
        ("large", 4_000_000),
        ("block", 1),
        ("later", 1),
        ("again", 1),
        ("return", 1),
        ("lack", 2),
        ("large", 100_000),
    ];
    for round in 0..3 {
        let mut sent = Vec::new();
        for (number, (name, value)) in kinds.iter().enumerate() {
            let id = 100 * round + i32::try_from(number).unwrap();
            sent.extend(message(id, MsgFlags::NONE, &document(name, *value)));
        }
        client.send(&sent);
        for (number, (name, value)) in kinds.iter().enumerate() {
            let (response_to, length) = client.reply();
            assert_eq!(response_to, 100 * round + i32::try_from(number).unwrap());
            let expected = if *name == "large" {
                usize::try_from(*value).unwrap()
            } else {
                document(name, *value).len()
            };
            assert_eq!(length, expected, "{name}");
        }
    }
    drop(client);
    wait_until("the session ends", || server.handler.sessions.load(Ordering::SeqCst) == 0);
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn a_client_that_reads_late_gets_every_byte() {
    let certificates = Certificates::new();
    let server = start_secured(LIMITS, certificates.security(PlainText::Refused));
    let mut client = SecureClient::connect(server.address, &certificates.client());
    client.ask(0, &document("echo", 0));
    for id in 1..=6 {
        client.send(&message(id, MsgFlags::NONE, &document("large", 3_000_000)));
    }
    thread::sleep(Duration::from_millis(300));
    for id in 1..=6 {
        assert_eq!(client.reply(), (id, 3_000_000));
    }
    client.ask(7, &document("block", 1));
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn a_port_serves_both_kinds_unless_tls_is_required() {
    let certificates = Certificates::new();
    let both = start_secured(LIMITS, certificates.security(PlainText::Served));
    Client::connect(both.address).ask(1, &document("echo", 1));
    let with_certificate =
        ClientSettings { certificate_key: Some(certificates.issue("app")), ..certificates.client() };
    SecureClient::connect(both.address, &with_certificate).ask(1, &document("echo", 1));
    SecureClient::connect(both.address, &certificates.client()).ask(1, &document("echo", 1));
    assert_eq!(*both.handler.subjects.lock().unwrap(), [Some("CN=app".to_owned()), None]);
    both.network.stop(Duration::from_secs(1), || {});

    let only = start_secured(LIMITS, certificates.security(PlainText::Refused));
    let mut plain = Client::connect(only.address);
    plain.send(&message(1, MsgFlags::NONE, &document("echo", 1)));
    plain.expect_closed();
    // The beginning of a message of 40 MB is refused before the rest comes.
    let mut plain = Client::connect(only.address);
    plain.send(&40_000_000_i32.to_le_bytes());
    plain.expect_closed();
    let mut browser = Client::connect(only.address);
    browser.send(b"GET / HTTP/1.1\r\n\r\n");
    let mut answer = String::new();
    browser.stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    SecureClient::connect(only.address, &certificates.client()).ask(1, &document("echo", 1));
    assert_eq!(only.handler.handled.load(Ordering::SeqCst), 1);
    only.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn a_client_of_a_foreign_issuer_is_told_and_closed() {
    let certificates = Certificates::new();
    let server = start_secured(LIMITS, certificates.security(PlainText::Served));
    let stranger = Certificates::new();
    let settings = ClientSettings { certificate_key: Some(stranger.issue("app")), ..certificates.client() };
    let mut client = SecureClient::connect(server.address, &settings);
    // With TLS 1.3 the client learns of it after its part of the handshake.
    let failed = client
        .stream
        .write_all(&message(1, MsgFlags::NONE, &document("echo", 1)))
        .and_then(|()| client.stream.read(&mut [0; 16]).map(drop));
    assert!(failed.is_err(), "the client learns that it is refused");
    assert_eq!(server.handler.handled.load(Ordering::SeqCst), 0);
    server.network.stop(Duration::from_secs(1), || {});
}

/// A client whose every byte comes by itself.
struct Drip(TcpStream);

impl Read for Drip {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Drip {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        thread::sleep(Duration::from_micros(200));
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_handshake_may_come_byte_by_byte() {
    let certificates = Certificates::new();
    let server = start_secured(LIMITS, certificates.security(PlainText::Refused));
    let socket = TcpStream::connect(server.address).unwrap();
    socket.set_nodelay(true).unwrap();
    let session = client_session(certificates.client().load().unwrap(), "127.0.0.1").unwrap();
    let mut stream = StreamOwned::new(session, Drip(socket));
    stream.write_all(&message(1, MsgFlags::NONE, &document("echo", 1))).unwrap();
    let mut header = [0; 16];
    stream.read_exact(&mut header).unwrap();
    assert_eq!(header[8..12], 1_i32.to_le_bytes());
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn half_open_connections_and_handshakes_end_in_time_and_others_are_served_meanwhile() {
    let certificates = Certificates::new();
    let limits = Limits {
        connections: 500,
        patiences: Patiences { opening: Some(Duration::from_secs(2)), reading: None },
        ..LIMITS
    };
    let server = start_secured(limits, certificates.security(PlainText::Served));
    let mut served = SecureClient::connect(server.address, &certificates.client());
    served.ask(0, &document("echo", 0));
    // A handshake that has begun: the header of a record of 512 bytes, and a part of it.
    let mut begun = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03];
    begun.extend([0xAB; 32]);
    let mut silent: Vec<Client> = (0..200).map(|_| Client::connect(server.address)).collect();
    for (number, client) in silent.iter_mut().enumerate() {
        match number % 3 {
            0 => {}
            1 => client.send(&begun),
            _ => client.send(&[0x30, 0, 0]),
        }
    }
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        let asked = Instant::now();
        served.ask(1, &document("echo", 1));
        assert!(asked.elapsed() < Duration::from_secs(5), "the others are served");
    }
    for client in &mut silent {
        client.expect_closed();
    }
    wait_until("only one is left", || server.network.connections() == 1);
    served.ask(2, &document("echo", 2));
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn a_handshake_of_endless_bytes_is_ended() {
    let certificates = Certificates::new();
    let server = start_secured(LIMITS, certificates.security(PlainText::Served));
    let mut client = Client::connect(server.address);
    // A client hello of 16 MB, in records of 16 KB.
    let mut record = vec![0x16, 0x03, 0x01, 0x40, 0x00];
    record.extend([0x01, 0xFF, 0xFF, 0xFF]);
    record.resize(5 + 0x4000, 0);
    let mut ended = false;
    for _ in 0..1000 {
        ended |= client.stream.write_all(&record).is_err();
        record[5] = 0;
    }
    assert!(ended, "the server closes the connection long before 16 MB");
    wait_until("it is gone", || server.network.connections() == 0);
    server.network.stop(Duration::from_secs(1), || {});
}
