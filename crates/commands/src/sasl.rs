//! The login of a client by SASL: the steps that `saslStart`, `saslContinue` and a speculative `hello` share.
//!
//! # Invariants
//! - A client cannot tell a user that there is not from a wrong password: the same messages, computed in the
//!   same way, and the same error. (The mechanisms that a user has can be asked for; drivers need them.)
//! - A failed login ends its conversation. After some, those that follow from the same address wait
//!   (`access/failed_logins.rs`).
//! - The reason of a failure is in the log and never in the reply.

pub(crate) mod by_certificate;
mod by_password;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_access::UserName;
use pando_access::scram::{ClientFirst, Credential, Mechanism};
use pando_document::{DocumentWriter, RawBinary, RawDocument, RawValue};
use pando_environment::Monotonic;

use crate::access::{Answer, Conversation, Exchanges, Login, Place};
use crate::accounts::store;
use crate::arguments::{Argument, Arguments, missing};
use crate::context::Context;
use crate::log_limiter::Admission;
use crate::{CommandError, ErrorCode};

/// The number of every conversation, as in MongoDB: a connection has one at a time.
pub(crate) const CONVERSATION: i32 = 1;
/// Random bytes of the server's part of a nonce.
const NONCE_BYTES: usize = 24;
/// The longest name of a user that a log line shows.
const SHOWN_NAME_CHARACTERS_MAX: usize = 64;

/// The fields of `saslStart`.
pub(crate) struct Start<'a> {
    mechanism: &'a str,
    payload: Payload,
    exchanges: Exchanges,
    place: Place,
    /// The database of the user, where a speculative login names it.
    pub database: Option<&'a str>,
}

/// The message of the mechanism.
pub(crate) struct Payload {
    pub bytes: Vec<u8>,
    form: PayloadForm,
}

/// The form of a message; the answer has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadForm {
    Binary,
    Base64,
}

/// The answer to a message of a client.
pub(crate) struct Outcome {
    payload: Vec<u8>,
    form: PayloadForm,
    stage: Stage,
}

/// Whether the client owes a further message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    UnderWay,
    Done,
}

impl Payload {
    /// Reads the field.
    pub fn read(value: RawValue<'_>) -> Result<Payload, CommandError> {
        match value {
            RawValue::Binary(RawBinary { bytes, .. }) => {
                Ok(Payload { bytes: bytes.to_vec(), form: PayloadForm::Binary })
            }
            RawValue::String(text) => match STANDARD.decode(text) {
                Ok(bytes) => Ok(Payload { bytes, form: PayloadForm::Base64 }),
                Err(_) => Err(CommandError::failed(
                    ErrorCode::Location(10_270),
                    "Failed decoding SASL payload: invalid base64",
                )),
            },
            other => Err(CommandError::failed(
                ErrorCode::BadValue,
                format!(
                    "Invalid SASLPayload type. Expected Base64 or BinData, got: {}",
                    other.element_type().alias()
                ),
            )),
        }
    }

    /// The answer to it.
    pub fn answered(&self, payload: Vec<u8>, stage: Stage) -> Outcome {
        Outcome { payload, form: self.form, stage }
    }
}

impl Outcome {
    /// Writes the fields of the reply.
    pub fn write(&self, reply: &mut DocumentWriter<'_>) {
        reply.append_i32("conversationId", CONVERSATION);
        reply.append_bool("done", self.stage == Stage::Done);
        match self.form {
            PayloadForm::Binary => {
                reply.append("payload", RawValue::Binary(RawBinary { subtype: 0, bytes: &self.payload }));
            }
            PayloadForm::Base64 => reply.append_str("payload", &STANDARD.encode(&self.payload)),
        }
    }
}

