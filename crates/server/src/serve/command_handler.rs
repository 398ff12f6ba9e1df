//! Between the network side and the commands: two vocabularies for the same things.

use std::sync::atomic::{AtomicI64, Ordering};

use pando_commands::{BlockingMode, Commands, ConnectionState, DocumentSequence, ReplyWhen};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_wire::SEQUENCES_MAX;

use crate::network::{Attempt, Form, Handled, Handler, Outcome, Peer, Request};

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
        let request = pando_commands::Request { body, sequences };
        match self.commands.handle(connection, &request, blocking, reply) {
            pando_commands::Handled::WouldBlock(missed) => Handled::WouldBlock(missed),
            pando_commands::Handled::Reply(ReplyWhen::Now) => Handled::Reply,
            pando_commands::Handled::Reply(ReplyWhen::Durable(wait)) => {
                Handled::ReplyLater(Box::new(move |over| {
                    wait.on_done(Box::new(move |durable| {
                        over(if durable.is_ok() { Outcome::Send } else { Outcome::Close });
                    }));
                }))
            }
        }
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
        request: &Request<'_>,
        attempt: Attempt,
        reply: &mut Vec<u8>,
    ) -> Handled {
        let blocking = match attempt {
            Attempt::CachedOnly => BlockingMode::CachedOnly,
            Attempt::MayBlock => BlockingMode::MayBlock,
        };
        if request.form == Form::LegacyHello {
            return self.run(connection, &with_database(request.body), &[], blocking, reply);
        }
        let mut sequences = [DocumentSequence { identifier: "", documents: &[] }; SEQUENCES_MAX];
        for (slot, sequence) in sequences.iter_mut().zip(request.sequences) {
            *slot = DocumentSequence { identifier: sequence.identifier(), documents: sequence.bytes() };
        }
        self.run(connection, request.body, &sequences[..request.sequences.len()], blocking, reply)
    }

    fn stalled(&self, connection: &mut ConnectionState) {
        connection.let_go();
    }
}

/// A legacy command names its database in the namespace, and the only one that is let through is a hello, which asks no
/// database anything: it gets the `$db` that every other request has. Fields that cannot be read are left out with what
/// follows them; a hello without them is still one.
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
