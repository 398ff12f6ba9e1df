//! The opening of a connection: its first bytes say what it speaks, and a TLS handshake may follow.
//!
//! Where a listener offers TLS, a handshake is told from a message by the same bytes by which a foreign
//! protocol is recognised. So a connection that sends messages has no step more than without TLS.
//!
//! The handshake has a [phase](Phase::Handshake) of its own. Each turn reads once and answers once, so that
//! other connections of the thread have their turns between. Its bytes are bounded by the session, its time
//! by the watch list.

use std::io;
use std::sync::Arc;

use pando_wire::frame_length;

use super::Connection;
use crate::network::foreign_protocol::{self, ForeignProtocol};
use crate::network::handler::Handler;
use crate::network::phase::Phase;
use crate::network::security::{PlainText, Security};
use crate::network::stream::ReadOutcome;
use crate::network::thread_state::ThreadState;
use crate::network::tls_session::{Handshake, TlsSession};
use crate::network::watch::{Debt, Patience, Patiences};

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;
/// With so many bytes a handshake is told from a message.
const TELLING_BYTES: usize = 16;
/// The longest message of a client that has to log in first. The messages of a login, with the description
/// that a driver sends of itself, are far shorter.
pub(in crate::network) const UNTRUSTED_MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// The meaning of the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A message, or too few bytes to tell.
    Message,
    /// A TLS handshake that is welcome.
    Handshake,
    /// Another protocol, or a handshake where there is no TLS.
    Foreign(ForeignProtocol),
    /// A message where TLS is required.
    PlainRefused,
}

