//! The store of blocks: an open data file with its superblocks, its allocator and its lock.
//!
//! Creation is atomic: the file is written under another name, synced, and renamed. Opening takes the
//! folder's lock, finds the newest superblock, and loads its space map. Units that the map does not hold are
//! free.
//!
//! Locks: `durable` is held through the whole commit of a checkpoint and by the audit. `allocator` is held
//! for microseconds, or longer while the file grows. A thread that takes both takes `durable` first.

use pando_environment::sync::OnceLock;
use pando_environment::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_encryption::{SEAL_BYTES, Vault};
use pando_environment::sync::Mutex;
use pando_environment::{Environment, File, FolderLock, OpenMode};
use pando_storage::{
    CommitTimestamp, DeviceAccount, DeviceReads, Lsn, OperationWait, SnapshotTimestamp, TreeId,
};

use super::allocator::{Allocator, BlockLength, Fragment, Purpose, block_start};
use super::checkpoint::DurableState;
use super::interval_set::IntervalSet;
use super::needed_features::NeededFeatures;
use super::space_change::units_of;
use super::space_options::SpaceOptions;
use super::store_keys::{create_vault, open_vault, refuse_keys_without_store};
use super::superblock::FeatureMasks;
use super::superblock_slots::{HEAD_UNITS, Slot, read_slots, write_slot};
use super::traffic::Traffic;
use super::{BlockProblem, Checkpoint, Compression, ExtentWriter, Shutdown, SpaceError, Superblock};
use crate::base::FEATURE_ENCRYPTED;
use crate::base::LogPosition;
use crate::base::{BlockKind, Extent, FileId, Generation, Pointer, StoreId, UNIT_BYTES};
use crate::base::{LockWaits, WaitFor, create_durable_folder};

/// The suffix of the data file's name while a store is created.
const UNFINISHED_SUFFIX: &str = ".new";

/// The state that an opened store begins from.
#[derive(Clone, Debug)]
pub(crate) struct OpenedState {
    /// The newest valid superblock.
    pub(crate) superblock: Superblock,
    /// Where copies of superblocks begin that are damaged, in bytes of the data file.
    pub(crate) damaged_superblocks: Vec<u64>,
}

/// Sizes and counts since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceStatistics {
    pub(crate) file_bytes: u64,
    pub(crate) free_bytes: u64,
    /// Freed, and not reusable yet.
    pub(crate) pending_bytes: u64,
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) checkpoints: u64,
    /// Free and without space on the device; or doubted, since before the store was opened.
    pub(crate) hole_bytes: u64,
    /// Pins of generations by backups and checks.
    pub(crate) pins: u64,
}

#[derive(Default)]
struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    write_bytes: AtomicU64,
    checkpoints: AtomicU64,
}

/// See the [module](self).
pub(crate) struct BlockStore {
    folder: PathBuf,
    environment: Environment,
    options: SpaceOptions,
    file: Arc<dyn File>,
    store: StoreId,
    /// The data keys, if the store is encrypted.
    vault: Option<Arc<Vault>>,
    allocator: Mutex<Allocator>,
    /// The end of the file in bytes, for readers.
    file_bytes: AtomicU64,
    pub(super) durable: Mutex<DurableState>,
    /// The generation that is being built.
    building: AtomicU64,
    is_checkpointing: AtomicBool,
    features: NeededFeatures,
    /// Blocks born up to this generation are being written anew; 0 for none.
    pub(super) outdated: AtomicU64,
    poison: OnceLock<Arc<SpaceError>>,
    counters: Counters,
    traffic: Traffic,
    waits: LockWaits,
    // Released last, so that no other process opens the folder while a part of the store lives.
    _lock: FolderLock,
}

impl BlockStore {
    /// Whether the folder holds a store.
    pub(crate) fn exists(environment: &Environment, folder: &Path) -> Result<bool, SpaceError> {
        Ok(environment.files().exists(&folder.join(FileId::FIRST.name()))?)
    }

