//! The rights that a request needs: the check between the login of its client and its command.
//!
//! # Terms
//! - *Access*: the need of a command ([`Access`]). Its row in the registry names it.
//! - *Claim*: a request, with the user and the authority of its client ([`Claim`]).
//!
//! # Steps
//! 1. A command whose access is a single action is checked against the authority of the client at once.
//! 2. The need of any other command depends on its body. A function of this folder reads it.
//! 3. A denial becomes the error [`ErrorCode::Unauthorized`] in MongoDB's words.
//!
//! # Invariants
//! - The check reads every field of a name, not the first one only. So a request that names a field twice is
//!   never judged by the harmless one. A document within it that names its user, role or collection twice is
//!   refused ([`check_named_once`](crate::arguments::check_named_once)).
//! - A body that the check cannot read is left to its command, which refuses it: the check then needs the
//!   rights of the parts that it could read.
//! - A view is judged by its own name. The rights on the collection below are needed to define it.
//!
//! # Not here
//! The rows that a command leaves out of its answer for lack of rights: the command itself, such as
//! `listDatabases`, does that.

pub(crate) mod accounts;
mod collections;
mod pipelines;
mod server;
mod writes;

use std::collections::BTreeSet;

use pando_access::{Action, Authority, RoleName, Target, UserName};
use pando_document::{DocumentError, DocumentWriter, RawDocument, RawDocumentBuf, RawValue};
use pando_query::shell_text::document_text;

pub(crate) use self::collections::{
    begin_load, change_collection, clone_as_capped, create, data_size, file_md5, list_collections, profile,
    rename_collection,
};
pub(crate) use self::pipelines::aggregate;
pub(crate) use self::server::{
    backup, current_op, diagnostic_data, kill_sessions_by_pattern, list_databases, verify,
};
pub(crate) use self::writes::{bulk_write, delete, find_and_modify, insert, update};
use crate::operations::without_keys;
use crate::{CommandError, ErrorCode, Request};

/// Explanations of explanations that the check follows.
const EXPLANATIONS_MAX: usize = 100;

/// The need of a command.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// None: it is there for clients that have not logged in.
    Anyone,
    /// A login, and no right.
    LoggedIn,
    /// An action on the collection that the command names.
    Collection(Action),
    /// An action on the database of the request.
    Database(Action),
    /// An action on the cluster.
    Cluster(Action),
    /// As the body says.
    Request(fn(&Claim<'_>) -> Result<(), Denial>),
    /// That of the command in the value of its field.
    Explained,
}

/// A request, with the user and the authority of its client.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub user: Option<&'a UserName>,
    /// The roles of the user, those that they inherit included.
    pub roles: &'a BTreeSet<RoleName>,
    pub authority: &'a Authority,
    pub database: &'a str,
    pub request: &'a Request<'a>,
    /// The need of a command by its name.
    pub access_of: fn(&str) -> Option<Access>,
}

/// The reason for which a request is not carried out.
#[derive(Debug)]
pub(crate) enum Denial {
    /// Its client lacks a right.
    Rights,
    /// It is malformed.
    Malformed(CommandError),
}

impl From<CommandError> for Denial {
    fn from(error: CommandError) -> Denial {
        Denial::Malformed(error)
    }
}

impl From<DocumentError> for Denial {
    fn from(error: DocumentError) -> Denial {
        Denial::Malformed(error.into())
    }
}

impl<'a> Claim<'a> {
    /// Checks that its client may do what the command needs.
    #[inline]
    pub fn check(&self, access: Access) -> Result<(), Denial> {
        match access {
            Access::Anyone | Access::LoggedIn => Ok(()),
            Access::Collection(action) => self.need_on(action, self.collection()),
            Access::Database(action) => self.need(action, Target::Database(self.database)),
            Access::Cluster(action) => self.need(action, Target::Cluster),
            Access::Request(check) => check(self),
            Access::Explained => self.check_explained(),
        }
    }

