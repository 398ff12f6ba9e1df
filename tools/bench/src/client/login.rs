//! Logging in over MongoDB's protocol: `saslStart` and `saslContinue` on a connection that has greeted the
//! server.
//!
//! # Invariant
//! User and password are in no message, no file and no `Debug` of this tool: what may be shown of a login is
//! the mechanism and the database that knows the user.

use super::Session;
use crate::error::BenchError;
use pando_access::scram::Mechanism;
use pando_access::scram_client::{Exchange, Keys, ServerFault};
use pando_document::{Binary, Document, Value, doc};
use std::fmt;

/// Bytes of a nonce.
const NONCE_BYTES: usize = 24;
/// An exchange has three replies; a server that goes on is none.
const REPLIES_MAX: u32 = 4;

/// A user, and the way to log in.
pub struct Login {
    user: String,
    password: String,
    source: String,
    mechanism: Option<Mechanism>,
    keys: Keys,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login(authSource {})", self.source)
    }
}

impl Login {
    /// A user that the database `source` knows; without a mechanism the best that the server has for this
    /// user.
    pub fn new(user: String, password: String, source: String, mechanism: Option<Mechanism>) -> Login {
        Login { user, password, source, mechanism, keys: Keys::default() }
    }

    /// The question of `hello` for the mechanisms of this user.
    pub fn asks_hello(&self) -> String {
        format!("{}.{}", self.source, self.user)
    }

    /// Logs in, on a connection whose greeting had this answer.
    pub fn perform(&self, session: &mut Session, greeting: &Document) -> Result<(), BenchError> {
        let mechanism = self.mechanism.unwrap_or_else(|| best_of(greeting));
        let refused = |cause: String| BenchError::Login {
            mechanism: mechanism.name(),
            source_database: self.source.clone(),
            cause,
        };
        let fault = |fault: ServerFault| refused(format!("the server is not what it should be: {fault}"));
        let secret =
            mechanism.secret(&self.user, &self.password).map_err(|fault| refused(fault.to_string()))?;
        let mut exchange = Exchange::new(mechanism, &self.user, secret, nonce()?);
        let start = doc! {
            "saslStart": 1,
            "mechanism": mechanism.name(),
            "payload": binary(exchange.first()),
            "options": { "skipEmptyExchange": true },
        };
        let ask = |session: &mut Session, command| {
            session.command(&self.source, command).map_err(|error| match error {
                BenchError::Refused { code, message, .. } => refused(format!("{message} (code {code})")),
                error => error,
            })
        };
        let first = ask(session, start)?;
        let conversation = first.get("conversationId").cloned().unwrap_or(Value::Int32(1));
        let go_on =
            |payload| doc! { "saslContinue": 1, "conversationId": conversation.clone(), "payload": payload };
        let answer = exchange.answer(&payload(&first), &self.keys).map_err(fault)?;
        let mut reply = ask(session, go_on(binary(answer)))?;
        exchange.check(&payload(&reply)).map_err(fault)?;
        for _ in 0..REPLIES_MAX {
            if reply.get("done").and_then(Value::as_bool) == Some(true) {
                return Ok(());
            }
            reply = ask(session, go_on(binary(String::new())))?;
        }
        Err(fault(ServerFault::Form))
    }
}

/// The best mechanism that the answer to a greeting names; older servers name none, and have SHA-1.
fn best_of(greeting: &Document) -> Mechanism {
    let named = greeting.get("saslSupportedMechs").and_then(Value::as_array);
    let has = |mechanism: &Mechanism| {
        named.is_some_and(|named| named.iter().any(|name| name.as_str() == Some(mechanism.name())))
    };
    Mechanism::ALL.into_iter().find(has).unwrap_or(Mechanism::ScramSha1)
}

fn nonce() -> Result<String, BenchError> {
    use base64::Engine as _;
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| BenchError::Resource {
        what: "random bytes",
        source: std::io::Error::other(error),
    })?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

fn binary(message: String) -> Value {
    Value::Binary(Binary { subtype: 0, bytes: message.into_bytes() })
}

fn payload(reply: &Document) -> String {
    match reply.get("payload") {
        Some(Value::Binary(binary)) => String::from_utf8_lossy(&binary.bytes).into_owned(),
        Some(value) => value.as_str().unwrap_or_default().to_owned(),
        None => String::new(),
    }
}
