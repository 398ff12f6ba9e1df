//! Traffic statistics: device traffic by cause and by tree, and in relation to the committed bytes.

use pando_storage::{Statistics, TreeId, Wait};

use crate::error::BetreeError;
use crate::space::{Cause, Flow};
use crate::store::Store;
use crate::tree::estimate::estimate_all;
use crate::tree::node::Child;

/// The figures' names, in the order of [`set_flow`].
macro_rules! names {
    ($cause:literal) => {
        [
            concat!($cause, ".read_calls"),
            concat!($cause, ".blocks_read"),
            concat!($cause, ".bytes_read"),
            concat!($cause, ".write_calls"),
            concat!($cause, ".blocks_written"),
            concat!($cause, ".bytes_written"),
        ]
    };
}

const fn names_of(cause: Cause) -> [&'static str; 6] {
    match cause {
        Cause::Leaves => names!("leaves"),
        Cause::LargeValues => names!("large_values"),
        Cause::Runs => names!("runs"),
        Cause::Nodes => names!("nodes"),
        Cause::Catalog => names!("catalog"),
        Cause::SpaceMap => names!("space_map"),
    }
}

fn set_flow(figures: &mut Statistics, cause: Cause, flow: Flow) {
    let values = [
        flow.read_calls,
        flow.blocks_read,
        flow.bytes_read,
        flow.write_calls,
        flow.blocks_written,
        flow.bytes_written,
    ];
    for (name, value) in names_of(cause).into_iter().zip(values) {
        figures.set(name, value);
    }
}

/// Adds the traffic of the whole store, the write amplification, and the space that snapshots hold.
pub(crate) fn add_traffic(store: &Store, figures: &mut Statistics) {
    let blocks = store.blocks.store();
    for cause in Cause::ALL {
        set_flow(figures, cause, blocks.traffic().of_cause(cause));
    }
    let committed = store.counters.write_bytes.get();
    let written = blocks.statistics().write_bytes + store.gate.log().statistics().write_bytes;
    figures.set("commits.bytes", committed);
    figures.set("write_amplification.permille", written.saturating_mul(1_000) / committed.max(1));
    let held = store
        .trees
        .in_order()
        .iter()
        .filter_map(|tree| Some(tree.installed.try_lock()?.retired_bytes()))
        .sum();
    figures.set("history.held_bytes", held);
    let now = store.environment.clock().monotonic();
    let oldest =
        store.visibility.snapshots.all().iter().map(|live| now.since(live.began)).max().unwrap_or_default();
    figures.set("history.oldest_snapshot_millis", u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX));
}

/// Returns the statistics of one tree.
pub(crate) fn tree_statistics(store: &Store, id: TreeId) -> Result<Statistics, BetreeError> {
    store.gate.check_open()?;
    let tree = store.trees.live(id)?;
    let mut figures = Statistics::new();
    for cause in Cause::OF_TREES {
        set_flow(&mut figures, cause, store.blocks.store().traffic().of_tree(id, cause));
    }
    let view = tree.view();
    let height = view.version.root.as_ref().map_or(0, |root| match root {
        Child::Leaf(_) => 1,
        Child::Inner(slot) => u64::from(slot.height()) + 1,
    });
    let estimate = estimate_all(&view, &tree.growth);
    figures.set("height", height);
    figures.set("entries", estimate.entries);
    figures.set("content_bytes", estimate.bytes);
    figures.set("buffered_bytes", view.buffered_bytes() as u64);
    figures.set("partitions", view.partitions.len() as u64);
    if let Some(installed) = tree.installed.try_lock() {
        figures.set("history.held_bytes", installed.retired_bytes());
    }
    Ok(figures)
}

/// Returns all waits, the longest first.
pub(crate) fn all_waits(store: &Store) -> Vec<Wait> {
    let room = Wait {
        name: "commit.room",
        count: store.counters.delays.get(),
        micros: store.counters.delay_nanos.get() / 1_000,
    };
    let log = store.gate.log();
    let mut waits: Vec<Wait> = store.waits.all().chain(store.blocks.store().waits().all()).collect();
    waits.extend(log.waits().all());
    waits.extend((room.count > 0).then_some(room));
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.micros));
    waits
}