impl<'a> Start<'a> {
    /// Reads the fields.
    pub fn read(body: &'a RawDocument, place: Place) -> Result<Start<'a>, CommandError> {
        let (mut mechanism, mut payload, mut database) = (None, None, None);
        let mut exchanges = Exchanges::WithEmpty;
        for argument in Arguments::of_command("saslStart", body) {
            let argument = argument?;
            match argument.name {
                "mechanism" => mechanism = argument.string()?,
                "payload" => payload = Some(argument.value),
                "autoAuthorize" => drop(argument.lenient_boolean()?),
                "options" => {
                    if let Some(options) = argument.document()? {
                        exchanges = read_exchanges(options)?;
                    }
                }
                "db" if place == Place::Hello => database = argument.string()?,
                _ => argument.refuse_unless_generic()?,
            }
        }
        let mechanism = mechanism.ok_or_else(|| missing("saslStart", "mechanism"))?;
        let payload = Payload::read(payload.ok_or_else(|| missing("saslStart", "payload"))?)?;
        Ok(Start { mechanism, payload, exchanges, place, database })
    }

    /// Begins a conversation on the connection, in the place of one that is under way.
    pub fn begin(&self, context: &mut Context<'_>, database: &str) -> Result<Outcome, CommandError> {
        context.require_may_block()?;
        context.connection.hold_conversation(None);
        context.shared.access.logins.note_begin(self.mechanism, self.place);
        delay_reply(context);
        if self.mechanism == by_password::MECHANISM {
            return by_password::begin(context, database, &self.payload, self.place);
        }
        let Some(mechanism) = Mechanism::of_name(self.mechanism) else {
            return Err(unavailable(self.mechanism, database));
        };
        let first = match ClientFirst::read(&self.payload.bytes) {
            Ok(first) => first,
            Err(fault) => return Err(refused(context, None, self.mechanism, &fault)),
        };
        let user = UserName::new(first.user.as_str(), database);
        // Both for every name, so that the time does not tell whether there is such a user.
        let decoy = context.shared.access.decoys(context.catalog());
        let decoy = decoy.credential(mechanism, database, &user.name);
        let credential = match store::user(context.catalog(), &user)? {
            None => decoy,
            Some(record) => match record.credential(mechanism) {
                Some(credential) => credential.clone(),
                None => {
                    let reason = "the user has no such credential";
                    return Err(refused(context, Some(&user), self.mechanism, &reason));
                }
            },
        };
        let nonce = server_nonce(context);
        let (conversation, payload) =
            Conversation::begin((database, self.place), &first, credential, &nonce, self.exchanges);
        context.connection.hold_conversation(Some(conversation));
        Ok(self.payload.answered(payload, Stage::UnderWay))
    }
}

fn read_exchanges(options: &RawDocument) -> Result<Exchanges, CommandError> {
    match options.get("skipEmptyExchange")? {
        None | Some(RawValue::Boolean(false)) => Ok(Exchanges::WithEmpty),
        Some(RawValue::Boolean(true)) => Ok(Exchanges::WithoutEmpty),
        Some(_) => Err(CommandError::failed(ErrorCode::BadValue, "skipEmptyExchange must be boolean")),
    }
}

fn unavailable(mechanism: &str, database: &str) -> CommandError {
    let is_known =
        mechanism == "MONGODB-X509" || (mechanism == by_password::MECHANISM && database == "$external");
    let sentence = match is_known {
        true => {
            format!("Unsupported mechanism '{mechanism}' on authentication database '{database}'")
        }
        false => format!("Received authentication for mechanism {mechanism} which is not enabled"),
    };
    CommandError::failed(ErrorCode::MechanismUnavailable, sentence)
}

fn server_nonce(context: &Context<'_>) -> String {
    let mut bytes = [0; NONCE_BYTES];
    context.shared.environment.random().fill(&mut bytes);
    STANDARD.encode(bytes)
}

/// Goes on with the conversation of the connection.
pub(crate) fn go_on(context: &mut Context<'_>, payload: &Payload) -> Result<Outcome, CommandError> {
    context.require_may_block()?;
    let Some(conversation) = context.connection.take_conversation() else { return Err(no_conversation()) };
    delay_reply(context);
    let user = conversation.user().clone();
    let mechanism = conversation.mechanism().name();
    let place = conversation.place();
    match conversation.go_on(&payload.bytes) {
        Err(fault) => {
            let reason = reason_for_log(context, &user, &fault);
            Err(refused(context, Some(&user), mechanism, &reason))
        }
        Ok(Answer::More(reply, conversation)) => {
            context.connection.hold_conversation(Some(conversation));
            Ok(payload.answered(reply, Stage::UnderWay))
        }
        Ok(Answer::Proved(reply, user, credential)) => {
            log_in(context, &user, &credential, mechanism, place)?;
            Ok(payload.answered(reply, Stage::Done))
        }
    }
}

/// Why a proof failed, for the log alone: the client may not learn which users there are.
fn reason_for_log(context: &Context<'_>, user: &UserName, fault: &dyn std::fmt::Display) -> String {
    match store::user(context.catalog(), user) {
        Ok(None) => "there is no such user; a user is of one database, which a client names with authSource"
            .to_owned(),
        Ok(Some(_)) | Err(_) => fault.to_string(),
    }
}

/// The error of a message without a conversation.
pub(crate) fn no_conversation() -> CommandError {
    CommandError::failed(ErrorCode::ProtocolError, "No SASL session state found")
}

/// Logs the user of a proved credential in.
fn log_in(
    context: &mut Context<'_>,
    user: &UserName,
    credential: &Credential,
    mechanism: &str,
    place: Place,
) -> Result<(), CommandError> {
    check_one_user(context, user)?;
    let generation = context.shared.access.generation();
    let ends = context.connection.ends();
    match Login::of_credential(context.catalog(), user, credential, ends, generation)? {
        Err(fault) => Err(refused(context, Some(user), mechanism, &fault)),
        Ok(login) => {
            accept(context, login, mechanism, place);
            Ok(())
        }
    }
}

/// Notes a login that has succeeded.
fn accept(context: &mut Context<'_>, login: Login, mechanism: &str, place: Place) {
    context.shared.access.logins.note_success(mechanism, place);
    tracing::debug!(
        user = %shown_name(&login.user),
        mechanism,
        "logged in {}",
        context.connection.peer()
    );
    let user = login.user.clone();
    context.connection.set_login(Some(login));
    context.audit_login(Some(&user), mechanism, 0);
}

/// Refuses a second user on a connection.
fn check_one_user(context: &Context<'_>, user: &UserName) -> Result<(), CommandError> {
    if let Some(before) = context.connection.login()
        && before.user != *user
    {
        // The words and codes of MongoDB.
        let (code, sentence) = match before.user.database == user.database {
            true => (
                5_626_702,
                format!(
                    "Client has attempted to authenticate on multiple databases.Already authenticated as: {}",
                    before.user
                ),
            ),
            false => (
                5_626_701,
                format!(
                    "Each client connection may only be authenticated once. Previously authenticated as: {}",
                    before.user
                ),
            ),
        };
        return Err(CommandError::failed(ErrorCode::Location(code), sentence));
    }
    Ok(())
}

/// Has the reply wait for as long as the failures from its address say.
fn delay_reply(context: &mut Context<'_>) {
    let now = context.shared.environment.clock().monotonic();
    let client = context.connection.ends().client;
    if let Some(moment) = context.shared.access.failed_logins.free_at(client, now) {
        context.await_moment(moment);
    }
}

/// The one error of a failed login. Notes the failure, and its reason in the log.
fn refused(
    context: &mut Context<'_>,
    user: Option<&UserName>,
    mechanism: &str,
    reason: &dyn std::fmt::Display,
) -> CommandError {
    context.audit_login(user, mechanism, ErrorCode::AuthenticationFailed.code());
    let now = context.shared.environment.clock().monotonic();
    let client = context.connection.ends().client;
    if let Some(moment) = context.shared.access.failed_logins.note(client, now) {
        context.await_moment(moment);
    }
    log_refusal(context, user, now, reason);
    authentication_failed()
}

/// Writes a line about a refused login, unless strangers have caused enough of them. The audit trail has
/// every one.
fn log_refusal(
    context: &Context<'_>,
    user: Option<&UserName>,
    now: Monotonic,
    reason: &dyn std::fmt::Display,
) {
    let admission = context.shared.access.refused_lines.lock().admit(now.since_start());
    let Admission::Written { left_out } = admission else { return };
    if left_out > 0 {
        tracing::info!("left out {left_out} log lines about other refused logins");
    }
    tracing::info!(
        user = %user.map(shown_name).unwrap_or_default(),
        "refused a login from {}: {reason}",
        context.connection.peer()
    );
}

/// The error of every failed login.
pub(crate) fn authentication_failed() -> CommandError {
    CommandError::failed(ErrorCode::AuthenticationFailed, "Authentication failed.")
}

/// A name for the log: a stranger may have chosen it.
fn shown_name(user: &UserName) -> String {
    let name: String = user.name.chars().take(SHOWN_NAME_CHARACTERS_MAX).collect();
    format!("{}@{}", name.escape_debug(), user.database.escape_debug())
}

/// Writes the mechanisms of a user that a client asks for. One that there is not seems to have all.
pub(crate) fn write_mechanisms(
    context: &Context<'_>,
    asked: Argument<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let user = asked_user(asked)?;
    context.shared.access.logins.note_question();
    let mut mechanisms = vec![Mechanism::ScramSha256, Mechanism::ScramSha1];
    if let Some(record) = store::user(context.catalog(), &user)? {
        mechanisms.retain(|mechanism| record.credential(*mechanism).is_some());
    }
    let mut names = reply.array("saslSupportedMechs");
    for mechanism in mechanisms {
        names.push(RawValue::String(mechanism.name()));
    }
    names.finish();
    Ok(())
}

/// The user of `saslSupportedMechs`: `"admin.ada"`, or `{user: "ada", db: "admin"}`.
fn asked_user(asked: Argument<'_>) -> Result<UserName, CommandError> {
    let refused = |sentence: &str| Err(CommandError::failed(ErrorCode::BadValue, sentence));
    match asked.value {
        RawValue::String(text) => match text.split_once('.') {
            Some((database, user)) => Ok(UserName::new(user, database)),
            None => refused("UserName must contain a '.' separated database.user pair"),
        },
        RawValue::Document(document) => {
            let part = |name| document.get(name).map(|value| value.and_then(|value| value.as_str()));
            match (part("user")?, part("db")?) {
                (None, _) => refused("UserName must contain a field named: user"),
                (_, None) => refused("UserName must contain a field named: db"),
                (Some(user), Some(database)) => Ok(UserName::new(user, database)),
            }
        }
        _ => Err(asked.wrong_type("types '[string, object']")),
    }
}

/// Answers the speculative login of a `hello`. One that cannot begin is passed over without a word: the
/// client logs in afterwards.
pub(crate) fn write_speculative(
    context: &mut Context<'_>,
    asked: Argument<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let RawValue::Document(asked_document) = asked.value else {
        return Err(asked.wrong_type("type 'object'"));
    };
    let refused = |code, sentence: String| Err(CommandError::failed(code, sentence));
    match asked_document.iter().next().transpose()? {
        None => refused(
            ErrorCode::BadValue,
            "hello.speculativeAuthenticate must be a non-empty Object".to_owned(),
        ),
        Some(("authenticate", _)) => match by_certificate::log_in_within_hello(context, asked_document) {
            Ok(Some(user)) => {
                let mut answer = reply.document("speculativeAuthenticate");
                by_certificate::write(&user, &mut answer);
                answer.finish();
                Ok(())
            }
            Ok(None) | Err(CommandError::Failed(_)) => Ok(()),
            Err(error) => Err(error),
        },
        // A client whose password goes with its first message sends none in a hello.
        Some(("saslStart", _)) if by_password::is_asked_for(asked_document) => Ok(()),
        Some(("saslStart", _)) => {
            let begun = Start::read(asked_document, Place::Hello).and_then(|start| match start.database {
                None => Err(authentication_failed()),
                Some(database) => start.begin(context, database),
            });
            match begun {
                Ok(outcome) => {
                    let mut answer = reply.document("speculativeAuthenticate");
                    outcome.write(&mut answer);
                    answer.finish();
                    Ok(())
                }
                Err(CommandError::Failed(_)) => Ok(()),
                Err(error) => Err(error),
            }
        }
        Some((name, _)) => refused(
            ErrorCode::Location(51_769),
            format!("hello.speculativeAuthenticate unknown command: {name}"),
        ),
    }
}
