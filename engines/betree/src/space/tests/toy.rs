//! A small user of the store: leaves of two pages and a directory, and a catalog that names the directories.

use std::collections::BTreeMap;
use std::path::Path;

use pando_environment::{SeededRandom, Simulation};

use super::{FOLDER, TREE, content, contents, small_options};
use crate::base::{BlockKind, Extent, Generation, Pointer, extents_of};
use crate::space::audit::AuditReport;
use crate::space::checkpoint::CheckpointOutcome;
use crate::space::*;

/// A leaf: its required content, and its place.
#[derive(Clone, Debug)]
struct Leaf {
    seed: u64,
    directory: Pointer,
    pages: Vec<Pointer>,
}

impl Leaf {
    fn extents(&self) -> Vec<Extent> {
        extents_of(self.pages.iter().chain([&self.directory]))
    }
}

/// The leaves by number with their seeds, as a durable generation has them.
pub(super) type Image = BTreeMap<u8, u64>;

pub(super) struct Toy {
    store: BlockStore,
    leaves: BTreeMap<u8, Leaf>,
    catalog: Option<Pointer>,
    change: SpaceChange,
    next_seed: u64,
}

impl Toy {
    pub(super) fn create(simulation: &Simulation) -> Result<Toy, SpaceError> {
        let store = BlockStore::create(&simulation.environment, Path::new(FOLDER), small_options())?;
        Ok(Toy { store, leaves: BTreeMap::new(), catalog: None, change: SpaceChange::new(), next_seed: 1 })
    }

    /// Opens, reads everything back, and audits.
    pub(super) fn open(simulation: &Simulation) -> Result<(Toy, Superblock), SpaceError> {
        let (store, state) = BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options())?;
        let mut leaves = BTreeMap::new();
        let catalog = state.superblock.catalog();
        let listed = catalog.map(|catalog| store.read_block(&catalog)).transpose()?.unwrap_or_default();
        for entry in listed.chunks_exact(1 + 8 + Pointer::ENCODED_BYTES) {
            let (number, seed) = (entry[0], u64::from_le_bytes(*entry[1..].first_chunk().unwrap()));
            let directory = Pointer::decode(entry[9..].first_chunk().unwrap()).unwrap();
            let raw = store.read_block(&directory)?;
            let pages = raw
                .chunks_exact(Pointer::ENCODED_BYTES)
                .map(|bytes| Pointer::decode(bytes.first_chunk().unwrap()).unwrap());
            leaves.insert(number, Leaf { seed, directory, pages: pages.collect() });
        }
        let toy = Toy {
            store,
            leaves,
            catalog,
            change: SpaceChange::new(),
            next_seed: 1 + state.superblock.last_commit().get(),
        };
        toy.read_all()?;
        let report = toy.audit()?;
        assert_eq!(report.young_units, 0, "a store just opened has lost units");
        Ok((toy, state.superblock))
    }

    pub(super) fn store(&self) -> &BlockStore {
        &self.store
    }

    pub(super) fn image(&self) -> Image {
        self.leaves.iter().map(|(number, leaf)| (*number, leaf.seed)).collect()
    }

    /// Checks every page of every leaf.
    pub(super) fn read_all(&self) -> Result<(), SpaceError> {
        for leaf in self.leaves.values() {
            for (at, bytes) in super::neighbours(&self.store, &leaf.pages)?.into_iter().enumerate() {
                assert_eq!(bytes, page(leaf.seed, at));
            }
        }
        Ok(())
    }

    /// Only right after an open or a checkpoint: the audit is of the durable generation.
    pub(super) fn audit(&self) -> Result<AuditReport, SpaceError> {
        let catalog = self.catalog.iter().map(Pointer::extent);
        let reached: Vec<Extent> = self.leaves.values().flat_map(Leaf::extents).chain(catalog).collect();
        self.store.audit(&reached)
    }

    /// Replaces, adds or drops a leaf.
    pub(super) fn step(&mut self, random: &SeededRandom) -> Result<(), SpaceError> {
        let number = random.below(12) as u8;
        let new =
            if random.below(5) == 0 { None } else { Some(self.write_leaf(1 + random.below(3) as usize)?) };
        let old = match new {
            Some(leaf) => {
                self.change.attach(leaf.extents());
                self.leaves.insert(number, leaf)
            }
            None => self.leaves.remove(&number),
        };
        if let Some(old) = old {
            self.change.detach(old.extents());
            self.free(&old.extents(), old.directory.birth());
        }
        Ok(())
    }

    /// Makes the present leaves durable.
    pub(super) fn checkpoint(&mut self) -> Result<CheckpointOutcome, SpaceError> {
        let mut change = std::mem::take(&mut self.change);
        let checkpoint = self.store.begin_checkpoint();
        let catalog = match checkpoint.write_block(TREE, BlockKind::Catalog, Compression::Lz4, &self.list()) {
            Ok(catalog) => catalog,
            Err(error) => {
                self.change = change;
                return Err(error);
            }
        };
        change.attach([catalog.extent()]);
        change.detach(self.catalog.iter().map(Pointer::extent));
        let last_commit = pando_storage::CommitTimestamp::new(self.next_seed);
        let contents = CheckpointContents { catalog: Some(catalog), last_commit, ..contents(change) };
        let result = checkpoint.commit(&contents);
        let old = self.catalog.replace(catalog);
        if let Some(old) = old {
            self.free(&[old.extent()], old.birth());
        }
        if result.is_err() {
            self.change = contents.change;
        }
        result
    }

    fn free(&self, extents: &[Extent], birth: Generation) {
        extents.iter().for_each(|extent| self.store.free(*extent, birth));
    }

    fn list(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        for (number, leaf) in &self.leaves {
            raw.push(*number);
            raw.extend_from_slice(&leaf.seed.to_le_bytes());
            raw.extend_from_slice(&leaf.directory.encode());
        }
        raw
    }

    fn write_leaf(&mut self, pages: usize) -> Result<Leaf, SpaceError> {
        let seed = self.next_seed;
        self.next_seed += 1;
        let mut writer = self.store.extent_writer(TREE);
        let indexes: Vec<BlockIndex> = (0..pages)
            .map(|at| writer.append(BlockKind::Page, Compression::Zstd(1), &page(seed, at)))
            .collect::<Result<_, _>>()?;
        let placed = writer.place_with_directory(pages * Pointer::ENCODED_BYTES)?;
        let raw: Vec<u8> = indexes.iter().flat_map(|index| placed.pointer(*index).encode()).collect();
        let (directory, pages) =
            placed.finish_with_directory(BlockKind::LeafDirectory, Compression::None, &raw)?;
        Ok(Leaf { seed, directory, pages })
    }
}

fn page(seed: u64, at: usize) -> Vec<u8> {
    content(seed * 31 + at as u64, 1_000 + (seed * 977 % 6_000) as usize)
}
