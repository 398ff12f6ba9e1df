//! The use of a session by one request: it begins or finds the transaction of the request, and puts the
//! session back at the end.

use std::sync::Arc;

use pando_catalog::{
    BlockingMode, CachedReads, Catalog, Durability, EarlyWrite, ErrorKind, SnapshotTimestamp, StorageError,
    WriteTransaction,
};
use pando_document::{RawValue, Value};

use super::open_transaction::{Begun, OpenTransaction, aborted};
use super::write_record::{self, Image, Recorded, WriteRecord};
use super::{Progress, Session, Stage, TransactionFigures, id_document, progress_of};
use crate::error::Failure;
use crate::generic_arguments::{Participation, Start, StatementIds, TransactionSupport};
use crate::{CommandError, ErrorCode};

/// See the module's head. Dropping it puts the session back, and ends a transaction that was not left.
#[derive(Debug)]
pub(crate) struct SessionUse {
    session: Arc<Session>,
    figures: Arc<TransactionFigures>,
    progress: Progress,
    /// The progress before this request began a transaction.
    before: Option<Progress>,
    /// Transactions that this request has ended.
    ended: Vec<Arc<OpenTransaction>>,
    write: WriteUse,
    /// The transaction that has read the session's record, until a statement takes it.
    early: Option<EarlyWrite>,
    /// The snapshot at which the record was read.
    read_at: Option<SnapshotTimestamp>,
    state: UseState,
}

/// The retryable write of a request.
#[derive(Debug, Default)]
struct WriteUse {
    first_id: i32,
    /// The statements of the request before those of the batch under way.
    earlier: usize,
    ids: Option<Vec<i32>>,
    has_first_and_ids: bool,
    /// The statements of the transaction under way.
    news: WriteRecord,
    /// The statements that were committed.
    committed: usize,
    /// Statements that an earlier request has carried out.
    retried: Vec<i32>,
}

/// How far the request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UseState {
    /// No statement has begun.
    Untouched,
    /// A statement has read or written.
    Touched,
    /// A statement of the batch has failed.
    Failed,
    /// The session may be put back.
    Left,
}

/// The end of a request, for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOfRequest {
    /// The client is answered.
    Answered,
    /// The same request is handled again.
    Again,
    /// The client is told of an error.
    Failed,
}

/// A request that enters its session.
pub(crate) struct Entry<'e> {
    pub participation: Participation,
    pub support: TransactionSupport,
    pub statement_ids: StatementIds<'e>,
    pub catalog: &'e Catalog,
    pub blocking: BlockingMode,
    /// What the engine says of reads that must not block.
    pub cached_reads: CachedReads,
}

impl Entry<'_> {
    /// Whether the first read would have the request handled again. A begin before it is in vain then, and
    /// may cost a round trip.
    fn begins_in_vain(&self) -> bool {
        (self.blocking, self.cached_reads) == (BlockingMode::CachedOnly, CachedReads::NotTold)
    }
}

impl SessionUse {
    pub(super) fn new(
        session: Arc<Session>,
        figures: Arc<TransactionFigures>,
        progress: Progress,
    ) -> SessionUse {
        let (before, ended, write) = (None, Vec::new(), WriteUse::default());
        let (early, read_at, state) = (None, None, UseState::Untouched);
        SessionUse { session, figures, progress, before, ended, write, early, read_at, state }
    }

    /// Takes over the progress of the session's record, where another server has written it, or a commit
    /// whose answer was lost; and the transaction that has read it.
    pub(super) fn take_over(&mut self, recorded: Progress, early: EarlyWrite) {
        if recorded.number >= self.progress.number {
            self.progress = recorded;
        }
        self.read_at = Some(early.snapshot());
        self.early = Some(early);
    }

    /// The transaction that has read the record, for the first unit of work of a retryable write.
    pub fn early_write(&mut self, catalog: &Catalog) -> Option<WriteTransaction> {
        self.early.take().and_then(|early| catalog.write_of(early))
    }

