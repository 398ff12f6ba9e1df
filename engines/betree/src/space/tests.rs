//! Tests of blocks, space and checkpoints on the simulated disk.
//!
//! [`toy`] is the smallest user of the store that keeps all of its rules: numbered leaves of random content,
//! replaced and dropped at random, with a catalog that names them all. A crash at every call shows whether
//! the store keeps *its* rules.

mod blocks;
mod checkpoints;
mod crashes;
mod damage;
mod seals;
mod toy;

use std::path::Path;

use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::TreeId;

use super::checkpoint::CheckpointOutcome;
use super::*;
use crate::base::{BlockKind, Extent, Pointer};

const FOLDER: &str = "/store";
const TREE: TreeId = TreeId::new(7);

/// Options under which a few blocks make the file grow.
fn small_options() -> SpaceOptions {
    SpaceOptions {
        growth_bytes_min: 128 << 10,
        growth_bytes_max: 256 << 10,
        reserve_bytes: 64 << 10,
        ..SpaceOptions::default()
    }
}

fn simulation(seed: u64) -> Simulation {
    Environment::simulated(seed)
}

fn create(simulation: &Simulation) -> BlockStore {
    BlockStore::create(&simulation.environment, Path::new(FOLDER), small_options()).unwrap()
}

fn open(simulation: &Simulation) -> (BlockStore, Superblock) {
    let (store, state) =
        BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).unwrap();
    (store, state.superblock)
}

fn data_path() -> std::path::PathBuf {
    Path::new(FOLDER).join("data.0000")
}

/// Bytes that compress to about half.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let random = SeededRandom::new(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes.iter_mut().skip(1).step_by(2).for_each(|byte| *byte = b'x');
    bytes
}

fn contents(change: SpaceChange) -> CheckpointContents {
    CheckpointContents {
        catalog: None,
        log_position: crate::base::LogPosition::START,
        log_synced_to: pando_storage::Lsn::ZERO,
        last_commit: pando_storage::CommitTimestamp::ZERO,
        oldest: pando_storage::SnapshotTimestamp::ZERO,
        next_tree: 1,
        shutdown: Shutdown::Running,
        change,
    }
}

/// A checkpoint that only carries a change.
fn checkpoint(store: &BlockStore, change: SpaceChange) -> Result<CheckpointOutcome, SpaceError> {
    store.begin_checkpoint().commit(&contents(change))
}

impl BlockStore {
    /// One block in an extent of its own.
    fn write_block(
        &self,
        tree: TreeId,
        kind: BlockKind,
        compression: Compression,
        raw: &[u8],
    ) -> Result<Pointer, SpaceError> {
        block_store::write_one(self.extent_writer(tree), kind, compression, raw)
    }
}

impl Extent {
    fn units(self) -> u64 {
        self.end() - self.start()
    }
}

/// The decompressed payloads of blocks that are read together: one call after the other, then all calls at
/// once.
fn neighbours(store: &BlockStore, pointers: &[Pointer]) -> Result<Vec<bytes::Bytes>, SpaceError> {
    let mut payloads = Vec::new();
    store.read_neighbours(pointers, |pointer, payload| payloads.push(store.decompress(pointer, payload)))?;
    let payloads: Vec<_> = payloads.into_iter().collect::<Result<_, _>>()?;
    let mut scattered = vec![None; pointers.len()];
    store.read_scattered(pointers, |place, pointer, payload| {
        let before = scattered[place].replace(store.decompress(pointer, payload).ok());
        assert!(before.is_none() && *pointer == pointers[place], "each is handed over once, with its place");
    })?;
    assert!(scattered.into_iter().map(Option::flatten).eq(payloads.iter().cloned().map(Some)));
    Ok(payloads)
}
