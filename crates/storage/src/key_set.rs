//! A set of keys that may be larger than memory, for queries that must give each document once.
//!
//! 1. Keys gather in a hash table. When the reservation cannot grow, all of them go into *layers*: sorted
//!    runs in a scratch file. Each has a filter of 1.25 bytes a key and the last key of each block in memory.
//! 2. A key is asked for in the table, then in each layer whose filter lets it pass: a read of one block.
//! 3. [`LAYERS_MAX`] layers are merged into one.
//!
//! # Invariants
//! - Keys are compared as bytes, never by their hashes alone.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::StorageError;
use crate::key_filter::KeyFilter;
use crate::query_memory::{QueryAccount, Reservation};
use crate::run::{BlockPlace, Run, RunFiles, RunLayout, RunReader, RunValue, RunWriter};
use crate::tournament::Tournament;

/// Keys of a new layer: a sort of them takes some 40 ms.
const LAYER_KEYS: usize = 128 << 10;
/// So many layers are merged into one.
const LAYERS_MAX: usize = 16;
/// Memory of a key in the table beside its bytes, about.
const ENTRY_BYTES: usize = 48;
/// Blocks are short: a key that is asked for again costs the read of one.
const LAYOUT: RunLayout = RunLayout { block_bytes: 4 << 10, write_bytes: 64 << 10 };

/// See the module's head.
pub struct KeySet {
    reservation: Reservation,
    table: HashSet<Box<[u8]>>,
    table_bytes: usize,
    layers: Vec<Layer>,
    /// Of filters and last keys: they are needed in any case.
    layers_reservation: Reservation,
    files: Option<RunFiles>,
    stored: Vec<u8>,
}

struct Layer {
    run: Run,
    keys: usize,
    filter: KeyFilter,
    /// By block: its last key, and its place.
    blocks: Vec<(Box<[u8]>, BlockPlace)>,
}

impl KeySet {
    /// An empty set of a query.
    pub fn new(account: &QueryAccount) -> KeySet {
        KeySet {
            reservation: account.reserve(),
            table: HashSet::new(),
            table_bytes: 0,
            layers: Vec::new(),
            layers_reservation: account.reserve(),
            files: None,
            stored: Vec::new(),
        }
    }

    /// Adds a key; false if it is there already.
    ///
    /// # Errors
    /// The device refused; `check`, which is called between steps of some milliseconds, failed.
    pub fn insert<E: From<StorageError>>(
        &mut self,
        key: &[u8],
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.table.contains(key) || self.is_in_layers(key)? {
            return Ok(false);
        }
        let more = key.len() + ENTRY_BYTES;
        if !self.reservation.grow_to(self.table_bytes + more) && !self.table.is_empty() {
            self.spill(check)?;
        }
        self.table_bytes += more;
        self.table.insert(key.into());
        Ok(true)
    }