    /// Begins the transaction or the retryable write of a request, or finds the one that goes on.
    pub fn enter(&mut self, entry: &Entry<'_>, begun: impl FnOnce() -> Begun) -> Result<(), CommandError> {
        if !matches!(entry.participation, Participation::RetryableWrite(_)) {
            self.early = None;
        }
        match entry.participation {
            Participation::Alone => Ok(()),
            Participation::RetryableWrite(number) => {
                self.write.first_id = entry.statement_ids.first().unwrap_or(0);
                self.write.has_first_and_ids = entry.statement_ids.first().is_some();
                self.write.ids = entry.statement_ids.listed();
                self.enter_write(number)
            }
            Participation::Transaction(number, Start::Begins) => self.begin(number, entry, begun),
            Participation::Transaction(number, Start::Continues) => self.go_on(number, entry.support),
        }
    }

    fn enter_write(&mut self, number: i64) -> Result<(), CommandError> {
        let newest = self.progress.number;
        if number < newest {
            return Err(self.too_old(number, Wanted::Write));
        }
        match &self.progress.stage {
            Stage::Write(_) if number == newest => Ok(()),
            _ if number == newest => Err(CommandError::failed(
                ErrorCode::IncompleteTransactionHistory,
                "Cannot retry a retryable write that has been converted into a transaction",
            )),
            _ => {
                self.end_open();
                self.progress = Progress { number, stage: Stage::Write(WriteRecord::default()) };
                Ok(())
            }
        }
    }

    fn begin(
        &mut self,
        number: i64,
        entry: &Entry<'_>,
        begun: impl FnOnce() -> Begun,
    ) -> Result<(), CommandError> {
        if number < self.progress.number {
            return Err(self.too_old(number, Wanted::Transaction));
        }
        if number == self.progress.number {
            if self.session.state.lock().begin_put_off == Some(number) {
                return Err(aborted(number));
            }
            return Err(CommandError::failed(
                ErrorCode::ConflictingOperationInProgress,
                "Only servers in a sharded cluster can start a new transaction at the active transaction number",
            ));
        }
        self.end_open();
        if entry.begins_in_vain() {
            self.session.state.lock().begin_put_off = Some(number);
            return Err(CommandError::WouldBlock(None));
        }
        let begun = begun();
        let transaction = begun.transaction(entry.catalog)?;
        let open = Arc::new(OpenTransaction::new(
            self.session.id,
            number,
            begun,
            Arc::clone(&self.figures),
            transaction,
        ));
        let mut state = self.session.state.lock();
        state.used = Some(Arc::clone(&open));
        state.begin_put_off = None;
        drop(state);
        let before = std::mem::replace(&mut self.progress, Progress { number, stage: Stage::Open(open) });
        self.before = Some(before);
        Ok(())
    }

    fn go_on(&mut self, number: i64, support: TransactionSupport) -> Result<(), CommandError> {
        if support == TransactionSupport::End {
            self.end_put_off(number);
        }
        let newest = self.progress.number;
        if number < newest {
            return Err(self.too_old(number, Wanted::Transaction));
        }
        match &self.progress.stage {
            Stage::Open(_) if number == newest => Ok(()),
            // The commands that end a transaction look themselves.
            Stage::Committed | Stage::Aborted if number == newest && support == TransactionSupport::End => {
                Ok(())
            }
            Stage::Committed if number == newest => Err(committed(number)),
            Stage::Aborted if number == newest => Err(aborted(number)),
            _ => Err(CommandError::failed(
                ErrorCode::NoSuchTransaction,
                format!(
                    "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {newest}"
                ),
            )),
        }
    }

    /// Ends a transaction whose first statement is to be handled again. It does not begin any more.
    fn end_put_off(&mut self, number: i64) {
        if number > self.progress.number && self.session.state.lock().begin_put_off == Some(number) {
            self.end_open();
            self.progress = Progress { number, stage: Stage::Aborted };
        }
    }

