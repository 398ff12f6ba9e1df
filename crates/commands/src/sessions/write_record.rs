//! The record of a session: the newest retryable write or committed transaction, as it stands in
//! `config.transactions`.
//!
//! ```text
//! { _id: { id: UUID, uid: BinData }, txnNum: 5, lastWriteDate: Date, state: "committed" }     a transaction
//! { _id, txnNum, lastWriteDate, statements: [ 0, 3,  7, 7 ],                                   a write
//!   upserted: [ { stmtId: 1, _id: … } ], image: { stmtId: 0, matched: bool, document: {…} } }
//! ```
//! `statements` has the first and the last of each range of statements that have run and changed something.
//! The others are run again, as in MongoDB. `image` is the document that a `findAndModify` has answered.

use std::collections::BTreeMap;

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};

use crate::session_id::SessionId;

/// The statements of a retryable write that have run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WriteRecord {
    /// The last statement of each range, by its first.
    ranges: BTreeMap<i32, i32>,
    /// The `_id`s of documents that upserts have inserted, by statement.
    upserted: BTreeMap<i32, Value>,
    image: Option<Image>,
}

/// The answer of a `findAndModify`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Image {
    pub statement: i32,
    /// Whether there was a document before.
    pub matched: bool,
    pub document: Option<RawDocumentBuf>,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Recorded {
    Write(WriteRecord),
    Committed,
    /// Another server than that of the transaction was asked for its end, and keeps it from committing.
    Aborted,
}

impl WriteRecord {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many statements have run.
    pub fn count(&self) -> usize {
        self.ranges.iter().map(|(first, last)| last.abs_diff(*first) as usize + 1).sum()
    }

    /// Whether a statement has run.
    pub fn has(&self, statement: i32) -> bool {
        self.ranges.range(..=statement).next_back().is_some_and(|(_, last)| statement <= *last)
    }

    /// The `_id` that a statement has inserted by an upsert.
    pub fn upserted(&self, statement: i32) -> Option<&Value> {
        self.upserted.get(&statement)
    }

    /// The answer of a `findAndModify`.
    pub fn image(&self, statement: i32) -> Option<&Image> {
        self.image.as_ref().filter(|image| image.statement == statement)
    }

    /// Notes that a statement has run. One with a negative number is not remembered.
    pub fn add(&mut self, statement: i32, upserted: Option<Value>) {
        if statement < 0 {
            return;
        }
        self.add_range(statement, statement);
        if let Some(id) = upserted {
            self.upserted.insert(statement, id);
        }
    }

    /// Adds a range, or makes the one before longer.
    fn add_range(&mut self, first: i32, last: i32) {
        match self.ranges.range_mut(..first).next_back() {
            Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
            _ => {
                self.ranges.insert(first, last);
            }
        }
    }

    /// Notes the answer of a `findAndModify`.
    pub fn set_image(&mut self, image: Image) {
        self.image = Some(image);
    }

    /// Adds what a later commit has done.
    pub fn append(&mut self, later: WriteRecord) {
        for (first, last) in later.ranges {
            self.add_range(first, last);
        }
        self.upserted.extend(later.upserted);
        self.image = later.image.or(self.image.take());
    }

    fn write(&self, out: &mut DocumentWriter<'_>) {
        let mut statements = out.array("statements");
        for (first, last) in &self.ranges {
            statements.push(RawValue::Int32(*first));
            statements.push(RawValue::Int32(*last));
        }
        statements.finish();
        if !self.upserted.is_empty() {
            let mut list = out.array("upserted");
            for (statement, id) in &self.upserted {
                let mut one = list.document();
                one.append_i32("stmtId", *statement);
                one.append_value("_id", id);
                one.finish();
            }
            list.finish();
        }
        if let Some(image) = &self.image {
            let mut inner = out.document("image");
            inner.append_i32("stmtId", image.statement);
            inner.append_bool("matched", image.matched);
            if let Some(document) = &image.document {
                inner.append_raw_document("document", document);
            }
            inner.finish();
        }
    }

