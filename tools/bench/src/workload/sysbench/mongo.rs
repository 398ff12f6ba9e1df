//! The statements over MongoDB's protocol. Each stands alone, as the original's do without transactions,
//! unless [`Wrapping`] is asked for.
//!
//! Every reply is checked for success and for the number of its documents, and one in [`VERIFY_ONE_IN`] for
//! its content. Between a delete and the insert that follows it, other clients do not find the document and
//! their ranges are short. A client that deletes it as well inserts it twice. These are misses, not failures,
//! and each is counted.

use super::documents::DataSet;
use super::mix::{Statement, Transaction, Transactions};
use super::wrapping::{Stage, Wrapping};
use crate::client::{Judgement, Kind, Next, Note, Outcome, Script, Turn, Verdict, outcome_of};
use crate::workload::load::Durability;
use pando_document::{DocumentWriter, RawArray, RawDocument};
use pando_measuring::random::mask;
use pando_wire::{MsgFlags, OpMsgWriter};

/// One reply in so many is checked for its content.
const VERIFY_ONE_IN: u64 = 1024;
/// MongoDB's code of an insert whose `_id` is there.
const DUPLICATE_KEY: i64 = 11000;
/// Codes after which the same statement may work: LockTimeout, WriteConflict, and TokuMX's lock that was not
/// granted, and deadlock.
const TRANSIENT: [i64; 4] = [24, 112, 16_759, 16_760];
/// Codes after which a transaction may work that is done once more: NoSuchTransaction (it was aborted), and
/// an `_id` that another one has inserted since.
const TRANSIENT_WRAPPED: [i64; 2] = [251, DUPLICATE_KEY];
/// How often a statement is tried once more.
const RETRIES_MAX: u32 = 100;

/// The reaction of a client to a statement that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    NextTransaction,
    /// Ends, as the threads of the original do, without a word.
    End,
}

pub struct MongoClient {
    data: DataSet,
    durability: Durability,
    range_size: i32,
    transactions: Transactions,
    after_failure: AfterFailure,
    wrapping: Wrapping,
    current: Transaction,
    /// The statement under way.
    place: usize,
    /// Documents that the range under way has given so far.
    in_range: u32,
    /// The cursor that has more of it, or 0.
    cursor: i64,
    retries: u32,
    judged: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    duplicates: u64,
    short_ranges: u64,
    ended: u64,
}

impl MongoClient {
    pub fn new(
        data: &DataSet,
        durability: Durability,
        range_size: u32,
        transactions: Transactions,
        after_failure: AfterFailure,
        wrapping: Wrapping,
    ) -> MongoClient {
        MongoClient {
            data: data.clone(),
            durability,
            range_size: i32::try_from(range_size).unwrap_or(i32::MAX),
            transactions,
            after_failure,
            wrapping,
            current: Transaction { collection: 1, statements: Vec::new() },
            place: 0,
            in_range: 0,
            cursor: 0,
            retries: 0,
            judged: 0,
            counts: Counts::default(),
        }
    }

    /// The last `_id` of a range that begins here.
    fn range_end(&self, from: i32) -> i32 {
        from.saturating_add(self.range_size - 1)
    }

    /// How many documents a range has while nobody deletes.
    fn range_documents(&self, from: i32) -> u32 {
        let last = i64::from(self.range_end(from)).min(i64::from(self.data.documents));
        u32::try_from(last - i64::from(from) + 1).unwrap_or(0)
    }

