//! Backups that are made while a history goes on. Each must hold the state of its moment.

use std::path::{Path, PathBuf};

use pando_betree::{BackupJob, BackupProgress, Betree, restore_encrypted, verify_keeping};
use pando_storage::{BackupExtent, BackupRequest, Begin, Engine, ErrorKind, StorageError};

use super::comparing::scan;
use super::{History, Image, tiny_options};

/// Most backups in a chain, so that long histories stay quick.
const CHAIN_MAX: usize = 5;

/// See the module's head.
#[derive(Default)]
pub struct Backups {
    job: Option<Begun>,
    /// The one that was under way at the last crash: it may have become whole.
    lost: Option<(PathBuf, usize, Image)>,
    /// The chain of finished ones: the first is full.
    chain: Vec<Finished>,
    next: usize,
    restored: usize,
    /// How many of each extent were finished, and how many restored.
    pub full: usize,
    pub incremental: usize,
    pub checked: usize,
}

struct Begun {
    job: BackupJob,
    folder: PathBuf,
    commits: usize,
    image: Image,
}

struct Finished {
    folder: PathBuf,
    commits: usize,
    image: Image,
}

impl History {
    /// Begins a backup, or carries on the one that is under way.
    pub(super) fn step_backup(&mut self) -> Result<(), StorageError> {
        let mut backups = self.backups.take().expect("the history makes backups");
        let outcome = self.step_backups(&mut backups);
        self.backups = Some(backups);
        outcome
    }

    fn step_backups(&mut self, backups: &mut Backups) -> Result<(), StorageError> {
        match backups.job.take() {
            None => {
                if backups.chain.len() == CHAIN_MAX {
                    backups.chain.clear();
                }
                let folder = PathBuf::from(format!("/backup-{}", backups.next));
                let since = backups.chain.last().map(|last| last.folder.as_path());
                let environment = &self.simulation.environment;
                let image = self.images[self.commits()].clone();
                backups.lost = Some((folder.clone(), self.commits(), image.clone()));
                let job = self.engine().begin_backup(&BackupRequest {
                    environment,
                    folder: &folder,
                    since,
                    operation: None,
                })?;
                // Commits in a backup are as sure as synced ones.
                (self.synced, self.logged) = (self.commits(), self.commits());
                backups.job = Some(Begun { job, folder, commits: self.commits(), image });
            }
            Some(mut begun) => match begun.job.step()? {
                BackupProgress::Copying => backups.job = Some(begun),
                BackupProgress::Finished(report) => {
                    let is_first = backups.chain.is_empty();
                    assert_eq!(report.extent == BackupExtent::Full, is_first, "{}", self.label);
                    if is_first {
                        backups.full += 1
                    } else {
                        backups.incremental += 1
                    }
                    let Begun { folder, commits, image, .. } = begun;
                    backups.chain.push(Finished { folder, commits, image });
                    (backups.next, backups.lost) = (backups.next + 1, None);
                }
            },
        }
        Ok(())
    }

    /// The life of the process ends with a backup under way.
    pub(super) fn end_backup(&mut self) {
        if let Some(backups) = &mut self.backups {
            backups.job = None;
        }
    }

    /// Restores the backups of the chain so far, and the remains of the one that the crash interrupted.
    pub(super) fn check_backups(&mut self, survived: usize) {
        let Some(mut backups) = self.backups.take() else { return };
        if let Some((folder, commits, image)) = backups.lost.take() {
            let mut chain: Vec<PathBuf> = backups.chain.iter().map(|link| link.folder.clone()).collect();
            chain.push(folder.clone());
            if self.restore_and_compare(&mut backups, &chain, &image) {
                backups.chain.push(Finished { folder, commits, image });
                backups.next += 1;
            }
        }
        for count in 1..=backups.chain.len() {
            let last = &backups.chain[count - 1];
            assert!(last.commits <= survived, "{}: a backup has what the store has lost", self.label);
            let image = last.image.clone();
            let chain: Vec<PathBuf> = backups.chain[..count].iter().map(|link| link.folder.clone()).collect();
            assert!(
                self.restore_and_compare(&mut backups, &chain, &image),
                "{}: a finished backup is gone",
                self.label
            );
        }
        self.backups = Some(backups);
    }

    /// Restores a chain, and compares; false where the last one is unfinished.
    fn restore_and_compare(&self, backups: &mut Backups, chain: &[PathBuf], image: &Image) -> bool {
        backups.restored += 1;
        let (to, environment) = (format!("/restored-{}", backups.restored), &self.simulation.environment);
        let to = Path::new(&to);
        let key = self.encryption();
        match restore_encrypted(environment, chain, to, key.as_ref()) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => return false,
            outcome => drop(outcome.unwrap_or_else(|error| panic!("{}: {error:?}", self.label))),
        }
        let report = verify_keeping(environment, to, key.as_ref(), "")
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        assert!(report.is_sound(), "{}: {:?}", self.label, report.damage);
        let mut options = tiny_options();
        options.encryption = key.clone();
        let engine = Betree::open(environment, to, options);
        let engine = engine.unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        let listed = engine.list_trees().expect("trees are listed");
        let names: Vec<&String> = listed.iter().map(|tree| &tree.name).collect();
        assert_eq!(names.len(), image.len(), "{}: {names:?}", self.label);
        let reader = engine.begin(Begin::READ).expect("a reader begins");
        for tree in &listed {
            let found =
                scan(reader.as_ref(), tree.id).unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
            assert!(
                image.get(&tree.name) == Some(&found),
                "{}: {} differs in a backup",
                self.label,
                tree.name
            );
        }
        drop(reader);
        engine.close().expect("the restored store closes");
        drop(engine);
        let report = verify_keeping(environment, to, key.as_ref(), "")
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        assert!(report.is_sound(), "{}: {:?}", self.label, report.damage);
        remove_store(environment, to);
        backups.checked += 1;
        true
    }
}

fn remove_store(environment: &pando_environment::Environment, folder: &Path) {
    for folder in [folder.to_owned(), folder.join("wal")] {
        for name in environment.files().list(&folder).expect("the folder can be listed") {
            let _folders_stay = environment.files().remove(&folder.join(name));
        }
    }
}
