//! The figures of logins by mechanism, as `serverStatus` shows them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The mechanisms, in the order in which they are shown.
pub(crate) const MECHANISMS: [&str; 4] = ["MONGODB-X509", "PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"];

/// The place of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A command of its own.
    Command,
    /// In a `hello`.
    Hello,
}

/// The figures of one mechanism.
#[derive(Debug, Default)]
struct Figures {
    begun: AtomicU64,
    done: AtomicU64,
    begun_within_hello: AtomicU64,
    done_within_hello: AtomicU64,
}

/// The same as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoginFigures {
    pub begun: u64,
    pub done: u64,
    /// Those of them that a `hello` has begun.
    pub begun_within_hello: u64,
    pub done_within_hello: u64,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct LoginCounters {
    mechanisms: [Figures; MECHANISMS.len()],
    asked_for_mechanisms: AtomicU64,
}

impl LoginCounters {
    fn of(&self, mechanism: &str) -> Option<&Figures> {
        MECHANISMS.iter().position(|known| *known == mechanism).map(|at| &self.mechanisms[at])
    }

    /// A login has begun.
    pub fn note_begin(&self, mechanism: &str, place: Place) {
        let Some(figures) = self.of(mechanism) else { return };
        figures.begun.fetch_add(1, Ordering::Relaxed);
        if place == Place::Hello {
            figures.begun_within_hello.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A login has succeeded.
    pub fn note_success(&self, mechanism: &str, place: Place) {
        let Some(figures) = self.of(mechanism) else { return };
        figures.done.fetch_add(1, Ordering::Relaxed);
        if place == Place::Hello {
            figures.done_within_hello.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A client has asked for the mechanisms of a user.
    pub fn note_question(&self) {
        self.asked_for_mechanisms.fetch_add(1, Ordering::Relaxed);
    }

    /// How often clients have asked for the mechanisms of a user.
    pub fn questions(&self) -> u64 {
        self.asked_for_mechanisms.load(Ordering::Relaxed)
    }

    /// The figures of a mechanism.
    pub fn figures(&self, mechanism: &str) -> LoginFigures {
        let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.of(mechanism).map_or_else(LoginFigures::default, |figures| LoginFigures {
            begun: number(&figures.begun),
            done: number(&figures.done),
            begun_within_hello: number(&figures.begun_within_hello),
            done_within_hello: number(&figures.done_within_hello),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_counted_by_mechanism_and_place() {
        let counters = LoginCounters::default();
        counters.note_begin("PLAIN", Place::Command);
        counters.note_begin("SCRAM-SHA-256", Place::Hello);
        counters.note_success("SCRAM-SHA-256", Place::Hello);
        counters.note_begin("no such", Place::Command);
        let hello = LoginFigures { begun: 1, done: 1, begun_within_hello: 1, done_within_hello: 1 };
        assert_eq!(counters.figures("SCRAM-SHA-256"), hello);
        assert_eq!(counters.figures("PLAIN"), LoginFigures { begun: 1, ..LoginFigures::default() });
        assert_eq!(counters.figures("no such"), LoginFigures::default());
    }
}
