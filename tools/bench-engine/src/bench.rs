//! The parts that the workloads of one process share: the store, the data, the counters, and the sync every
//! 100 ms.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pando_measuring::counters::Device;

use crate::counters::Sample;
use crate::data::Purchases;
use crate::error::BenchError;
use crate::peer::{Peer, PeerKind, PeerSettings};

/// How often what was written is brought to the device.
const SYNC_PERIOD: Duration = Duration::from_millis(100);
/// How often the syncing thread looks whether it is to end.
const LOOK_PERIOD: Duration = Duration::from_millis(5);

/// Tells the syncing thread to end, even where the work panics.
struct EndWhenDropped<'a>(&'a AtomicBool);

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An open store with what is measured around it.
pub struct Bench {
    kind: PeerKind,
    pub peer: Box<dyn Peer>,
    pub purchases: Purchases,
    pub documents: u64,
    /// The seed of draws.
    pub seed: u64,
    folder: PathBuf,
    device: Option<Device>,
}

impl Bench {
    pub fn open(
        kind: PeerKind,
        folder: &Path,
        settings: PeerSettings,
        seed: u64,
        documents: u64,
    ) -> Result<Bench, BenchError> {
        let peer = kind.open(folder, settings)?;
        let device = Device::under(folder);
        let folder = folder.to_owned();
        Ok(Bench { kind, peer, purchases: Purchases::new(seed), documents, seed, folder, device })
    }

    /// Where the store lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The counters as they are now.
    pub fn sample(&self) -> Result<Sample, BenchError> {
        Sample::take(self.device)
    }

    pub fn wrong(&self, question: impl std::fmt::Display, found: impl std::fmt::Display) -> BenchError {
        BenchError::Wrong {
            peer: self.kind.title(),
            question: question.to_string(),
            found: found.to_string(),
        }
    }

    /// Does some work while another thread syncs the store every 100 ms.
    pub fn while_syncing<T>(&self, work: impl FnOnce() -> Result<T, BenchError>) -> Result<T, BenchError> {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let syncing = scope.spawn(|| self.sync_until(&ended));
            let outcome = {
                let _end = EndWhenDropped(&ended);
                work()
            };
            let synced = syncing.join().expect("the syncing thread does not panic");
            outcome.and_then(|value| synced.map(|()| value))
        })
    }

    fn sync_until(&self, ended: &AtomicBool) -> Result<(), BenchError> {
        while !ended.load(Ordering::Relaxed) {
            let began = Instant::now();
            self.peer.sync()?;
            while began.elapsed() < SYNC_PERIOD && !ended.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_PERIOD);
            }
        }
        Ok(())
    }
}