    /// Creates a store in a folder, and the folder if it is missing. The first generation is durable and
    /// empty.
    pub(crate) fn create(
        environment: &Environment,
        folder: &Path,
        options: SpaceOptions,
    ) -> Result<BlockStore, SpaceError> {
        let files = environment.files();
        create_durable_folder(files.as_ref(), folder)?;
        let lock = files.lock(folder)?;
        if BlockStore::exists(environment, folder)? {
            return Err(SpaceError::StoreExists { path: folder.to_owned() });
        }
        let path = folder.join(FileId::FIRST.name());
        let unfinished = folder.join(FileId::FIRST.name() + UNFINISHED_SUFFIX);
        refuse_keys_without_store(environment, folder, &unfinished)?;
        let file = files.open(&unfinished, OpenMode::CreateOrOpen, options.access)?;
        file.set_length(0)?;
        file.allocate(0, HEAD_UNITS * UNIT_BYTES)?;
        let vault = create_vault(environment, folder, options.encryption.as_ref())?;
        let superblock = first_superblock(environment, vault.as_deref());
        write_slot(file.as_ref(), Slot::A, &superblock)?;
        file.sync_data()?;
        drop(file);
        files.rename(&unfinished, &path)?;
        files.sync_dir(folder)?;
        let (store, _state) = BlockStore::open_locked(environment, folder, options, vault, lock)?;
        Ok(store)
    }

    /// Opens the store of a folder.
    pub(crate) fn open(
        environment: &Environment,
        folder: &Path,
        options: SpaceOptions,
    ) -> Result<(BlockStore, OpenedState), SpaceError> {
        if !BlockStore::exists(environment, folder)? {
            return Err(SpaceError::NoStore { path: folder.to_owned() });
        }
        let lock = options.lock(environment, folder)?;
        BlockStore::open_locked(environment, folder, options, None, lock)
    }

    fn open_locked(
        environment: &Environment,
        folder: &Path,
        options: SpaceOptions,
        vault: Option<Arc<Vault>>,
        lock: FolderLock,
    ) -> Result<(BlockStore, OpenedState), SpaceError> {
        let path = folder.join(FileId::FIRST.name());
        let file = environment.files().open(&path, options.mode, options.access)?;
        let found = read_slots(file.as_ref(), &path)?;
        let superblock = found.newest.clone();
        let damaged_superblocks = found.damaged.clone();
        let vault = match vault {
            Some(vault) => Some(vault),
            None => open_vault(environment, folder, options.encryption.as_ref(), &superblock)?,
        };
        if !superblock.is_sealed_by(vault.as_deref()) {
            return Err(SpaceError::SuperblockSeal { path });
        }
        // A crash may have cut the last growth short. A partial unit at the end is not used.
        let end = file.length()? / UNIT_BYTES;
        let store = BlockStore {
            folder: folder.to_owned(),
            environment: environment.clone(),
            allocator: Mutex::new(Allocator::new(end, options.reserve_bytes / UNIT_BYTES)),
            options,
            file,
            store: superblock.store,
            vault,
            file_bytes: AtomicU64::new(end * UNIT_BYTES),
            building: AtomicU64::new(superblock.generation.next().get()),
            durable: Mutex::new(DurableState::new(found)),
            is_checkpointing: AtomicBool::new(false),
            features: NeededFeatures::of(superblock.features),
            outdated: AtomicU64::new(0),
            poison: OnceLock::new(),
            counters: Counters::default(),
            traffic: Traffic::default(),
            waits: LockWaits::new(environment.clock()),
            _lock: lock,
        };
        store.load_map(end)?;
        Ok((store, OpenedState { superblock, damaged_superblocks }))
    }

    /// Loads the space map, and frees the units that it does not hold. `end` is that of the file, in units.
    fn load_map(&self, end: u64) -> Result<(), SpaceError> {
        let mut durable = self.durable.lock();
        let removed = durable.load_map(self).map_err(|error| match error {
            SpaceError::Corrupt { offset, bytes, problem: BlockProblem::Range { .. }, .. } => {
                self.cut_off(end, offset.saturating_add(bytes.into()))
            }
            other => other,
        })?;
        // The file may be shorter than at the checkpoint, but only by units that are free.
        let mut taken = durable.used().clone();
        if let Some(last) = taken.iter().next_back().filter(|last| last.end > end) {
            return Err(self.cut_off(end, last.end * UNIT_BYTES));
        }
        taken
            .insert(0..HEAD_UNITS)
            .map_err(|units| inconsistent("the head of the file is not used", units))?;
        let mut allocator = self.allocator.lock();
        for units in removed.iter() {
            // The generation before still reaches them, so they are pending as if they had been freed just
            // now.
            taken
                .insert(units.clone())
                .map_err(|units| inconsistent("what was removed is not in use", units))?;
            if units.end <= end {
                allocator.defer(units, durable.generation());
            }
        }
        for units in taken.gaps(0..end) {
            allocator.free_now(units);
        }
        BlockStore::doubt_room(&mut allocator);
        Ok(())
    }