    fn write_command(&self, command: &mut DocumentWriter<'_>, collection: &str) {
        match &self.current.statements[self.place] {
            Statement::Point { id } => {
                command.append_str("find", collection);
                command.document("filter").append_i32("_id", *id);
                write_projection(command);
                command.append_i32("limit", 1);
                command.append_bool("singleBatch", true);
            }
            Statement::SimpleRange { from } | Statement::OrderRange { from } => {
                command.append_str("find", collection);
                self.write_range(command.document("filter"), *from);
                write_projection(command);
                if matches!(self.current.statements[self.place], Statement::OrderRange { .. }) {
                    command.document("sort").append_i32("c", 1);
                }
            }
            Statement::SumRange { from } => {
                command.append_str("aggregate", collection);
                self.write_sum_pipeline(command, *from);
                command.document("cursor").finish();
            }
            Statement::DistinctRange { from } => {
                command.append_str("distinct", collection);
                command.append_str("key", "c");
                self.write_range(command.document("query"), *from);
            }
            Statement::IndexUpdate { id } => {
                command.append_str("update", collection);
                write_update(command, *id, |change| change.document("$inc").append_i32("k", 1));
            }
            Statement::NonIndexUpdate { id, c } => {
                command.append_str("update", collection);
                write_update(command, *id, |change| change.document("$set").append_str("c", c));
            }
            Statement::Delete { id } => {
                command.append_str("delete", collection);
                let mut deletes = command.array("deletes");
                let mut delete = deletes.document();
                delete.document("q").append_i32("_id", *id);
                delete.append_i32("limit", 1);
            }
            Statement::Insert { id, k, c, pad } => {
                command.append_str("insert", collection);
                let mut documents = command.array("documents");
                let mut document = documents.document();
                document.append_i32("_id", *id);
                document.append_i32("k", *k);
                document.append_str("c", c);
                document.append_str("pad", pad);
            }
        }
        // The commit has the write concern.
        if self.wrapping.is_none() && is_write(&self.current.statements[self.place]) {
            command.append_document("writeConcern", &self.durability.write_concern());
        }
    }

    fn write_range(&self, mut filter: DocumentWriter<'_>, from: i32) {
        let mut range = filter.document("_id");
        range.append_i32("$gte", from);
        range.append_i32("$lte", self.range_end(from));
    }

    /// The field is called `average` and is a sum, as in the original.
    fn write_sum_pipeline(&self, command: &mut DocumentWriter<'_>, from: i32) {
        let mut pipeline = command.array("pipeline");
        self.write_range(pipeline.document().document("$match"), from);
        {
            let mut project = pipeline.document();
            let mut project = project.document("$project");
            project.append_i32("k", 1);
            project.append_i32("_id", 0);
        }
        let mut group = pipeline.document();
        let mut group = group.document("$group");
        group.append_null("_id");
        group.document("average").append_str("$sum", "$k");
    }

