//! The credentials of a new password.

use pando_access::scram::{Credential, Mechanism, ScramFault};
use pando_document::RawValue;

use crate::arguments::Argument;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// All mechanisms, in the order in which documents have them.
pub(super) const MECHANISMS: [Mechanism; 2] = [Mechanism::ScramSha1, Mechanism::ScramSha256];

/// The form in which a password comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PasswordForm {
    /// As the user types it.
    Plain,
    /// Digested by MD5, as clients of SCRAM-SHA-1 may send it: `digestPassword: false`.
    Digested,
}

/// The field `mechanisms`.
pub(super) fn read_mechanisms(argument: &Argument<'_>) -> Result<Vec<Mechanism>, CommandError> {
    let refused = |sentence: String| Err(CommandError::failed(ErrorCode::BadValue, sentence));
    let mut mechanisms = Vec::new();
    for (at, element) in argument.array()?.iter().enumerate() {
        let name = match element? {
            RawValue::String(name) => name,
            other => return Err(argument.wrong_element(at, other, "type 'string'")),
        };
        match Mechanism::of_name(name) {
            Some(mechanism) => mechanisms.push(mechanism),
            None => return refused(format!("Unknown auth mechanism '{name}'")),
        }
    }
    if mechanisms.is_empty() {
        return refused("mechanisms field must not be empty".to_owned());
    }
    Ok(mechanisms)
}

/// Derives the credentials. Takes tens of milliseconds.
pub(super) fn derive(
    context: &Context<'_>,
    user: &str,
    password: &str,
    form: PasswordForm,
    mechanisms: &[Mechanism],
) -> Result<Vec<Credential>, CommandError> {
    if form == PasswordForm::Digested && mechanisms.contains(&Mechanism::ScramSha256) {
        return Err(CommandError::failed(
            ErrorCode::BadValue,
            "Use of SCRAM-SHA-256 requires undigested passwords",
        ));
    }
    let wanted = MECHANISMS.into_iter().filter(|mechanism| mechanisms.contains(mechanism));
    wanted.map(|mechanism| derive_one(context, user, password, form, mechanism)).collect()
}

fn derive_one(
    context: &Context<'_>,
    user: &str,
    password: &str,
    form: PasswordForm,
    mechanism: Mechanism,
) -> Result<Credential, CommandError> {
    let secret = match form {
        PasswordForm::Digested => password.to_owned(),
        PasswordForm::Plain if mechanism == Mechanism::ScramSha256 && password.is_empty() => {
            return Err(CommandError::failed(
                ErrorCode::Location(50_687),
                "Error preflighting UTF-8 conversion: the password is empty",
            ));
        }
        PasswordForm::Plain => mechanism.secret(user, password).map_err(|fault| {
            let reason = match fault {
                ScramFault::NotBuilt => {
                    "beyond ASCII, for which this build has no rules: build it with the feature 'saslprep' of pandodb"
                }
                _ => "that SASLprep prohibits",
            };
            let sentence = format!("Error preflighting normalization: the password has a character {reason}");
            CommandError::failed(ErrorCode::Location(50_692), sentence)
        })?,
    };
    let mut salt = vec![0; mechanism.salt_bytes()];
    context.shared.environment.random().fill(&mut salt);
    Ok(Credential::derive(mechanism, &secret, &salt, mechanism.rounds()))
}
