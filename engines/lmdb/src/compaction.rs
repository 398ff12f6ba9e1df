//! Compaction: LMDB's file is written anew without its free pages, and takes the place of the first one.
//!
//! LMDB uses free pages again and never gives them back, so the file stays as long as it was at its fullest.
//!
//! # Steps
//! 1. Look whether more than a little of the file is free. If not, there is nothing to do.
//! 2. Let no transaction begin, and wait until none is live. After a moment let others begin again, and try
//!    later: whoever waits to begin may be the one that has to end a transaction.
//! 3. Make the newest state durable, with a mark that says that the file is exactly at it (`durable_mark`).
//! 4. Write a copy without free pages beside the file, which LMDB does (`MDB_CP_COMPACT`), and sync it. Its
//!    state gets the number that it has in the file: numbers of commits never come back, and other processes
//!    that have LMDB's lock file open, such as `mdb_stat`, keep the number there.
//! 5. Rename the copy to the file's name, and sync the folder.
//! 6. Close LMDB's environment and open it again; write a mark of the new file.
//!
//! # A power cut or a kill
//! Between steps 3 and 6 both the old file and the new one have the same state, on the device, and the mark
//! has nothing to restore. Whichever of them has the name is opened. What is left of a copy is removed.
//!
//! # Invariants
//! - Neither a snapshot nor a commit exists between steps 3 and 6: the locks of the store are held.
//! - If the file stays the old one, its mark says again that it is in use before anybody can commit.
//!
//! # Not here
//! Reads and writes during steps 3 to 6. LMDB's transactions belong to one environment, and a process must
//! not open a file twice.

