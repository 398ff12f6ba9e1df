//! Clients of other protocols at the port: recognised by their first bytes, and told at once where they are.
//!
//! A browser or a health check speaks HTTP; a driver with `tls=true` begins a TLS handshake. Without this,
//! the first bytes of TLS would be a length for which the server waits, and the client waits as well.

use std::fmt;

/// The protocol of a client that is at the wrong port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignProtocol {
    Http,
    Tls,
}

/// The methods of HTTP, and the beginning of its second version.
const HTTP_BEGINNINGS: [&[u8]; 8] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"PRI * HTTP/2"];
/// A TLS record: a handshake, of major version 3.
const TLS_BEGINNING: [u8; 2] = [0x16, 0x03];
const TLS_MINOR_MAX: u8 = 4;
/// Behind the record's header of five bytes: the type of a handshake message.
const CLIENT_HELLO: u8 = 0x01;
/// A header of MongoDB's protocol, whose last four bytes are the kind of the message. A handshake is longer.
const HEADER_BYTES: usize = 16;
/// Kinds of messages: OP_REPLY up to OP_DELETE and OP_KILL_CURSORS, OP_COMPRESSED, OP_MSG.
const MESSAGE_KINDS: std::ops::RangeInclusive<i32> = 1..=2013;
/// A fatal alert in the form of TLS 1.2, which every client reads: no handshake is possible.
const TLS_ALERT: &[u8] = &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28];
const HTTP_ANSWER: &str = "This is the port of Pando, a document database. It speaks MongoDB's wire protocol, and not HTTP.\n\
                           Connect with a driver, or with: mongosh mongodb://HOST:PORT\n";

/// Recognises a foreign protocol by the first bytes of a connection.
pub(crate) fn recognise(bytes: &[u8]) -> Option<ForeignProtocol> {
    if HTTP_BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning)) {
        return Some(ForeignProtocol::Http);
    }
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let kind = i32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    let is_hello =
        header.starts_with(&TLS_BEGINNING) && header[2] <= TLS_MINOR_MAX && header[5] == CLIENT_HELLO;
    // A message may have this length and this number by chance, but not without a kind.
    (is_hello && !MESSAGE_KINDS.contains(&kind)).then_some(ForeignProtocol::Tls)
}

impl ForeignProtocol {
    /// The answer in the client's own protocol.
    pub(crate) fn answer(self) -> Vec<u8> {
        match self {
            ForeignProtocol::Tls => TLS_ALERT.to_vec(),
            ForeignProtocol::Http => format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{HTTP_ANSWER}",
                HTTP_ANSWER.len()
            )
            .into_bytes(),
        }
    }
}

/// For the log: what the client does, and what to do.
impl fmt::Display for ForeignProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignProtocol::Http => "it speaks HTTP, and this port is for MongoDB clients",
            ForeignProtocol::Tls => {
                "it begins a TLS handshake, and TLS is off; connect without tls=true and --tls, or offer TLS with --tls-mode allowTLS"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_and_tls_are_recognised_and_messages_are_not() {
        assert_eq!(recognise(b"GET / HTTP/1.1\r\n"), Some(ForeignProtocol::Http));
        assert_eq!(recognise(b"PRI * HTTP/2.0\r\n\r\n"), Some(ForeignProtocol::Http));
        let mut hello = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03];
        hello.extend([0xAB; 32]);
        assert_eq!(recognise(&hello), Some(ForeignProtocol::Tls));
        assert_eq!(recognise(&hello[..15]), None, "too short to tell");
        // A message whose length and number look like a handshake.
        let mut message = hello;
        message[12..16].copy_from_slice(&2013_i32.to_le_bytes());
        assert_eq!(recognise(&message), None);
        assert_eq!(recognise(b""), None);
    }
}
