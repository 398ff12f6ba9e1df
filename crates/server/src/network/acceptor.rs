//! The thread that accepts connections and gives each to the I/O thread that has the fewest.
//!
//! One thread for all listeners, which sleeps nearly always. docs/decisions/0002-network-side.md says why there is no
//! listener for each I/O thread.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tracing::{error, warn};

use super::desk::{Accepted, Note};
use super::inbox::{Inbox, Urgency, WAKE_TOKEN};
use super::listener::Listener;
use super::permits::Permits;

/// After an error that will come again at once (no file descriptors left) the acceptor pauses.
const PAUSE: Duration = Duration::from_millis(100);
/// Refused connections are reported together, at most once in this time.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// The acceptor, before its thread runs.
pub(crate) struct Acceptor<S> {
    poll: Poll,
    inbox: Arc<Inbox<()>>,
    listeners: Vec<Listener>,
    permits: Permits,
    threads: Vec<Arc<Inbox<Note<S>>>>,
    refusals: Refusals,
}

impl<S: Send + 'static> Acceptor<S> {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        permits: Permits,
        threads: Vec<Arc<Inbox<Note<S>>>>,
    ) -> io::Result<Acceptor<S>> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(&poll)?);
        for (number, listener) in listeners.iter().enumerate() {
            poll.registry().register(
                &mut SourceFd(&listener.raw_socket()),
                Token(number),
                Interest::READABLE,
            )?;
        }
        Ok(Acceptor { poll, inbox, listeners, permits, threads, refusals: Refusals::default() })
    }

    /// Any message to it ends the acceptor.
    pub(crate) fn inbox(&self) -> Arc<Inbox<()>> {
        Arc::clone(&self.inbox)
    }

    /// Accepts until told to stop; then closes the listeners.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(16);
        while self.inbox.may_sleep() {
            let polled = self.poll.poll(&mut events, self.refusals.report_due());
            self.inbox.awake();
            if let Err(error) = polled
                && error.kind() != io::ErrorKind::Interrupted
            {
                error!(%error, "cannot wait for connections");
                thread::sleep(PAUSE);
            }
            for event in &events {
                if event.token() != WAKE_TOKEN {
                    self.accept_all(event.token().0);
                }
            }
            self.refusals.report();
        }
    }

    /// Takes everything that waits at one listener, since its event will not come again for it.
    fn accept_all(&mut self, number: usize) {
        loop {
            match self.listeners[number].accept() {
                Ok((stream, peer)) => match self.permits.claim() {
                    Some((thread, permit)) => {
                        let note = Note::Accepted(Accepted { stream, peer, permit });
                        self.threads[thread].push(note, Urgency::Now);
                    }
                    None => self.refusals.count += 1,
                },
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // The peer has given up already, or a signal came: not this side's business.
                    io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::InvalidInput => {}
                    _ => {
                        warn!(%error, "cannot accept a connection");
                        thread::sleep(PAUSE);
                        if !self.inbox.may_sleep() {
                            return;
                        }
                        self.inbox.awake();
                    }
                },
            }
        }
    }
}

/// Connections that were refused since the last report.
#[derive(Default)]
struct Refusals {
    count: usize,
    reported: Option<Instant>,
}

impl Refusals {
    /// How long until a report is due, if there is anything to report.
    fn report_due(&self) -> Option<Duration> {
        let since = self.reported.map_or(REPORT_EVERY, |reported| reported.elapsed());
        (self.count > 0).then(|| REPORT_EVERY.saturating_sub(since))
    }

    fn report(&mut self) {
        if self.report_due() == Some(Duration::ZERO) {
            warn!(refused = self.count, "connections refused: there are as many as --max-connections allows");
            *self = Refusals { count: 0, reported: Some(Instant::now()) };
        }
    }
}
