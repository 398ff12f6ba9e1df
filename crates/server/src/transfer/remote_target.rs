//! A running server as target: the client side of the wire protocol, one request at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use bson::Document;
use pando_wire::{Body, FrameBuffer, Message, MsgFlags, OpMsgWriter};

use super::address::ServerAddress;
use super::error::TransferError;
use super::target::{Target, checked, insert_command, write_errors};

/// A connection.
pub(super) struct RemoteTarget {
    stream: Box<dyn Stream>,
    input: FrameBuffer,
    output: Vec<u8>,
    last_request_id: i32,
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

impl RemoteTarget {
    pub(super) fn connect(address: &ServerAddress) -> Result<RemoteTarget, TransferError> {
        let stream: Box<dyn Stream> = match address {
            ServerAddress::Tcp(place) => {
                let failed = |source| TransferError::Connect { place: place.clone(), source };
                let stream = TcpStream::connect(place).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                Box::new(stream)
            }
            ServerAddress::Unix(path) => {
                let failed = |source| TransferError::Connect { place: path.display().to_string(), source };
                Box::new(UnixStream::connect(path).map_err(failed)?)
            }
        };
        Ok(RemoteTarget { stream, input: FrameBuffer::new(), output: Vec::new(), last_request_id: 0 })
    }

    /// Sends a command with the documents beside it, and gives the reply's document.
    fn ask(
        &mut self,
        mut body: Document,
        documents: Option<&[Document]>,
        database: &str,
    ) -> Result<Document, TransferError> {
        body.insert("$db", database);
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.output.clear();
        let writer = OpMsgWriter::begin(&mut self.output, self.last_request_id, 0, MsgFlags::NONE);
        writer.body(&mut self.output, &body.to_vec()?);
        if let Some(documents) = documents {
            let encoded = documents.iter().map(Document::to_vec).collect::<Result<Vec<_>, _>>()?;
            writer.sequence(&mut self.output, "documents", encoded.iter().map(Vec::as_slice));
        }
        writer.finish(&mut self.output)?;
        self.stream.write_all(&self.output).map_err(TransferError::Connection)?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Document, TransferError> {
        loop {
            if let Some(frame) = self.input.next_frame()? {
                return match Message::decode(frame)?.body {
                    Body::Msg(message) => Ok(Document::from_reader(message.body())?),
                    // This side asks with OP_MSG, uncompressed, and is answered alike.
                    Body::Query(_) | Body::Reply(_) | Body::Compressed(_) => Err(TransferError::Closed),
                };
            }
            let count = self.input.fill_from(&mut self.stream).map_err(TransferError::Connection)?;
            if count == 0 {
                return Err(TransferError::Closed);
            }
        }
    }
}

impl Target for RemoteTarget {
    fn run(&mut self, database: &str, command: Document) -> Result<Document, TransferError> {
        checked(self.ask(command, None, database)?)
    }

    fn insert(
        &mut self,
        database: &str,
        collection: &str,
        documents: Vec<Document>,
    ) -> Result<Vec<(usize, String)>, TransferError> {
        let reply = self.ask(insert_command(collection), Some(&documents), database)?;
        Ok(write_errors(&checked(reply)?))
    }

    fn close(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}
