//! The check of a store that is not open.
//!
//! 1. The engine's own check reads every block from the superblock down, and changes nothing.
//! 2. Where wanted, the store is then opened (its log is replayed) and each document is compared with its
//!    index entries.
//!
//! An engine without a check of its own is opened, and every entry is read: so its log is replayed in any
//! case.

use std::path::Path;

use pando_commands::{
    CATALOG_TREE, CheckRequest, CollectionReport, CommandsOptions, TREES_READ_AT_OPENING, TreeOwners,
};
use pando_environment::Environment;

use crate::engine_choice::{open_engine, refuse_key};
use crate::store::not_closed;
use crate::store_folder::{engine_of_folder, inspect, whole_folder};
use crate::{EngineName, EngineOptions, Error, MissingStore, open_commands};

/// The depth of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Blocks, pointers, checksums, counts and extents. Read only.
    #[default]
    Blocks,
    /// And whether documents and index entries agree. Opens the store.
    Collections,
}

/// The findings of a check.
#[derive(Clone, Debug, Default)]
pub struct StoreReport {
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Bytes of it that are in use.
    pub used_bytes: u64,
    /// Records of the log that the next start will replay.
    pub log_records: u64,
    /// Trees.
    pub trees: u64,
    /// Pages read.
    pub pages: u64,
    /// Entries read.
    pub entries: u64,
    /// Collections with what was found in each, where wanted.
    pub collections: Vec<(String, CollectionReport)>,
    /// The faults, a sentence each.
    pub problems: Vec<String>,
    /// Whether a fault keeps the store from opening at all.
    pub is_closed_by_damage: bool,
    /// What is no fault and yet worth knowing, a sentence each.
    pub remarks: Vec<String>,
}

impl StoreReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Checks the store in a folder, of whichever engine it is. The store must not be open elsewhere; one
/// that is fails with [`Error::InUse`].
pub fn verify_store(folder: impl AsRef<Path>, depth: VerifyDepth) -> Result<StoreReport, Error> {
    verify_store_with(folder.as_ref(), depth, &EngineOptions::default())
}

/// The same with options of the engine, such as the keys of an encrypted store.
pub fn verify_store_with(
    folder: impl AsRef<Path>,
    depth: VerifyDepth,
    options: &EngineOptions,
) -> Result<StoreReport, Error> {
    let folder = folder.as_ref();
    let (environment, engine) = (Environment::real(), engine_of_folder(folder));
    inspect(&environment, engine, folder, MissingStore::Refuse).map_err(|error| Error::Open(error.into()))?;
    let folder = &whole_folder(engine, folder).map_err(|error| Error::Open(error.into()))?;
    refuse_key(engine, options).map_err(Error::Open)?;
    let mut report = match engine {
        EngineName::Betree => check_blocks(&environment, folder, options)?,
        #[cfg(feature = "engine-wiredtiger")]
        EngineName::WiredTiger => check_tables(&environment, folder)?,
        other => check_entries(&environment, other, folder, options)?,
    };
    if depth == VerifyDepth::Collections && report.is_sound() {
        check_collections(engine, folder, options, environment, &mut report)?;
    }
    Ok(report)
}

/// The check of the engine `betree`, which changes nothing.
fn check_blocks(
    environment: &Environment,
    folder: &Path,
    options: &EngineOptions,
) -> Result<StoreReport, Error> {
    let encryption = options.encryption.as_ref();
    let blocks = pando_betree::verify_keeping(environment, folder, encryption, CATALOG_TREE);
    let blocks = blocks.map_err(Error::of_opening)?;
    let mut owners = TreeOwners::default();
    blocks.kept.iter().for_each(|entry| owners.add_entry(&entry.key, &entry.value));
    Ok(StoreReport {
        file_bytes: blocks.file_bytes,
        used_bytes: blocks.used_bytes,
        log_records: blocks.log_records,
        trees: blocks.trees.len() as u64,
        pages: blocks.trees.iter().map(|tree| tree.pages).sum(),
        entries: blocks.trees.iter().map(|tree| tree.entries).sum(),
        collections: Vec::new(),
        problems: blocks.sentences().map(|problem| owners.name_in(&problem)).collect(),
        is_closed_by_damage: blocks.is_closed_by_damage || blocks.is_damaged_in(&TREES_READ_AT_OPENING),
        remarks: blocks.damaged_superblocks.iter().map(damaged_superblock).collect(),
    })
}

fn damaged_superblock(offset: &u64) -> String {
    format!(
        "a copy of the superblock, at byte {offset} of the data file, is damaged; others are sound, and the next two \
         checkpoints write all of them again; if there was no power cut, look at the device"
    )
}

/// The check of the engine `wiredtiger`, whose library reads every block.
#[cfg(feature = "engine-wiredtiger")]
fn check_tables(environment: &Environment, folder: &Path) -> Result<StoreReport, Error> {
    let found = pando_wiredtiger::verify(environment, folder);
    let found = found.map_err(Error::of_opening)?;
    Ok(StoreReport {
        file_bytes: found.file_bytes,
        used_bytes: found.file_bytes,
        trees: found.check.trees,
        entries: found.check.entries,
        problems: found.check.problems,
        ..StoreReport::default()
    })
}

/// The check of another engine: every entry is read.
fn check_entries(
    environment: &Environment,
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
) -> Result<StoreReport, Error> {
    let stopped = |error| Error::Stopped(Box::new(error));
    let opened = open_engine(engine, folder, options, environment).map_err(Error::of_opening)?;
    let found = opened.check(&CheckRequest::default()).map_err(stopped)?;
    let file_bytes = opened.bytes_on_disk(None).map_err(stopped)?;
    opened.close().map_err(not_closed)?;
    Ok(StoreReport {
        file_bytes,
        used_bytes: file_bytes,
        trees: found.trees,
        entries: found.entries,
        problems: found.problems,
        ..StoreReport::default()
    })
}

fn check_collections(
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
    environment: Environment,
    report: &mut StoreReport,
) -> Result<(), Error> {
    let commands = open_commands(engine, folder, options, environment, CommandsOptions::default(), None)
        .map_err(Error::of_opening)?;
    // A check removes no expired document.
    commands.stop_periodic_work();
    let found = commands.verify_collections().map_err(|error| Error::Stopped(Box::new(error)))?;
    commands.close().map_err(not_closed)?;
    for (namespace, collection) in &found {
        let described = collection.problems.iter().map(|problem| format!("{namespace}: {problem}"));
        report.problems.extend(described);
        let more = collection.problem_count - collection.problems.len() as u64;
        if more > 0 {
            report.problems.push(format!("{namespace}: {more} further problems"));
        }
    }
    report.collections = found;
    Ok(())
}
