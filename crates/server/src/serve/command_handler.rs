//! The handler of a server: makes a request of the commands out of a request of the wire.

use std::sync::atomic::{AtomicI64, Ordering};

use pando_commands::{BlockingMode, Commands, ConnectionState, DocumentSequence, Handled, Request};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_wire::SEQUENCES_MAX;

use crate::network::{Form, Handler, HangUp, Peer, WireRequest};

/// Answers requests with the commands of a store.
pub(super) struct CommandHandler {
    commands: Commands,
    last_connection: AtomicI64,
}

impl CommandHandler {
    pub(super) fn new(commands: Commands) -> CommandHandler {
        CommandHandler { commands, last_connection: AtomicI64::new(0) }
    }

    pub(super) fn commands(&self) -> &Commands {
        &self.commands
    }

    fn run(
        &self,
        connection: &mut ConnectionState,
        body: &[u8],
        sequences: &[DocumentSequence<'_>],
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        let body = RawDocument::from_bytes(body)
            .expect("the network side takes only messages whose documents are framed");
        self.commands.handle(connection, &Request { body, sequences }, blocking, reply)
    }
}

impl Handler for CommandHandler {
    type Session = ConnectionState;

    fn connected(&self, peer: &Peer) -> ConnectionState {
        let number = self.last_connection.fetch_add(1, Ordering::Relaxed) + 1;
        ConnectionState::new(number, peer.to_string())
    }

    fn handle(
        &self,
        connection: &mut ConnectionState,
        request: &WireRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        if request.form == Form::LegacyHello {
            return self.run(connection, &with_database(request.body), &[], blocking, reply);
        }
        let mut sequences = [DocumentSequence { identifier: "", documents: &[] }; SEQUENCES_MAX];
        for (slot, sequence) in sequences.iter_mut().zip(request.sequences) {
            *slot = DocumentSequence { identifier: sequence.identifier(), documents: sequence.bytes() };
        }
        self.run(connection, request.body, &sequences[..request.sequences.len()], blocking, reply)
    }

    fn on_hang_up(&self, connection: &ConnectionState) -> Option<HangUp> {
        let watch = connection.client_watch()?;
        Some(Box::new(move || watch.client_gone()))
    }

    fn stalled(&self, connection: &mut ConnectionState) {
        connection.drop_suspended();
    }
}

/// The body of a legacy hello with the `$db` that every other request has. A legacy request names its
/// database in the namespace instead. Only a hello is let through, and it asks no database anything, so
/// `admin` serves for all of them. At a field that cannot be read, the copy ends: a hello without its fields
/// is still one.
fn with_database(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 16);
    let mut writer = DocumentWriter::begin(&mut bytes);
    let body = RawDocument::from_bytes(body).unwrap_or(RawDocument::empty());
    for (name, value) in body.iter().map_while(Result::ok).filter(|(name, _)| *name != "$db") {
        writer.append(name, value);
    }
    writer.append("$db", RawValue::String("admin"));
    writer.finish();
    bytes
}
