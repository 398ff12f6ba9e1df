//! A keyed update: one that finds its document by `_id` and changes it by another document, as each statement
//! of a `$merge` does. It needs no parsed filter, no plan, and mostly no parsed update.
//!
//! Whatever is unusual (a name that is a path, another `_id` than before, a document that becomes too large)
//! is left to the statement in its general form, which gives the same where both can be carried out.

use std::sync::Arc;

use pando_catalog::{Collection, WriteTransaction};
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};
use pando_query::update::{Applied, PlainFields};

use super::update_statement::{Change, UpdateOutcome, Upsert, insert_made, replace_document};
use crate::CommandError;
use crate::context::Context;
use crate::validation::Validator;

/// See the module's head.
#[derive(Clone, Copy)]
pub(super) struct KeyedUpdate<'a> {
    id: RawValue<'a>,
    fields: &'a RawDocument,
    on_match: OnMatch,
}

/// The change of a document that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnMatch {
    /// The fields are set in it.
    Set,
    /// It stays as it is.
    Keep,
}

impl<'a> KeyedUpdate<'a> {
    /// The update by a document; `None` where equality with its `_id` is not equality of keys.
    pub fn of(fields: &'a RawDocument, on_match: OnMatch) -> Result<Option<KeyedUpdate<'a>>, CommandError> {
        let id = fields.get("_id")?;
        let has_key = |id: &RawValue<'_>| {
            use RawValue as V;
            !matches!(id, V::Null | V::Undefined | V::Array(_) | V::Regex(_) | V::Document(_))
        };
        Ok(id.filter(has_key).map(|id| KeyedUpdate { id, fields, on_match }))
    }

    /// Carries the update out. `None`: nothing is done, and the general form has to do it.
    pub fn run(
        &self,
        upsert: Upsert,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
    ) -> Result<Option<UpdateOutcome>, CommandError> {
        context.check()?;
        let Some(fields) = PlainFields::of(self.fields)? else { return Ok(None) };
        let id = collection.id_key(self.id);
        let key = collection.locate(&**transaction, &id, context.blocking)?;
        let old = match &key {
            Some(key) => collection.fetch(&**transaction, key, context.blocking)?,
            None => None,
        };
        let (Some(key), Some(old)) = (key, old) else {
            return match upsert {
                Upsert::Yes => self.insert(&fields, context, collection, transaction),
                Upsert::No => Ok(Some(self.examined(context, UpdateOutcome::default()))),
            };
        };
        let document = RawDocument::from_bytes(&old)?;
        let applied = match self.on_match {
            OnMatch::Set => fields.set_in(document)?,
            OnMatch::Keep => Some(Applied::Unchanged),
        };
        let Some(applied) = applied else { return Ok(None) };
        let mut outcome = UpdateOutcome { matched: 1, ..UpdateOutcome::default() };
        if let Applied::Changed(new) = applied {
            let validator = Validator::of(context, collection)?;
            let change = Change { key: &key, old: document, new: &new };
            replace_document(change, validator.as_ref(), context, collection, transaction)?;
            outcome.modified = 1;
        }
        Ok(Some(self.examined(context, outcome)))
    }

    /// Inserts the document that an upsert makes: the `_id`, and the other fields behind it.
    fn insert(
        &self,
        fields: &PlainFields<'_>,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
    ) -> Result<Option<UpdateOutcome>, CommandError> {
        let mut bytes = Vec::with_capacity(32);
        let mut seed = DocumentWriter::begin(&mut bytes);
        seed.append("_id", self.id);
        seed.finish();
        let seed = RawDocumentBuf::from_vec(bytes)?;
        let made = match fields.set_in(&seed)? {
            None => return Ok(None),
            Some(Applied::Unchanged) => seed,
            Some(Applied::Changed(new)) => new,
        };
        let validator = Validator::of(context, collection)?;
        let stored = insert_made(&made, validator.as_ref(), context, collection, transaction)?;
        let upserted = stored.get("_id")?.map(|id| id.to_owned());
        Ok(Some(self.examined(context, UpdateOutcome { upserted, ..UpdateOutcome::default() })))
    }

    /// Counts the document that was looked for.
    fn examined(&self, context: &Context<'_>, outcome: UpdateOutcome) -> UpdateOutcome {
        context.operation.usage().add_examined(1, 1);
        outcome
    }
}
