//! Hot backups: their content during other work and after power cuts, and the errors for damaged ones.

use std::path::{Path, PathBuf};

use pando_betree::{BackupProgress, Betree, restore};
use pando_environment::{Environment, Simulation};
use pando_storage::{BackupExtent, BackupReport, BackupRequest, Engine, ErrorKind, StorageError};

use crate::history::{self, Ending, FOLDER, History, tiny_options};

fn backed_up(seed: u64) -> History {
    let mut history = History::new(seed);
    history.backups = Some(history::backups::Backups::default());
    history
}

/// A history whose backups are cut off at a call, or not. Returns the number of its calls.
fn cut_at(seed: u64, steps: u64, call: Option<u64>, ending: Ending) -> u64 {
    backed_up(seed).live_twice(steps, call, ending)
}

#[test]
fn a_power_cut_at_any_call_leaves_whole_backups_or_none_and_the_store_sound() {
    for seed in 0..2 {
        let calls = cut_at(seed, 60, None, Ending::PowerCut { seed });
        for call in (1 + seed..=calls).step_by(2) {
            cut_at(seed, 60, Some(call), Ending::PowerCut { seed: seed * 100_000 + call });
        }
    }
}

#[test]
fn every_backup_of_a_long_history_holds_exactly_what_its_moment_had() {
    let (mut full, mut incremental, mut checked) = (0, 0, 0);
    for seed in 100..112 {
        let mut history = backed_up(seed);
        history.open().expect("a store is made");
        for _ in 0..4 {
            history.run(150).expect("nothing fails");
            history.close_and_reopen();
        }
        let backups = history.backups.as_ref().expect("the history makes backups");
        (full, incremental) = (full + backups.full, incremental + backups.incremental);
        checked += backups.checked;
    }
    assert!(
        full > 12 && incremental > 40 && checked > 60,
        "{full} full, {incremental} more, {checked} checked"
    );
}

/// A store with something in it, and its simulated machine.
fn store(seed: u64) -> History {
    let mut history = History::new(seed);
    history.open().expect("a store is made");
    history.run(150).expect("nothing fails");
    history
}

fn backup(history: &History, folder: &str, since: Option<&str>) -> Result<BackupReport, StorageError> {
    let environment = &history.simulation.environment;
    history.engine().backup(&BackupRequest {
        environment,
        folder: Path::new(folder),
        since: since.map(Path::new),
        operation: None,
    })
}

fn restore_to(simulation: &Simulation, backups: &[&str], to: &str) -> Result<BackupReport, StorageError> {
    let backups: Vec<PathBuf> = backups.iter().map(PathBuf::from).collect();
    restore(&simulation.environment, &backups, Path::new(to))
}

