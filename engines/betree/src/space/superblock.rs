//! The superblock: the root of a generation. 4 KiB, little-endian; `docs/data-file.md` has its fields.
//!
//! The first 12 bytes (magic and version) and the last 16 (xxh3-128 of all bytes before) keep their place in
//! every format version. So any program can tell a store of another version from a damaged one.

use std::path::Path;

use pando_encryption::{SEAL_BYTES, Seal, Vault};
use pando_storage::{CommitTimestamp, Lsn, SnapshotTimestamp};
use xxhash_rust::xxh3::xxh3_128;

use super::{BlockProblem, SpaceError};
use crate::base::LogPosition;
use crate::base::{BUILT_CODECS, FEATURE_ENCRYPTED, FEATURE_MORE_CODECS, FEATURE_PATCHES};
use crate::base::{Fields, FormatError};
use crate::base::{GRAIN_BYTES, Generation, Pointer, StoreId, UNIT_BYTES};

/// Bytes of one copy.
pub(crate) const SUPERBLOCK_BYTES: usize = 4_096;

/// The version of everything in the data file: the blocks of `space`, and the content that the trees store in
/// them. It is frozen; see [`FORMAT_VERSION`](crate::base::FORMAT_VERSION). Stores of versions 2 to 6 were
/// written before the first release and are refused.
pub(super) const DATA_FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"PANDO\0DB";
const CHECKSUM_BYTES: usize = 16;
const BODY_BYTES: usize = SUPERBLOCK_BYTES - CHECKSUM_BYTES;
const BLOCK: &str = "superblock";

/// The way in which the store was last left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// It was closed: the log has no records after this generation.
    Clean,
    /// It was in use.
    Running,
}

/// The features that a store uses, in the three classes of ext4. Version 1 was frozen with none.
///
/// | class | bit | name | a store has it |
/// |---|---|---|---|
/// | incompatible | 0 | [`FEATURE_MORE_CODECS`] | once a block was stored in Snappy or zlib |
/// | incompatible | 1 | [`FEATURE_ENCRYPTED`] | if it was made with a key |
/// | incompatible | 2 | [`FEATURE_PATCHES`] | before a patch was committed |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FeatureMasks {
    /// A program that does not know them can use the store.
    pub(super) compatible: u64,
    /// A program that does not know them can read the store.
    pub(super) read_only_compatible: u64,
    /// A program that does not know them must not open the store.
    pub(super) incompatible: u64,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(super) features: FeatureMasks,
    pub(super) store: StoreId,
    pub(super) generation: Generation,
    pub(super) file_units: u64,
    pub(super) catalog: Option<Pointer>,
    pub(super) space_root: Option<Pointer>,
    pub(super) log_position: LogPosition,
    pub(super) log_synced_to: Lsn,
    pub(super) last_commit: CommitTimestamp,
    pub(super) oldest: SnapshotTimestamp,
    pub(super) next_tree: u32,
    pub(super) shutdown: Shutdown,
    /// Milliseconds since 1970 when the store was made, and when this generation was; for people.
    pub(super) created_millis: u64,
    pub(super) written_millis: u64,
    /// Authenticates the fields before it, in an encrypted store.
    pub(super) seal: Option<Seal>,
}

impl Superblock {
    /// The random name of the store.
    pub(crate) const fn store(&self) -> StoreId {
        self.store
    }

    /// Where the list of trees begins; `None` in a new store.
    pub(crate) const fn catalog(&self) -> Option<Pointer> {
        self.catalog
    }

    /// Where replay begins.
    pub(crate) const fn log_position(&self) -> LogPosition {
        self.log_position
    }

    /// The log was durable up to here when the generation was written. A log that ends earlier is damaged.
    pub(crate) const fn log_synced_to(&self) -> Lsn {
        self.log_synced_to
    }

    /// The newest commit that the generation contains.
    pub(crate) const fn last_commit(&self) -> CommitTimestamp {
        self.last_commit
    }

