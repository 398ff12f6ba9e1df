//! The entry of a request: the document that `system.profile` holds, and its short form in the log.
//!
//! The fields and their order are MongoDB's. A batch of several updates or deletes is one entry with the sums
//! of its counters, where MongoDB has one for each statement.

use std::net::SocketAddr;
use std::time::Duration;

use pando_catalog::{DeviceReads, UsageFigures};
use pando_document::{Document, DocumentError, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_query::execute::{Counters, ExecutionFigures};
use pando_query::explain::{Effect, PlanSummary, executed};

use crate::Request;
use crate::error::Failure;
use crate::operations::{ConnectionRecord, command_copy, kind_of, namespace_of, statement_of, without_keys};
use crate::request_notes::RequestNotes;

/// Bytes of a reply's message around its document: the header, the flags, and the kind of its section.
const MESSAGE_BYTES: usize = 21;

/// A request that has ended.
pub(crate) struct ObservedRequest<'r> {
    pub request: &'r Request<'r>,
    pub database: &'r str,
    pub record: &'r ConnectionRecord,
    pub took: Duration,
    /// Milliseconds since 1970.
    pub now_ms: i64,
    pub usage: UsageFigures,
    pub reads: DeviceReads,
    pub notes: &'r RequestNotes,
    pub failure: Option<&'r Failure>,
    /// Bytes of the reply document.
    pub reply_bytes: usize,
}

