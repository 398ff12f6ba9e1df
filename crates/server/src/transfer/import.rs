//! `pando import`: an input into one collection, or a dump into several.
//!
//! However an import ends, [`Imported`] says how many documents are in, where it stopped, and from where it
//! can go on.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf, doc};
use pandodb::MissingStore;

use super::batch::{Batch, FromReader, RECORDS_MAX, read_in_thread};
use super::csv_rows::RowOptions;
use super::error::TransferError;
use super::filled::refuse_filled;
use super::format::InputFormat;
use super::import_counts::{ImportCounts, ReplyFault};
use super::import_plan::{Arrived, BytesContent, Content, Creation, ImportPlan, Unit};
use super::input::{InputBytes, Source};
use super::interrupt::Interrupt;
use super::progress::{Progress, Shown};
use super::resume_point::ResumePoint;
use super::target::{Target, TargetChoice};
use super::write_mode::{AfterFault, WriteMode, Writing};

use crate::error_text::tell_line;

/// Complaints that are printed one by one; the rest is only counted.
const COMPLAINTS_SHOWN: u64 = 20;
/// The time between two looks whether the user has asked to stop.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
const NAMESPACE_NOT_FOUND: i32 = 26;
const NAMESPACE_EXISTS: i32 = 48;

/// The format of an import, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatChoice {
    /// JSON of either form.
    Json,
    /// This one.
    Exact(InputFormat),
}

/// The treatment of a collection that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and added to.
    #[default]
    Kept,
    /// It is dropped before the first document.
    Dropped,
}

/// How much is printed on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Talk {
    /// Progress and complaints.
    #[default]
    All,
    /// Complaints.
    Quiet,
}

/// The parameters of an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// The input: a file, standard input, or a folder of mongodump.
    pub source: Source,
    /// Its format; detected if not given.
    pub format: Option<FormatChoice>,
    /// The store to write to.
    pub target: TargetChoice,
    /// The database; `test` if neither this nor the connection string names one.
    pub database: Option<String>,
    /// The collection; the name of the file if not given.
    pub collection: Option<String>,
    /// How rows of text become documents.
    pub rows: RowOptions,
    /// How documents go in.
    pub options: ImportOptions,
}

/// How documents go in, wherever they come from.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// How documents are written.
    pub writing: Writing,
    /// The treatment of a collection that is there.
    pub existing: Existing,
    /// Where an earlier import of the same input has stopped.
    pub resume: Option<ResumePoint>,
    /// Documents in one command at most.
    pub batch_records: Option<usize>,
    /// How much is printed on the way.
    pub talk: Talk,
}

/// The end of an import.
#[derive(Debug)]
pub enum End {
    /// The whole input was read, and each document was sent to the store.
    Complete,
    /// The user has asked to stop.
    Interrupted,
    /// An error.
    Failed(TransferError),
}

/// The place at which an import stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedAt {
    /// The input.
    pub input: String,
    /// Lines or documents are counted.
    pub unit: &'static str,
    /// The line, or the number of a BSON document, of the first record that is not done.
    pub line: u64,
    /// Documents from there on that may be in or not.
    pub doubtful: u64,
    /// For `--resume`.
    pub point: ResumePoint,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The counts.
    pub counts: ImportCounts,
    /// The collections that were written.
    pub namespaces: Vec<String>,
    /// Documents that were refused or unreadable, by collection; collections without such are missing.
    pub left_out: BTreeMap<String, u64>,
    /// Bytes of the input, as they stand in the file.
    pub input_bytes: u64,
    /// The time that it took.
    pub elapsed: Duration,
    /// How it ended.
    pub end: End,
    /// Where it stopped; `None` for a complete one.
    pub stopped: Option<StoppedAt>,
    /// Remarks on the input, a sentence each.
    pub remarks: Vec<String>,
}

impl Imported {
    /// Whether every document of the input is where it belongs.
    pub fn is_complete(&self) -> bool {
        matches!(self.end, End::Complete) && self.counts.is_faultless()
    }
}

/// Why an import ends before its input.
enum Stop {
    Interrupted,
    Failed(TransferError),
}

impl From<TransferError> for Stop {
    fn from(error: TransferError) -> Stop {
        Stop::Failed(error)
    }
}

/// Imports. Lines that cannot be read and documents that are refused are printed to standard error, and
/// counted.
///
/// # Errors
/// The input or the store cannot be opened, so that nothing was done. An error after that is part of the
/// result.
pub fn import(import: &Import) -> Result<Imported, TransferError> {
    let interrupt = Interrupt::watch().map_err(TransferError::System)?;
    let plan = ImportPlan::of(import)?;
    // An input that cannot be read is refused before a store is opened, or made.
    let first = plan.units.iter().find_map(|unit| unit.content.as_ref());
    if let Some(content @ Content::Bytes(BytesContent { source: Source::File(path), .. })) = first
        && !is_pipe(path)
    {
        content.open()?;
    }
    let mut target = import.target.open(MissingStore::Create, &interrupt)?;
    if import.options.existing == Existing::Kept && import.options.resume.is_none() {
        // Another import of the same dump would double them.
        refuse_filled(plan.units.iter().filter(|unit| unit.is_time_series()), &mut *target)?;
    }
    Ok(import_into(&import.options, &plan, target, interrupt))
}