    /// The generation of which it is the root.
    pub(crate) const fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether the store is encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.features.incompatible & FEATURE_ENCRYPTED != 0
    }

    /// This superblock with its seal, where the store is encrypted.
    pub(crate) fn sealed_by(mut self, vault: Option<&Vault>) -> Superblock {
        self.seal = None;
        self.seal = vault.map(|vault| vault.seal(&self.bound(), &mut []));
        self
    }

    /// Whether the fields are those that the seal was made for; always, where the store is not encrypted.
    pub(crate) fn is_sealed_by(&self, vault: Option<&Vault>) -> bool {
        match (vault, self.seal) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(vault), Some(mut seal)) => vault.unseal(&self.bound(), &mut seal).is_ok(),
        }
    }

    /// The bytes that the seal authenticates.
    fn bound(&self) -> Vec<u8> {
        let mut bytes = self.encode_fields();
        bytes.extend_from_slice(b"superblock");
        bytes
    }

    /// This state as the first generation of a new store.
    pub(crate) fn of_new_store(&self, store: StoreId, file_units: u64) -> Superblock {
        Superblock { store, file_units, shutdown: Shutdown::Running, ..self.clone() }
    }

    /// The number that the next new tree gets.
    pub(crate) const fn next_tree(&self) -> u32 {
        self.next_tree
    }

    /// One copy as it stands on disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.encode_fields();
        if let Some(seal) = &self.seal {
            bytes.extend_from_slice(seal);
        }
        bytes.resize(BODY_BYTES, 0);
        bytes.extend_from_slice(&xxh3_128(&bytes).to_le_bytes());
        bytes
    }

    fn encode_fields(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SUPERBLOCK_BYTES);
        let optional = |pointer: Option<Pointer>| pointer.map_or(Pointer::NONE, |pointer| pointer.encode());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&DATA_FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(GRAIN_BYTES as u16).to_le_bytes());
        bytes.extend_from_slice(&(UNIT_BYTES as u16).to_le_bytes());
        bytes.extend_from_slice(&self.features.compatible.to_le_bytes());
        bytes.extend_from_slice(&self.features.read_only_compatible.to_le_bytes());
        bytes.extend_from_slice(&self.features.incompatible.to_le_bytes());
        bytes.extend_from_slice(&self.store.bytes());
        bytes.extend_from_slice(&self.generation.get().to_le_bytes());
        bytes.extend_from_slice(&self.file_units.to_le_bytes());
        bytes.extend_from_slice(&optional(self.catalog));
        bytes.extend_from_slice(&optional(self.space_root));
        bytes.extend_from_slice(&self.log_position.encode());
        bytes.extend_from_slice(&self.log_synced_to.get().to_le_bytes());
        bytes.extend_from_slice(&self.last_commit.get().to_le_bytes());
        bytes.extend_from_slice(&self.oldest.get().to_le_bytes());
        bytes.extend_from_slice(&self.next_tree.to_le_bytes());
        bytes.extend_from_slice(&u32::from(self.shutdown == Shutdown::Clean).to_le_bytes());
        bytes.extend_from_slice(&self.created_millis.to_le_bytes());
        bytes.extend_from_slice(&self.written_millis.to_le_bytes());
        bytes
    }

    fn decode_body(mut fields: Fields<'_>) -> Result<Superblock, FormatError> {
        let mut unit = |field, expected: u64| match fields.u16(field)? {
            found if u64::from(found) == expected => Ok(()),
            found => Err(FormatError::Unknown { block: BLOCK, field, found: u64::from(found) }),
        };
        unit("grain size", GRAIN_BYTES)?;
        unit("unit size", UNIT_BYTES)?;
        let mut pointer_at = 0;
        let mut pointer = |fields: &mut Fields<'_>, field| {
            pointer_at += 1;
            let (block, at) = (BLOCK, pointer_at - 1);
            Pointer::decode_optional(fields.array(field)?).map_err(|reason| FormatError::Pointer {
                block,
                at,
                reason,
            })
        };
        let mut superblock = Superblock {
            features: FeatureMasks {
                compatible: fields.u64("compatible features")?,
                read_only_compatible: fields.u64("read-only compatible features")?,
                incompatible: fields.u64("incompatible features")?,
            },
            store: StoreId::new(*fields.array("store")?),
            generation: Generation::new(fields.u64("generation")?),
            file_units: fields.u64("file length")?,
            catalog: pointer(&mut fields, "catalog")?,
            space_root: pointer(&mut fields, "space map")?,
            log_position: LogPosition::decode(fields.array("log position")?)
                .ok_or(FormatError::Disorder { block: BLOCK, field: "log position", at: 0 })?,
            log_synced_to: Lsn::new(fields.u64("log synced to")?),
            last_commit: CommitTimestamp::new(fields.u64("last commit")?),
            oldest: SnapshotTimestamp::new(fields.u64("oldest snapshot")?),
            next_tree: fields.u32("next tree")?,
            shutdown: match fields.u32("shutdown")? {
                0 => Shutdown::Running,
                1 => Shutdown::Clean,
                found => {
                    return Err(FormatError::Unknown {
                        block: BLOCK,
                        field: "shutdown",
                        found: u64::from(found),
                    });
                }
            },
            created_millis: fields.u64("created")?,
            written_millis: fields.u64("written")?,
            seal: None,
        };
        if superblock.is_encrypted() {
            superblock.seal = Some(*fields.array::<SEAL_BYTES>("seal")?);
        }
        Ok(superblock)
    }
}

