//! The login by the certificate that a client has shown in its TLS handshake (MONGODB-X509).
//!
//! The issuer of the certificate was verified there. Its subject in the form of RFC 2253 is the name of a
//! user in the database `$external`, which has no password.

use pando_access::UserName;
use pando_document::{DocumentWriter, RawDocument};

use super::{accept, authentication_failed, check_one_user, refused};
use crate::access::{Login, Place};
use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// The database of users without a password.
const EXTERNAL: &str = "$external";
/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "MONGODB-X509";

/// Logs the user of the certificate in. A client may say which it expects. Gives its name.
pub(crate) fn log_in(
    context: &mut Context<'_>,
    database: &str,
    expected: Option<&str>,
    place: Place,
) -> Result<String, CommandError> {
    context.require_may_block()?;
    context.shared.access.logins.note_begin(MECHANISM, place);
    if database != EXTERNAL {
        let sentence = "X.509 authentication must always use the $external database.";
        return Err(CommandError::failed(ErrorCode::ProtocolError, sentence));
    }
    let failed = |context: &mut Context<'_>, user: Option<&UserName>, sentence: &str| {
        let _in_other_words = refused(context, user, MECHANISM, &sentence);
        CommandError::failed(ErrorCode::AuthenticationFailed, sentence)
    };
    let Some(subject) = context.connection.certificate_subject().map(str::to_owned) else {
        return Err(failed(context, None, "No verified subject name available from client"));
    };
    let user = UserName::new(subject.as_str(), EXTERNAL);
    if expected.is_some_and(|expected| expected != subject) {
        let sentence = "There is no x.509 client certificate matching the user.";
        return Err(failed(context, Some(&user), sentence));
    }
    check_one_user(context, &user)?;
    let generation = context.shared.access.generation();
    let ends = context.connection.ends();
    match Login::of_known_name(context.catalog(), &user, ends, generation)? {
        Ok(Some(login)) => {
            accept(context, login, MECHANISM, place);
            Ok(subject)
        }
        // The client knows its certificate, so that the name is no secret to it.
        Ok(None) => {
            let _in_other_words = refused(context, Some(&user), MECHANISM, &"there is no such user");
            let sentence = format!("Could not find user \"{subject}\" for db \"{EXTERNAL}\"");
            Err(CommandError::failed(ErrorCode::UserNotFound, sentence))
        }
        Err(fault) => {
            let _in_other_words = refused(context, Some(&user), MECHANISM, &fault);
            Err(authentication_failed())
        }
    }
}

/// Logs in where a `hello` asks for it; `None` if it names another mechanism.
pub(super) fn log_in_within_hello(
    context: &mut Context<'_>,
    asked: &RawDocument,
) -> Result<Option<String>, CommandError> {
    let (mut mechanism, mut database, mut user) = (None, None, None);
    for argument in Arguments::of_command("authenticate", asked) {
        let argument = argument?;
        match argument.name {
            "mechanism" => mechanism = argument.string()?,
            "db" => database = argument.string()?,
            "user" => user = argument.string()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    match mechanism {
        Some(MECHANISM) => log_in(context, database.unwrap_or(EXTERNAL), user, Place::Hello).map(Some),
        _ => Ok(None),
    }
}

/// Writes the fields of the reply.
pub(crate) fn write(user: &str, reply: &mut DocumentWriter<'_>) {
    reply.append_str("dbname", EXTERNAL);
    reply.append_str("user", user);
}
