//! Bytes that nobody meant as a request, sent to a whole server: it goes on, and its log says what it
//! refused.

use std::io::Write;
use std::net::{Shutdown, TcpStream};

use bson::doc;
use rustix::process::Signal;

use crate::connection::{Connection, message};
use crate::running_server::Server;

#[test]
fn damaged_requests_never_end_the_server_or_another_connection() {
    let server = Server::in_memory();
    let mut bystander = Connection::tcp(&server);
    bystander.ask("test", doc! { "insert": "kept", "documents": [{ "_id": 1 }] });
    let whole = message(1, "test", doc! { "find": "kept", "filter": { "_id": { "$in": [1, 2, "three"] } } });
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..400 {
        let mut bytes = whole.clone();
        match round % 4 {
            // Any bytes behind the header: lengths and types of BSON among them.
            0 | 1 => {
                for _ in 0..=random() % 3 {
                    let at = 16 + usize::try_from(random()).unwrap() % (bytes.len() - 16);
                    bytes[at] = random().to_le_bytes()[0];
                }
            }
            2 => bytes.truncate(usize::try_from(random()).unwrap() % whole.len()),
            _ => bytes = (0..random() % 300).map(|_| random().to_le_bytes()[0]).collect(),
        }
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // The server may close before everything is sent.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        if round % 40 == 0 {
            bystander.ping();
        }
    }
    assert_eq!(bystander.ask("test", doc! { "count": "kept" }).get_i32("n").unwrap(), 1);
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success(), "{log}");
    assert!(!log.contains("panic"), "{log}");
    assert!(log.contains("malformed message"), "the log names what was refused: {log}");
}

#[test]
fn a_message_that_claims_to_be_huge_costs_no_memory() {
    let server = Server::in_memory();
    Connection::tcp(&server).ping();
    let before = server.resident_bytes();
    let mut claims: Vec<TcpStream> = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(&48_000_000_i32.to_le_bytes()).unwrap();
        stream.write_all(&[0; 1000]).unwrap();
        claims.push(stream);
    }
    Connection::tcp(&server).ping();
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "100 claims of 48 MB cost {grown} bytes");
}
