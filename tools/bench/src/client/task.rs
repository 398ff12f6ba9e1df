//! The task of a client that has a thread of its own and waits for each reply. Stores behind a driver are
//! tasks, and so are units whose next step depends on the last reply.
//!
//! 1. [`Task::prepare`] chooses the next unit. Its cost is the client's own and in no latency.
//! 2. [`Task::perform`] does it, and says how it went.

use super::script::{Kind, Note, Turn, Verdict};
use crate::error::BenchError;
use std::time::Duration;

/// The work of one client.
pub trait Task: Send {
    /// Chooses the next unit; [`Turn::Over`] when there is nothing left to do.
    fn prepare(&mut self) -> Turn;

    /// Does it.
    fn perform(&mut self) -> Performed;

    /// Is called after a unit that was counted: it ended within the window, and not in the warm-up.
    fn counted(&mut self) {}

    /// Counts of its own since it began. They are looked at before each unit.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// A unit that was done.
#[derive(Clone, Debug)]
pub struct Performed {
    /// The statements in it that are told apart.
    pub statements: Vec<Statement>,
    /// How it went as a whole.
    pub verdict: Verdict,
    /// Operations that were done by it, if it did not fail.
    pub operations: u32,
    /// How often something in it was done once more because the server said that it may work now.
    pub retries: u64,
    /// Whether the client can go on.
    pub client: ClientState,
}

impl Performed {
    /// A unit of one statement that ended so. After an error other than a refusal the connection is lost.
    pub fn of(kind: Kind, latency: Duration, outcome: Result<Verdict, BenchError>) -> Performed {
        let client = match outcome {
            Ok(_) | Err(BenchError::Refused { .. }) => ClientState::GoesOn,
            Err(_) => ClientState::Out,
        };
        let verdict = outcome.unwrap_or_else(|error| Verdict::Failed(error.to_string()));
        let statements = vec![Statement { kind, latency, verdict: verdict.clone() }];
        Performed { statements, verdict, operations: 1, retries: 0, client }
    }
}

/// A statement within a unit.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind.
    pub kind: Kind,
    /// How long it took.
    pub latency: Duration,
    /// How it went.
    pub verdict: Verdict,
}

/// Whether a client can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// It can.
    GoesOn,
    /// Its connection is lost, or it has failed too often.
    Out,
}