    /// `explain` needs the rights of the command that it explains.
    fn check_explained(&self) -> Result<(), Denial> {
        let mut outer = self.request.body;
        for _ in 0..EXPLANATIONS_MAX {
            let Some(Ok((_, RawValue::Document(inner)))) = outer.iter().next() else { return Ok(()) };
            check_explained_database(inner, self.database)?;
            let request = Request::of(inner);
            let Ok((name, _)) = request.command() else { return Ok(()) };
            match (self.access_of)(name) {
                None => return Ok(()),
                // The command refuses an explanation of an explanation.
                Some(Access::Explained) => outer = inner,
                Some(access) => return Claim { request: &request, ..*self }.check(access),
            }
        }
        Err(Denial::Rights)
    }

    /// Needs an action on a target.
    #[inline]
    pub fn need(&self, action: Action, target: Target<'_>) -> Result<(), Denial> {
        match self.authority.allows(action, target) {
            true => Ok(()),
            false => Err(Denial::Rights),
        }
    }

    /// Needs an action on a collection of the request's database.
    #[inline]
    pub fn need_on(&self, action: Action, collection: &str) -> Result<(), Denial> {
        self.need(action, Target::Collection { database: self.database, collection })
    }

    /// The collection that the command names. A value that is no name is refused by the command.
    pub fn collection(&self) -> &'a str {
        self.request.command().ok().and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Needs the right to pass over validators, where the request asks for that.
    fn need_bypass(&self, database: &str, collection: &str) -> Result<(), Denial> {
        if self.has_true_field("bypassDocumentValidation")? {
            self.need(Action::BypassDocumentValidation, Target::Collection { database, collection })?;
        }
        Ok(())
    }

    /// Whether a field of this name is true in the body.
    fn has_true_field(&self, name: &str) -> Result<bool, Denial> {
        has_true_field(self.request.body, name)
    }

    /// The fields behind the command's own.
    fn fields(&self) -> impl Iterator<Item = Result<(&'a str, RawValue<'a>), DocumentError>> + use<'a> {
        self.request.body.iter().skip(1)
    }
}

/// Whether a field of this name is true in a document.
fn has_true_field(document: &RawDocument, name: &str) -> Result<bool, Denial> {
    for field in document.iter() {
        let (found, value) = field?;
        if found == name && value.to_bool() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a command to explain that names another database than `explain` itself.
pub(crate) fn check_explained_database(inner: &RawDocument, database: &str) -> Result<(), CommandError> {
    for field in inner.iter() {
        match field? {
            ("$db", RawValue::String(named)) if named != database => {
                let sentence =
                    format!("Mismatched $db in explain command. Expected {database} but got {named}");
                return Err(CommandError::failed(ErrorCode::InvalidNamespace, sentence));
            }
            ("$db", RawValue::String(_)) => {}
            ("$db", other) => {
                let kind = other.element_type().alias();
                let sentence = format!("wrong type for field ($db) {kind} != string");
                return Err(CommandError::failed(ErrorCode::Location(13_111), sentence));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The error of a request whose client lacks a right.
#[cold]
pub(crate) fn not_authorized(request: &Request<'_>, database: &str) -> CommandError {
    let shown = without_secrets(request.body);
    CommandError::failed(
        ErrorCode::Unauthorized,
        format!("not authorized on {database} to execute command {}", document_text(&shown)),
    )
}

/// The error of a request whose client has to log in before.
#[cold]
pub(crate) fn requires_login(command: &str) -> CommandError {
    CommandError::failed(ErrorCode::Unauthorized, format!("command {command} requires authentication"))
}

/// A command as messages show it: its password stays hidden.
fn without_secrets(body: &RawDocument) -> RawDocumentBuf {
    // The message stands in the profile, too.
    let hidden = without_keys(body, &|name| name == "pwd");
    let body = hidden.as_deref().unwrap_or(body);
    let mut bytes = Vec::new();
    let mut out = DocumentWriter::begin(&mut bytes);
    for (name, value) in body.iter().map_while(Result::ok) {
        match name {
            "pwd" => out.append_str(name, "xxx"),
            "payload" => {}
            _ => out.append(name, value),
        }
    }
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests;