impl ObservedRequest<'_> {
    fn command(&self) -> &str {
        self.request.body.iter().next().and_then(Result::ok).map_or("", |(name, _)| name)
    }

    /// Whether the request works on a database: the others are not recorded.
    pub fn works_on_database(&self) -> bool {
        !self.namespace().contains(".$cmd")
    }

    fn namespace(&self) -> String {
        let noted = self.notes.namespace.clone();
        noted.unwrap_or_else(|| namespace_of(self.database, self.request.body))
    }

    /// The document of `system.profile`, without an `_id`.
    pub fn entry(&self) -> RawDocumentBuf {
        let mut bytes = Vec::with_capacity(1024);
        let mut out = DocumentWriter::begin(&mut bytes);
        out.append_str("op", kind_of(self.command()));
        out.append_str("ns", &self.namespace());
        let statement = self.only_statement();
        let command = statement.unwrap_or_else(|| command_copy(self.request.body));
        out.append_raw_document("command", &command);
        if let Some(cursor) = &self.notes.cursor_facts {
            out.append_raw_document("originatingCommand", &cursor.command);
        }
        self.write_counters(&mut out);
        if let Some(failure) = self.failure {
            out.append_f64("ok", 0.0);
            out.append_str("errMsg", &failure.message);
            out.append_str("errName", &failure.code.name());
            out.append_i32("errCode", failure.code.code());
        }
        out.append_i32("responseLength", clamped((self.reply_bytes + MESSAGE_BYTES) as u64));
        out.append_str("protocol", "op_msg");
        out.append_i32("millis", clamped(u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)));
        if let Some(plan) = self.notes.plan.text() {
            out.append_str("planSummary", plan);
        }
        if let Some(stages) = self.execution_stages() {
            let raw = stages.to_raw();
            out.append_raw_document("execStats", without_keys(&raw, &|_| false).as_deref().unwrap_or(&raw));
        }
        out.append_date_time("ts", self.now_ms);
        out.append_str("client", &host_of(self.record.peer()));
        if let Some(application) = self.record.application() {
            out.append_str("appName", application);
        }
        let user = self.record.user();
        let mut users = out.array("allUsers");
        if let Some(user) = &user {
            let mut one = users.document();
            one.append_str("user", &user.name);
            one.append_str("db", &user.database);
            one.finish();
        }
        users.finish();
        out.append_str("user", &user.map(|user| user.to_string()).unwrap_or_default());
        out.finish();
        RawDocumentBuf::from_vec(bytes).unwrap_or_default()
    }

    /// The statement of an update or delete that has one.
    fn only_statement(&self) -> Option<RawDocumentBuf> {
        let list = match self.command() {
            "update" => "updates",
            "delete" => "deletes",
            _ => return None,
        };
        let statements = self.request.documents("", list).ok()??;
        let [statement] = statements[..] else { return None };
        let value = |name, default| statement.get(name).ok().flatten().unwrap_or(default);
        let query = value("q", RawValue::Null);
        Some(match list {
            "updates" => statement_of(&[
                ("q", query),
                ("u", value("u", RawValue::Null)),
                ("multi", value("multi", RawValue::Boolean(false))),
                ("upsert", value("upsert", RawValue::Boolean(false))),
            ]),
            _ => statement_of(&[("q", query), ("limit", value("limit", RawValue::Int32(0)))]),
        })
    }

    /// The stages of the plan with their figures. Those of an update or a delete stand below the stage that
    /// is its effect.
    fn execution_stages(&self) -> Option<Document> {
        let notes = self.notes;
        let stages = match &notes.execution {
            Some(execution) => Document::clone(&execution.stages),
            None if notes.plan == PlanSummary::Id => doc! { "stage": "IDHACK" },
            None => return None,
        };
        let effect = match self.command() {
            "update" | "findAndModify" | "findandmodify" if notes.matched.is_some() => Some("UPDATE"),
            "delete" | "findAndModify" | "findandmodify" if notes.deleted.is_some() => Some("DELETE"),
            _ => None,
        };
        let figures = match notes.execution.as_ref().and_then(|execution| execution.figures) {
            Some(figures) => figures,
            // An aggregate's plan has stages behind it, whose figures are not apart from its own.
            None if self.command() == "aggregate" || self.notes.cursor_facts.is_some() => return None,
            None => self.figures_of_usage(),
        };
        let stages = match effect {
            Some(effect) => doc! { "stage": effect, "inputStage": stages },
            None => stages,
        };
        Some(executed(&stages, &figures, Effect { modified: notes.modified, upserted: notes.upserted }))
    }

    fn figures_of_usage(&self) -> ExecutionFigures {
        let (notes, usage) = (self.notes, &self.usage);
        let counters = Counters {
            keys_examined: usage.keys_examined,
            documents_examined: usage.documents_examined,
            returned: notes.matched.or(notes.deleted).or(notes.returned).unwrap_or(0),
        };
        let (spills, spilled_bytes) = (usage.spills, usage.spilled_bytes);
        ExecutionFigures { counters, spills, spilled_bytes, ..ExecutionFigures::default() }
    }

    /// Whether the query wrote memory to the device, and how its sort did.
    fn write_spills(&self, out: &mut DocumentWriter<'_>) {
        let (notes, usage) = (self.notes, &self.usage);
        if notes.has_sort_stage {
            out.append_bool("hasSortStage", true);
        }
        let figures = notes.execution.as_ref().and_then(|execution| execution.figures).unwrap_or_default();
        if usage.spills > 0 || figures.spills > 0 {
            out.append_bool("usedDisk", true);
        }
        if usage.spills > 0 {
            out.append_i32("spills", clamped(usage.spills));
            out.append_i64("spilledBytes", i64::try_from(usage.spilled_bytes).unwrap_or(i64::MAX));
        }
        if notes.has_sort_stage && notes.execution.is_some() {
            out.append_i32("sortSpills", clamped(figures.spills));
            let bytes = i64::try_from(figures.sorted_bytes).unwrap_or(i64::MAX);
            out.append_i64("sortTotalDataSizeBytes", bytes);
            out.append_i32("keysSorted", clamped(figures.sorted));
        }
    }

    fn write_counters(&self, out: &mut DocumentWriter<'_>) {
        let (notes, usage) = (self.notes, &self.usage);
        if let Some(cursor) = notes.cursor {
            out.append_i64("cursorid", cursor);
        }
        if notes.plan.text().is_some() {
            out.append_i32("keysExamined", clamped(usage.keys_examined));
            out.append_i32("docsExamined", clamped(usage.documents_examined));
        }
        self.write_spills(out);
        if notes.returned.is_some() && matches!(self.command(), "find" | "getMore") {
            out.append_i32("nBatches", 1);
        }
        if notes.is_cursor_exhausted {
            out.append_bool("cursorExhausted", true);
        }
        for (name, count) in [
            ("ninserted", notes.inserted),
            ("nMatched", notes.matched),
            ("nModified", notes.modified),
            ("blind", notes.blind),
            ("nUpserted", notes.upserted),
            ("ndeleted", notes.deleted),
        ] {
            if let Some(count) = count {
                out.append_i32(name, clamped(count));
            }
        }
        if usage.conflicts > 0 {
            out.append_i32("writeConflicts", clamped(usage.conflicts));
        }
        out.append_i32("numYield", 0);
        if let Some(returned) = notes.returned {
            out.append_i32("nreturned", clamped(returned));
        }
        out.document("locks").finish();
        out.document("flowControl").finish();
        if self.reads.bytes > 0 {
            let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let mut storage = out.document("storage");
            let mut data = storage.document("data");
            data.append_i64("bytesRead", long(self.reads.bytes));
            data.append_i64("pagesRead", long(self.reads.pages));
            let time = u64::try_from(self.reads.time.as_micros()).unwrap_or(u64::MAX);
            data.append_i64("timeReadingMicros", long(time));
            data.finish();
            storage.finish();
        }
    }

    /// The form of the entry in the log.
    pub fn log_document(&self, entry: &RawDocument) -> Result<RawDocumentBuf, DocumentError> {
        let mut bytes = Vec::with_capacity(entry.as_bytes().len());
        let mut out = DocumentWriter::begin(&mut bytes);
        for field in entry.iter() {
            match field? {
                ("op", value) => out.append("type", value),
                ("millis" | "ts" | "client" | "locks" | "flowControl" | "allUsers" | "user", _)
                | ("execStats", _) => {}
                ("responseLength", value) => out.append("reslen", value),
                (name, value) => out.append(name, value),
            }
        }
        out.append("remote", RawValue::String(self.record.peer()));
        out.append_i32("durationMillis", clamped(u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)));
        out.finish();
        RawDocumentBuf::from_vec(bytes)
    }
}

/// The address without its port.
fn host_of(peer: &str) -> String {
    peer.parse::<SocketAddr>().map_or_else(|_| peer.to_owned(), |address| address.ip().to_string())
}

fn clamped(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
