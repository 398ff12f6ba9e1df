//! Backups of a run: they begin in one step, end in a later one, and hold the state at their moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_betree::{BackupJob, BackupProgress, Betree, Options, restore, verify};
use pando_environment::Environment;
use pando_storage::{BackupExtent, BackupRequest, Begin, Engine};

use super::reading;
use super::stream::Extent;

#[derive(Default)]
pub struct Backups {
    under_way: Option<UnderWay>,
    /// A full one, and those that add to it.
    chain: Vec<PathBuf>,
    pub full: u64,
    pub incremental: u64,
}

struct UnderWay {
    job: BackupJob,
    folder: PathBuf,
    /// Once nothing is left to be copied.
    finished: Option<BackupExtent>,
}

impl UnderWay {
    fn copy_piece(&mut self) {
        if self.finished.is_none()
            && let BackupProgress::Finished(report) = self.job.step().expect("a piece is copied")
        {
            self.finished = Some(report.extent);
        }
    }
}

impl Backups {
    pub fn begin(&mut self, engine: &Betree, environment: &Environment, number: usize, extent: Extent) {
        let folder = PathBuf::from(format!("/backup-{number}"));
        let since = match extent {
            Extent::Full => None,
            Extent::Incremental => self.chain.last().map(PathBuf::as_path),
        };
        let job =
            engine.begin_backup(&BackupRequest { environment, folder: &folder, since, operation: None });
        let job = job.expect("a backup begins");
        self.under_way = Some(UnderWay { job, folder, finished: None });
    }

    /// Copies a piece of the one that is under way.
    pub fn carry_on(&mut self) {
        self.under_way.iter_mut().for_each(UnderWay::copy_piece);
    }

    /// The store is about to be closed: the backup under way is given up.
    pub fn give_up(&mut self) {
        self.under_way = None;
    }

    /// Copies the rest of the backup that is under way, and restores it with those that it adds to. Returns
    /// its content.
    pub fn finish(&mut self, environment: &Environment, options: &Options) -> Vec<String> {
        let Some(mut under_way) = self.under_way.take() else { return Vec::new() };
        let extent = loop {
            match under_way.finished {
                Some(extent) => break extent,
                None => under_way.copy_piece(),
            }
        };
        if extent == BackupExtent::Full {
            self.full += 1;
            self.chain.clear();
        } else {
            self.incremental += 1;
        }
        let to = under_way.folder.join("restored");
        self.chain.push(under_way.folder);
        let mut answers = vec![format!("{extent:?} backup, {} in the chain", self.chain.len())];
        restore(environment, &self.chain, &to).expect("finished backups are restored");
        answers.extend(content(environment, options, &to));
        answers
    }
}

/// Everything in a restored store, which is removed.
fn content(environment: &Environment, options: &Options, folder: &Path) -> Vec<String> {
    assert_sound(environment, folder);
    let engine = Betree::open(environment, folder, options.clone()).expect("a restored store opens");
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    let trees = engine.list_trees().expect("trees are listed");
    let lines = trees.iter().map(|tree| {
        let content = reading::content(&*reader, tree.id);
        format!("restored {}: {content}", tree.name)
    });
    let lines = lines.collect();
    drop(reader);
    engine.close().expect("a restored store closes");
    drop::<Arc<Betree>>(engine);
    assert_sound(environment, folder);
    for folder in [folder.join("wal"), folder.to_owned()] {
        for name in environment.files().list(&folder).expect("a folder is listed") {
            let _folders_stay = environment.files().remove(&folder.join(name));
        }
    }
    lines
}

fn assert_sound(environment: &Environment, folder: &Path) {
    let report = verify(environment, folder).expect("a restored store can be checked");
    assert!(report.is_sound(), "restored: {:?}", report.damage);
}
