//! `pando import`: an input into one collection, or a dump into several.
//!
//! However an import ends, [`Imported`] says how many documents are in, where it stopped, and from where it
//! can go on. A file of a folder that cannot be read on stops no other one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf, doc};
use pandodb::MissingStore;

use super::batch::{Batch, FromReader, RECORDS_MAX, read_in_thread};
use super::dropped::{drop_collection, lost_with_drop};
use super::error::TransferError;
use super::filled::refuse_filled;
use super::folder_place::{FolderPlace, check_point};
use super::import_counts::{ImportCounts, ReplyFault};
use super::import_plan::{Arrived, Content, Creation, ImportPlan, PlanOrigin, Unit};
use super::import_result::{Damage, DamagedFile, StoppedAt};
use super::input::InputBytes;
use super::interrupt::Interrupt;
use super::progress::{Progress, Shown};
use super::resume_point::ResumePoint;
use super::target::Target;
use super::target_options::options_not_taken;
use super::write_mode::{AfterFault, WriteMode, Writing};

pub(super) use super::import_options::{Existing, Import, ImportOptions, Talk};
pub(super) use super::import_result::{End, Imported};
use crate::error_text::tell_line;

/// Complaints that are printed one by one; the rest is only counted.
const COMPLAINTS_SHOWN: u64 = 20;
/// The time between two looks whether the user has asked to stop.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
const NAMESPACE_EXISTS: i32 = 48;

