//! A running server as target: the client side of the wire protocol, one request at a time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf};
use pando_wire::{Body, FrameBuffer, Message, MsgFlags, OpMsgWriter};

use super::address::ServerAddress;
use super::error::TransferError;
use super::interrupt::Interrupt;
use super::target::{Beside, Target};

/// The time between two looks whether the user has asked to stop, while a reply has not come.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// How long a reply may take after the user has asked to stop.
const REPLY_GRACE: Duration = Duration::from_secs(5);

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
    pub(super) fn connect(
        address: &ServerAddress,
        interrupt: Interrupt,
    ) -> Result<RemoteTarget, TransferError> {
        let stream: Box<dyn Stream> = match address {
            ServerAddress::Tcp(place) => {
                let failed = |source| TransferError::Connect { place: place.clone(), source };
                let stream = TcpStream::connect(place).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_read_timeout(Some(LOOK_PERIOD)).map_err(failed)?;
                Box::new(stream)
            }
            ServerAddress::Unix(path) => {
                let failed = |source| TransferError::Connect { place: path.display().to_string(), source };
                let stream = UnixStream::connect(path).map_err(failed)?;
                stream.set_read_timeout(Some(LOOK_PERIOD)).map_err(failed)?;
                Box::new(stream)
            }
        };
        let (input, output) = (FrameBuffer::new(), Vec::new());
        Ok(RemoteTarget { stream, input, output, last_request_id: 0, interrupt })
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
