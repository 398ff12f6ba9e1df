//! A login under way: the messages between `saslStart` and the last `saslContinue`. It belongs to the
//! connection that began it.
//!
//! 1. The client names its user, and is told salt and rounds.
//! 2. The client proves that it knows the password, and is given the proof that the server knows it as well.
//! 3. The client sends an empty message, unless it has agreed to skip that.

use pando_access::UserName;
use pando_access::scram::{ClientFirst, Credential, Exchange, Mechanism, ScramFault};

use super::login_counters::Place;

/// Whether the last exchange, which is empty, takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchanges {
    /// It does: drivers from before 2020 expect it.
    WithEmpty,
    /// The client has asked to skip it.
    WithoutEmpty,
}

/// A login under way.
#[derive(Debug)]
pub(crate) struct Conversation {
    user: UserName,
    place: Place,
    exchanges: Exchanges,
    step: Step,
}

/// The message that the client owes.
#[derive(Debug)]
enum Step {
    Proof(Box<Exchange>),
    /// The empty one. The client has proved that it knows the password of this credential.
    Empty(Box<Credential>),
}

/// The answer to a message.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The conversation goes on.
    More(Vec<u8>, Conversation),
    /// The client knows the password of this credential.
    Proved(Vec<u8>, UserName, Box<Credential>),
}

impl Conversation {
    /// Answers the first message. `server_nonce` is random.
    pub fn begin(
        (database, place): (&str, Place),
        first: &ClientFirst,
        credential: Credential,
        server_nonce: &str,
        exchanges: Exchanges,
    ) -> (Conversation, Vec<u8>) {
        let (exchange, reply) = Exchange::begin(first, credential, server_nonce);
        let user = UserName::new(first.user.as_str(), database);
        (Conversation { user, place, exchanges, step: Step::Proof(Box::new(exchange)) }, reply.into_bytes())
    }

    /// The user that the client has named.
    pub fn user(&self) -> &UserName {
        &self.user
    }

    /// The place of its first message.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The mechanism.
    pub fn mechanism(&self) -> Mechanism {
        match &self.step {
            Step::Proof(exchange) => exchange.credential().mechanism,
            Step::Empty(credential) => credential.mechanism,
        }
    }

    /// Answers a further message.
    ///
    /// # Errors
    /// The client has not proved that it knows the password. The conversation is over.
    pub fn go_on(self, message: &[u8]) -> Result<Answer, ScramFault> {
        let Conversation { user, place, exchanges, step } = self;
        match (step, exchanges) {
            (Step::Proof(exchange), _) => {
                let credential = Box::new(exchange.credential().clone());
                let reply = exchange.finish(message)?.into_bytes();
                Ok(match exchanges {
                    Exchanges::WithoutEmpty => Answer::Proved(reply, user, credential),
                    Exchanges::WithEmpty => {
                        let step = Step::Empty(credential);
                        Answer::More(reply, Conversation { user, place, exchanges, step })
                    }
                })
            }
            (Step::Empty(credential), _) => Ok(Answer::Proved(Vec::new(), user, credential)),
        }
    }
}