fn expect_error(outcome: Result<BackupReport, StorageError>, kind: ErrorKind, words: &str) {
    let error = outcome.expect_err("it must fail");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn an_incremental_backup_has_what_changed_and_not_what_there_is() {
    let mut history = store(7);
    for _ in 0..60 {
        history.commit_bytes(6_000).expect("a commit succeeds");
    }
    let full = backup(&history, "/full", None).expect("a backup is made");
    history.commit_bytes(100).expect("a commit succeeds");
    let more = backup(&history, "/more", Some("/full")).expect("a backup is made");
    assert_eq!((full.extent, more.extent), (BackupExtent::Full, BackupExtent::Incremental));
    assert!(more.bytes * 4 < full.bytes, "{} bytes after {}", more.bytes, full.bytes);
    let restored = restore_to(&history.simulation, &["/full", "/more"], "/restored").expect("it is restored");
    assert_eq!(restored.moment, more.moment);
}

#[test]
fn a_full_disk_in_the_middle_of_a_backup_is_said_and_nothing_is_lost() {
    let mut history = store(8);
    for room in [0, 3_000, 9_000, 30_000] {
        let used = history.simulation.disk.used_bytes();
        history.simulation.disk.set_capacity(Some(used + room));
        expect_error(backup(&history, "/full", None), ErrorKind::Io, "");
        expect_error(
            restore_to(&history.simulation, &["/full"], "/r"),
            ErrorKind::InvalidInput,
            "no finished",
        );
        history.simulation.disk.set_capacity(None);
        history.check_now();
        history.run(10).expect("work goes on");
    }
    backup(&history, "/full", None).expect("with room the same call succeeds");
    let used = history.simulation.disk.used_bytes();
    history.simulation.disk.set_capacity(Some(used + 20_000));
    expect_error(
        restore_to(&history.simulation, &["/full"], "/restored"),
        ErrorKind::Io,
        "no room left in /restored",
    );
    history.simulation.disk.set_capacity(None);
    restore_to(&history.simulation, &["/full"], "/restored").expect("with room the same call succeeds");
    expect_error(
        restore_to(&history.simulation, &["/full"], "/restored"),
        ErrorKind::InvalidInput,
        "holds a store",
    );
    history.close_and_reopen();
}

#[test]
fn damage_to_any_file_of_a_backup_is_found_and_named() {
    let history = store(9);
    backup(&history, "/full", None).expect("a backup is made");
    let (disk, files) = (&history.simulation.disk, history.simulation.environment.files());
    let mut paths = vec![PathBuf::from("/full/MANIFEST"), PathBuf::from("/full/extents")];
    paths.extend(
        files
            .list(Path::new("/full/wal"))
            .expect("listed")
            .into_iter()
            .map(|name| Path::new("/full/wal").join(name)),
    );
    assert!(paths.len() > 2);
    let mut tries = 0;
    for path in &paths {
        let bits = disk.content(path).len() * 8;
        for at in 0..40 {
            let bit = at * bits / 40;
            disk.flip_bit(path, bit);
            let error = restore_to(&history.simulation, &["/full"], "/restored").expect_err("it is damaged");
            assert!(error.to_string().contains(path.to_str().expect("a path")), "bit {bit}: {error}");
            disk.flip_bit(path, bit);
            tries += 1;
        }
        let content = disk.content(path);
        let open = |length| {
            let file = files
                .open(path, pando_environment::OpenMode::Existing, pando_environment::Access::Buffered)
                .expect("it opens");
            file.set_length(length).expect("it is cut");
            file
        };
        open(content.len() as u64 / 2);
        let error = restore_to(&history.simulation, &["/full"], "/restored").expect_err("it is cut short");
        assert!(error.to_string().contains(path.to_str().expect("a path")), "{error}");
        open(content.len() as u64).write_all_at(&content, 0).expect("it is mended");
    }
    assert!(tries >= 120);
    disk.corrupt(Path::new("/full/MANIFEST"), |bytes| bytes[8] = 9);
    expect_error(
        restore_to(&history.simulation, &["/full"], "/restored"),
        ErrorKind::InvalidInput,
        "version 9",
    );
    disk.corrupt(Path::new("/full/MANIFEST"), |bytes| bytes[8] = 1);
    restore_to(&history.simulation, &["/full"], "/restored").expect("mended, it is restored");
}

#[test]
fn backups_that_do_not_belong_together_are_refused() {
    let mut history = store(10);
    backup(&history, "/full", None).expect("a backup is made");
    for (folder, since) in [("/one", "/full"), ("/two", "/one")] {
        history.run(20).expect("nothing fails");
        backup(&history, folder, Some(since)).expect("a backup is made");
    }
    let simulation = &history.simulation;
    expect_error(restore_to(simulation, &[], "/r"), ErrorKind::InvalidInput, "no backup");
    expect_error(restore_to(simulation, &["/one"], "/r"), ErrorKind::InvalidInput, "incremental");
    expect_error(
        restore_to(simulation, &["/full", "/two"], "/r"),
        ErrorKind::InvalidInput,
        "does not follow",
    );
    expect_error(restore_to(simulation, &["/nothing"], "/r"), ErrorKind::InvalidInput, "no finished");
    expect_error(backup(&history, "/full", None), ErrorKind::InvalidInput, "MANIFEST");
    expect_error(backup(&history, "/three", Some("/none")), ErrorKind::InvalidInput, "no finished");
    restore_to(simulation, &["/full", "/one", "/two"], "/r").expect("it is restored");
    let restored = Betree::open(&simulation.environment, Path::new("/r"), tiny_options()).expect("it opens");
    let request = BackupRequest {
        environment: &simulation.environment,
        folder: Path::new("/of-the-restored"),
        since: Some(Path::new("/two")),
        operation: None,
    };
    expect_error(restored.backup(&request), ErrorKind::InvalidInput, "another store");
}

#[test]
fn a_backup_ends_with_its_store_and_leaves_no_pin() {
    let mut history = store(11);
    let environment = Environment::clone(&history.simulation.environment);
    let request =
        BackupRequest { environment: &environment, folder: Path::new("/full"), since: None, operation: None };
    let mut job = history.engine().begin_backup(&request).expect("it begins");
    assert_eq!(job.step().expect("a piece is copied"), BackupProgress::Copying);
    let pins = |history: &History| history.engine().statistics().get("backup.pinned_generations");
    assert_eq!(pins(&history), Some(1));
    drop(job);
    assert_eq!(pins(&history), Some(0));
    let mut job = history.engine().begin_backup(&request).expect("it begins again");
    history.engine().close().expect("the store closes");
    assert_eq!(job.step().expect_err("the store is closed").kind(), ErrorKind::Closed);
    drop(job);
    history.close();
    assert!(environment.files().exists(&Path::new(FOLDER).join("data.0000")).expect("it is looked for"));
}
