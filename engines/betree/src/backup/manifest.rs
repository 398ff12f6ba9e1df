//! Manifest of a backup: the content of its folder, the state of the store that it has, and the backup that
//! it adds to.
//!
//! Little-endian; *varint* as in `docs/data-file.md`:
//!
//! | bytes | field |
//! |---|---|
//! | 8 | magic `PANDOBAK` |
//! | 4 | format version, 1 |
//! | 4 | zero |
//! | 16 | random name of the backup |
//! | 16 | name of the backup that it adds to; zeros for a full one |
//! | 8 | when it was made, in milliseconds since 1970 |
//! | 8 | its moment: the LSN of the last commit |
//! | 4,096 | the superblock of its generation |
//! | | varint segments; per segment: number, bytes (varints), xxh3-64 |
//! | | list of the units that the generation uses |
//! | | varint pieces; per piece: distance of its first unit from the end of the one before, units (varints), xxh3-64 |
//! | 16 | xxh3 (128 bits, seed 0) of all bytes before |
//!
//! A backup adds to one of the same store and of no later generation. That does not prove that the store's
//! folder has the history of the backup. After the folder was set back to an earlier state (a snapshot of its
//! file system, a copy), its new generations have the numbers of those that were lost. No check finds this
//! once the numbers have passed that of the backup. So the first backup after that must be a full one.

use std::ops::Range;
use std::path::Path;

use pando_environment::{Access, Environment, OpenMode};
use pando_storage::Lsn;
use xxhash_rust::xxh3::xxh3_128;

use super::PIECE_UNITS;
use super::error::{BackupError, ManifestProblem};
use crate::base::UNIT_BYTES;
use crate::base::{Fields, FormatError, write_varint};
use crate::log::CopiedSegment;
use crate::space::{
    IntervalSet, SUPERBLOCK_BYTES, Superblock, SuperblockCopy, read_intervals, write_intervals,
};

/// The file's name.
const FILE: &str = "MANIFEST";
/// Its name until it is complete.
pub(super) const UNFINISHED_FILE: &str = "MANIFEST.new";
const MAGIC: [u8; 8] = *b"PANDOBAK";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 16;
/// The longest manifest: enough for a fragmented store of many terabytes.
const BYTES_MAX: u64 = 1 << 30;
const BLOCK: &str = "backup manifest";

/// The random name of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BackupId([u8; 16]);

impl BackupId {
    pub(super) fn random(environment: &Environment) -> BackupId {
        let mut bytes = [0; 16];
        environment.random().fill(&mut bytes);
        // All zeros stand for no backup.
        bytes[0] |= 1;
        BackupId(bytes)
    }
}

/// A piece: units that were copied together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) units: Range<u64>,
    /// xxh3-64 of their bytes.
    pub(super) checksum: u64,
}

impl Piece {
    pub(super) fn bytes(&self) -> u64 {
        (self.units.end - self.units.start) * UNIT_BYTES
    }
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) id: BackupId,
    pub(super) base: Option<BackupId>,
    pub(super) created_millis: u64,
    pub(super) moment: Lsn,
    pub(super) superblock: Superblock,
    pub(super) segments: Vec<CopiedSegment>,
    pub(super) used: IntervalSet,
    pub(super) pieces: Vec<Piece>,
}

impl Manifest {
    /// Refuses to add to a backup of another store, or of a later generation than the store has.
    pub(super) fn check_before(&self, now: &Superblock, folder: &Path) -> Result<(), BackupError> {
        if self.superblock.store() != now.store() {
            return Err(BackupError::OtherStore { folder: folder.to_owned() });
        }
        let (theirs, ours) = (self.superblock.generation().get(), now.generation().get());
        if theirs > ours {
            return Err(BackupError::FromTheFuture { folder: folder.to_owned(), theirs, ours });
        }
        Ok(())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 * SUPERBLOCK_BYTES + self.pieces.len() * 12);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.base.map_or([0; 16], |base| base.0));
        out.extend_from_slice(&self.created_millis.to_le_bytes());
        out.extend_from_slice(&self.moment.get().to_le_bytes());
        out.extend_from_slice(&self.superblock.encode());
        write_varint(&mut out, self.segments.len() as u64);
        for segment in &self.segments {
            write_varint(&mut out, segment.number);
            write_varint(&mut out, segment.bytes);
            out.extend_from_slice(&segment.checksum.to_le_bytes());
        }
        write_intervals(&mut out, &self.used);
        write_varint(&mut out, self.pieces.len() as u64);
        let mut end = 0;
        for piece in &self.pieces {
            write_varint(&mut out, piece.units.start - end);
            write_varint(&mut out, piece.units.end - piece.units.start);
            out.extend_from_slice(&piece.checksum.to_le_bytes());
            end = piece.units.end;
        }
        let checksum = xxh3_128(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes a manifest. The caller has checked the version.
    fn decode(bytes: &[u8]) -> Result<Manifest, ManifestProblem> {
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(ManifestProblem::Checksum)?;
        if xxh3_128(body).to_le_bytes() != *checksum {
            return Err(ManifestProblem::Checksum);
        }
        let manifest = Manifest::decode_body(body)?;
        let is_covered = |piece: &Piece| manifest.used.contains(&piece.units);
        let is_whole = manifest.base.is_some()
            || manifest.pieces.iter().map(Piece::bytes).sum::<u64>() == manifest.used.total() * UNIT_BYTES;
        if manifest.pieces.iter().all(is_covered) && is_whole {
            Ok(manifest)
        } else {
            Err(ManifestProblem::Pieces)
        }
    }

    fn decode_body(body: &[u8]) -> Result<Manifest, ManifestProblem> {
        let mut fields = Fields::new(BLOCK, body);
        let (_magic, _version) = (fields.u64("magic")?, fields.u32("version")?);
        match fields.u32("reserved")? {
            0 => {}
            found => {
                let (block, field, found) = (BLOCK, "reserved", u64::from(found));
                return Err(FormatError::Unknown { block, field, found }.into());
            }
        }
        let id = BackupId(*fields.array("name")?);
        let base = BackupId(*fields.array("base")?);
        let created_millis = fields.u64("time")?;
        let moment = Lsn::new(fields.u64("moment")?);
        let superblock = match SuperblockCopy::read(fields.bytes(SUPERBLOCK_BYTES, "superblock")?) {
            SuperblockCopy::Valid(superblock) => *superblock,
            _ => return Err(ManifestProblem::Superblock),
        };
        let segments = decode_segments(&mut fields)?;
        let used = read_intervals(BLOCK, &mut fields)?;
        let pieces = decode_pieces(&mut fields)?;
        fields.finish()?;
        let base = (base.0 != [0; 16]).then_some(base);
        Ok(Manifest { id, base, created_millis, moment, superblock, segments, used, pieces })
    }
}

