//! The content of one simulated file: the bytes that reads see, and the versions that a power cut may bring
//! back.

use std::collections::{BTreeMap, HashMap};

use super::SECTOR_BYTES;
use super::sparse_bytes::SparseBytes;
use crate::SeededRandom;

type Sector = [u8; SECTOR_BYTES];

/// The versions of a sector that no sync has covered, but the newest, which lies in the content.
#[derive(Clone)]
struct DirtySector {
    /// The durable version first, then those between.
    older: Vec<Sector>,
    /// A failed sync has dropped the newest version: only a new write can make it durable again.
    dropped: bool,
}

/// How a crash treats the dirty sectors; drawn once per crash, so that the plain outcomes are met often.
#[derive(Clone, Copy)]
pub(super) enum Survival {
    Nothing,
    Everything,
    Mixture,
}

#[derive(Clone, Default)]
pub(super) struct Inode {
    content: SparseBytes,
    durable_length: usize,
    dirty: BTreeMap<usize, DirtySector>,
    /// The content of each sector before its last write, for stale reads.
    previous: HashMap<usize, Sector>,
}

impl Inode {
    pub(super) fn length(&self) -> usize {
        self.content.length()
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: usize) -> bool {
        let is_within = offset.checked_add(buffer.len()).is_some_and(|end| end <= self.length());
        if is_within {
            self.content.read(buffer, offset);
        }
        is_within
    }

    /// As [`read`](Inode::read), but with every sector as it was before its last write.
    pub(super) fn read_stale(&self, buffer: &mut [u8], offset: usize) -> bool {
        if !self.read(buffer, offset) {
            return false;
        }
        for (at, byte) in buffer.iter_mut().enumerate() {
            let position = offset + at;
            if let Some(sector) = self.previous.get(&(position / SECTOR_BYTES)) {
                *byte = sector[position % SECTOR_BYTES];
            }
        }
        true
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let old = self.sector(sector);
            self.remember(sector, old);
            self.previous.insert(sector, old);
        }
        if end > self.length() {
            self.content.set_length(end);
        }
        self.content.write(bytes, offset);
    }

    pub(super) fn set_length(&mut self, length: usize) {
        for sector in length / SECTOR_BYTES..self.length().div_ceil(SECTOR_BYTES) {
            let old = self.sector(sector);
            self.remember(sector, old);
        }
        self.content.set_length(length);
    }

    /// Changes bytes behind everyone's back, as decay on the medium does: durable at once.
    pub(super) fn corrupt(&mut self, change: impl FnOnce(&mut [u8])) {
        let mut bytes = self.content();
        change(&mut bytes);
        self.content.write(&bytes, 0);
    }

    pub(super) fn flip_bit(&mut self, bit: usize) {
        let mut byte = [0];
        self.content.read(&mut byte, bit / 8);
        byte[0] ^= 1 << (bit % 8);
        self.content.write(&byte, bit / 8);
    }

    pub(super) fn content(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        self.content.read(&mut bytes, 0);
        bytes
    }

    pub(super) fn sync(&mut self) {
        self.dirty.retain(|_, sector| sector.dropped);
        self.durable_length = self.length();
    }

    /// A sync that failed: the kernel forgets that these sectors are dirty without having written them.
    pub(super) fn drop_dirty(&mut self) {
        self.dirty.values_mut().for_each(|sector| sector.dropped = true);
    }

    pub(super) fn crash(&mut self, survival: Survival, random: &SeededRandom) {
        let length = match survival {
            Survival::Nothing => self.durable_length,
            Survival::Everything => self.length(),
            Survival::Mixture if random.below(2) == 0 => self.durable_length,
            Survival::Mixture => self.length(),
        };
        let reach = length.max(self.length()).next_multiple_of(SECTOR_BYTES);
        self.content.set_length(reach);
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            if (sector + 1) * SECTOR_BYTES <= reach {
                let newest = self.sector(sector);
                let survivor = choose(&versions, newest, survival, random);
                self.content.write(&survivor, sector * SECTOR_BYTES);
            }
        }
        self.content.set_length(length);
        self.durable_length = length;
        self.previous.clear();
    }

    fn sector(&self, sector: usize) -> Sector {
        let mut bytes = [0; SECTOR_BYTES];
        let start = (sector * SECTOR_BYTES).min(self.length());
        let end = (start + SECTOR_BYTES).min(self.length());
        self.content.read(&mut bytes[..end - start], start);
        bytes
    }

    fn remember(&mut self, sector: usize, old: Sector) {
        let versions =
            self.dirty.entry(sector).or_insert_with(|| DirtySector { older: Vec::new(), dropped: false });
        // A version that a failed sync dropped never reaches the medium. Neither do versions that no test can
        // tell apart, so the list stays short.
        if !versions.dropped && versions.older.len() < 4 {
            versions.older.push(old);
        }
        versions.dropped = false;
    }
}

fn choose(versions: &DirtySector, newest: Sector, survival: Survival, random: &SeededRandom) -> Sector {
    let durable = versions.older[0];
    if versions.dropped {
        return durable;
    }
    match survival {
        Survival::Nothing => durable,
        Survival::Everything => newest,
        Survival::Mixture => match random.below(8) {
            0..3 => newest,
            3..6 => durable,
            6 => versions.older[random.below(versions.older.len() as u64) as usize],
            _ => torn(durable, newest, random.below(SECTOR_BYTES as u64) as usize),
        },
    }
}

/// The first bytes of the new version, the rest of the old.
fn torn(old: Sector, new: Sector, at: usize) -> Sector {
    let mut sector = old;
    sector[..at].copy_from_slice(&new[..at]);
    sector
}