impl<S: Send + 'static> Connection<S> {
    /// Judges the bytes at the front of a connection.
    pub(super) fn judge_opening(&self, bytes: &[u8]) -> Opening {
        if self.speaks_wire {
            return Opening::Message;
        }
        match (foreign_protocol::recognise(bytes), &self.security) {
            (Some(ForeignProtocol::Tls), Security::Tls { .. }) => Opening::Handshake,
            (Some(protocol), _) => Opening::Foreign(protocol),
            (None, Security::Tls { plain: PlainText::Refused, .. })
                if !self.stream.is_encrypted()
                    && bytes
                        .first()
                        .is_some_and(|first| *first != TLS_HANDSHAKE || bytes.len() >= TELLING_BYTES) =>
            {
                Opening::PlainRefused
            }
            (None, _) => Opening::Message,
        }
    }

    /// Whether the input is part of a message whose rest has not come. A message that is refused in any case
    /// is not waited for.
    pub(super) fn awaits_rest<H: Handler<Session = S>>(&self, thread: &ThreadState<H>) -> bool {
        // An impossible length goes on, so that it is reported.
        match frame_length(&self.input) {
            _ if self.judge_opening(&self.input) != Opening::Message => false,
            Ok(None) => true,
            Ok(Some(length)) => length > self.input.len() && !self.is_too_long(length, thread),
            Err(_) => false,
        }
    }

    /// Whether a message of this length is too long for a client that has to log in first.
    pub(super) fn is_too_long<H: Handler<Session = S>>(
        &self,
        length: usize,
        thread: &ThreadState<H>,
    ) -> bool {
        length > UNTRUSTED_MESSAGE_BYTES_MAX
            && self.session.as_ref().is_some_and(|session| !thread.handler.is_trusted(session))
    }

    /// Acts on the first bytes, all of which are handled then, unless they are those of a message.
    pub(super) fn open<H: Handler<Session = S>>(
        &mut self,
        bytes: &[u8],
        thread: &mut ThreadState<H>,
    ) -> Opening {
        let opening = self.judge_opening(bytes);
        match opening {
            Opening::Message => {}
            Opening::Handshake => self.begin_handshake(bytes, thread),
            Opening::Foreign(protocol) => {
                thread.responder.refusals.warn(format_args!("closing connection {}: {protocol}", self.peer));
                thread.out.extend_from_slice(&protocol.answer());
                self.phase = Phase::Closing;
            }
            Opening::PlainRefused => {
                thread.responder.refusals.warn(format_args!(
                    "closing connection {}: it does not begin a TLS handshake, which --tls-mode requireTLS asks for; connect with \
                     tls=true",
                    self.peer
                ));
                self.phase = Phase::Closing;
            }
        }
        opening
    }

    fn begin_handshake<H: Handler<Session = S>>(&mut self, bytes: &[u8], thread: &mut ThreadState<H>) {
        let Security::Tls { tls, .. } = &self.security else { return };
        let session = match tls.session() {
            Ok(session) => TlsSession::new(session),
            Err(error) => {
                thread.responder.refusals.warn(format_args!("closing connection {}: {error}", self.peer));
                self.phase = Phase::Closing;
                return;
            }
        };
        self.phase = Phase::Handshake;
        let stream = Arc::get_mut(&mut self.stream).expect(NOT_SHARED_YET);
        stream.start_tls(session);
        let (session, socket) = stream.tls_mut().expect(HAS_SESSION);
        let begun = session.begin(socket, bytes, &mut self.input, &mut self.output);
        self.note_handshake(begun, thread);
    }

    /// Reads once for the handshake, and answers.
    pub(super) fn shake_hands<H: Handler<Session = S>>(&mut self, thread: &mut ThreadState<H>) {
        let stream = Arc::get_mut(&mut self.stream).expect(NOT_SHARED_YET);
        let (session, socket) = stream.tls_mut().expect(HAS_SESSION);
        let went_on = session.go_on(socket, &mut thread.records, &mut self.input, &mut self.output);
        self.note_handshake(went_on, thread);
    }

    fn note_handshake<H: Handler<Session = S>>(
        &mut self,
        result: io::Result<Handshake>,
        thread: &mut ThreadState<H>,
    ) {
        match result {
            Ok(Handshake::GoesOn(ReadOutcome::Filled)) => {}
            Ok(Handshake::GoesOn(ReadOutcome::Drained)) => self.readable = self.ended,
            Ok(Handshake::GoesOn(ReadOutcome::Ended)) => self.phase = Phase::Closing,
            Ok(Handshake::Complete) => {
                self.phase = Phase::Serving;
                let stream = Arc::get_mut(&mut self.stream).expect(NOT_SHARED_YET);
                let (tls, _) = stream.tls_mut().expect(HAS_SESSION);
                let session = self.session.as_mut().expect("the session is in the pool later than this");
                thread.handler.encrypted(session, tls.encryption());
            }
            Err(error) => {
                thread.responder.refusals.warn(format_args!(
                    "closing connection {}: its TLS handshake failed ({error}); look at the certificates of client and server, \
                     and at the client's tlsCAFile and tlsCertificateKeyFile",
                    self.peer
                ));
                self.phase = Phase::Closing;
            }
        }
    }

    /// Whether the watch list has to have it. `true` puts it there.
    pub(in crate::network) fn enlists(&mut self) -> bool {
        let owes = !self.speaks_wire || !self.output.is_empty() || !self.input.is_empty();
        owes && !std::mem::replace(&mut self.listed, true)
    }

    /// The judgement of the watch list. A connection that owes nothing leaves the list.
    pub(in crate::network) fn judge_debt<H: Handler<Session = S>>(
        &mut self,
        handler: &H,
        patiences: &Patiences,
        now: std::time::Instant,
    ) -> Patience {
        let debt = if !self.output.is_empty() {
            Some(Debt::Reading(self.output.len()))
        } else if !self.speaks_wire {
            Some(Debt::FirstMessage)
        } else {
            let untrusted = self.session.as_ref().is_some_and(|session| !handler.is_trusted(session));
            let waits = matches!(self.phase, Phase::Serving) && !self.input.is_empty();
            (waits && untrusted).then_some(Debt::RestOfMessage)
        };
        let patience = self.owed.judge(debt, patiences, now);
        self.listed = patience == Patience::Left;
        patience
    }
}

/// The reason why the stream can be changed.
const NOT_SHARED_YET: &str = "no request is in the pool before the handshake ends";
/// The reason why the stream has a session.
const HAS_SESSION: &str = "a handshake belongs to a session";
