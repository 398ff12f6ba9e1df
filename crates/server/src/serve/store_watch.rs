//! The store under watch: a thread that writes a line to the log when the disk is full, when it has room
//! again, when the engine cannot write, when a checkpoint took long, and when the store is gone from its
//! folder. It ends the process when the engine has stopped itself.
//!
//! 1. Once a second a [`Sample`] is taken: figures of the engine, and the room on the disk.
//! 2. [`Watch::judge`] compares it with the one before, and gives the lines. It is a pure function.
//!
//! A line is written when a state begins and when it ends, not while it lasts.
//!
//! # An engine that has stopped itself
//! After a failed write or sync of its log an engine takes no write until the store is opened again. A server
//! that lived on would tell clients that it is the primary, and refuse every write. So it ends with an error:
//! clients look for another server, and a supervisor such as systemd starts this one again, which recovers
//! the store. MongoDB aborts in the same case.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pandodb::{Commands, EngineName, FolderError, FolderState, MissingStore, inspect_folder};
use tracing::{error, info, warn};

use super::command_handler::CommandHandler;
use super::logging;
use crate::amounts::{bytes_text, time_text};
use crate::error_text::error_text;

const PERIOD: Duration = Duration::from_secs(1);
/// Less room than this is a full disk soon: the data file grows by up to 64 MB at a time.
const FREE_BYTES_LOW: u64 = 128 << 20;
/// As much room has to be there before the disk counts as having room again, so that no line is repeated.
const FREE_BYTES_ENOUGH: u64 = 2 * FREE_BYTES_LOW;
/// A checkpoint that takes longer is worth a line.
const CHECKPOINT_LONG: Duration = Duration::from_secs(30);
/// The exit code after the engine has stopped itself: that of an error.
const EXIT_CODE_STOPPED: i32 = 1;

/// The running thread. Dropping it ends the watch.
pub(super) struct StoreWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StoreWatch {
    /// Starts to watch the store in a folder.
    pub(super) fn start(
        handler: Arc<CommandHandler>,
        engine: EngineName,
        folder: PathBuf,
    ) -> std::io::Result<StoreWatch> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("pando-watch".to_owned()).spawn(move || {
            let begun = Instant::now();
            let take = || Sample {
                place: StorePlace::find(engine, &folder),
                ..Sample::take(handler.commands(), &folder, begun)
            };
            let mut watch = Watch::new(take());
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                for line in watch.judge(take()) {
                    match line {
                        Line::End(text) => {
                            error!("{text}; the store is in {}", folder.display());
                            logging::flush();
                            process::exit(EXIT_CODE_STOPPED);
                        }
                        Line::Error(text) => error!("{text}; the store was in {}", folder.display()),
                        Line::Warning(text) => warn!("{text}; the store is in {}", folder.display()),
                        Line::Notice(text) => info!("{text}; the store is in {}", folder.display()),
                    }
                }
            }
        })?;
        Ok(StoreWatch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for StoreWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the watch is in the log already.
            let _ = thread.join();
        }
    }
}

/// The figures of one moment.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// Since the server's start.
    time: Duration,
    /// `None` where the system does not tell.
    free_bytes: Option<u64>,
    checkpoints: u64,
    checkpoint_time: Duration,
    /// Flushes and checkpoints that failed.
    failures: u64,
    /// The failure after which the engine has stopped itself.
    stopped_by: Option<String>,
    /// `None` where the folder is gone.
    place: Option<StorePlace>,
}

/// The folder of the store, and whether its files are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StorePlace {
    device: u64,
    inode: u64,
    has_store: bool,
}

impl StorePlace {
    fn find(engine: EngineName, folder: &Path) -> Option<StorePlace> {
        let found = rustix::fs::stat(folder).ok()?;
        let state = inspect_folder(engine, folder, MissingStore::Refuse);
        // One that cannot be read now, as where the process has too many files open, may have it all the
        // same.
        let has_store = matches!(state, Ok(FolderState::Store) | Err(FolderError::Unreadable { .. }));
        Some(StorePlace { device: found.st_dev, inode: found.st_ino, has_store })
    }
}

