//! The content of one simulated file: what reads see, and what of it a power cut may take back.

use std::collections::{BTreeMap, HashMap};

use super::SECTOR_BYTES;
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
    content: Vec<u8>,
    durable_length: usize,
    dirty: BTreeMap<usize, DirtySector>,
    /// What each sector held before its last write, for stale reads.
    previous: HashMap<usize, Sector>,
}

impl Inode {
    pub(super) fn length(&self) -> usize {
        self.content.len()
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: usize) -> bool {
        let Some(range) = self.content.get(offset..offset.saturating_add(buffer.len())) else { return false };
        buffer.copy_from_slice(range);
        true
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
        if end > self.content.len() {
            self.content.resize(end, 0);
        }
        self.content[offset..end].copy_from_slice(bytes);
    }

    pub(super) fn set_length(&mut self, length: usize) {
        for sector in length / SECTOR_BYTES..self.content.len().div_ceil(SECTOR_BYTES) {
            let old = self.sector(sector);
            self.remember(sector, old);
        }
        self.content.resize(length, 0);
    }

    /// Changes bytes behind everyone's back, as decay on the medium does: durable at once.
    pub(super) fn corrupt(&mut self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.content);
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    pub(super) fn sync(&mut self) {
        self.dirty.retain(|_, sector| sector.dropped);
        self.durable_length = self.content.len();
    }

    /// A sync that failed: the kernel forgets that these sectors are dirty without having written them.
    pub(super) fn drop_dirty(&mut self) {
        self.dirty.values_mut().for_each(|sector| sector.dropped = true);
    }

    pub(super) fn crash(&mut self, survival: Survival, random: &SeededRandom) {
        let length = match survival {
            Survival::Nothing => self.durable_length,
            Survival::Everything => self.content.len(),
            Survival::Mixture if random.below(2) == 0 => self.durable_length,
            Survival::Mixture => self.content.len(),
        };
        let dirty = std::mem::take(&mut self.dirty);
        let reach = length.max(self.content.len()).next_multiple_of(SECTOR_BYTES);
        self.content.resize(reach, 0);
        for (sector, versions) in dirty {
            let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            if range.end > self.content.len() {
                continue;
            }
            let mut newest = [0; SECTOR_BYTES];
            newest.copy_from_slice(&self.content[range.clone()]);
            self.content[range].copy_from_slice(&choose(&versions, newest, survival, random));
        }
        self.content.truncate(length);
        self.durable_length = length;
        self.previous.clear();
    }

    fn sector(&self, sector: usize) -> Sector {
        let mut bytes = [0; SECTOR_BYTES];
        let start = (sector * SECTOR_BYTES).min(self.content.len());
        let end = (start + SECTOR_BYTES).min(self.content.len());
        bytes[..end - start].copy_from_slice(&self.content[start..end]);
        bytes
    }

    fn remember(&mut self, sector: usize, old: Sector) {
        let versions =
            self.dirty.entry(sector).or_insert_with(|| DirtySector { older: Vec::new(), dropped: false });
        // A version that a failed sync dropped never reaches the medium; neither does one beyond what a test can tell
        // apart, so the list stays short.
        if !versions.dropped && (versions.older.is_empty() || versions.older.len() < 4) {
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