    /// The verdict on the statement under way; nothing if its cursor has more.
    fn verdict(&mut self, body: &RawDocument) -> Result<Option<Verdict>, crate::error::BenchError> {
        if let Outcome::Refused { code, message } = outcome_of(body)? {
            let statement = &self.current.statements[self.place];
            if code == DUPLICATE_KEY && matches!(statement, Statement::Insert { .. }) {
                self.counts.duplicates += 1;
                return Ok(Some(Verdict::Missed));
            }
            return Ok(Some(Verdict::Failed(format!("{message} (code {code})"))));
        }
        self.judged += 1;
        let is_sample = self.judged.is_multiple_of(VERIFY_ONE_IN) || self.judged == 1;
        let count = |name: &str| -> Result<u64, crate::error::BenchError> {
            let value = body.get(name)?.and_then(|value| value.as_i64_exact());
            Ok(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0))
        };
        let found = |found: bool| if found { Verdict::Done } else { Verdict::Missed };
        match self.current.statements[self.place] {
            Statement::Point { .. } => Ok(Some(self.texts_verdict(body, 1, is_sample)?)),
            Statement::SimpleRange { from } | Statement::OrderRange { from } => {
                let verdict = self.texts_verdict(body, u64::MAX, is_sample)?;
                Ok((self.cursor == 0 || matches!(verdict, Verdict::Failed(_)))
                    .then(|| self.range_verdict(from, verdict)))
            }
            Statement::SumRange { .. } => {
                let first =
                    batch_of(body)?.map(|(batch, _)| batch.iter().next().transpose()).transpose()?.flatten();
                let sum =
                    first.and_then(|document| document.as_document()).map(|document| document.get("average"));
                Ok(Some(found(sum.transpose()?.flatten().is_some_and(|sum| sum.is_number()))))
            }
            Statement::DistinctRange { .. } => {
                let values = body.get("values")?.and_then(|values| values.as_array());
                Ok(Some(found(values.is_some_and(|values| !values.is_empty()))))
            }
            Statement::IndexUpdate { .. } | Statement::NonIndexUpdate { .. } | Statement::Delete { .. } => {
                Ok(Some(found(count("n")? == 1)))
            }
            Statement::Insert { .. } if count("n")? == 1 => Ok(Some(Verdict::Done)),
            Statement::Insert { .. } => Ok(Some(Verdict::Failed("nothing was inserted".into()))),
        }
    }

    /// Counts the documents of a batch of `c`s; of a sample looks at each.
    fn texts_verdict(
        &mut self,
        body: &RawDocument,
        most: u64,
        is_sample: bool,
    ) -> Result<Verdict, crate::error::BenchError> {
        let Some((batch, cursor)) = batch_of(body)? else {
            return Ok(Verdict::Failed("the reply has no batch".into()));
        };
        self.cursor = cursor;
        let mut count = 0;
        for document in batch.iter() {
            let document = document?;
            count += 1;
            if is_sample {
                let text = document.as_document().map(|document| document.get("c")).transpose()?.flatten();
                if text.and_then(|text| text.as_str()).map(str::len) != Some(mask::C.len()) {
                    return Ok(Verdict::Failed("a document without its c".into()));
                }
            }
        }
        self.in_range += count;
        Ok(match u64::from(count) {
            count if count > most => Verdict::Failed(format!("{count} documents instead of {most}")),
            0 => Verdict::Missed,
            _ => Verdict::Done,
        })
    }

    fn range_verdict(&mut self, from: i32, verdict: Verdict) -> Verdict {
        if let Verdict::Failed(_) = verdict {
            return verdict;
        }
        let expected = self.range_documents(from);
        self.counts.short_ranges += u64::from(self.in_range < expected);
        match self.in_range {
            0 => Verdict::Missed,
            more if more > expected => Verdict::Failed(format!("{more} documents in a range of {expected}")),
            _ => Verdict::Done,
        }
    }

    fn retry_code(&self, body: &RawDocument) -> bool {
        let refused = outcome_of(body).ok();
        let may_work = |code: &i64| {
            TRANSIENT.contains(code) || !self.wrapping.is_none() && TRANSIENT_WRAPPED.contains(code)
        };
        self.retries < RETRIES_MAX
            && matches!(refused, Some(Outcome::Refused { code, .. }) if may_work(&code))
    }

    /// The statement, or with it the whole transaction, is done once more.
    fn again(&mut self) -> Judgement {
        self.retries += 1;
        if !self.wrapping.is_none() {
            (self.in_range, self.cursor, self.place) = (0, 0, 0);
            self.wrapping.conflict();
        }
        Judgement { statement: None, verdict: Verdict::Done, next: Next::Again }
    }

    /// Looks at the reply to what is no statement.
    fn judge_wrapping(&mut self, stage: Stage, body: &RawDocument) -> Judgement {
        let refused = match outcome_of(body) {
            Ok(Outcome::Succeeded) => None,
            Ok(Outcome::Refused { code, message }) => Some(format!("{message} (code {code})")),
            Err(error) => Some(error.to_string()),
        };
        match stage {
            Stage::Begin if refused.is_none() => {
                self.wrapping.begun();
                return Judgement::more();
            }
            // There may have been nothing to roll back any more.
            Stage::Again => {
                self.wrapping.begin();
                return Judgement::more();
            }
            Stage::Commit if self.retry_code(body) => return self.again(),
            _ => {}
        }
        self.retries = 0;
        self.wrapping.begun();
        // The failure before the abort says more than the outcome of the abort.
        let failure = self.wrapping.take_failure().or(refused);
        if failure.is_some() {
            self.place = self.current.statements.len();
        }
        Judgement::unit(failure.map_or(Verdict::Done, Verdict::Failed))
    }

    fn ended(&mut self, kind: Kind, verdict: Verdict) -> Judgement {
        (self.in_range, self.cursor) = (0, 0);
        if self.wrapping.is_none() {
            self.retries = 0;
        }
        self.place += 1;
        let failed = matches!(verdict, Verdict::Failed(_));
        if failed {
            self.place = self.current.statements.len();
            self.counts.ended += u64::from(self.after_failure == AfterFailure::End);
        }
        let over = self.place >= self.current.statements.len();
        if over && !self.wrapping.is_none() {
            let failure = if let Verdict::Failed(message) = &verdict { Some(message.clone()) } else { None };
            self.wrapping.statements_are_over(failure);
            return Judgement { statement: Some(kind), verdict, next: Next::Request };
        }
        let next = if over { Next::Unit { operations: 1 } } else { Next::Request };
        // A transaction in which something was missed is done all the same.
        Judgement { statement: Some(kind), verdict, next }
    }
}