impl Sample {
    fn take(commands: &Commands, folder: &Path, begun: Instant) -> Sample {
        let engine = commands.catalog().engine();
        let statistics = engine.statistics();
        let figure = |name| statistics.get(name).unwrap_or(0);
        let disk = rustix::fs::statvfs(folder).ok();
        Sample {
            time: begun.elapsed(),
            free_bytes: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            checkpoints: figure("checkpoints.count"),
            checkpoint_time: Duration::from_nanos(figure("checkpoints.nanos")),
            failures: figure("checkpoints.failed") + figure("flushes.failed"),
            // After the figures: writes that failed because the engine has stopped are not tried again.
            stopped_by: engine.failure().map(|failure| error_text(&failure)),
            place: None,
        }
    }
}

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// An error after which the process ends.
    End(String),
    Error(String),
    Warning(String),
    Notice(String),
}

/// The states that the last lines told of.
struct Watch {
    last: Sample,
    /// That of the start.
    place: Option<StorePlace>,
    is_gone: bool,
    full_since: Option<Duration>,
    failing_since: Option<Duration>,
}

impl Watch {
    fn new(first: Sample) -> Watch {
        Watch { place: first.place, last: first, is_gone: false, full_since: None, failing_since: None }
    }

    /// The lines that a sample is worth.
    fn judge(&mut self, sample: Sample) -> Vec<Line> {
        if let Some(failure) = &sample.stopped_by {
            return vec![Line::End(format!(
                "the server ends, because the engine takes no write any more: {failure}; look at the disk and at the messages \
                 of the kernel (dmesg), mend the cause and start the server again, which recovers the store from its log"
            ))];
        }
        let mut lines = Vec::new();
        lines.extend(self.judge_place(&sample));
        lines.extend(self.judge_room(&sample));
        lines.extend(self.judge_writes(&sample));
        let ended = sample.checkpoints.saturating_sub(self.last.checkpoints);
        let took = sample.checkpoint_time.saturating_sub(self.last.checkpoint_time);
        if ended > 0 && took >= CHECKPOINT_LONG {
            lines.push(Line::Warning(format!(
                "a checkpoint took {}: the disk is slow for the writes that come, and a start after a crash replays more of \
                 the log",
                time_text(took)
            )));
        }
        self.last = sample;
        lines
    }

    /// Files that are open live on after somebody has removed them, until the server stops.
    fn judge_place(&mut self, sample: &Sample) -> Option<Line> {
        let is_gone = self.place.is_some() && sample.place != self.place;
        match std::mem::replace(&mut self.is_gone, is_gone) {
            false if is_gone => Some(Line::Error(
                "the folder of the store was moved or removed, or files of it were: what was removed is lost when the server \
                 stops; put it back, or take the data now with pando copy or mongodump"
                    .to_owned(),
            )),
            true if !is_gone => Some(Line::Notice("the folder of the store is in its place again".to_owned())),
            _ => None,
        }
    }

    fn judge_room(&mut self, sample: &Sample) -> Option<Line> {
        let free = sample.free_bytes?;
        match self.full_since {
            None if free < FREE_BYTES_LOW => {
                self.full_since = Some(sample.time);
                Some(Line::Warning(format!(
                    "the disk is full or nearly so: {} are left; writes fail once they are used up, and reads go on; make room, or \
                     delete documents",
                    bytes_text(free)
                )))
            }
            Some(since) if free >= FREE_BYTES_ENOUGH => {
                self.full_since = None;
                Some(Line::Notice(format!(
                    "the disk has room again, {}, after {}",
                    bytes_text(free),
                    time_text(sample.time.saturating_sub(since))
                )))
            }
            _ => None,
        }
    }

