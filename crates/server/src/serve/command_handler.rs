//! The handler of a server: makes a request of the commands out of a request of the wire.

use std::sync::atomic::{AtomicI64, Ordering};

use pando_commands::{
    BlockingMode, Commands, ConnectionState, DocumentSequence, Handled, LegacyProtocol, MessageTraffic,
    Priority, Request, StreamState, TlsVersion, priority_of,
};
use pando_document::RawDocument;
use pando_wire::{LegacyRequest, SEQUENCES_MAX};

use super::legacy_operation;
use crate::network::{Encryption, Handler, HangUp, LegacyAnswer, Peer, WireRequest};

/// Answers requests with the commands of a store.
pub(super) struct CommandHandler {
    commands: Commands,
    legacy_protocol: LegacyProtocol,
    last_connection: AtomicI64,
}

impl CommandHandler {
    pub(super) fn new(commands: Commands, legacy_protocol: LegacyProtocol) -> CommandHandler {
        CommandHandler { commands, legacy_protocol, last_connection: AtomicI64::new(0) }
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
        let connection = ConnectionState::new(number, peer.to_string()).resumable();
        match peer {
            Peer::Tcp { local, .. } => connection.through(local.map(|address| address.to_string())),
            Peer::Unix { user } => connection.on_this_machine(user.clone()),
        }
    }

    fn rejected(&self) {
        self.commands.connection_rejected();
    }

    fn encrypted(&self, connection: &mut ConnectionState, encryption: Encryption) {
        let version = if encryption.version == "1.2" { TlsVersion::V1_2 } else { TlsVersion::V1_3 };
        self.commands.count_tls(connection, version);
        connection.secure(encryption.client_subject);
    }

    fn is_trusted(&self, connection: &ConnectionState) -> bool {
        self.commands.is_trusted(connection)
    }

    fn handle(
        &self,
        connection: &mut ConnectionState,
        request: &WireRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        let mut sequences = [DocumentSequence { identifier: "", documents: &[] }; SEQUENCES_MAX];
        for (slot, sequence) in sequences.iter_mut().zip(request.sequences) {
            *slot = DocumentSequence { identifier: sequence.identifier(), documents: sequence.bytes() };
        }
        self.run(connection, request.body, &sequences[..request.sequences.len()], blocking, reply)
    }

    fn handle_legacy(
        &self,
        connection: &mut ConnectionState,
        request: &LegacyRequest<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> LegacyAnswer {
        legacy_operation::handle(&self.commands, connection, request, blocking, reply)
    }

    fn priority(&self, command: &[u8]) -> Priority {
        RawDocument::from_bytes(command).map_or(Priority::Normal, priority_of)
    }

    fn legacy_protocol(&self) -> LegacyProtocol {
        self.legacy_protocol
    }

    fn has_further_replies(&self, connection: &ConnectionState) -> bool {
        connection.has_further_replies()
    }

    fn on_hang_up(&self, connection: &ConnectionState) -> Option<HangUp> {
        let watch = connection.client_watch()?;
        Some(Box::new(move || watch.client_gone()))
    }

    fn exchanged(&self, connection: &ConnectionState, traffic: MessageTraffic) {
        self.commands.count_message(connection, traffic);
    }

    fn disconnected(&self, connection: ConnectionState, stream: StreamState) {
        self.commands.disconnected(connection, stream);
    }

    fn stalled(&self, connection: &mut ConnectionState, unsent_bytes: usize) {
        connection.stall(self.commands.catalog().query_memory(), unsent_bytes);
    }

    fn resumed(&self, connection: &mut ConnectionState) {
        connection.resume();
    }
}
