//! A running server as target: the client side of the wire protocol, one request at a time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf};
use pando_tls::{ClientConnection, HandshakeFault, StreamOwned, client_session};
use pando_wire::{Body, FrameBuffer, Message, MsgFlags, OpMsgWriter};

use super::address::ServerAddress;
use super::connection_string::ConnectionString;
use super::error::TransferError;
use super::interrupt::Interrupt;
use super::target::{Beside, Target};

/// The time between two looks whether the user has asked to stop, while a reply has not come.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// How long a reply may take after the user has asked to stop.
const REPLY_GRACE: Duration = Duration::from_secs(5);

/// How long a TLS handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(20);

/// A connection.
pub(super) struct RemoteTarget {
    stream: Box<dyn Stream>,
    input: FrameBuffer,
    output: Vec<u8>,
    last_request_id: i32,
    interrupt: Interrupt,
}

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

impl RemoteTarget {
    /// Connects, begins TLS and logs in, as the connection string says.
    pub(super) fn open(
        server: &ConnectionString,
        interrupt: Interrupt,
    ) -> Result<RemoteTarget, TransferError> {
        let stream: Box<dyn Stream> = match (&server.address, &server.tls) {
            (ServerAddress::Tcp(place), Some(settings)) => {
                let mut session = client_session(settings.load()?, server.address.host())?;
                let mut socket = tcp(place)?;
                shake_hands(&mut session, &mut socket, place)?;
                Box::new(StreamOwned::new(session, socket))
            }
            (ServerAddress::Tcp(place), None) => Box::new(tcp(place)?),
            (ServerAddress::Unix(path), _) => Box::new(unix(path)?),
        };
        let mut target = RemoteTarget::over(stream, interrupt);
        if let Some(login) = &server.login {
            login.perform(&mut target)?;
        }
        Ok(target)
    }

    /// Connects to the unix socket of a server, without a login.
    pub(super) fn through_socket(path: &Path, interrupt: Interrupt) -> Result<RemoteTarget, TransferError> {
        Ok(RemoteTarget::over(Box::new(unix(path)?), interrupt))
    }

    fn over(stream: Box<dyn Stream>, interrupt: Interrupt) -> RemoteTarget {
        RemoteTarget { stream, input: FrameBuffer::new(), output: Vec::new(), last_request_id: 0, interrupt }
    }

    fn reply(&mut self) -> Result<RawDocumentBuf, TransferError> {
        let mut give_up_at = None;
        loop {
            if let Some(frame) = self.input.next_frame()? {
                return match Message::decode(frame)?.body {
                    Body::Msg(message) => Ok(RawDocumentBuf::from_bytes(message.body().to_vec())?),
                    // This side asks with OP_MSG, uncompressed, and is answered alike.
                    Body::Legacy(_) | Body::Reply(_) | Body::Compressed(_) => Err(TransferError::Closed),
                };
            }
            match self.input.fill_from(&mut self.stream) {
                Ok(0) => return Err(TransferError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.interrupt.is_asked() {
                        let now = Instant::now();
                        if now >= *give_up_at.get_or_insert(now + REPLY_GRACE) {
                            return Err(TransferError::NoReply);
                        }
                    }
                }
                Err(error) => return Err(TransferError::Connection(error)),
            }
        }
    }
}

fn tcp(place: &str) -> Result<TcpStream, TransferError> {
    let failed = |source| TransferError::Connect { place: place.to_owned(), source };
    let stream = TcpStream::connect(place).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(LOOK_PERIOD)).map_err(failed)?;
    Ok(stream)
}

fn unix(path: &Path) -> Result<UnixStream, TransferError> {
    let failed = |source| TransferError::Connect { place: path.display().to_string(), source };
    let stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(LOOK_PERIOD)).map_err(failed)?;
    Ok(stream)
}

/// Completes a TLS handshake, so that its fault is told as such.
fn shake_hands(
    session: &mut ClientConnection,
    socket: &mut TcpStream,
    place: &str,
) -> Result<(), TransferError> {
    let give_up_at = Instant::now() + HANDSHAKE_TIME;
    while session.is_handshaking() {
        match session.complete_io(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < give_up_at => {}
            Err(source) => {
                let place = place.to_owned();
                return Err(match HandshakeFault::of(&source) {
                    HandshakeFault::NoTls => TransferError::NoTls { place, source },
                    HandshakeFault::Other => TransferError::Handshake { place, source },
                });
            }
        }
    }
    Ok(())
}

impl Target for RemoteTarget {
    fn run_raw(
        &mut self,
        database: &str,
        mut command: Document,
        beside: Option<Beside<'_>>,
    ) -> Result<RawDocumentBuf, TransferError> {
        command.insert("$db", database);
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.output.clear();
        let writer = OpMsgWriter::begin(&mut self.output, self.last_request_id, 0, MsgFlags::NONE);
        writer.body(&mut self.output, &command.to_vec()?);
        if let Some(Beside { identifier, documents }) = beside {
            writer.sequence(&mut self.output, identifier, documents.iter().map(|one| one.as_bytes()));
        }
        writer.finish(&mut self.output)?;
        self.stream.write_all(&self.output).map_err(TransferError::Connection)?;
        self.reply()
    }

    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}