/// Whether a file can be read once only, as a pipe of a shell (`<(zstdcat a.json.zst)`). One that is not
/// there is none: opening it says so.
fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Imports into a store that is open, and closes it.
pub(super) fn import_into(
    options: &ImportOptions,
    plan: &ImportPlan,
    target: Box<dyn Target>,
    interrupt: Interrupt,
) -> Imported {
    let mut run = Run {
        options,
        inserting: Writing { mode: WriteMode::Insert, ..options.writing.clone() },
        target,
        interrupt,
        point: options.resume.unwrap_or_else(ResumePoint::beginning),
        records: 0,
        records_before: 0,
        next_line: 1,
        line_unit: "line",
        doubtful: 0,
        counts: ImportCounts::default(),
        left_out: BTreeMap::new(),
        bytes_before: 0,
        bytes: None,
        begun: Instant::now(),
        progress: if options.talk == Talk::Quiet { Progress::hidden() } else { Progress::new() },
        remarks: plan.remarks.clone(),
    };
    let mut stop = None;
    let mut namespaces = Vec::new();
    for (namespace, reason) in &plan.refused {
        run.counts.not_created += 1;
        run.complain(namespace, reason);
    }
    for unit in &plan.units {
        namespaces.push(unit.namespace());
        let before = run.counts.left_out();
        let imported = run.import_unit(unit);
        let left_out = run.counts.left_out() - before;
        if left_out > 0 {
            *run.left_out.entry(unit.namespace()).or_default() += left_out;
        }
        if let Err(stopped) = imported {
            stop = Some((stopped, unit.input_name()));
            break;
        }
    }
    run.progress.clear();
    run.imported(stop, namespaces)
}

/// The place of a record.
#[derive(Clone, Copy, Debug, Default)]
struct RecordPlace {
    /// Its number, over all inputs, from 0.
    number: u64,
    line: u64,
}

/// A batch as statements.
#[derive(Default)]
struct Prepared {
    statements: Vec<RawDocumentBuf>,
    places: Vec<RecordPlace>,
    /// The record that ends the import.
    stop_at: Option<RecordPlace>,
}

/// An import under way.
struct Run<'i> {
    options: &'i ImportOptions,
    /// The way of writing for a time series, whose documents can only be inserted.
    inserting: Writing,
    target: Box<dyn Target>,
    interrupt: Interrupt,
    point: ResumePoint,
    /// Records that are done, over all inputs.
    records: u64,
    /// Records of the inputs before this one.
    records_before: u64,
    /// The line of the first record that is not done.
    next_line: u64,
    line_unit: &'static str,
    /// Documents from there on that may be in or not.
    doubtful: u64,
    counts: ImportCounts,
    left_out: BTreeMap<String, u64>,
    /// Bytes of the inputs before this one.
    bytes_before: u64,
    bytes: Option<InputBytes>,
    begun: Instant,
    progress: Progress,
    remarks: Vec<String>,
}