    fn judge_writes(&mut self, sample: &Sample) -> Option<Line> {
        let failed = sample.failures.saturating_sub(self.last.failures);
        match self.failing_since {
            None if failed > 0 => {
                self.failing_since = Some(sample.time);
                Some(Line::Warning(
                    "the engine cannot write to the data file, and tries again; writes wait and then fail; look at the \
                     disk, its room and its rights"
                        .to_owned(),
                ))
            }
            Some(since) if failed == 0 && sample.checkpoints > self.last.checkpoints => {
                self.failing_since = None;
                let lasted = time_text(sample.time.saturating_sub(since));
                Some(Line::Notice(format!("the engine writes to the data file again, after {lasted}")))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64, free_bytes: u64) -> Sample {
        let free_bytes = Some(free_bytes);
        Sample { time: Duration::from_secs(seconds), free_bytes, checkpoints: seconds, ..Sample::default() }
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines
            .into_iter()
            .map(|line| match line {
                Line::End(text) => format!("end: {text}"),
                Line::Error(text) => format!("error: {text}"),
                Line::Warning(text) => format!("warning: {text}"),
                Line::Notice(text) => format!("notice: {text}"),
            })
            .collect()
    }

    #[test]
    fn a_full_disk_is_told_once_and_so_is_its_end() {
        let mut watch = Watch::new(sample(0, 1 << 40));
        assert!(watch.judge(sample(1, 1 << 40)).is_empty());
        let told = texts(watch.judge(sample(2, 1 << 20)));
        assert!(
            told.len() == 1 && told[0].starts_with("warning: the disk is full or nearly so: 1.0 MB"),
            "{told:?}"
        );
        assert!(watch.judge(sample(3, 1 << 20)).is_empty());
        assert!(watch.judge(sample(4, FREE_BYTES_LOW + 1)).is_empty(), "no line for every few bytes");
        let told = texts(watch.judge(sample(62, 1 << 40)));
        assert!(
            told.len() == 1 && told[0].contains("room again") && told[0].contains("1 min 0 s"),
            "{told:?}"
        );
    }

    #[test]
    fn writes_that_fail_are_told_until_a_checkpoint_has_gone_through() {
        let failing = |seconds, failures| Sample { failures, checkpoints: 5, ..sample(seconds, 1 << 40) };
        let mut watch = Watch::new(failing(0, 0));
        let told = texts(watch.judge(failing(1, 3)));
        assert!(told.len() == 1 && told[0].starts_with("warning: the engine cannot write"), "{told:?}");
        assert!(watch.judge(failing(2, 4)).is_empty());
        assert!(watch.judge(failing(3, 4)).is_empty(), "a pause between two tries is no end");
        let again = Sample { failures: 4, checkpoints: 6, ..sample(4, 1 << 40) };
        let told = texts(watch.judge(again));
        assert!(told.len() == 1 && told[0].starts_with("notice: the engine writes"), "{told:?}");
    }

    #[test]
    fn an_engine_that_has_stopped_itself_ends_the_process_with_one_line() {
        let mut watch = Watch::new(sample(0, 1 << 40));
        let failure = "the log has stopped after an earlier failure: EIO".to_owned();
        // The checkpoint that fails with it is not tried again.
        let stopped = Sample { failures: 1, stopped_by: Some(failure), ..sample(1, 1 << 40) };
        let told = texts(watch.judge(stopped));
        assert!(told.len() == 1 && told[0].starts_with("end: the server ends"), "{told:?}");
        assert!(told[0].contains("EIO") && !told[0].contains("tries again"), "{told:?}");
    }

    #[test]
    fn a_store_that_is_gone_is_told_once_and_so_is_its_return() {
        let at = |seconds, place| Sample { place, ..sample(seconds, 1 << 40) };
        let place = StorePlace { device: 1, inode: 2, has_store: true };
        let mut watch = Watch::new(at(0, Some(place)));
        assert!(watch.judge(at(1, Some(place))).is_empty());
        for other in
            [None, Some(StorePlace { inode: 3, ..place }), Some(StorePlace { has_store: false, ..place })]
        {
            let told = texts(watch.judge(at(2, other)));
            assert!(told.len() == 1 && told[0].starts_with("error: the folder of the store"), "{told:?}");
            assert!(watch.judge(at(3, other)).is_empty());
            let told = texts(watch.judge(at(4, Some(place))));
            assert!(told.len() == 1 && told[0].starts_with("notice: the folder of the store"), "{told:?}");
        }
    }

    #[test]
    fn a_long_checkpoint_is_told_when_it_has_ended() {
        let mut watch = Watch::new(sample(0, 1 << 40));
        let long = Sample { checkpoint_time: Duration::from_secs(45), ..sample(50, 1 << 40) };
        let told = texts(watch.judge(long.clone()));
        assert!(told.len() == 1 && told[0].contains("a checkpoint took 45 s"), "{told:?}");
        assert!(watch.judge(Sample { time: Duration::from_secs(51), ..long }).is_empty());
    }
}