/// One of the four copies, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SuperblockCopy {
    /// A valid superblock.
    Valid(Box<Superblock>),
    /// Never written.
    Blank,
    /// Bytes without the magic of a superblock.
    NotOurs,
    /// A superblock with a valid checksum, of another version.
    OtherVersion(u32),
    /// Bytes with the magic, but with a wrong checksum or an impossible field.
    Damaged,
}

impl SuperblockCopy {
    /// Decodes the copy in these [`SUPERBLOCK_BYTES`] bytes.
    pub(crate) fn read(bytes: &[u8]) -> SuperblockCopy {
        let Some((body, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
            return SuperblockCopy::NotOurs;
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return SuperblockCopy::Blank;
        }
        let Some(body) = body.strip_prefix(&MAGIC) else { return SuperblockCopy::NotOurs };
        if xxh3_128(&bytes[..BODY_BYTES]) != u128::from_le_bytes(*checksum) {
            return SuperblockCopy::Damaged;
        }
        let mut fields = Fields::new(BLOCK, body);
        match fields.u32("version") {
            Ok(DATA_FORMAT_VERSION) => match Superblock::decode_body(fields) {
                Ok(superblock) => SuperblockCopy::Valid(Box::new(superblock)),
                Err(_) => SuperblockCopy::Damaged,
            },
            Ok(version) => SuperblockCopy::OtherVersion(version),
            Err(_) => SuperblockCopy::Damaged,
        }
    }
}

/// Refuses a store whose features this program does not know.
pub(super) fn check_features(superblock: &Superblock, path: &Path) -> Result<(), SpaceError> {
    if superblock.features.incompatible & FEATURE_MORE_CODECS & !BUILT_CODECS != 0 {
        return Err(SpaceError::CodecsNotBuilt { path: path.to_owned() });
    }
    let known = FEATURE_MORE_CODECS | FEATURE_ENCRYPTED | FEATURE_PATCHES;
    let bits = (superblock.features.incompatible & !known) | superblock.features.read_only_compatible;
    if bits == 0 { Ok(()) } else { Err(SpaceError::Features { path: path.to_owned(), bits }) }
}

impl From<FormatError> for BlockProblem {
    fn from(error: FormatError) -> BlockProblem {
        BlockProblem::Content(error)
    }
}

/// Turns the bytes into those of a superblock: with its length, magic and checksum, so that the fuzzer gets
/// past these.
#[cfg(feature = "fuzzing")]
pub(crate) fn whole(bytes: &[u8]) -> Vec<u8> {
    let mut block = [MAGIC.as_slice(), bytes].concat();
    block.resize(SUPERBLOCK_BYTES, 0);
    let checksum = xxh3_128(&block[..BODY_BYTES]);
    block[BODY_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    block
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use super::*;
    use crate::base::{BlockAddress, BlockKind, Codec, FileId, PointerFields};

    fn example() -> Superblock {
        let pointer = |kind, grain| {
            Pointer::new(PointerFields {
                file: FileId::FIRST,
                kind,
                codec: Codec::None,
                address: BlockAddress::new(grain),
                disk_length: 100,
                raw_length: 60,
                birth: Generation::new(9),
                checksum: 0xabcd,
            })
            .unwrap()
        };
        Superblock {
            features: FeatureMasks { compatible: 1, read_only_compatible: 0, incompatible: 0 },
            store: StoreId::new(*b"0123456789abcdef"),
            generation: Generation::new(9),
            file_units: 1_024,
            catalog: Some(pointer(BlockKind::Catalog, 256)),
            space_root: Some(pointer(BlockKind::SpaceRoot, 264)),
            log_position: LogPosition::new(3, 512, Lsn::new(77), 0x0102_0304),
            log_synced_to: Lsn::new(80),
            last_commit: CommitTimestamp::new(70),
            oldest: SnapshotTimestamp::new(60),
            next_tree: 5,
            shutdown: Shutdown::Clean,
            created_millis: 1_767_225_600_000,
            written_millis: 1_767_225_600_001,
            seal: None,
        }
    }

    #[test]
    fn a_superblock_has_the_bytes_that_the_format_says() {
        let bytes = example().encode();
        assert_eq!(bytes.len(), SUPERBLOCK_BYTES);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = include_str!("golden/superblock.hex").replace('\n', "");
        let (front, checksum) = golden.split_once(':').unwrap();
        assert_eq!(hex[..front.len()], *front);
        assert_eq!(hex[hex.len() - 32..], *checksum);
        assert!(bytes[front.len() / 2..BODY_BYTES].iter().all(|byte| *byte == 0));
        assert_eq!(SuperblockCopy::read(&bytes), SuperblockCopy::Valid(Box::new(example())));
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let bytes = example().encode();
        for bit in (0..64 * 8).chain(SUPERBLOCK_BYTES * 8 - 64..SUPERBLOCK_BYTES * 8) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(SuperblockCopy::read(&flipped), SuperblockCopy::Damaged | SuperblockCopy::NotOurs),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn other_versions_and_other_files_are_told_from_damage() {
        let resealed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = example().encode();
            change(&mut bytes);
            let checksum = xxh3_128(&bytes[..BODY_BYTES]).to_le_bytes();
            bytes[BODY_BYTES..].copy_from_slice(&checksum);
            SuperblockCopy::read(&bytes)
        };
        assert_eq!(resealed(&|bytes| bytes[8] = 7), SuperblockCopy::OtherVersion(7));
        assert_eq!(resealed(&|bytes| bytes[0] = b'X'), SuperblockCopy::NotOurs);
        assert_eq!(resealed(&|bytes| bytes[12] = 1), SuperblockCopy::Damaged);
        assert_eq!(SuperblockCopy::read(&[0; SUPERBLOCK_BYTES]), SuperblockCopy::Blank);
        let mut features = example();
        features.features.incompatible = 8;
        assert!(matches!(
            check_features(&features, Path::new("data.0000")),
            Err(SpaceError::Features { bits: 8, .. })
        ));
        features.features.incompatible = FEATURE_MORE_CODECS;
        let checked = check_features(&features, Path::new("data.0000"));
        match cfg!(feature = "codecs") {
            true => assert!(checked.is_ok()),
            false => assert!(matches!(checked, Err(SpaceError::CodecsNotBuilt { .. }))),
        }
    }

    #[test]
    fn random_bytes_under_a_right_checksum_never_panic() {
        let random = SeededRandom::new(0x7375_7065);
        for _ in 0..2_000 {
            let mut bytes = example().encode();
            for _ in 0..8 {
                bytes[12 + random.below(240) as usize] = random.next_u64() as u8;
            }
            let checksum = xxh3_128(&bytes[..BODY_BYTES]).to_le_bytes();
            bytes[BODY_BYTES..].copy_from_slice(&checksum);
            assert!(matches!(
                SuperblockCopy::read(&bytes),
                SuperblockCopy::Valid(_) | SuperblockCopy::Damaged
            ));
        }
    }
}
