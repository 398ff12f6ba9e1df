//! The TLS session of one connection: records of the socket in, plain bytes out, and the other way round.
//!
//! Bytes that the socket does not take are kept by the caller, as records. So the caller's output is always
//! bytes of the wire, with TLS and without.
//!
//! # Invariants
//! - After a read the session holds no plain bytes, unless the handshake has just ended. So an event of the
//!   socket is all that a connection waits for.
//! - A handshake that has not ended after [`HANDSHAKE_BYTES_MAX`] bytes is given up.

use std::io::{self, BufRead, IoSlice, Write};
use std::os::fd::BorrowedFd;

use pando_tls::{CertificateFacts, ServerConnection};
use rustix::io::Errno;

use super::security::Encryption;
use super::stream::{ReadOutcome, read_socket};

/// Bytes of a client's part of the handshake. Its certificates take most of them.
const HANDSHAKE_BYTES_MAX: usize = 128 * 1024;
/// Plain bytes that are encrypted before the records are sent.
const SEAL_BYTES: usize = 64 * 1024;
/// Room for the records of one read.
const RECORDS_BYTES: usize = 64 * 1024;

/// The progress of a handshake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The client has to send more, or to read.
    GoesOn(ReadOutcome),
    /// Messages may follow.
    Complete,
}

/// The session. One thread at a time works with it.
#[derive(Debug)]
pub(crate) struct TlsSession {
    rustls: ServerConnection,
    /// The client has ended the session. No bytes follow.
    ended: bool,
    handshake_bytes: usize,
}

impl TlsSession {
    pub(crate) fn new(rustls: ServerConnection) -> TlsSession {
        TlsSession { rustls, ended: false, handshake_bytes: 0 }
    }

    /// Takes the first bytes of the handshake, which were read before it was known to be one.
    pub(crate) fn begin(
        &mut self,
        socket: BorrowedFd<'_>,
        records: &[u8],
        plain: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
    ) -> io::Result<Handshake> {
        self.handshake(socket, records, ReadOutcome::Filled, plain, unsent)
    }

    /// Goes on with the handshake by one read. Plain bytes behind its end are appended to `plain`.
    pub(crate) fn go_on(
        &mut self,
        socket: BorrowedFd<'_>,
        records: &mut Vec<u8>,
        plain: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
    ) -> io::Result<Handshake> {
        let outcome = self.read_records(socket, records)?;
        self.handshake(socket, records, outcome, plain, unsent)
    }

    fn handshake(
        &mut self,
        socket: BorrowedFd<'_>,
        records: &[u8],
        outcome: ReadOutcome,
        plain: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
    ) -> io::Result<Handshake> {
        self.handshake_bytes += records.len();
        let taken = self.take(records, plain);
        // An alert goes out as well: it tells the client why.
        self.send_records(socket, unsent)?;
        taken?;
        if !self.rustls.is_handshaking() {
            return Ok(Handshake::Complete);
        }
        if self.handshake_bytes > HANDSHAKE_BYTES_MAX {
            return Err(io::Error::other(format!("it is longer than {HANDSHAKE_BYTES_MAX} bytes")));
        }
        Ok(Handshake::GoesOn(outcome))
    }

    /// Reads the socket once and appends the plain bytes to `into`.
    pub(crate) fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        records: &mut Vec<u8>,
        into: &mut Vec<u8>,
    ) -> io::Result<ReadOutcome> {
        if self.ended {
            return Ok(ReadOutcome::Ended);
        }
        let outcome = self.read_records(socket, records)?;
        self.take(records, into)?;
        match outcome {
            ReadOutcome::Ended => Ok(ReadOutcome::Ended),
            // The next read tells of the end.
            _ if self.ended => Ok(ReadOutcome::Filled),
            other => Ok(other),
        }
    }

    fn read_records(&mut self, socket: BorrowedFd<'_>, records: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        records.clear();
        records.reserve(RECORDS_BYTES);
        read_socket(socket, records)
    }

    /// Takes records and appends their plain bytes.
    fn take(&mut self, mut records: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        while !records.is_empty() && !self.ended {
            self.rustls.read_tls(&mut records)?;
            let state = self
                .rustls
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.ended = state.peer_has_closed();
            let mut left = state.plaintext_bytes_to_read();
            let mut reader = self.rustls.reader();
            while left > 0 {
                let piece = reader.fill_buf()?;
                into.extend_from_slice(piece);
                let length = piece.len();
                left = left.saturating_sub(length.max(1));
                reader.consume(length);
            }
        }
        Ok(())
    }

    /// Encrypts and sends. Records that the socket does not take are appended to `unsent`; where it has
    /// records already, all new ones follow them.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        plain: &[u8],
        unsent: &mut Vec<u8>,
    ) -> io::Result<()> {
        for piece in plain.chunks(SEAL_BYTES) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = self.rustls.writer().write(rest)?;
                rest = &rest[taken..];
                self.send_records(socket, unsent)?;
            }
        }
        Ok(())
    }

    /// Sends the records that are ready.
    fn send_records(&mut self, socket: BorrowedFd<'_>, unsent: &mut Vec<u8>) -> io::Result<()> {
        while self.rustls.wants_write() {
            if unsent.is_empty() {
                match self.rustls.write_tls(&mut SocketWriter(socket)) {
                    Ok(_) => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            self.rustls.write_tls(unsent)?;
        }
        Ok(())
    }

    /// Tells the client that no bytes follow, if the socket takes that.
    pub(crate) fn say_goodbye(&mut self, socket: BorrowedFd<'_>) {
        self.rustls.send_close_notify();
        // The connection closes in any case.
        let _ = self.rustls.write_tls(&mut SocketWriter(socket));
    }

    /// The facts of a session whose handshake is complete.
    pub(crate) fn encryption(&self) -> Encryption {
        let version = self.rustls.protocol_version().and_then(|version| version.as_str());
        let certificate = self.rustls.peer_certificates().and_then(<[_]>::first);
        Encryption {
            version: version.and_then(|name| name.strip_prefix("TLSv")).map_or("?", dotted),
            client_subject: certificate
                .and_then(|der| CertificateFacts::of_der(der))
                .map(|facts| facts.subject),
        }
    }
}

/// `1.3` for `1_3`.
fn dotted(version: &str) -> &'static str {
    match version {
        "1_2" => "1.2",
        "1_3" => "1.3",
        _ => "?",
    }
}

/// A socket as rustls writes to it.
struct SocketWriter<'s>(BorrowedFd<'s>);

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match rustix::io::writev(self.0, pieces) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