    fn too_old(&self, number: i64, wanted: Wanted) -> CommandError {
        let session = self.session.id;
        let shown = session.text();
        let newest = self.progress.number;
        let is_write = matches!(self.progress.stage, Stage::Write(_));
        let message = match (wanted, is_write) {
            (Wanted::Write, true) => format!(
                "Retryable write with txnNumber {number} is prohibited on session {shown} because a newer retryable write with txnNumber {newest} has already started on this session."
            ),
            (Wanted::Write, false) => format!(
                "Retryable write with txnNumber {number} is prohibited on session {shown} because a newer transaction with txnNumber {newest} has already started on this session."
            ),
            (Wanted::Transaction, _) => {
                let (kind, counter) = if is_write { ("retryable write", -1) } else { ("transaction", 0) };
                format!(
                    "Cannot start transaction with {{ txnNumber: {number} }} on session {shown} because a newer {kind} with txnNumberAndRetryCounter {{ txnNumber: {newest}, txnRetryCounter: {counter} }} has already started on this session."
                )
            }
        };
        CommandError::failed(ErrorCode::TransactionTooOld, message)
    }

    /// The open transaction of the request.
    pub fn open(&self) -> Option<&Arc<OpenTransaction>> {
        match &self.progress.stage {
            Stage::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Whether the request begins the transaction.
    pub fn begins(&self) -> bool {
        self.before.is_some()
    }

    /// The fate of the transaction number of the request.
    pub fn stage(&self) -> &Stage {
        &self.progress.stage
    }

    /// The transaction number of the request.
    pub fn number(&self) -> i64 {
        self.progress.number
    }

    /// Notes that a statement works in the transaction.
    pub fn touch(&mut self) {
        if self.state == UseState::Untouched {
            self.state = UseState::Touched;
        }
    }

    /// Notes that a statement of a batch has failed, which ends the transaction.
    pub fn fail(&mut self) {
        self.state = UseState::Failed;
    }

    /// Whether the request is a retryable write.
    pub fn is_write(&self) -> bool {
        matches!(self.progress.stage, Stage::Write(_))
    }

    fn record(&self) -> Option<&WriteRecord> {
        match &self.progress.stage {
            Stage::Write(record) => Some(record),
            _ => None,
        }
    }

    /// Refuses numbers of statements that do not go with so many statements.
    pub fn check_statements(&self, statements: usize) -> Result<(), CommandError> {
        let Some(ids) = &self.write.ids else { return Ok(()) };
        if self.write.has_first_and_ids {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "May not specify both stmtId and stmtIds in write command.",
            ));
        }
        if ids.len() == statements {
            return Ok(());
        }
        Err(CommandError::failed(
            ErrorCode::InvalidLength,
            format!(
                "Number of statement ids must match the number of batch entries. Got {} statement ids but {statements} operations.",
                ids.len()
            ),
        ))
    }

    /// Notes that the batch under way begins behind so many statements of the request.
    pub fn begin_batch(&mut self, earlier: usize) {
        self.write.earlier = earlier;
    }

    fn statement_id(&self, index: usize) -> i32 {
        let index = self.write.earlier + index;
        match &self.write.ids {
            Some(ids) => ids.get(index).copied().unwrap_or(-1),
            None => self.write.first_id.saturating_add(i32::try_from(index).unwrap_or(i32::MAX)),
        }
    }

    /// If an earlier request has carried a statement out: the `_id` that it has upserted, if it has.
    pub fn repeated(&mut self, index: usize) -> Option<Option<Value>> {
        let id = self.statement_id(index);
        let record = self.record()?;
        if !record.has(id) {
            return None;
        }
        let upserted = record.upserted(id).cloned();
        if !self.write.retried.contains(&id) {
            self.write.retried.push(id);
        }
        Some(upserted)
    }

    /// The answer of a `findAndModify` that an earlier request has carried out.
    pub fn image(&self, index: usize) -> Option<&Image> {
        self.record()?.image(self.statement_id(index))
    }

    /// The statements that an earlier request has carried out.
    pub fn retried(&self) -> &[i32] {
        &self.write.retried
    }

