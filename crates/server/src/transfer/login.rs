//! The login of a client: SCRAM with a password, or MONGODB-X509 with the certificate of its TLS.
//!
//! # Invariant
//! A password is in no message, no file and no `Debug`.

use std::fmt;

use base64::Engine as _;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use pando_access::scram::Mechanism;
use pando_access::scram_client::{Exchange, Keys, ServerFault};

use super::error::TransferError;
use super::target::Target;

/// Bytes of a nonce.
const NONCE_BYTES: usize = 24;
/// An exchange has three replies; a server that goes on is none.
const REPLIES_MAX: u32 = 4;

/// The mechanism that a connection string names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginMechanism {
    /// A password.
    Scram(Mechanism),
    /// A certificate.
    X509,
}

/// A user, and the way to log in.
pub(super) enum Login {
    /// By a password.
    Password { user: String, password: String, source: String, mechanism: Option<Mechanism> },
    /// By the certificate that TLS has shown; the name, if it is given, has to be its subject.
    Certificate { user: Option<String> },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Login::Password { source, .. } => write!(f, "Login(authSource {source})"),
            Login::Certificate { .. } => f.write_str("Login(MONGODB-X509)"),
        }
    }
}

impl Login {
    /// A user that the database `source` knows; without a mechanism the best that the server has for this
    /// user.
    pub(super) fn of_password(
        user: String,
        password: String,
        source: String,
        mechanism: Option<Mechanism>,
    ) -> Login {
        Login::Password { user, password, source, mechanism }
    }

    pub(super) fn of_certificate(user: Option<String>) -> Login {
        Login::Certificate { user }
    }

    pub(super) fn is_of_certificate(&self) -> bool {
        matches!(self, Login::Certificate { .. })
    }

    /// The question of `hello` for the mechanisms of this user.
    pub(super) fn asks_hello(&self) -> Option<String> {
        match self {
            Login::Password { user, source, .. } => Some(format!("{source}.{user}")),
            Login::Certificate { .. } => None,
        }
    }

    /// Greets the server and logs in.
    pub(super) fn perform(&self, target: &mut dyn Target) -> Result<(), TransferError> {
        let mut hello = doc! { "hello": 1 };
        if let Some(question) = self.asks_hello() {
            hello.insert("saslSupportedMechs", question);
        }
        let greeting = target.run("admin", hello, None)?;
        match self {
            Login::Password { user, password, source, mechanism } => {
                let mechanism = mechanism.unwrap_or_else(|| best_of(&greeting));
                by_password(target, (user, password), source, mechanism)
            }
            Login::Certificate { user } => {
                let mut command = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
                if let Some(user) = user {
                    command.insert("user", user.as_str());
                }
                target
                    .run("$external", command, None)
                    .map(drop)
                    .map_err(|error| refused("MONGODB-X509", "$external", error))
            }
        }
    }
}

fn by_password(
    target: &mut dyn Target,
    (user, password): (&str, &str),
    source: &str,
    mechanism: Mechanism,
) -> Result<(), TransferError> {
    let failed = |cause: String| TransferError::Login {
        mechanism: mechanism.name(),
        source_database: source.to_owned(),
        cause,
    };
    let fault = |fault: ServerFault| failed(format!("the server is not what it should be: {fault}"));
    let secret = mechanism.secret(user, password).map_err(|fault| failed(fault.to_string()))?;
    let mut exchange = Exchange::new(mechanism, user, secret, nonce()?);
    let mut ask = |command: Document| {
        target.run(source, command, None).map_err(|error| refused(mechanism.name(), source, error))
    };
    let first = ask(doc! {
        "saslStart": 1,
        "mechanism": mechanism.name(),
        "payload": binary(exchange.first()),
        "options": { "skipEmptyExchange": true },
    })?;
    let conversation = first.get("conversationId").cloned().unwrap_or(Bson::Int32(1));
    let go_on = |payload: Bson| doc! { "saslContinue": 1, "conversationId": conversation.clone(), "payload": payload };
    let answer = exchange.answer(&payload(&first), &Keys::default()).map_err(fault)?;
    let mut reply = ask(go_on(binary(answer)))?;
    exchange.check(&payload(&reply)).map_err(fault)?;
    for _ in 0..REPLIES_MAX {
        if reply.get_bool("done").unwrap_or(false) {
            return Ok(());
        }
        reply = ask(go_on(binary(String::new())))?;
    }
    Err(failed("the server does not end the exchange".to_owned()))
}

/// The error of a login that the server refuses.
fn refused(mechanism: &'static str, source: &str, error: TransferError) -> TransferError {
    match error {
        TransferError::Refused { code, message } => TransferError::Login {
            mechanism,
            source_database: source.to_owned(),
            cause: format!("{message} (code {code})"),
        },
        other => other,
    }
}

/// The best mechanism that the answer to a greeting names; older servers name none, and have SHA-1.
fn best_of(greeting: &Document) -> Mechanism {
    let named = greeting.get_array("saslSupportedMechs").ok();
    let has = |mechanism: &Mechanism| {
        named.is_some_and(|named| named.iter().any(|name| name.as_str() == Some(mechanism.name())))
    };
    Mechanism::ALL.into_iter().find(has).unwrap_or(Mechanism::ScramSha1)
}

fn nonce() -> Result<String, TransferError> {
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TransferError::System(std::io::Error::other(error)))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

fn binary(message: String) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: message.into_bytes() })
}

fn payload(reply: &Document) -> String {
    match reply.get("payload") {
        Some(Bson::Binary(binary)) => String::from_utf8_lossy(&binary.bytes).into_owned(),
        Some(Bson::String(text)) => text.clone(),
        _ => String::new(),
    }
}