/// Why an import ends before its input.
enum Stop {
    Interrupted,
    /// The input cannot be read on.
    Input(TransferError),
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
    let mut plan = ImportPlan::of(import)?;
    if let Some(point) = &import.options.resume {
        check_point(&plan, point)?;
    }
    plan.refuse_unreadable()?;
    let mut target = import.target.open(MissingStore::Create, &interrupt)?;
    if import.options.existing == Existing::Kept && import.options.resume.is_none() {
        // Another import of the same dump would double them.
        refuse_filled(plan.units.iter().filter(|unit| unit.is_time_series()), &mut *target)?;
    }
    if import.options.existing == Existing::Kept {
        let remarks = options_not_taken(&plan, &mut *target)?;
        plan.remarks.extend(remarks);
    }
    Ok(import_into(&import.options, &plan, target, interrupt))
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
        plan,
        number: 0,
        inserting: Writing { mode: WriteMode::Insert, ..options.writing.clone() },
        target,
        interrupt,
        point: options.resume.clone().unwrap_or_else(ResumePoint::beginning),
        records: 0,
        records_before: 0,
        unreadable_before: 0,
        next_line: 1,
        line_unit: "line",
        doubtful: 0,
        counts: ImportCounts::default(),
        left_out: BTreeMap::new(),
        damaged: BTreeMap::new(),
        is_ready: false,
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
    let first = run.pass_over_files();
    for (number, unit) in plan.units.iter().enumerate().skip(first) {
        run.begin(number);
        namespaces.push(unit.namespace());
        let before = run.counts.left_out();
        let imported = run.import_unit(unit);
        let left_out = run.counts.left_out() - before;
        if left_out > 0 {
            *run.left_out.entry(unit.namespace()).or_default() += left_out;
        }
        if let Err(stopped) = imported.or_else(|stopped| run.go_past(unit, stopped)) {
            stop = Some(stopped);
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
    plan: &'i ImportPlan,
    /// The number of this input in the plan.
    number: usize,
    /// The way of writing for a time series, whose documents can only be inserted.
    inserting: Writing,
    target: Box<dyn Target>,
    interrupt: Interrupt,
    point: ResumePoint,
    /// Records that are done, over all inputs.
    records: u64,
    /// Records of the inputs before this one.
    records_before: u64,
    /// Those of them that could not be read.
    unreadable_before: u64,
    /// The line of the first record that is not done.
    next_line: u64,
    line_unit: &'static str,
    /// Documents from there on that may be in or not.
    doubtful: u64,
    counts: ImportCounts,
    left_out: BTreeMap<String, u64>,
    /// Files that were not read to their end, by their number in the plan.
    damaged: BTreeMap<usize, DamagedFile>,
    /// Whether the collection of this input was dropped and created, as the options say.
    is_ready: bool,
    /// Bytes of the inputs before this one.
    bytes_before: u64,
    bytes: Option<InputBytes>,
    begun: Instant,
    progress: Progress,
    remarks: Vec<String>,
}

impl Run<'_> {
    /// The number of the file at which the import goes on. Those before it are done, as far as they are not
    /// damaged.
    fn pass_over_files(&mut self) -> usize {
        let Some(place) = &self.point.place else { return 0 };
        let units = self.plan.units.iter().enumerate().take(place.file);
        for (number, unit) in units.filter(|(number, _)| place.damaged.contains(number)) {
            self.damaged.insert(number, DamagedFile::of(unit, Damage::ToldBefore));
        }
        place.file
    }

    /// Goes on behind a file of a folder that cannot be read on. The others are imported nevertheless.
    fn go_past(&mut self, unit: &Unit, stopped: Stop) -> Result<(), Stop> {
        let is_folder = matches!(self.plan.origin, PlanOrigin::Folder(_));
        let error = match stopped {
            Stop::Input(error) if is_folder && self.options.writing.after_fault == AfterFault::GoOn => error,
            stopped => return Err(stopped),
        };
        // The damage may lie before the point. No record of the next file is passed over for it.
        self.records = self.records.max(self.point.records);
        // A collection that was not dropped yet begins anew.
        let is_undone = self.drops() && !self.is_ready;
        let done = if is_undone { 0 } else { self.records - self.records_before };
        let point = self.point.of_input(self.records_before, done);
        self.note_damage(unit, Damage::Unreadable { error, point });
        self.end_input();
        // The documents before the damage are a collection with its indexes.
        if self.is_ready { self.create_indexes(unit) } else { Ok(()) }
    }

    /// Whether the collection of this input is dropped before its first document. An import that goes on
    /// drops only collections of which no record is done: the others hold what it has written before.
    fn drops(&self) -> bool {
        let is_behind_point = || match &self.options.resume {
            None => true,
            Some(point) => point.place.as_ref().is_some_and(|place| {
                self.number > place.file || (self.number == place.file && point.records == 0)
            }),
        };
        self.options.existing == Existing::Dropped && is_behind_point()
    }

    fn note_damage(&mut self, unit: &Unit, damage: Damage) {
        self.damaged.insert(self.number, DamagedFile::of(unit, damage));
    }

    fn begin(&mut self, number: usize) {
        self.number = number;
        self.records_before = self.records;
        self.unreadable_before = self.counts.unreadable;
        self.next_line = 1;
        self.is_ready = false;
    }

    /// Adds the bytes of an input that was read as far as it can be.
    fn end_input(&mut self) {
        self.bytes_before += self.bytes.take().map_or(0, |bytes| bytes.read());
    }

    fn import_unit(&mut self, unit: &Unit) -> Result<(), Stop> {
        match (&unit.content, unit.arrived) {
            (None, _) if self.drops() && !unit.is_view() => {
                let namespace = unit.namespace();
                self.remarks
                    .push(format!("there are no documents for it, so that {namespace} was not dropped"));
                return Ok(());
            }
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
        let opened = content.open().map_err(Stop::Input)?;
        self.line_unit = opened.counted;
        self.bytes = Some(opened.bytes.clone());
        let records_max = self.options.batch_records.unwrap_or(RECORDS_MAX).clamp(1, RECORDS_MAX);
        let receiver = read_in_thread(opened.reader, records_max).map_err(TransferError::System)?;
        loop {
            match receiver.recv_timeout(LOOK_PERIOD) {
                Ok(FromReader::Batch(batch)) => {
                    // A wrong path, header or format costs no collection that is there.
                    if !self.is_ready && batch.records.iter().any(|record| record.content.is_ok()) {
                        self.make_ready(unit)?;
                        self.is_ready = true;
                    }
                    self.take(unit, batch)?;
                }
                Ok(FromReader::End { read, remarks }) => {
                    self.remarks.extend(remarks);
                    read.map_err(Stop::Input)?;
                    self.refuse_point_beyond(content)?;
                    self.finish_unready(unit)?;
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
        if let Some(offset) = opened.bytes.behind_gzip() {
            self.note_damage(unit, Damage::BehindGzip { offset });
        }
        self.end_input();
        Ok(())
    }

    /// Refuses a point that lies behind the end of a file, which is another one then.
    fn refuse_point_beyond(&self, content: &Content) -> Result<(), TransferError> {
        let (found, wanted) = (self.records - self.records_before, self.point.records);
        match content {
            Content::Bytes(bytes) if self.records < wanted => Err(TransferError::WrongPoint {
                reason: format!(
                    "the point is behind record {wanted}, and {} has {found}: it is not the input of the import that named \
                     this point; nothing was written",
                    bytes.source.name().display()
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Drops the collection, if that is wanted, and creates it.
    fn make_ready(&mut self, unit: &Unit) -> Result<(), TransferError> {
        if self.drops() {
            // A copy describes the whole collection, so that nothing is lost.
            let lost = match self.plan.origin {
                PlanOrigin::Store => None,
                PlanOrigin::File | PlanOrigin::Folder(_) => lost_with_drop(unit, &mut *self.target)?,
            };
            drop_collection(unit, &mut *self.target)?;
            self.remarks.extend(lost);
        }
        self.create(unit)
    }

    /// The end of an input without a document. One that is empty is what was wanted; one that cannot be
    /// read is not.
    fn finish_unready(&mut self, unit: &Unit) -> Result<(), TransferError> {
        if self.is_ready {
            return Ok(());
        }
        if self.drops() && self.counts.unreadable > self.unreadable_before {
            let namespace = unit.namespace();
            self.remarks.push(format!("no document could be read, so that {namespace} was not dropped"));
            return Ok(());
        }
        self.make_ready(unit)
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
        let (mut command, beside) = (writing.command(&unit.collection), writing.beside(statements));
        command.extend(unit.command_fields.clone());
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
        // No document of a later input was sent before.
        let is_input_of_point = match &self.point.place {
            Some(place) => place.file == self.number,
            None => self.records_before <= self.point.records,
        };
        let is_at_point = options.resume.is_some() && is_input_of_point;
        let is_again = |number| match unit.arrived {
            Arrived::NotAsked => inserts && is_at_point && window.contains(&number),
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
    fn imported(self, stop: Option<Stop>, namespaces: Vec<String>) -> Imported {
        let input_bytes = self.input_bytes();
        let stopped = stop.as_ref().map(|stop| StoppedAt {
            input: self.plan.units[self.number].input_name(),
            unit: self.line_unit,
            line: match self.line_unit {
                "document" => self.records - self.records_before + 1,
                _ => self.next_line,
            },
            doubtful: self.doubtful,
            point: self.point_of_stop(stop),
        });
        let closed = self.target.close();
        let end = match (stop, closed) {
            (Some(Stop::Failed(error) | Stop::Input(error)), _) | (None, Err(error)) => End::Failed(error),
            (Some(Stop::Interrupted), _) => End::Interrupted,
            (None, Ok(())) => End::Complete,
        };
        let (counts, remarks, elapsed) = (self.counts, self.remarks, self.begun.elapsed());
        let (left_out, damaged) = (self.left_out, self.damaged.into_values().collect());
        Imported { counts, namespaces, left_out, damaged, input_bytes, elapsed, end, stopped, remarks }
    }

    /// The point from which an import of the same input goes on. That of a folder belongs to one of its
    /// files.
    fn point_of_stop(&self, stop: &Stop) -> ResumePoint {
        let records = self.records.max(self.point.records);
        if !matches!(self.plan.origin, PlanOrigin::Folder(_)) {
            return ResumePoint { records, ..self.point.clone() };
        }
        let mut damaged: Vec<usize> = self.damaged.keys().copied().collect();
        if matches!(stop, Stop::Input(_)) {
            damaged.push(self.number);
        }
        let place = Some(FolderPlace::of(self.plan, self.number, damaged));
        let of_file = self.point.of_input(self.records_before, records.saturating_sub(self.records_before));
        ResumePoint { place, ..of_file }
    }
}
