//! The settings that can be changed while the store is open.
//!
//! Those of trees are defaults: they hold for trees that are made, or get settings of their own, from then
//! on. Trees that are there keep theirs until the store is opened again.

use pando_environment::Access;

use crate::error::BetreeError;
use crate::options::tree_settings::TreeSettings;
use crate::options::{DirectIo, Options};
use crate::space::{BlockStore, SpaceError};
use crate::store::Store;

/// The options of the store, and not of its trees, that can be changed while it is open.
const CHANGEABLE: [&str; 8] = [
    "bufferBudget",
    "cache",
    "checkpointPeriod",
    "directIo",
    "keyRewriteRate",
    "logBudget",
    "transactionLimit",
    "transactionMemory",
];

/// The settings that can be changed, with their values.
pub(crate) fn settings(store: &Store) -> Vec<(&'static str, String)> {
    let options = &*store.options;
    let value = |name| match name {
        "bufferBudget" => match options.buffer_bytes {
            0 => "auto".to_owned(),
            bytes => bytes.to_string(),
        },
        "cache" => options.cache_bytes.to_string(),
        "checkpointPeriod" => options.checkpoint_period.as_secs().to_string(),
        "directIo" => match options.direct_io {
            DirectIo::Auto => "auto".to_owned(),
            DirectIo::On => "on".to_owned(),
            DirectIo::Off => "off".to_owned(),
        },
        "keyRewriteRate" => options.key_rewrite_rate.to_string(),
        "transactionLimit" => match options.transaction_bytes {
            0 => "auto".to_owned(),
            bytes => bytes.to_string(),
        },
        "transactionMemory" => match options.transaction_memory_bytes {
            0 => "auto".to_owned(),
            bytes => bytes.to_string(),
        },
        _ => options.log_budget_bytes.to_string(),
    };
    let of_store = CHANGEABLE.iter().map(|name| (*name, value(*name)));
    let of_trees = TreeSettings::NAMES.iter().filter_map(|name| Some((*name, options.tree.text(name)?)));
    of_store.chain(of_trees).collect()
}

/// Changes settings, all or none. The effects, such as a smaller cache, are complete when this returns.
pub(crate) fn change_settings(store: &Store, changes: &[(&str, &str)]) -> Result<(), BetreeError> {
    store.gate.check_open()?;
    let can_change = |name: &str| CHANGEABLE.contains(&name) || TreeSettings::NAMES.contains(&name);
    if let Some((name, _)) = changes.iter().find(|(name, _)| !can_change(name)) {
        let known = "bufferBudget, cache, checkpointPeriod (seconds), directIo (auto, on, off), keyRewriteRate, logBudget, transactionLimit, transactionMemory, \
                     and of new trees compression, runCompression, pageSize, leafSize, fanout, bufferPercent, runSize, filterBits, leafFilterBits, largeValueSize";
        return Err(BetreeError::UnknownOption { name: (*name).to_owned(), known });
    }
    let _turn = store.options.lock();
    let entries: Vec<_> =
        changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let before = Options::clone(&store.options);
    let wanted = before.clone().with_entries(&entries)?;
    store.options.replace(wanted.clone())?;
    if wanted.direct_io != before.direct_io
        && let Err(refused) = change_access(store.blocks.store(), wanted.direct_io)
    {
        store.options.replace(before).expect("what was set before has its place");
        return Err(refused);
    }
    store.spill.set_budget(store.options.transaction_memory());
    if changes.iter().any(|(name, _)| matches!(*name, "cache" | "bufferBudget")) {
        store.blocks.cache().change_limit(store.options.cache_bytes);
        store.memory.share_out();
        store.backlog.wake_flushers();
    }
    store.backlog.wake_checkpointer();
    Ok(())
}

/// Has the data file read and written with the wanted access. Refuses buffered access where direct access was
/// demanded.
pub(crate) fn change_access(store: &BlockStore, wanted: DirectIo) -> Result<(), BetreeError> {
    let access = match wanted {
        DirectIo::Auto | DirectIo::On => Access::Direct,
        DirectIo::Off => Access::Buffered,
    };
    let granted = store.shared_file().change_access(access).map_err(SpaceError::from)?;
    if wanted == DirectIo::On && granted != Access::Direct {
        let expected = "auto or off: the file system of the data folder has no direct I/O";
        return Err(BetreeError::BadOption { name: "directIo", value: "on".to_owned(), expected });
    }
    Ok(())
}
