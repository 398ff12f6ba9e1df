//! The two superblock slots. Generations take them in turn, and each slot is written in two copies.
//!
//! ```text
//!  offset      0        4 KiB              64 KiB     68 KiB             128 KiB
//!  data.0000   | A (1st) | B (1st) | .....  | A (2nd)  | B (2nd) | .....  | first block
//!
//!  checkpoint of generation 7 -> both copies of A      a crash before the sync ends: 6 in B is whole
//!  checkpoint of generation 8 -> both copies of B      7 stays in A until 9 overwrites it
//! ```
//!
//! - A torn write destroys at most both copies of its own slot. The other slot still leads to the generation
//!   before.
//! - Decay of one place of the medium destroys one copy. The other copy of the slot is 64 KiB away.
//! - The open takes the valid copy with the highest generation.
//!
//! Slots are one of the two things that are overwritten in place; the other is recycled log segments.

use std::path::Path;

use pando_environment::{AlignedBuffer, EnvironmentError, File};

use super::SpaceError;
use super::superblock::{DATA_FORMAT_VERSION, SUPERBLOCK_BYTES, Superblock, SuperblockCopy, check_features};

/// Units at the head of the file that are not allocated: the slots, and room for additions of a later format.
pub(crate) const HEAD_UNITS: u64 = 32;

/// Distance of the second copy from the first, in bytes.
const COPY_DISTANCE: u64 = 64 * 1024;

/// One of the two slots.
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

/// The newest superblock with its slot, and the superblock of the other slot if that is valid.
#[derive(Debug)]
pub(super) struct FoundSuperblocks {
    pub(super) newest: Superblock,
    pub(super) slot: Slot,
    pub(super) other: Option<Superblock>,
    /// Where the copies begin that are damaged, in bytes of the file.
    pub(super) damaged: Vec<u64>,
}

/// Reads all four copies and takes the newest valid one.
pub(super) fn read_slots(file: &dyn File, path: &Path) -> Result<FoundSuperblocks, SpaceError> {
    let (a, b) = (read_slot(file, Slot::A)?, read_slot(file, Slot::B)?);
    let damaged = a.damaged.iter().chain(&b.damaged).copied().collect();
    let seen: Vec<SuperblockCopy> = a.invalid.into_iter().chain(b.invalid).collect();
    let (a, b) = (a.newest, b.newest);
    let found = match (a, b) {
        (Some(a), Some(b)) if a.generation >= b.generation => {
            FoundSuperblocks { newest: a, slot: Slot::A, other: Some(b), damaged }
        }
        (other, Some(b)) => FoundSuperblocks { newest: b, slot: Slot::B, other, damaged },
        (Some(a), None) => FoundSuperblocks { newest: a, slot: Slot::A, other: None, damaged },
        (None, None) => return Err(why_none(&seen, path)),
    };
    check_features(&found.newest, path)?;
    Ok(found)
}

/// What a slot holds.
struct FoundSlot {
    newest: Option<Superblock>,
    /// The copies that are no valid superblock.
    invalid: Vec<SuperblockCopy>,
    /// Where copies begin that are damaged, in bytes of the file.
    damaged: Vec<u64>,
}

/// Reads both copies of a slot. As they are written together, a blank one is damaged where the other is
/// valid. A slot of two blank copies was never written, such as in a new or a restored store.
fn read_slot(file: &dyn File, slot: Slot) -> Result<FoundSlot, SpaceError> {
    let offsets = slot.offsets();
    let copies = [read_copy(file, offsets[0])?, read_copy(file, offsets[1])?];
    let is_written = copies.iter().any(|copy| matches!(copy, SuperblockCopy::Valid(_)));
    let mut found = FoundSlot { newest: None, invalid: Vec::new(), damaged: Vec::new() };
    for (offset, copy) in offsets.into_iter().zip(copies) {
        match copy {
            SuperblockCopy::Valid(copy) => {
                if found.newest.as_ref().is_none_or(|newest| newest.generation < copy.generation) {
                    found.newest = Some(*copy);
                }
            }
            invalid => {
                let is_damaged = match invalid {
                    SuperblockCopy::Damaged | SuperblockCopy::NotOurs => true,
                    SuperblockCopy::Blank => is_written,
                    SuperblockCopy::OtherVersion(_) | SuperblockCopy::Valid(_) => false,
                };
                if is_damaged {
                    found.damaged.push(offset);
                }
                found.invalid.push(invalid);
            }
        }
    }
    Ok(found)
}

fn read_copy(file: &dyn File, offset: u64) -> Result<SuperblockCopy, SpaceError> {
    let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
    match file.read_exact_at(&mut buffer, offset) {
        Ok(()) => Ok(SuperblockCopy::read(&buffer)),
        // A new file that has not grown yet ends before it. A file without any copy is not a store.
        Err(error) if error.is_past_end() => Ok(SuperblockCopy::Blank),
        Err(error) => Err(error.into()),
    }
}

fn why_none(seen: &[SuperblockCopy], path: &Path) -> SpaceError {
    let path = path.to_owned();
    let version = seen.iter().find_map(|copy| match copy {
        SuperblockCopy::OtherVersion(version) => Some(*version),
        _ => None,
    });
    match version {
        Some(found) => SpaceError::Version { path, found, supported: DATA_FORMAT_VERSION },
        None if seen.contains(&SuperblockCopy::Damaged) => SpaceError::Superblock { path },
        None => SpaceError::NotOurs { path },
    }
}
