//! The login by a name and a password as they are (PLAIN), where the server offers it: over TLS, or through
//! the unix socket.
//!
//! The password is checked against the stored keys of the user, in the same time for every name. That takes
//! the rounds of the credential, some milliseconds on a thread that may wait.
//!
//! Some clients send this mechanism to the database `$external` only, whose users have no password. They mean
//! whoever keeps the passwords, and this is the database `admin` here. The login is that of the user in
//! `admin`, never that of a user of `$external` with the same name.

use pando_access::UserName;
use pando_access::plain::PlainMessage;
use pando_access::scram::Mechanism;
use pando_document::RawDocument;

use super::{Outcome, Payload, Stage, log_in, refused, unavailable};
use crate::access::{Place, PlainLogins};
use crate::accounts::store;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "PLAIN";
/// Stored keys of more rounds are for SCRAM only, where the client computes them.
const ROUNDS_MAX: u32 = 100_000;
/// The database of users without a password.
const EXTERNAL: &str = "$external";
/// The database of the users whom clients mean that name the other one.
const ADMIN: &str = "admin";

/// Logs the user of the message in.
pub(super) fn begin(
    context: &mut Context<'_>,
    database: &str,
    payload: &Payload,
    place: Place,
) -> Result<Outcome, CommandError> {
    if context.shared.options.plain_logins == PlainLogins::Refused {
        return Err(unavailable(MECHANISM, database));
    }
    let database = if database == EXTERNAL { ADMIN } else { database };
    if !context.connection.is_protected() {
        let _in_other_words = refused(context, None, MECHANISM, &"it came without TLS");
        let sentence = "PLAIN sends the password as it is, so it needs TLS or the unix socket";
        return Err(CommandError::failed(ErrorCode::MechanismUnavailable, sentence));
    }
    let message = match PlainMessage::read(&payload.bytes) {
        Ok(message) => message,
        Err(fault) => return Err(refused(context, None, MECHANISM, &fault)),
    };
    let user = UserName::new(message.user.as_str(), database);
    let record = store::user(context.catalog(), &user)?;
    let stored = Mechanism::ALL
        .iter()
        .find_map(|mechanism| record.as_ref().and_then(|record| record.credential(*mechanism)))
        .filter(|credential| credential.rounds <= ROUNDS_MAX)
        .cloned();
    let decoy = context.shared.access.decoys(context.catalog()).credential(
        Mechanism::ScramSha256,
        database,
        &user.name,
    );
    let is_there = stored.is_some();
    let credential = stored.unwrap_or(decoy);
    if !credential.is_of(&user.name, &message.password) || !is_there {
        return Err(refused(context, Some(&user), MECHANISM, &"the name or the password is wrong"));
    }
    log_in(context, &user, &credential, MECHANISM, place)?;
    Ok(payload.answered(Vec::new(), Stage::Done))
}

/// Whether a document asks for this mechanism, whose password no speculative login carries.
pub(super) fn is_asked_for(document: &RawDocument) -> bool {
    matches!(document.get("mechanism"), Ok(Some(value)) if value.as_str() == Some(MECHANISM))
}
