//! The thread that accepts connections and gives each to the I/O thread that has the fewest.
//!
//! Where the process has no descriptor left, each listener is tried again after a pause. The unix socket
//! comes first then, because an operator may come through it.
//!
//! One thread serves all listeners and sleeps nearly always. docs/decisions/0002-network-side.md says why
//! there is no listener for each I/O thread.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tracing::{error, warn};

use super::inbox::{Inbox, Urgency, WAKE_TOKEN};
use super::listener::Listener;
use super::permits::{NoPermit, Permits};
use super::stream::Peer;
use super::thread_state::{Accepted, ThreadMessage};

/// The pause after an error that would come again at once, such as no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);
/// One log line reports the refused connections of this time.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// While connections cannot be accepted, one log line in this time says so.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// The acceptor, before its thread runs.
pub(crate) struct Acceptor<S> {
    poll: Poll,
    inbox: Arc<Inbox<()>>,
    listeners: Vec<Listener>,
    permits: Permits,
    threads: Vec<Arc<Inbox<ThreadMessage<S>>>>,
    refusals: Refusals,
    /// Tells the handler of a refused connection.
    on_refusal: Box<dyn Fn() + Send>,
    /// Listeners with a connection that could not be accepted.
    again: Vec<usize>,
    /// When a log line said that connections cannot be accepted.
    warned: Option<Instant>,
}

impl<S: Send + 'static> Acceptor<S> {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        permits: Permits,
        threads: Vec<Arc<Inbox<ThreadMessage<S>>>>,
        on_refusal: Box<dyn Fn() + Send>,
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
        Ok(Acceptor {
            poll,
            inbox,
            listeners,
            permits,
            threads,
            refusals: Refusals::default(),
            on_refusal,
            again: Vec::new(),
            warned: None,
        })
    }

    /// The inbox, in which any message ends the acceptor.
    pub(crate) fn inbox(&self) -> Arc<Inbox<()>> {
        Arc::clone(&self.inbox)
    }

    /// Accepts until told to stop; then closes the listeners.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(16);
        while self.inbox.may_sleep() {
            let polled = self.poll.poll(&mut events, self.sleep_max());
            self.inbox.awake();
            if let Err(error) = polled
                && error.kind() != io::ErrorKind::Interrupted
            {
                error!("cannot wait for new connections ({error}); trying again; open connections go on");
                thread::sleep(PAUSE);
            }
            let reported = events.iter().map(|event| event.token()).filter(|token| *token != WAKE_TOKEN);
            let mut due = std::mem::take(&mut self.again);
            due.extend(reported.map(|token| token.0));
            // The unix socket is the last of the listeners.
            due.sort_unstable();
            due.dedup();
            due.into_iter().rev().for_each(|number| self.accept_all(number));
            self.refusals.report();
        }
    }

    /// The longest time to the next thing to do, if there is one without an event.
    fn sleep_max(&self) -> Option<Duration> {
        let retry = (!self.again.is_empty()).then_some(PAUSE);
        [retry, self.refusals.report_due()].into_iter().flatten().min()
    }

    /// Accepts every connection that waits at one listener, because its event does not come a second time. A
    /// listener that gives none for now is tried again.
    fn accept_all(&mut self, number: usize) {
        loop {
            match self.listeners[number].accept() {
                Ok((stream, peer)) => match self.permits.claim(peer.address()) {
                    Ok((thread, permit)) => {
                        let security = self.listeners[number].security().clone();
                        let message = ThreadMessage::Accepted(Accepted { stream, peer, permit, security });
                        self.threads[thread].push(message, Urgency::Now);
                    }
                    Err(reason) => {
                        (self.on_refusal)();
                        self.refusals.add(peer, reason);
                    }
                },
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // The peer has given up already, or a signal came: no error of the server.
                    io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::InvalidInput => {}
                    _ => {
                        self.warn_of(number, &error);
                        self.again.push(number);
                        return;
                    }
                },
            }
        }
    }

    /// Warns that a listener gives no connection, unless a line of the last while has said so.
    fn warn_of(&mut self, number: usize, error: &io::Error) {
        if self.warned.is_some_and(|warned| warned.elapsed() < WARN_EVERY) {
            return;
        }
        self.warned = Some(Instant::now());
        warn!(
            "cannot accept a connection on {} ({error}); trying again ten times a second; if files are short, raise the \
             limit of open files (ulimit -n) or lower --max-connections",
            self.listeners[number].endpoint()
        );
    }
}

/// Connections that were refused since the last report.
#[derive(Default)]
struct Refusals {
    count: usize,
    last: Option<(Peer, NoPermit)>,
    reported: Option<Instant>,
}

impl Refusals {
    fn add(&mut self, peer: Peer, reason: NoPermit) {
        self.count += 1;
        self.last = Some((peer, reason));
    }

    /// The time until a report is due, if there is a refusal to report.
    fn report_due(&self) -> Option<Duration> {
        let since = self.reported.map_or(REPORT_EVERY, |reported| reported.elapsed());
        (self.count > 0).then(|| REPORT_EVERY.saturating_sub(since))
    }

    fn report(&mut self) {
        if self.report_due() == Some(Duration::ZERO)
            && let Some((last, reason)) = &self.last
        {
            match reason {
                NoPermit::All(max) => warn!(
                    "refused {} connections, the last from {last}: {max} are open, which is the limit; raise \
                     --max-connections or, where the start has told that it is lower, the limit of open files (ulimit -n, \
                     LimitNOFILE), or close idle clients",
                    self.count
                ),
                NoPermit::OfAddress(max) => warn!(
                    "refused {} connections, the last from {last}: its address has {max} open, which is the limit; raise \
                     --max-connections-per-address or close idle clients there",
                    self.count
                ),
            }
            *self = Refusals { count: 0, last: None, reported: Some(Instant::now()) };
        }
    }
}