impl Run<'_> {
    fn import_unit(&mut self, unit: &Unit) -> Result<(), Stop> {
        match (&unit.content, unit.arrived) {
            (None, _) => self.make_ready(unit)?,
            (Some(_), Arrived::All(documents)) => {
                self.make_ready(unit)?;
                self.records += documents;
                self.counts.passed_over += documents;
            }
            (Some(content), Arrived::Front(documents)) => {
                // A few are sent again, since the counter of a server may be wrong after a crash.
                self.point.records = self.records + documents.saturating_sub(RECORDS_MAX as u64);
                self.write_content(unit, content)?;
            }
            (Some(_), Arrived::Unclear { of_source }) => {
                self.records += of_source;
                return Ok(());
            }
            (Some(content), Arrived::NotAsked) => self.write_content(unit, content)?,
        }
        self.create_indexes(unit)
    }

    fn writing(&self, unit: &Unit) -> &Writing {
        if unit.is_time_series() { &self.inserting } else { &self.options.writing }
    }

    fn write_content(&mut self, unit: &Unit, content: &Content) -> Result<(), Stop> {
        self.next_line = 1;
        self.records_before = self.records;
        let opened = content.open()?;
        self.line_unit = opened.counted;
        self.bytes = Some(opened.bytes.clone());
        let records_max = self.options.batch_records.unwrap_or(RECORDS_MAX).clamp(1, RECORDS_MAX);
        let receiver = read_in_thread(opened.reader, records_max).map_err(TransferError::System)?;
        let mut is_ready = false;
        loop {
            match receiver.recv_timeout(LOOK_PERIOD) {
                Ok(FromReader::Batch(batch)) => {
                    // A wrong path, header or format costs no collection that is there.
                    if !is_ready && batch.records.iter().any(|record| record.content.is_ok()) {
                        self.make_ready(unit)?;
                        is_ready = true;
                    }
                    self.take(unit, batch)?;
                }
                Ok(FromReader::End { read, remarks }) => {
                    self.remarks.extend(remarks);
                    read?;
                    self.finish_unready(unit, is_ready)?;
                    break;
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(TransferError::Command.into());
                }
            }
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
            self.show();
        }
        self.bytes_before += opened.bytes.read();
        self.bytes = None;
        Ok(())
    }

    /// Drops the collection, if that is wanted, and creates it.
    fn make_ready(&mut self, unit: &Unit) -> Result<(), TransferError> {
        if self.options.existing == Existing::Dropped {
            self.drop_collection(unit)?;
        }
        self.create(unit)
    }

    /// The end of an input without a document. One that is empty is what was wanted; one that cannot be
    /// read is not.
    fn finish_unready(&mut self, unit: &Unit, is_ready: bool) -> Result<(), TransferError> {
        if is_ready {
            return Ok(());
        }
        if self.options.existing == Existing::Dropped && self.counts.unreadable > 0 {
            let namespace = unit.namespace();
            self.remarks.push(format!("no document could be read, so that {namespace} was not dropped"));
            return Ok(());
        }
        self.make_ready(unit)
    }

    fn drop_collection(&mut self, unit: &Unit) -> Result<(), TransferError> {
        match self.target.run(&unit.database, doc! { "drop": &unit.collection }, None) {
            Ok(_) | Err(TransferError::Refused { code: NAMESPACE_NOT_FOUND, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates the collection with the options of its description.
    fn create(&mut self, unit: &Unit) -> Result<(), TransferError> {
        if unit.description.options.is_empty() && unit.creation == Creation::Lazy {
            return Ok(());
        }
        let mut command = doc! { "create": &unit.collection };
        command.extend(unit.description.options.clone());
        match self.target.run(&unit.database, command, None) {
            Ok(_) | Err(TransferError::Refused { code: NAMESPACE_EXISTS, .. }) => Ok(()),
            Err(TransferError::Refused { message, .. }) => {
                self.counts.not_created += 1;
                self.complain(&unit.namespace(), &format!("not created with its options: {message}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn create_indexes(&mut self, unit: &Unit) -> Result<(), Stop> {
        for index in &unit.description.indexes {
            if self.interrupt.is_asked() {
                return Err(Stop::Interrupted);
            }
            let command = doc! { "createIndexes": &unit.collection, "indexes": [index.clone()] };
            match self.target.run(&unit.database, command, None) {
                Ok(reply) => {
                    let was_there = reply
                        .get("numIndexesBefore")
                        .is_some_and(|before| Some(before) == reply.get("numIndexesAfter"));
                    self.counts.indexes += u64::from(!was_there);
                }
                Err(TransferError::Refused { message, .. }) => {
                    self.counts.not_created += 1;
                    let name = index.get_str("name").unwrap_or_default();
                    self.complain(&unit.namespace(), &format!("index {name} not built: {message}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes a batch. Its records are done when this returns without an error.
    fn take(&mut self, unit: &Unit, batch: Batch) -> Result<(), TransferError> {
        let Some((first, last)) = batch.records.first().zip(batch.records.last()) else { return Ok(()) };
        let (first_line, last_line, count) = (first.line, last.line, batch.records.len() as u64);
        let input = unit.input_name();
        let prepared = self.prepare(unit, &input, batch);
        self.next_line = first_line;
        let mut done = 0;
        while done < prepared.statements.len() {
            done += self.send(unit, &prepared.statements[done..], &prepared.places[done..])?;
        }
        match prepared.stop_at {
            Some(place) => Err(self.stop_at(place)),
            None => {
                self.records += count;
                self.next_line = last_line + 1;
                Ok(())
            }
        }
    }

    /// Sends statements, and gives how many of them are done: not all where the store stops at the first that
    /// it refuses, and that one is in already.
    fn send(
        &mut self,
        unit: &Unit,
        statements: &[RawDocumentBuf],
        places: &[RecordPlace],
    ) -> Result<usize, TransferError> {
        let writing = self.writing(unit);
        let (command, beside) = (writing.command(&unit.collection), writing.beside(statements));
        let reply = self.target.run(&unit.database, command, Some(beside));
        let sent = statements.len() as u64;
        let reply = reply.inspect_err(|error| self.doubtful = if error.leaves_doubt() { sent } else { 0 })?;
        self.account(&reply, places, unit)
    }

    /// Makes statements of a batch, up to the first fault if the import is to stop there.
    fn prepare(&mut self, unit: &Unit, input: &str, batch: Batch) -> Prepared {
        let mut prepared = Prepared::default();
        for (number, record) in (self.records..).zip(batch.records) {
            if number < self.point.records {
                self.counts.passed_over += 1;
                continue;
            }
            let place = RecordPlace { number, line: record.line };
            let statement = record
                .content
                .and_then(|document| self.writing(unit).statement(number, document, &self.point));
            match statement {
                Ok(statement) => {
                    prepared.statements.push(statement);
                    prepared.places.push(place);
                }
                Err(error) => {
                    self.counts.unreadable += 1;
                    self.complain(&format!("{input}:{}", record.line), &error.to_string());
                    if self.options.writing.after_fault == AfterFault::Stop {
                        prepared.stop_at = Some(place);
                        break;
                    }
                }
            }
        }
        prepared
    }

    /// The import stops at a record, which is the first that is not done.
    fn stop_at(&mut self, place: RecordPlace) -> TransferError {
        self.records = place.number;
        self.next_line = place.line;
        TransferError::FirstError
    }

    /// Counts what became of a batch, and gives how many of its statements the store has tried.
    fn account(
        &mut self,
        reply: &Document,
        places: &[RecordPlace],
        unit: &Unit,
    ) -> Result<usize, TransferError> {
        let mut tried = places.len();
        let mode = self.writing(unit).mode;
        let faults = self.counts.add_reply(mode, reply, places.len() as u64);
        let window = self.point.records..self.point.records + RECORDS_MAX as u64;
        let options = self.options;
        let inserts = mode == WriteMode::Insert;
        let is_again = |number| match unit.arrived {
            Arrived::NotAsked => inserts && options.resume.is_some() && window.contains(&number),
            // The end of the copy compares the content.
            Arrived::Front(_) | Arrived::All(_) | Arrived::Unclear { .. } => inserts,
        };
        for fault in faults {
            let ReplyFault { index, ends_import, same_id, code, message } = fault;
            let place = places.get(index).copied().unwrap_or_default();
            if ends_import {
                self.next_line = place.line;
                return Err(TransferError::Refused { code, message });
            }
            if same_id && is_again(place.number) {
                self.counts.already_in += 1;
                if options.writing.after_fault == AfterFault::Stop {
                    tried = index + 1;
                }
                continue;
            }
            self.counts.refused += 1;
            self.counts.same_id += u64::from(same_id);
            self.complain(&format!("{}:{}", unit.input_name(), place.line), &message);
            if self.options.writing.after_fault == AfterFault::Stop {
                return Err(self.stop_at(place));
            }
        }
        Ok(tried)
    }

    fn complain(&mut self, place: &str, message: &str) {
        let number = self.counts.unreadable + self.counts.refused + self.counts.not_created;
        self.progress.clear();
        match number {
            ..=COMPLAINTS_SHOWN => tell_line!("{place}: {message}"),
            _ if number == COMPLAINTS_SHOWN + 1 => tell_line!("further complaints are only counted"),
            _ => {}
        }
    }

    fn input_bytes(&self) -> u64 {
        self.bytes_before + self.bytes.as_ref().map_or(0, InputBytes::read)
    }

    fn show(&mut self) {
        let shown = Shown {
            documents: self.counts.done(),
            bytes: self.bytes.as_ref().map_or(0, InputBytes::read),
            bytes_total: self.bytes.as_ref().and_then(|bytes| bytes.total),
            elapsed: self.begun.elapsed(),
        };
        self.progress.show(shown);
    }

    /// Closes the store, and says how the import has ended.
    fn imported(self, stop: Option<(Stop, String)>, namespaces: Vec<String>) -> Imported {
        let input_bytes = self.input_bytes();
        let closed = self.target.close();
        let stopped = stop.as_ref().map(|(_, input)| StoppedAt {
            input: input.clone(),
            unit: self.line_unit,
            line: match self.line_unit {
                "document" => self.records - self.records_before + 1,
                _ => self.next_line,
            },
            doubtful: self.doubtful,
            point: ResumePoint { records: self.records.max(self.point.records), ..self.point },
        });
        let end = match (stop, closed) {
            (Some((Stop::Failed(error), _)), _) | (None, Err(error)) => End::Failed(error),
            (Some((Stop::Interrupted, _)), _) => End::Interrupted,
            (None, Ok(())) => End::Complete,
        };
        let (counts, remarks, elapsed) = (self.counts, self.remarks, self.begun.elapsed());
        let left_out = self.left_out;
        Imported { counts, namespaces, left_out, input_bytes, elapsed, end, stopped, remarks }
    }
}
