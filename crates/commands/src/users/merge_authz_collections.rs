//! `_mergeAuthzCollections`: the way by which mongorestore brings users and roles. It loads their documents
//! into collections of its own, which this command takes over.

use std::collections::BTreeMap;

use pando_access::{RoleName, UserName};
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use super::account_change::{AccountChange, carry_out};
use crate::accounts::store::{self, ROLES, USERS};
use crate::accounts::{RoleRecord, UserRecord};
use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The fields of a request.
struct Merge<'a> {
    /// The collection with the documents, and the one that takes them.
    sources: Vec<(&'a str, &'static str)>,
    /// The database whose users and roles are taken; empty for all.
    database: &'a str,
    rest: Rest,
}

/// The fate of users and roles that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Kept,
    /// Those that come replace them, and the others go.
    Dropped,
}

/// Takes the documents over.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let merge = Merge::read(request.body)?;
    carry_out(context, |context| {
        let mut changes = Vec::new();
        for (source, target) in &merge.sources {
            merge.changes(context, source, target, &mut changes)?;
        }
        Ok((changes, ()))
    })
}

impl<'a> Merge<'a> {
    fn read(body: &'a RawDocument) -> Result<Merge<'a>, CommandError> {
        const COMMAND: &str = "_mergeAuthzCollections";
        let (mut users, mut roles, mut database, mut rest) = (None, None, None, None);
        for argument in Arguments::of_command(COMMAND, body) {
            let argument = argument?;
            match argument.name {
                "tempUsersCollection" => users = argument.string()?,
                "tempRolesCollection" => roles = argument.string()?,
                "db" => database = argument.string()?,
                "drop" => rest = argument.lenient_boolean()?,
                _ => argument.refuse_unless_generic()?,
            }
        }
        let database = database.ok_or_else(|| missing(COMMAND, "db"))?;
        let rest = rest.ok_or_else(|| missing(COMMAND, "drop"))?;
        let sources = [(users, USERS), (roles, ROLES)];
        let named = |(source, target): (Option<&'a str>, _)| {
            source.filter(|source| !source.is_empty()).map(|source| (source, target))
        };
        let sources: Vec<_> = sources.into_iter().filter_map(named).collect();
        if sources.is_empty() {
            return Err(CommandError::failed(
                ErrorCode::BadValue,
                "Must provide at least one of \"tempUsersCollection\" and \"tempRolescollection\"",
            ));
        }
        Ok(Merge { sources, database, rest: if rest { Rest::Dropped } else { Rest::Kept } })
    }

    /// The changes of one collection.
    fn changes(
        &self,
        context: &Context<'_>,
        source: &str,
        target: &'static str,
        changes: &mut Vec<AccountChange>,
    ) -> Result<(), CommandError> {
        let mut coming = BTreeMap::new();
        for document in read_source(context, source)? {
            if self.takes(&document)? {
                let key = checked_key(&document, target)?;
                coming.insert(key, document);
            }
        }
        for (key, before) in store::all(context.catalog(), target, context.operation)? {
            match coming.remove(&key) {
                // As in MongoDB: one that is there stays, unless all are to be replaced.
                Some(_) if self.rest == Rest::Kept => {}
                Some(document) => {
                    let (before, after) = (Some(before), Some(Document::from_raw(&document)?));
                    changes.push(AccountChange { collection: target, key, before, after });
                }
                None if self.rest == Rest::Dropped && self.takes(&before)? => {
                    changes.push(AccountChange::removal(target, key, before));
                }
                None => {}
            }
        }
        for (key, document) in coming {
            let after = Some(Document::from_raw(&document)?);
            changes.push(AccountChange { collection: target, key, before: None, after });
        }
        Ok(())
    }

    fn takes(&self, document: &RawDocument) -> Result<bool, CommandError> {
        Ok(self.database.is_empty() || store::is_of_database(document, self.database)?)
    }
}

/// The documents of a collection that a client has loaded.
fn read_source(context: &Context<'_>, source: &str) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let Some((database, collection)) = source.split_once('.') else {
        let sentence = format!("{source} is not a valid namespace");
        return Err(CommandError::failed(ErrorCode::InvalidNamespace, sentence));
    };
    store::documents_of(context.catalog(), database, collection, context.operation)
}

/// The `_id` of a document, which has to be one of a user or of a role.
fn checked_key(document: &RawDocument, target: &str) -> Result<String, CommandError> {
    let key = match target {
        USERS => UserRecord::read(document)?
            .map(|record| UserRecord::key(&UserName::new(record.name.name, record.name.database))),
        _ => RoleRecord::read(document)?
            .map(|record| RoleRecord::key(&RoleName::new(record.name.name, record.name.database))),
    };
    match (key, document.get("_id")?) {
        (Some(key), Some(RawValue::String(id))) if key == id => Ok(key),
        _ => Err(CommandError::failed(
            ErrorCode::BadValue,
            format!(
                "a document to be merged into {target} is not one of that collection: its `_id`, its name or its \
                     credentials are missing or do not go together"
            ),
        )),
    }
}