    fn read(record: &RawDocument) -> Option<WriteRecord> {
        let mut read = WriteRecord::default();
        if let RawValue::Array(statements) = record.get("statements").ok()?? {
            let numbers: Vec<i32> = statements
                .iter()
                .map(|number| match number {
                    Ok(RawValue::Int32(number)) => Some(number),
                    _ => None,
                })
                .collect::<Option<_>>()?;
            read.ranges = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        }
        if let Some(RawValue::Array(upserted)) = record.get("upserted").ok()? {
            for one in upserted.iter() {
                let one = one.ok()?.as_document()?;
                let statement = i32::try_from(one.get("stmtId").ok()??.as_i64_exact()?).ok()?;
                read.upserted.insert(statement, one.get("_id").ok()??.to_owned());
            }
        }
        if let Some(RawValue::Document(image)) = record.get("image").ok()? {
            let document = image.get("document").ok()?.and_then(|document| document.as_document());
            read.image = Some(Image {
                statement: i32::try_from(image.get("stmtId").ok()??.as_i64_exact()?).ok()?,
                matched: image.get("matched").ok()??.to_bool(),
                document: document.map(RawDocument::to_owned),
            });
        }
        Some(read)
    }
}

/// The record of a session.
pub(crate) fn encode(session: SessionId, number: i64, recorded: &Recorded, now_ms: i64) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(192);
    let mut out = DocumentWriter::begin(&mut bytes);
    session.write("_id", &mut out);
    out.append_i64("txnNum", number);
    out.append_date_time("lastWriteDate", now_ms);
    match recorded {
        Recorded::Committed => out.append_str("state", "committed"),
        Recorded::Aborted => out.append_str("state", "aborted"),
        Recorded::Write(write) => write.write(&mut out),
    }
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

/// The number in a record and what it tells; `None` where it is damaged.
pub(crate) fn decode(record: &RawDocument) -> Option<(i64, Recorded)> {
    let number = record.get("txnNum").ok()??.as_i64_exact()?;
    match record.get("state").ok()? {
        Some(RawValue::String("committed")) => Some((number, Recorded::Committed)),
        Some(RawValue::String("aborted")) => Some((number, Recorded::Aborted)),
        Some(_) => None,
        None => Some((number, Recorded::Write(WriteRecord::read(record)?))),
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut write = WriteRecord::default();
        for statement in [0, 1, 2, 7, 9, 10, -1] {
            write.add(statement, (statement == 7).then(|| Value::from("seven")));
        }
        write.set_image(Image { statement: 9, matched: true, document: Some(doc! { "a": 1 }.to_raw()) });
        assert_eq!(write.ranges, BTreeMap::from([(0, 2), (7, 7), (9, 10)]));
        let session = SessionId::from_bytes([3; 16]);
        for recorded in [
            Recorded::Committed,
            Recorded::Aborted,
            Recorded::Write(write.clone()),
            Recorded::Write(WriteRecord::default()),
        ] {
            let record = encode(session, 42, &recorded, 1_000);
            assert_eq!(decode(&record), Some((42, recorded)));
        }
        assert!(write.has(10) && !write.has(3) && !write.has(-1));
        assert_eq!(write.upserted(7), Some(&Value::from("seven")));
        assert!(write.image(9).is_some() && write.image(0).is_none());
        assert_eq!(decode(&doc! { "txnNum": 1_i64, "state": "prepared" }.to_raw()), None);
    }

    #[test]
    fn later_statements_are_added_to_a_record() {
        let mut record = WriteRecord::default();
        record.add(0, None);
        let mut later = WriteRecord::default();
        later.add(1, None);
        later.add(5, Some(Value::Int32(1)));
        record.append(later);
        assert_eq!(record.ranges, BTreeMap::from([(0, 1), (5, 5)]));
        assert!(record.upserted(5).is_some() && !record.is_empty());
    }
}
