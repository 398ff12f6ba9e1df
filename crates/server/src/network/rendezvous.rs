//! How an I/O thread and a thread of the blocking pool meet again over a connection, at the cost of a wake-up only if there is
//! a reason for one.
//!
//! The pool thread sends the reply itself and then leaves the connection's state in the inbox. Normally the client needs a
//! moment to ask again, its question wakes the I/O thread, and that finds the state in its inbox: nobody was woken only to be
//! told. If the client's next bytes come earlier, the I/O thread says that it *wants* the connection back:
//!
//! ```text
//!            depart              want                     come_back
//!   (home) ----------> AWAY ----------> WANTED ------------------------> BACK, and the I/O thread is woken
//!                        \                 come_back
//!                         \--------------------------------------------> BACK, and nobody is woken
//! ```
//!
//! Invariant: the state is in the inbox before `come_back`, so that whoever sees BACK finds it there.

use std::sync::atomic::{AtomicU8, Ordering};

const BACK: u8 = 0;
const AWAY: u8 = 1;
const WANTED: u8 = 2;

/// Where a connection's state is.
#[derive(Debug, Default)]
pub(crate) struct Rendezvous {
    state: AtomicU8,
}

/// What the pool thread does after it has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// Somebody waits: wake the I/O thread.
    Awaited,
    /// Nobody waits.
    Unnoticed,
}

/// What the I/O thread learns when it wants a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// In the inbox.
    InInbox,
    /// Still away; its return will wake the thread.
    StillAway,
}

impl Rendezvous {
    /// The I/O thread sends a request away.
    pub(crate) fn depart(&self) {
        self.state.store(AWAY, Ordering::Release);
    }

    /// The I/O thread has something to do for the connection.
    pub(crate) fn want(&self) -> Whereabouts {
        match self.state.compare_exchange(AWAY, WANTED, Ordering::AcqRel, Ordering::Acquire) {
            Err(BACK) => Whereabouts::InInbox,
            Ok(_) | Err(_) => Whereabouts::StillAway,
        }
    }

    /// The pool thread has left the connection's state in the inbox.
    pub(crate) fn come_back(&self) -> Welcome {
        match self.state.swap(BACK, Ordering::AcqRel) {
            WANTED => Welcome::Awaited,
            _ => Welcome::Unnoticed,
        }
    }
}