    /// Notes that a statement has changed something.
    pub fn executed(&mut self, index: usize, upserted: Option<&Value>) {
        if self.is_write() {
            let id = self.statement_id(index);
            self.write.news.add(id, upserted.cloned());
        }
    }

    /// Notes the answer of a `findAndModify`.
    pub fn answered(&mut self, image: impl FnOnce(i32) -> Image) {
        if self.is_write() {
            self.write.news.set_image(image(self.statement_id(0)));
        }
    }

    /// Forgets what a transaction that is rolled back has noted.
    pub fn forget_news(&mut self) {
        self.write.news = WriteRecord::default();
    }

    /// Writes the record of a retryable write in the transaction of its statements. It is written again for
    /// a repetition that has to wait for the device: the log is synced in the order of commits, so that the
    /// earlier commit is on the device before this one.
    pub fn write_record(
        &mut self,
        transaction: &mut WriteTransaction,
        durability: Durability,
        now_ms: i64,
    ) -> Result<(), CommandError> {
        let is_awaited = durability == Durability::Synced && !self.write.retried.is_empty();
        let is_due = is_awaited || !self.write.news.is_empty();
        let Some(record) = self.record().filter(|_| is_due) else { return Ok(()) };
        let mut record = record.clone();
        record.append(self.write.news.clone());
        let encoded =
            write_record::encode(self.session.id, self.progress.number, &Recorded::Write(record), now_ms);
        transaction.put_session_record(&encoded).map_err(storage_error)?;
        self.figures.count_record();
        Ok(())
    }

    /// In a store of several servers, before the record is written: another server may have carried the same
    /// write out since this request has begun. Its client has lost the connection and sent the write here.
    ///
    /// # Errors
    /// A conflict after which the statement finds itself carried out.
    pub fn check_record(&mut self, transaction: &WriteTransaction) -> Result<(), CommandError> {
        let Some(own) = self.record().map(WriteRecord::count) else { return Ok(()) };
        if self.read_at == Some(transaction.snapshot()) {
            return Ok(());
        }
        let named = id_document(self.session.id);
        let Some(stored) = transaction.session_record(named.get("_id")?.unwrap_or(RawValue::Null))? else {
            return Ok(());
        };
        let stored = progress_of(&stored)?;
        let is_same = match &stored.stage {
            _ if stored.number > self.progress.number => {
                self.progress = stored;
                return Err(self.too_old(self.progress.number, Wanted::Write));
            }
            Stage::Write(write) => stored.number < self.progress.number || write.count() == own,
            _ => stored.number < self.progress.number,
        };
        if is_same {
            return Ok(());
        }
        self.progress = stored;
        Err(StorageError::conflict().into())
    }