    /// `end` is that of the file, in units.
    fn cut_off(&self, end: u64, needed: u64) -> SpaceError {
        let path = self.folder.join(FileId::FIRST.name());
        SpaceError::CutOff { path, bytes: end * UNIT_BYTES, needed }
    }

    /// The random name of the store.
    pub(crate) const fn store_id(&self) -> StoreId {
        self.store
    }

    /// The data keys, if the store is encrypted.
    pub(crate) fn vault(&self) -> Option<&Arc<Vault>> {
        self.vault.as_ref()
    }

    /// Bytes of the seal behind each payload.
    pub(super) fn seal_bytes(&self) -> usize {
        if self.vault.is_some() { SEAL_BYTES } else { 0 }
    }

    /// The store's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The generation that is being built. Blocks written now are born in it.
    pub(crate) fn generation(&self) -> Generation {
        Generation::new(self.building.load(Ordering::SeqCst))
    }

    /// A writer of many blocks of a tree.
    pub(crate) fn extent_writer(&self, tree: TreeId) -> ExtentWriter<'_> {
        ExtentWriter::new(self, tree, self.generation(), Purpose::Data)
    }

    /// A writer of blocks that move before the [ceiling](BlockStore::plan_ceiling). It finds no room
    /// elsewhere.
    pub(crate) fn relocation_writer(&self, tree: TreeId) -> ExtentWriter<'_> {
        ExtentWriter::new(self, tree, self.generation(), Purpose::Relocation)
    }

    /// Frees an extent that no reader in memory reaches any more and no later capture contains. It is reused
    /// as soon as no superblock leads to it. `birth` is the generation in which its blocks were born.
    pub(crate) fn free(&self, extent: Extent, birth: Generation) {
        let building = self.generation();
        let mut allocator = self.waits.lock(WaitFor::Allocator, &self.allocator);
        if birth == building {
            allocator.free_now(units_of(extent));
        } else {
            allocator.defer(units_of(extent), building);
        }
    }

    /// Gives back an extent that was written or only placed, and never attached to a tree.
    pub(crate) fn abandon(&self, extent: Extent) {
        self.allocator.lock().free_now(units_of(extent));
    }

    /// Ends the building of the present generation and begins the next. Call it *after* the capture of the
    /// trees.
    ///
    /// # Panics
    /// If a checkpoint is under way.
    pub(crate) fn begin_checkpoint(&self) -> Checkpoint<'_> {
        let is_busy = self.is_checkpointing.swap(true, Ordering::SeqCst);
        assert!(!is_busy, "a checkpoint begins while another is under way");
        let generation = Generation::new(self.building.fetch_add(1, Ordering::SeqCst));
        Checkpoint::new(self, generation)
    }

    pub(super) fn end_checkpoint(&self) {
        self.is_checkpointing.store(false, Ordering::SeqCst);
    }

    /// Frees the units that no superblock slot reaches any more.
    pub(super) fn release(&self, older_slot: Generation) {
        self.allocator.lock().release(older_slot);
    }

    /// Reads and writes, by cause and by tree.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Statistics of lock waits.
    pub(crate) fn waits(&self) -> &LockWaits {
        &self.waits
    }

    /// Sizes and counts.
    pub(crate) fn statistics(&self) -> SpaceStatistics {
        let allocator = self.allocator.lock();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SpaceStatistics {
            file_bytes: allocator.end() * UNIT_BYTES,
            free_bytes: allocator.free_units() * UNIT_BYTES,
            pending_bytes: allocator.pending_units() * UNIT_BYTES,
            reads: count(&self.counters.reads),
            read_bytes: count(&self.counters.read_bytes),
            writes: count(&self.counters.writes),
            write_bytes: count(&self.counters.write_bytes),
            checkpoints: count(&self.counters.checkpoints),
            hole_bytes: allocator.unbacked_units() * UNIT_BYTES,
            pins: allocator.pins() as u64,
        }
    }

    /// Allocates room for blocks: one run of units if there is one or the file can grow, else several.
    pub(super) fn allocate_for(
        &self,
        blocks: &[BlockLength],
        purpose: Purpose,
    ) -> Result<Vec<Fragment>, SpaceError> {
        self.check_poison()?;
        let bytes = blocks.iter().fold(0, |end, block| block_start(end, *block) + block.bytes);
        let units = bytes.div_ceil(UNIT_BYTES);
        if units == 0 {
            return Ok(Vec::new());
        }
        let mut allocator = self.waits.lock(WaitFor::Allocator, &self.allocator);
        let grown = match purpose {
            Purpose::Relocation => Ok(()),
            Purpose::Data | Purpose::Checkpoint => self.grow(&mut allocator, units, purpose),
        };
        let mut refused = match self.allocate_with_room(&mut allocator, units, purpose) {
            Ok(units) => return Ok(vec![Fragment { units, blocks: blocks.len() }]),
            Err(refused) => refused,
        };
        let fragments = match purpose {
            Purpose::Relocation => None,
            Purpose::Data | Purpose::Checkpoint => allocator.allocate_fragments(blocks, purpose),
        };
        if let Some(fragments) = fragments {
            match fragments.iter().try_for_each(|part| self.reserve_room(&mut allocator, &part.units)) {
                Ok(()) => return Ok(fragments),
                Err(error) => refused = Some(error),
            }
            fragments.into_iter().for_each(|fragment| allocator.free_now(fragment.units));
        }
        grown?;
        Err(match refused {
            // A device that fails is not a full device.
            Some(error) if !error.is_no_space() => error.into(),
            refused => self.no_space(bytes, refused),
        })
    }

    /// Grows the file until this many units can be allocated. Does nothing where they can be now.
    fn grow(&self, allocator: &mut Allocator, units: u64, purpose: Purpose) -> Result<(), SpaceError> {
        let needed = allocator.growth_needed(units, purpose);
        if needed == 0 {
            return Ok(());
        }
        let step = self.growth_step(allocator.end()).max(needed);
        let end = allocator.end();
        let grow_by = |units: u64| self.file.allocate(end * UNIT_BYTES, units * UNIT_BYTES);
        let grown = match grow_by(step) {
            Ok(()) => step,
            // A full device may have no space for the whole step, but for this one write.
            Err(error) if error.is_no_space() && needed < step => match grow_by(needed) {
                Ok(()) => needed,
                Err(error) if error.is_no_space() => {
                    return Err(self.no_space(units * UNIT_BYTES, Some(error)));
                }
                Err(error) => return Err(error.into()),
            },
            Err(error) if error.is_no_space() => return Err(self.no_space(units * UNIT_BYTES, Some(error))),
            Err(error) => return Err(error.into()),
        };
        allocator.grown(end + grown);
        self.file_bytes.store((end + grown) * UNIT_BYTES, Ordering::SeqCst);
        Ok(())
    }

    /// The number of units by which a file of this many grows at once.
    pub(super) fn growth_step(&self, units: u64) -> u64 {
        let (least, most) =
            (self.options.growth_bytes_min / UNIT_BYTES, self.options.growth_bytes_max / UNIT_BYTES);
        (units / 8).clamp(least, most.max(least))
    }

    fn no_space(&self, wanted_bytes: u64, source: Option<pando_environment::EnvironmentError>) -> SpaceError {
        SpaceError::NoSpace { wanted_bytes, folder: self.folder.clone(), source }
    }

    pub(super) fn file(&self) -> &dyn File {
        self.file.as_ref()
    }

    /// The data file, for callers that read by themselves.
    pub(crate) fn shared_file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Counts a read that a caller made by itself.
    pub(super) fn count_read(&self, bytes: usize) {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(super) fn set_file_bytes(&self, bytes: u64) {
        self.file_bytes.store(bytes, Ordering::SeqCst);
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::SeqCst)
    }

    pub(super) fn allocator(&self) -> &Mutex<Allocator> {
        &self.allocator
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), SpaceError> {
        self.count_read(buffer.len());
        let bytes = buffer.len() as u64;
        self.charged(bytes, || Ok(self.file.read_exact_at(buffer, offset)?))
    }

    /// Charges the reads of a call, and the wait for them, to the operation of this thread. Their blocks are
    /// charged when they are verified.
    pub(super) fn charged<T>(
        &self,
        bytes: u64,
        read: impl FnOnce() -> Result<T, SpaceError>,
    ) -> Result<T, SpaceError> {
        let _waiting = DeviceAccount::waiting(OperationWait::Device);
        let began = self.environment.clock().monotonic();
        let outcome = read();
        let time = self.environment.clock().monotonic().since(began);
        DeviceAccount::charge(DeviceReads { pages: 0, bytes, time });
        outcome
    }

    pub(super) fn write(&self, buffer: &[u8], offset: u64) -> Result<(), SpaceError> {
        self.check_poison()?;
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.counters.write_bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(self.file.write_all_at(buffer, offset)?)
    }

    /// Makes all writes durable. A failure poisons the store: the kernel has dropped the unwritten pages for
    /// good.
    pub(super) fn sync(&self) -> Result<(), SpaceError> {
        self.check_poison()?;
        self.file.sync_data().map_err(|error| self.poison(error.into()))
    }

    /// The features that the store needs of programs.
    pub(crate) fn features(&self) -> &NeededFeatures {
        &self.features
    }

    pub(super) fn count_checkpoint(&self) {
        self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops all writing for good, and returns the error to report.
    pub(super) fn poison(&self, cause: SpaceError) -> SpaceError {
        SpaceError::Poisoned { cause: Arc::clone(self.poison.get_or_init(|| Arc::new(cause))) }
    }

    /// Fails after a failed sync: no more writes, and no space given back.
    pub(crate) fn check_poison(&self) -> Result<(), SpaceError> {
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => Err(SpaceError::Poisoned { cause: Arc::clone(cause) }),
        }
    }

    /// All free and pending units, and the end of the file.
    pub(super) fn reusable(&self) -> Result<(IntervalSet, u64), SpaceError> {
        let allocator = self.allocator.lock();
        let reusable =
            allocator.reusable().map_err(|units| inconsistent("what is pending is not free", units))?;
        Ok((reusable, allocator.end()))
    }
}