impl From<FormatError> for ManifestProblem {
    fn from(error: FormatError) -> ManifestProblem {
        ManifestProblem::Content(error)
    }
}

fn decode_segments(fields: &mut Fields<'_>) -> Result<Vec<CopiedSegment>, ManifestProblem> {
    let count = fields.count("segments", fields.remaining() / 10)?;
    let mut segments: Vec<CopiedSegment> = Vec::with_capacity(count);
    for at in 0..count {
        let (number, bytes) = (fields.varint("number of a segment")?, fields.varint("length of a segment")?);
        let checksum = fields.u64("checksum of a segment")?;
        let follows = segments.last().is_none_or(|last| last.number.checked_add(1) == Some(number));
        if !follows {
            return Err(FormatError::Disorder { block: BLOCK, field: "segments", at }.into());
        }
        segments.push(CopiedSegment { number, bytes, checksum });
    }
    Ok(segments)
}

fn decode_pieces(fields: &mut Fields<'_>) -> Result<Vec<Piece>, ManifestProblem> {
    let count = fields.count("pieces", fields.remaining() / 10)?;
    let mut pieces = Vec::with_capacity(count);
    let mut end = 0_u64;
    for at in 0..count {
        let (distance, units) = (fields.varint("place of a piece")?, fields.varint("length of a piece")?);
        let checksum = fields.u64("checksum of a piece")?;
        let start = end.checked_add(distance).filter(|start| *start < 1 << 45);
        let start = start.filter(|_| units > 0 && units <= PIECE_UNITS);
        let start = start.ok_or(FormatError::Disorder { block: BLOCK, field: "pieces", at })?;
        end = start + units;
        pieces.push(Piece { units: start..end, checksum });
    }
    Ok(pieces)
}

/// Writes the manifest durably, which makes the folder a backup. Returns its length.
pub(super) fn write_manifest(
    environment: &Environment,
    folder: &Path,
    manifest: &Manifest,
) -> Result<u64, BackupError> {
    let (files, bytes) = (environment.files(), manifest.encode());
    let unfinished = folder.join(UNFINISHED_FILE);
    let written = files.open(&unfinished, OpenMode::CreateOrOpen, Access::Buffered).and_then(|file| {
        file.set_length(0)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        files.rename(&unfinished, &folder.join(FILE))?;
        files.sync_dir(folder)
    });
    written.map_err(|error| BackupError::of(folder, error))?;
    Ok(bytes.len() as u64)
}

/// Reads the manifest of a backup's folder.
pub(super) fn read_manifest(environment: &Environment, folder: &Path) -> Result<Manifest, BackupError> {
    let (files, path) = (environment.files(), folder.join(FILE));
    let failed = |error| BackupError::of(folder, error);
    if !files.exists(&path).map_err(failed)? {
        return Err(BackupError::Unfinished { folder: folder.to_owned() });
    }
    let damaged = |problem| BackupError::Manifest { path: path.clone(), problem };
    let file = files.open(&path, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
    let length = file.length().map_err(failed)?;
    if length > BYTES_MAX {
        return Err(damaged(ManifestProblem::Length { bytes: length }));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    let Some((version, _)) = bytes.strip_prefix(&MAGIC).and_then(|rest| rest.split_first_chunk()) else {
        return Err(damaged(ManifestProblem::NotOurs));
    };
    let found = u32::from_le_bytes(*version);
    if found != VERSION {
        return Err(BackupError::Version { path, found, supported: VERSION });
    }
    Manifest::decode(&bytes).map_err(damaged)
}

/// Fuzzes the decoder behind the checksum.
#[cfg(feature = "fuzzing")]
pub(crate) fn decode_for_fuzzing(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_at_checked(64) else { return };
    let body = [head, &crate::space::whole_superblock(rest), rest].concat();
    if let Ok(manifest) = Manifest::decode_body(&body) {
        let again = Manifest::decode_body(&manifest.encode()[..manifest.encode().len() - CHECKSUM_BYTES]);
        assert_eq!(again, Ok(manifest));
    }
    let _whole = Manifest::decode(bytes);
}