impl Script for MongoClient {
    fn request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Turn {
        let is_statement = self.wrapping.stage() == Stage::Statement;
        if self.place >= self.current.statements.len() && is_statement {
            if self.counts.ended > 0 {
                return Turn::Over;
            }
            self.current = self.transactions.next_transaction();
            self.place = 0;
            self.wrapping.begin();
        }
        let (mut database, collection) = self.data.place(self.current.collection);
        let writer = OpMsgWriter::begin(out, request_id, 0, MsgFlags::NONE);
        writer.begin_body(out);
        let mut command = DocumentWriter::begin(out);
        if self.wrapping.stage() != Stage::Statement {
            database = self.wrapping.write(&mut command, &database, &self.durability.write_concern());
        } else if self.cursor == 0 {
            self.write_command(&mut command, &collection);
            self.wrapping.write_into_statement(&mut command);
        } else {
            command.append_i64("getMore", self.cursor);
            command.append_str("collection", &collection);
            self.wrapping.write_into_statement(&mut command);
        }
        command.append_str("$db", &database);
        command.finish();
        writer.finish(out).expect("a statement has some hundred bytes");
        Turn::Request
    }

    fn judge(&mut self, body: &RawDocument) -> Judgement {
        let stage = self.wrapping.stage();
        if stage != Stage::Statement {
            return self.judge_wrapping(stage, body);
        }
        if self.retry_code(body) {
            return self.again();
        }
        let kind = self.current.statements[self.place].kind();
        match self.verdict(body) {
            Ok(None) => Judgement::more(),
            Ok(Some(verdict)) => self.ended(kind, verdict),
            Err(error) => self.ended(kind, Verdict::Failed(error.to_string())),
        }
    }

    fn notes(&self) -> Vec<Note> {
        vec![
            Note { name: "inserts of an _id that was there already", count: self.counts.duplicates },
            Note { name: "short ranges", count: self.counts.short_ranges },
            Note { name: "clients that ended at a failure", count: self.counts.ended },
        ]
    }
}

fn is_write(statement: &Statement) -> bool {
    statement.kind().index() >= Statement::IndexUpdate { id: 0 }.kind().index()
}

fn write_projection(command: &mut DocumentWriter<'_>) {
    let mut projection = command.document("projection");
    projection.append_i32("c", 1);
    projection.append_i32("_id", 0);
}

fn write_update(command: &mut DocumentWriter<'_>, id: i32, write: impl FnOnce(&mut DocumentWriter<'_>)) {
    let mut updates = command.array("updates");
    let mut update = updates.document();
    update.document("q").append_i32("_id", id);
    write(&mut update.document("u"));
}

/// The documents of a reply with a cursor, and the cursor's id.
fn batch_of(body: &RawDocument) -> Result<Option<(&RawArray, i64)>, crate::error::BenchError> {
    let Some(cursor) = body.get("cursor")?.and_then(|cursor| cursor.as_document()) else { return Ok(None) };
    let id = cursor.get("id")?.and_then(|id| id.as_i64_exact()).unwrap_or(0);
    let batch = match cursor.get("firstBatch")? {
        Some(batch) => Some(batch),
        None => cursor.get("nextBatch")?,
    };
    Ok(batch.and_then(|batch| batch.as_array()).map(|batch| (batch, id)))
}