    /// Keeps a transaction of another server, which was to be ended here, from committing; unless it has. In
    /// a store of several servers only.
    pub fn end_elsewhere(&mut self, number: i64, catalog: &Catalog, now_ms: i64) -> Result<(), CommandError> {
        let named = id_document(self.session.id);
        let encoded = write_record::encode(self.session.id, number, &Recorded::Aborted, now_ms);
        loop {
            let mut transaction = catalog.begin_write()?;
            let stored = transaction.session_record(named.get("_id")?.unwrap_or(RawValue::Null))?;
            if let Some(stored) = stored.map(|stored| progress_of(&stored)).transpose()?
                && stored.number >= number
            {
                self.progress = stored;
                return Ok(());
            }
            transaction.put_session_record(&encoded).map_err(storage_error)?;
            match transaction.commit(Durability::Logged) {
                Ok(_) => {
                    self.progress = Progress { number, stage: Stage::Aborted };
                    return Ok(());
                }
                // Perhaps with the commit itself.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// After a commit whose answer was lost: the next request of the session reads its record, which tells
    /// whether the commit has happened.
    pub fn doubt_if_undetermined(&self, error: &StorageError) {
        if error.kind() == ErrorKind::Undetermined {
            self.session.state.lock().is_in_doubt = true;
        }
    }

    /// How many statements of a retryable write the request has committed; not those of earlier requests.
    pub fn committed_statements(&self) -> usize {
        self.write.committed
    }

    /// The transaction of [`write_record`](SessionUse::write_record) has committed.
    pub fn keep_news(&mut self) {
        let news = std::mem::take(&mut self.write.news);
        self.write.committed += news.count();
        if let Stage::Write(record) = &mut self.progress.stage {
            record.append(news);
        }
    }

    /// Writes the record of a committed transaction into it.
    pub fn write_commit_record(
        &self,
        transaction: &mut WriteTransaction,
        now_ms: i64,
    ) -> Result<(), CommandError> {
        let encoded =
            write_record::encode(self.session.id, self.progress.number, &Recorded::Committed, now_ms);
        transaction.put_session_record(&encoded).map_err(storage_error)?;
        self.figures.count_record();
        Ok(())
    }

    /// The transaction has committed.
    pub fn committed(&mut self) {
        if let Stage::Open(open) = std::mem::replace(&mut self.progress.stage, Stage::Committed) {
            self.figures.count_commit();
            self.ended.push(open);
        }
    }

    /// Ends the open transaction without a commit.
    pub fn end_open(&mut self) {
        if !matches!(self.progress.stage, Stage::Open(_)) {
            return;
        }
        if let Stage::Open(open) = std::mem::replace(&mut self.progress.stage, Stage::Aborted) {
            open.end();
            if self.before.take().is_some() {
                self.figures.count_start();
            }
            self.figures.count_abort();
            self.ended.push(open);
        }
    }

    /// Goes back to the progress before the request, if it has begun a transaction.
    fn go_back(&mut self) -> Option<i64> {
        if let Some(before) = self.before.take()
            && let Stage::Open(open) = std::mem::replace(&mut self.progress, before).stage
        {
            open.end();
            return Some(open.number);
        }
        None
    }

    /// The request is over. Gives the transactions that it has ended.
    pub fn leave(
        mut self,
        end: EndOfRequest,
        support: TransactionSupport,
        now_ms: i64,
    ) -> Vec<Arc<OpenTransaction>> {
        match end {
            EndOfRequest::Again => {
                if let Some(begun) = self.go_back() {
                    self.session.state.lock().begin_put_off = Some(begun);
                }
            }
            // As in MongoDB, a write that is malformed does not end its transaction.
            EndOfRequest::Failed
                if support == TransactionSupport::RetryableWrite && self.state == UseState::Untouched =>
            {
                self.go_back();
            }
            EndOfRequest::Failed => self.end_open(),
            EndOfRequest::Answered if self.state == UseState::Failed => self.end_open(),
            EndOfRequest::Answered => {}
        }
        if self.before.take().is_some() {
            self.figures.count_start();
        }
        if end == EndOfRequest::Answered && !self.write.retried.is_empty() {
            self.figures.count_retried(self.write.retried.len());
        }
        self.state = UseState::Left;
        self.session.state.lock().used_ms = now_ms;
        std::mem::take(&mut self.ended)
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        if self.state != UseState::Left {
            self.end_open();
        }
        let mut state = self.session.state.lock();
        if std::mem::take(&mut state.is_end_wanted)
            && let Stage::Open(open) = &self.progress.stage
        {
            open.end();
            self.figures.count_abort();
            self.progress.stage = Stage::Aborted;
        }
        state.used = None;
        state.progress = Some(std::mem::replace(&mut self.progress, Progress::UNUSED));
        drop(state);
        self.session.free.notify_one();
    }
}

/// The purpose of a number that is too old.
#[derive(Clone, Copy)]
enum Wanted {
    Write,
    Transaction,
}

fn storage_error(error: pando_catalog::WriteError) -> CommandError {
    crate::error::write_failure(error, "config.transactions")
}

/// The error of a statement in a transaction that has committed.
pub(crate) fn committed(number: i64) -> CommandError {
    Failure::new(
        ErrorCode::TransactionCommitted,
        format!("Transaction with {{ txnNumber: {number} }} has been committed."),
    )
    .into()
}
