//! The limits in time of connections that owe something: a handshake, the rest of a message, room for
//! replies.
//!
//! A connection is put on the list of its I/O thread where it begins to owe. The thread looks at the listed
//! connections once a second, so that a connection which is served in time costs two comparisons.

use std::fmt;
use std::time::{Duration, Instant};

use super::thread_state::Slot;

/// The time between two looks at the listed connections.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A debt of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Debt {
    /// Its first message, with a TLS handshake before it.
    FirstMessage,
    /// The rest of a message, while the client is not logged in.
    RestOfMessage,
    /// To read its replies, of which so many bytes wait.
    Reading(usize),
}

/// The time since when a connection owes something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    since: Option<(Debt, Instant)>,
}

/// The judgement at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// It owes nothing.
    Unneeded,
    /// It has time left.
    Left,
    /// Its time is over.
    Over(Debt),
}

/// The times that clients have.
#[derive(Clone, Copy, Debug)]
pub struct Patiences {
    /// For the first message, the handshake before it, and the rest of a message before the login; `None` is
    /// without end.
    pub opening: Option<Duration>,
    /// Without reading a byte of a reply; `None` is without end.
    pub reading: Option<Duration>,
}

impl Patiences {
    /// No limit.
    pub const UNLIMITED: Patiences = Patiences { opening: None, reading: None };

    fn of(&self, debt: Debt) -> Option<Duration> {
        match debt {
            Debt::FirstMessage | Debt::RestOfMessage => self.opening,
            Debt::Reading(_) => self.reading,
        }
    }
}

impl Owed {
    /// Judges the debt of now. A client that reads a part of its replies begins anew.
    pub(super) fn judge(&mut self, debt: Option<Debt>, patiences: &Patiences, now: Instant) -> Patience {
        let Some(debt) = debt else {
            self.since = None;
            return Patience::Unneeded;
        };
        let since = match self.since {
            Some((before, since)) if before == debt => since,
            _ => now,
        };
        self.since = Some((debt, since));
        match patiences.of(debt) {
            Some(limit) if now.saturating_duration_since(since) >= limit => Patience::Over(debt),
            _ => Patience::Left,
        }
    }

    /// The connection has sent a whole message.
    pub(super) fn settle(&mut self) {
        self.since = None;
    }
}

/// For the log: what the client has failed to do, and for how long.
impl fmt::Display for Debt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Debt::FirstMessage => f.write_str("its first message did not come in time (--handshake-timeout)"),
            Debt::RestOfMessage => {
                f.write_str("a message before the login did not come whole in time (--handshake-timeout)")
            }
            Debt::Reading(bytes) => {
                write!(f, "its client reads nothing, and {bytes} bytes of replies wait (--write-timeout)")
            }
        }
    }
}

/// The listed connections of one I/O thread.
#[derive(Debug, Default)]
pub(super) struct WatchList {
    slots: Vec<Slot>,
    look_at: Option<Instant>,
}

impl WatchList {
    /// Lists a connection, which is not listed yet.
    pub(super) fn add(&mut self, slot: Slot) {
        self.slots.push(slot);
        if self.look_at.is_none() {
            self.look_at = Some(Instant::now() + LOOK_EVERY);
        }
    }

    /// The time until the next look, if a connection is listed.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.look_at.map(|look_at| look_at.saturating_duration_since(Instant::now()))
    }

    /// Takes the list if a look is due. The caller adds those that stay.
    pub(super) fn take_due(&mut self) -> Option<(Vec<Slot>, Instant)> {
        let now = Instant::now();
        if self.look_at? > now {
            return None;
        }
        self.look_at = None;
        let mut slots = std::mem::take(&mut self.slots);
        // A connection that is gone leaves its slot in the list, and the next one in that slot adds it again.
        slots.sort_unstable();
        slots.dedup();
        Some((slots, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_reads_a_part_has_its_time_anew() {
        let patiences =
            Patiences { opening: Some(Duration::from_secs(3)), reading: Some(Duration::from_secs(5)) };
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut owed = Owed::default();
        assert_eq!(owed.judge(None, &patiences, at(0)), Patience::Unneeded);
        assert_eq!(owed.judge(Some(Debt::Reading(10)), &patiences, at(0)), Patience::Left);
        assert_eq!(owed.judge(Some(Debt::Reading(9)), &patiences, at(4)), Patience::Left);
        assert_eq!(owed.judge(Some(Debt::Reading(9)), &patiences, at(8)), Patience::Left);
        assert_eq!(owed.judge(Some(Debt::Reading(9)), &patiences, at(9)), Patience::Over(Debt::Reading(9)));
        let mut owed = Owed::default();
        assert_eq!(owed.judge(Some(Debt::FirstMessage), &patiences, at(0)), Patience::Left);
        owed.settle();
        assert_eq!(owed.judge(Some(Debt::FirstMessage), &patiences, at(3)), Patience::Left);
        assert_eq!(owed.judge(Some(Debt::FirstMessage), &Patiences::UNLIMITED, at(99)), Patience::Left);
    }
}