/// Writes one block into an extent of its own.
pub(super) fn write_one(
    mut writer: ExtentWriter<'_>,
    kind: BlockKind,
    compression: Compression,
    raw: &[u8],
) -> Result<Pointer, SpaceError> {
    let index = writer.append(kind, compression, raw)?;
    let placed = writer.place()?;
    let pointer = placed.pointer(index);
    placed.finish()?;
    Ok(pointer)
}

pub(super) fn inconsistent(rule: &'static str, units: std::ops::Range<u64>) -> SpaceError {
    SpaceError::Inconsistent { rule, start: units.start, units: units.end.saturating_sub(units.start) }
}

fn first_superblock(environment: &Environment, vault: Option<&Vault>) -> Superblock {
    let mut store = [0; 16];
    environment.random().fill(&mut store);
    let now = environment.clock().wall().millis();
    let incompatible = if vault.is_some() { FEATURE_ENCRYPTED } else { 0 };
    let superblock = Superblock {
        features: FeatureMasks { incompatible, ..FeatureMasks::default() },
        store: StoreId::new(store),
        generation: Generation::new(1),
        file_units: HEAD_UNITS,
        catalog: None,
        space_root: None,
        log_position: LogPosition::START,
        log_synced_to: Lsn::ZERO,
        last_commit: CommitTimestamp::ZERO,
        oldest: SnapshotTimestamp::ZERO,
        next_tree: 1,
        shutdown: Shutdown::Running,
        created_millis: now,
        written_millis: now,
        seal: None,
    };
    superblock.sealed_by(vault)
}