use std::io::{ErrorKind as IoKind, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use heed::{CompactionOption, Env, WithoutTls};
use pando_environment::{Access, Environment, File, OpenMode, Step, Task};
use pando_storage::{ErrorKind, Operation, StorageError};

use crate::LmdbOptions;
use crate::data_file::{DataFile, UncheckedFile, path_in};
use crate::durable_mark::{DurableMark, Ending};
use crate::failure::{environment_failed, lmdb_failed};
use crate::page_walk::renumber;
use crate::store::Store;

/// The name of the copy until it is whole.
const COPY_FILE: &str = "data.mdb.compact";

/// A file of which less than one page in so many is free stays as it is.
const FREE_MIN: usize = 16;

/// How long transactions are kept from beginning at a time, and let begin again.
const TURN: Duration = Duration::from_millis(100);

/// Turns before it gives up: ten seconds in all.
const TURNS_MAX: u32 = 50;

/// How long LMDB's environment may take to close. Nobody has a snapshot of it, so that it closes at once.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Bytes that are taken from the pipe at a time: as many as it holds.
const PART_BYTES: usize = 64 << 10;

const META_PAGES: usize = 2;

/// Where the store is, and with which options it was opened.
pub(crate) struct Home {
    pub(crate) environment: Environment,
    pub(crate) folder: PathBuf,
    pub(crate) options: LmdbOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Compacted,
    TransactionsLive,
}

/// See the module's head. Blocks. An interruption of the operation leaves the file as it was.
pub(crate) fn compact(store: &Store, home: &Home, operation: &Operation) -> Result<(), StorageError> {
    let is_worth_it = {
        let file = store.map.enter()?;
        has_free_pages(&file)
    };
    if !is_worth_it {
        return Ok(());
    }
    for turn in 0..TURNS_MAX {
        if turn > 0 {
            pando_environment::sync::thread::sleep(TURN);
        }
        operation.check_now()?;
        if try_compact(store, home, operation)? == Attempt::Compacted {
            return Ok(());
        }
    }
    let live = store.live.lock().len();
    let message = format!(
        "{live} transactions are live, and LMDB's file can be written anew only without any: end them \
         (open cursors have one, too) and compact again"
    );
    Err(StorageError::new(ErrorKind::Busy, message))
}

/// Removes the copy of a compaction that was interrupted.
pub(crate) fn remove_unfinished(environment: &Environment, folder: &Path) -> Result<(), StorageError> {
    let failed = |error| environment_failed("cannot remove what is left of a compaction", error);
    let copy = folder.join(COPY_FILE);
    match environment.files().exists(&copy).map_err(failed)? {
        true => environment.files().remove(&copy).map_err(failed),
        false => Ok(()),
    }
}

/// Whether the file has free pages enough. The pages of LMDB's list of free pages count as free.
fn has_free_pages(file: &DataFile) -> bool {
    let (info, table) = (file.env.info(), file.env.unnamed_database_stat());
    let all = info.last_page_number + 1;
    let used = META_PAGES + table.branch_pages + table.leaf_pages + table.overflow_pages;
    all.saturating_sub(used) > all / FREE_MIN
}

/// Steps 2 to 6.
fn try_compact(store: &Store, home: &Home, operation: &Operation) -> Result<Attempt, StorageError> {
    let _begins = store.begins.lock();
    {
        let mut live = store.live.lock();
        if live.len() > 0 {
            store.ended.wait_while_for(&mut live, |live| live.len() > 0, TURN);
        }
        if live.len() > 0 {
            return Ok(Attempt::TransactionsLive);
        }
    }
    let mut durable = store.sync_turn.lock();
    let writer = store.writer.lock();
    assert_eq!(store.live.lock().len(), 0, "nobody can have begun a transaction");
    store.check_open()?;
    let pinned = store.pin_newest(&writer);
    let synced = pinned.and_then(|pinned| store.make_durable(pinned, &mut durable, Ending::Clean));
    store.or_stop("a sync failed", synced)?;
    if let Err(error) = write_copy(store, home, operation) {
        // Room first: the mark may need some. What stays is removed by the next compaction or opening.
        let _stays = remove_unfinished(&home.environment, &home.folder);
        store.or_stop("a sync failed", mark_in_use(store, &mut durable))?;
        return Err(error);
    }
    store.or_stop("LMDB's new file cannot be taken", take_copy(store, home, &mut durable))?;
    Ok(Attempt::Compacted)
}

/// Writes a mark of the file as it is.
fn mark_in_use(store: &Store, durable: &mut DurableMark) -> Result<(), StorageError> {
    let metas = store.map.enter()?.metas.copy()?;
    durable.write(metas, Ending::Open)
}

/// Step 4, and the new name. After a failure the file is the old one.
fn write_copy(store: &Store, home: &Home, operation: &Operation) -> Result<(), StorageError> {
    remove_unfinished(&home.environment, &home.folder)?;
    let failed = |error| environment_failed("cannot write LMDB's file anew", error);
    let (files, path) = (home.environment.files(), home.folder.join(COPY_FILE));
    let copy = files.open(&path, OpenMode::CreateNew, Access::Buffered).map_err(failed)?;
    let (env, metas_bytes, number) = {
        let file = store.map.enter()?;
        let page_bytes = file.env.unnamed_database_stat().page_size as usize;
        (file.env.clone(), META_PAGES * page_bytes, file.env.info().last_txn_id as u64)
    };
    let (mut pages, copying) = Copying::start(&home.environment, env)?;
    let drained = drain(&mut pages, &*copy, operation, (metas_bytes, number));
    // A copy that nobody reads any more ends with an error, which is not the cause.
    drop(pages);
    let copied = copying.end();
    drained?;
    copied?;
    copy.sync_data().map_err(failed)?;
    files.rename(&path, &path_in(&home.folder)).map_err(failed)
}

/// Writes all that comes. The state in the meta pages gets its number.
fn drain(
    pages: &mut PipeReader,
    copy: &dyn File,
    operation: &Operation,
    (metas_bytes, number): (usize, u64),
) -> Result<(), StorageError> {
    let no_room =
        |error| environment_failed("cannot write LMDB's file anew, which needs room for a second one", error);
    let mut metas = vec![0; metas_bytes];
    match pages.read_exact(&mut metas) {
        // LMDB has failed before its first page, and says why.
        Err(error) if error.kind() == IoKind::UnexpectedEof => return Ok(()),
        outcome => outcome.map_err(|error| piping_failed(&error))?,
    }
    renumber(&mut metas, number);
    copy.write_all_at(&metas, 0).map_err(no_room)?;
    let (mut part, mut written) = (vec![0; PART_BYTES], metas_bytes as u64);
    loop {
        operation.check_now()?;
        match pages.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(bytes) => {
                copy.write_all_at(&part[..bytes], written).map_err(no_room)?;
                written += bytes as u64;
            }
            Err(error) if error.kind() == IoKind::Interrupted => {}
            Err(error) => return Err(piping_failed(&error)),
        }
    }
}

