//! Where superblocks lie: two slots that generations take in turn, each written in two places.
//!
//! Slot A at 0 and 64 KiB, slot B at 4 KiB and 68 KiB of `data.0000`. A write that tears destroys both copies of its own
//! slot at worst, and the other slot still leads to the generation before; a place of the medium that decays takes one
//! copy, and the other is a megabyte's tenth away.

use std::path::Path;

use pando_environment::{AlignedBuffer, EnvironmentError, File};

use super::SpaceError;
use super::superblock::{Copy, DATA_FORMAT_VERSION, SUPERBLOCK_BYTES, Superblock, check_features};

/// Units at the head of the file that are not allocated: the slots, and room for what a later format needs there.
pub(crate) const HEAD_UNITS: u64 = 32;

/// Distance of the second copy from the first, in bytes.
const COPY_DISTANCE: u64 = 64 * 1024;

/// One of the two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    A,
    B,
}

impl Slot {
    pub(super) const fn other(self) -> Slot {
        match self {
            Slot::A => Slot::B,
            Slot::B => Slot::A,
        }
    }

    fn offsets(self) -> [u64; 2] {
        let first = match self {
            Slot::A => 0,
            Slot::B => SUPERBLOCK_BYTES as u64,
        };
        [first, first + COPY_DISTANCE]
    }
}

/// Writes both copies into a slot; the caller syncs.
pub(crate) fn write_slot(
    file: &dyn File,
    slot: Slot,
    superblock: &Superblock,
) -> Result<(), EnvironmentError> {
    let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
    buffer.copy_from_slice(&superblock.encode());
    for offset in slot.offsets() {
        file.write_all_at(&buffer, offset)?;
    }
    Ok(())
}

/// The newest superblock and its slot, and the other slot's where it is whole.
#[derive(Debug)]
pub(super) struct FoundSuperblocks {
    pub(super) newest: Superblock,
    pub(super) slot: Slot,
    pub(super) other: Option<Superblock>,
}

/// Reads all four copies and chooses.
pub(super) fn read_slots(file: &dyn File, path: &Path) -> Result<FoundSuperblocks, SpaceError> {
    let mut seen = Vec::new();
    let mut best = |slot: Slot| -> Result<Option<Superblock>, SpaceError> {
        let mut best: Option<Superblock> = None;
        for offset in slot.offsets() {
            match read_copy(file, offset)? {
                Copy::Valid(superblock) => {
                    if best.as_ref().is_none_or(|best| best.generation < superblock.generation) {
                        best = Some(*superblock);
                    }
                }
                other => seen.push(other),
            }
        }
        Ok(best)
    };
    let (a, b) = (best(Slot::A)?, best(Slot::B)?);
    let found = match (a, b) {
        (Some(a), Some(b)) if a.generation >= b.generation => {
            FoundSuperblocks { newest: a, slot: Slot::A, other: Some(b) }
        }
        (other, Some(b)) => FoundSuperblocks { newest: b, slot: Slot::B, other },
        (Some(a), None) => FoundSuperblocks { newest: a, slot: Slot::A, other: None },
        (None, None) => return Err(why_none(&seen, path)),
    };
    check_features(&found.newest, path)?;
    Ok(found)
}

fn read_copy(file: &dyn File, offset: u64) -> Result<Copy, SpaceError> {
    let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
    match file.read_exact_at(&mut buffer, offset) {
        Ok(()) => Ok(Copy::read(&buffer)),
        // A file too short for the copy is none of ours, or was cut.
        Err(error) if error.is_past_end() => Ok(Copy::NotOurs),
        Err(error) => Err(error.into()),
    }
}

fn why_none(seen: &[Copy], path: &Path) -> SpaceError {
    let path = path.to_owned();
    let version = seen.iter().find_map(|copy| match copy {
        Copy::OtherVersion(version) => Some(*version),
        _ => None,
    });
    match version {
        Some(found) => SpaceError::Version { path, found, supported: DATA_FORMAT_VERSION },
        None if seen.contains(&Copy::Damaged) => SpaceError::Superblock { path },
        None => SpaceError::NotOurs { path },
    }
}