    fn is_in_layers(&mut self, key: &[u8]) -> Result<bool, StorageError> {
        let Some(files) = &self.files else { return Ok(false) };
        let fingerprint = xxh3_64(key);
        for layer in self.layers.iter().rev() {
            if layer.filter.may_contain(fingerprint) && layer.contains(key, files, &mut self.stored)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts the table into layers.
    fn spill<E: From<StorageError>>(&mut self, check: &mut dyn FnMut() -> Result<(), E>) -> Result<(), E> {
        if self.files.is_none() {
            self.files = Some(self.reservation.account().create_files()?);
        }
        let Some(files) = &mut self.files else { return Ok(()) };
        let before = files.written_bytes();
        let mut table = std::mem::take(&mut self.table);
        let mut drain = table.drain();
        loop {
            let mut keys: Vec<Box<[u8]>> = drain.by_ref().take(LAYER_KEYS).collect();
            if keys.is_empty() {
                break;
            }
            check()?;
            keys.sort_unstable();
            let mut writer = LayerWriter::new(files, keys.len());
            for key in &keys {
                writer.push(files, key, check)?;
            }
            self.layers.extend(writer.finish(files)?);
        }
        self.table_bytes = 0;
        self.reservation.account().add_spilled(files.written_bytes() - before);
        if self.layers.len() >= LAYERS_MAX {
            self.merge_layers(check)?;
        }
        self.layers_reservation.hold(self.layers.iter().map(Layer::memory_bytes).sum());
        Ok(())
    }

    fn merge_layers<E: From<StorageError>>(
        &mut self,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let before = files.written_bytes();
        let layers = std::mem::take(&mut self.layers);
        let mut readers: Vec<RunReader> = layers.iter().map(|layer| RunReader::new(&layer.run)).collect();
        for reader in &mut readers {
            reader.step(files, &mut self.stored)?;
        }
        // No key is in two layers; a reader at its end comes last.
        let is_less = |readers: &[RunReader], one: usize, other: usize| {
            let (one, other) = (readers[one].key(), readers[other].key());
            other.is_none() || one.is_some_and(|one| other.is_some_and(|other| one < other))
        };
        let mut tournament = Tournament::new(readers.len(), |one, other| is_less(&readers, one, other));
        let mut writer = LayerWriter::new(files, layers.iter().map(|layer| layer.keys).sum());
        while let Some(key) = readers[tournament.winner()].key() {
            writer.push(files, key, check)?;
            readers[tournament.winner()].step(files, &mut self.stored)?;
            tournament.replay(|one, other| is_less(&readers, one, other));
        }
        self.layers.extend(writer.finish(files)?);
        self.reservation.account().add_spilled(files.written_bytes() - before);
        layers.iter().for_each(|layer| files.free(&layer.run));
        Ok(())
    }
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySet({} in memory, {} layers)", self.table.len(), self.layers.len())
    }
}

impl Layer {
    fn contains(&self, key: &[u8], files: &RunFiles, stored: &mut Vec<u8>) -> Result<bool, StorageError> {
        let at = self.blocks.partition_point(|(last, _)| &**last < key);
        let Some((_, place)) = self.blocks.get(at) else { return Ok(false) };
        let mut reader = RunReader::at(&self.run, *place);
        loop {
            reader.step(files, stored)?;
            match reader.key() {
                Some(found) if found < key => {}
                found => return Ok(found == Some(key)),
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        let keys: usize = self.blocks.iter().map(|(last, _)| last.len()).sum();
        self.filter.memory() + self.blocks.capacity() * size_of::<(Box<[u8]>, BlockPlace)>() + keys
    }
}

/// Writes a layer.
struct LayerWriter {
    writer: RunWriter,
    keys: usize,
    filter: KeyFilter,
    blocks: Vec<(Box<[u8]>, BlockPlace)>,
    block_bytes: usize,
}

impl LayerWriter {
    fn new(files: &RunFiles, keys: usize) -> LayerWriter {
        LayerWriter {
            writer: RunWriter::new(files, LAYOUT),
            keys: 0,
            filter: KeyFilter::for_keys(keys),
            blocks: Vec::new(),
            block_bytes: 0,
        }
    }

    fn push<E: From<StorageError>>(
        &mut self,
        files: &mut RunFiles,
        key: &[u8],
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.filter.add(xxh3_64(key));
        self.keys += 1;
        self.writer.push(files, key, RunValue::Near(&[]))?;
        self.block_bytes += key.len();
        // Blocks end here, where their last key is known, and not in the writer.
        if self.block_bytes >= LAYOUT.block_bytes / 2 {
            check()?;
            self.end_block(files, key)?;
        }
        Ok(())
    }

    fn end_block(&mut self, files: &RunFiles, last: &[u8]) -> Result<(), StorageError> {
        self.block_bytes = 0;
        let place = self.writer.end_block(files)?;
        self.blocks.extend(place.map(|place| (last.into(), place)));
        Ok(())
    }

    fn finish(mut self, files: &RunFiles) -> Result<Option<Layer>, StorageError> {
        let last = self.writer.last_key().map(<[u8]>::to_vec);
        if let Some(last) = last {
            self.end_block(files, &last)?;
        }
        let LayerWriter { writer, keys, filter, blocks, .. } = self;
        Ok(writer.finish(files)?.map(|run| Layer { run, keys, filter, blocks }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pando_environment::Environment;

    use super::*;
    use crate::query_memory::QueryMemory;
    use crate::scratch::ScratchSpace;

    fn key(number: u32) -> Vec<u8> {
        let mut key = number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec();
        key.resize(4 + number as usize % 30, 7);
        key
    }

    #[test]
    fn each_key_is_new_once_wherever_it_lies() {
        let simulation = Environment::simulated(1);
        let space = ScratchSpace::open(&simulation.environment, Path::new("/scratch")).expect("it opens");
        let memory = QueryMemory::with_scratch(400 << 10, &space);
        let account = memory.account();
        let mut set = KeySet::new(&account);
        let mut checks = 0;
        let mut check = || {
            checks += 1;
            Ok::<(), StorageError>(())
        };
        // Each round adds new keys and repeats old ones.
        for round in 0..30 {
            for number in round * 2_000..(round + 2) * 2_000 {
                let is_new = round == 0 || number >= (round + 1) * 2_000;
                assert_eq!(set.insert(&key(number), &mut check).expect("there is room"), is_new, "{number}");
            }
        }
        assert!(!set.layers.is_empty() && set.layers.len() < LAYERS_MAX, "{set:?}");
        assert!((0..62_000).all(|number| !set.insert(&key(number), &mut check).expect("there is room")));
        assert!(checks > 100, "{checks}");
        assert!(memory.figures().spilled_bytes > 0);
        drop(set);
        assert_eq!((account.bytes(), memory.figures().held_bytes), (0, 0));
        assert_eq!(space.figures().files, 0);
    }
}