fn piping_failed(error: &std::io::Error) -> StorageError {
    StorageError::new(ErrorKind::Io, format!("cannot pass LMDB's pages on: {error}"))
}

/// LMDB's own copying, in a task: it writes into a pipe, so that an interruption can end it.
struct Copying {
    task: Task,
    outcome: mpsc::Receiver<Result<(), heed::Error>>,
}

impl Copying {
    fn start(environment: &Environment, env: Env<WithoutTls>) -> Result<(PipeReader, Copying), StorageError> {
        let (reader, writer) = std::io::pipe().map_err(|error| piping_failed(&error))?;
        let (tell, outcome) = mpsc::sync_channel(1);
        let mut work = Some((env, std::fs::File::from(OwnedFd::from(writer)), tell));
        let step = move || {
            let Some((env, mut pipe, tell)) = work.take() else { return Step::Done };
            let copied = env.copy_to_file(&mut pipe, CompactionOption::Enabled);
            // The environment is let go before anybody hears of the end.
            drop((env, pipe));
            // Whoever started the task waits for it, unless it could not be started.
            let _told = tell.send(copied);
            Step::Done
        };
        let task = environment.spawner().spawn("lmdb-compact", Box::new(step));
        let task = task.map_err(|error| environment_failed("cannot start a thread that copies", error))?;
        Ok((reader, Copying { task, outcome }))
    }

    fn end(self) -> Result<(), StorageError> {
        let outcome = self.outcome.recv();
        drop(self.task);
        match outcome {
            Ok(copied) => copied.map_err(|error| lmdb_failed("writing its file anew", error)),
            Err(_) => Err(crate::failure::closed()),
        }
    }
}

/// The rest of steps 5 and 6. After a failure the store has no map, or an old mark; its folder is whole.
fn take_copy(store: &Store, home: &Home, durable: &mut DurableMark) -> Result<(), StorageError> {
    let synced = home.environment.files().sync_dir(&home.folder);
    synced.map_err(|error| environment_failed("cannot put the new file in its place", error))?;
    let pin = store.pin.lock().take();
    drop(pin);
    store.map.replace(|old| {
        let map_bytes = old.env.info().map_size;
        let closing = old.env.prepare_for_closing();
        drop(old.metas);
        if !closing.wait_timeout(CLOSING_MAX) {
            let message = "LMDB's environment does not close: a snapshot of it is still there";
            return Err(StorageError::new(ErrorKind::Closed, message));
        }
        let options = LmdbOptions { map_bytes, ..home.options };
        UncheckedFile::open(&home.environment, &home.folder, options)?.with_table()
    })?;
    let pin = store.map.enter()?.snapshot("pinning the newest state")?;
    assert_eq!(
        pin.id() as u64,
        store.newest.load(Ordering::Acquire),
        "the new file has the state of the old one"
    );
    mark_in_use(store, durable)?;
    *store.pin.lock() = Some(pin);
    Ok(())
}
