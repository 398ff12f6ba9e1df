//! The modes of an import: insert, upsert, merge and delete, and the statements for each document.
//!
//! | mode | a document with the same key is there | it is not there |
//! |---|---|---|
//! | insert | refused, if the key is `_id` or has a unique index | inserted |
//! | upsert | replaced | inserted |
//! | merge | its fields are set | inserted |
//! | delete | deleted | nothing is done |
//!
//! The key is `_id`, or the fields of `--upsert-fields`. Upsert, merge and delete may be repeated: after a
//! second run the collection is as after the first.

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::record::{RecordError, encoded};
use super::resume_point::ResumePoint;
use super::target::Beside;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// Insert only.
    #[default]
    Insert,
    /// Insert or replace.
    Upsert,
    /// Insert or set fields.
    Merge,
    /// Delete.
    Delete,
}

impl WriteMode {
    /// The names on the command line.
    pub const NAMES: [&'static str; 4] = ["insert", "upsert", "merge", "delete"];

    /// The mode of a name.
    pub fn of_name(name: &str) -> Option<WriteMode> {
        match name {
            "insert" => Some(WriteMode::Insert),
            "upsert" => Some(WriteMode::Upsert),
            "merge" => Some(WriteMode::Merge),
            "delete" => Some(WriteMode::Delete),
            _ => None,
        }
    }
}

/// How documents are written.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The mode.
    pub mode: WriteMode,
    /// The fields by which a document is found.
    pub key_fields: Vec<String>,
    /// The write concern of each command.
    pub write_concern: Document,
    /// Further fields of each command, such as `bypassDocumentValidation`.
    pub command_fields: Document,
    /// The step after a fault of one document.
    pub after_fault: AfterFault,
}

/// The step after a fault of one document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFault {
    /// Report it and go on.
    #[default]
    GoOn,
    /// Report it and stop.
    Stop,
}

impl Default for Writing {
    fn default() -> Writing {
        Writing {
            mode: WriteMode::Insert,
            key_fields: vec!["_id".to_owned()],
            write_concern: doc! { "w": 1 },
            command_fields: Document::new(),
            after_fault: AfterFault::GoOn,
        }
    }
}

impl Writing {
    /// The command for statements that go beside it.
    pub(super) fn command(&self, collection: &str) -> Document {
        let name = match self.mode {
            WriteMode::Insert => "insert",
            WriteMode::Upsert | WriteMode::Merge => "update",
            WriteMode::Delete => "delete",
        };
        let mut command = doc! { name: collection, "ordered": self.after_fault == AfterFault::Stop };
        command.insert("writeConcern", self.write_concern.clone());
        command.extend(self.command_fields.clone());
        command
    }

    pub(super) fn beside<'d>(&self, statements: &'d [RawDocumentBuf]) -> Beside<'d> {
        let identifier = match self.mode {
            WriteMode::Insert => "documents",
            WriteMode::Upsert | WriteMode::Merge => "updates",
            WriteMode::Delete => "deletes",
        };
        Beside { identifier, documents: statements }
    }

    /// The statement for a document.
    pub(super) fn statement(
        &self,
        record: u64,
        document: RawDocumentBuf,
        point: &ResumePoint,
    ) -> Result<RawDocumentBuf, RecordError> {
        if self.mode == WriteMode::Insert {
            return Ok(point.identified(record, document));
        }
        let mut document = Document::try_from(&document)?;
        // Without a key the document is a new one. Its `_id` is the same in a second run.
        let key = self.key_of(&document).or_else(|missing| match self.mode {
            WriteMode::Delete => Err(RecordError::NoKey { field: missing }),
            _ => Ok(doc! { "_id": document.get("_id").cloned().unwrap_or_else(|| point.id(record).into()) }),
        })?;
        let statement = match self.mode {
            WriteMode::Delete => doc! { "q": key, "limit": 1 },
            WriteMode::Merge => {
                let mut update = Document::new();
                if !key.contains_key("_id")
                    && let Some(id) = document.remove("_id")
                {
                    update.insert("$setOnInsert", doc! { "_id": id });
                }
                update.insert("$set", document);
                doc! { "q": key, "u": update, "upsert": true }
            }
            WriteMode::Insert | WriteMode::Upsert => doc! { "q": key, "u": document, "upsert": true },
        };
        encoded(&statement)
    }

    /// The filter by which the document is found, or the first field of it that the document has not.
    fn key_of(&self, document: &Document) -> Result<Document, String> {
        let mut key = Document::new();
        for field in &self.key_fields {
            let value = value_at(document, field).ok_or_else(|| field.clone())?;
            key.insert(field, doc! { "$eq": value.clone() });
        }
        Ok(key)
    }
}

/// The value at a path with dots.
fn value_at<'d>(document: &'d Document, path: &str) -> Option<&'d Bson> {
    match path.split_once('.') {
        Some((first, rest)) if !document.contains_key(path) => {
            value_at(document.get(first)?.as_document()?, rest)
        }
        _ => document.get(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(mode: WriteMode, key_fields: &[&str], document: &Document) -> Result<Document, RecordError> {
        let key_fields = key_fields.iter().map(|field| (*field).to_owned()).collect();
        let writing = Writing { mode, key_fields, ..Writing::default() };
        let raw = RawDocumentBuf::try_from(document).unwrap();
        let point = "0:65f0c3a8e4b0f2a1c3d4e5f6".parse().unwrap();
        writing.statement(2, raw, &point).map(|raw| Document::try_from(&raw).unwrap())
    }

    #[test]
    fn a_mode_finds_a_document_by_its_key() {
        let document = doc! { "_id": 1, "a": { "b": 2 }, "c": 3 };
        let key = doc! { "_id": { "$eq": 1 } };
        assert_eq!(
            statement(WriteMode::Upsert, &["_id"], &document).unwrap(),
            doc! { "q": &key, "u": &document, "upsert": true }
        );
        assert_eq!(
            statement(WriteMode::Merge, &["_id"], &document).unwrap(),
            doc! { "q": &key, "u": { "$set": &document }, "upsert": true }
        );
        assert_eq!(statement(WriteMode::Delete, &["_id"], &document).unwrap(), doc! { "q": key, "limit": 1 });
        assert_eq!(
            statement(WriteMode::Merge, &["a.b"], &document).unwrap(),
            doc! {
                "q": { "a.b": { "$eq": 2 } },
                "u": { "$setOnInsert": { "_id": 1 }, "$set": { "a": { "b": 2 }, "c": 3 } },
                "upsert": true,
            }
        );
    }

    #[test]
    fn a_document_without_its_key_is_new_and_cannot_be_deleted() {
        let document = doc! { "c": 3 };
        let new = statement(WriteMode::Upsert, &["a"], &document).unwrap();
        assert_eq!(new, statement(WriteMode::Upsert, &["a"], &document).unwrap());
        assert!(new.get_document("q").unwrap().get_object_id("_id").is_ok());
        assert!(matches!(
            statement(WriteMode::Delete, &["a"], &document),
            Err(RecordError::NoKey { field }) if field == "a"
        ));
    }
}
