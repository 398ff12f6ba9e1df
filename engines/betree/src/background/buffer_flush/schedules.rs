//! Schedules of commits beside the freeze of the buffer that they go to.

use std::path::Path;
use std::sync::Arc;

use pando_environment::Environment;
use pando_environment::sync::{explore, thread};
use pando_storage::{Begin, BlockingMode, Durability, Engine, Lsn, TreeId, TreeOptions};

use crate::engine::Betree;
use crate::schedules::quiet_options;
use crate::store::Store;
use crate::tree::buffer::SharedBuffer;
use crate::tree::view::TreeView;

fn commit(engine: &Betree, tree: TreeId, keys: &[u8]) -> Lsn {
    let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
    for key in keys {
        writer.put_blind(tree, &[*key], b"value").expect("the put succeeds");
    }
    writer.commit(Durability::None).expect("the commit succeeds").lsn
}

/// The LSNs of all writes to a buffer.
fn lsns(buffer: &SharedBuffer) -> Vec<Lsn> {
    let buffer = buffer.read();
    let chains = buffer.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    let versions =
        chains.flat_map(|(_, chain)| chain.versions().map(|version| Lsn::new(version.timestamp.get())));
    versions.collect()
}

fn freeze(store: &Store, tree: TreeId) {
    let tree = store.trees.live(tree).expect("the tree is there");
    let merging = tree.lock_flush();
    let view = tree.view_owned();
    store.scheduler.flusher.freeze(&tree, &view, 0).expect("nothing is read for it");
    drop(merging);
}

/// Each write is on its side of the cut, and on no other.
fn check_cut(view: &TreeView, committed: &[(Lsn, usize)]) {
    let partition = &view.partitions[0];
    let frozen = partition.frozen.as_ref().expect("it was frozen");
    let (before, after) = (lsns(&frozen.buffer), lsns(&partition.active));
    for (lsn, keys) in committed {
        let count = |lsns: &[Lsn]| lsns.iter().filter(|other| *other == lsn).count();
        let expected = if *lsn <= frozen.cut { (*keys, 0) } else { (0, *keys) };
        assert_eq!((count(&before), count(&after)), expected, "{lsn:?} with the cut at {:?}", frozen.cut);
    }
    assert_eq!(before.len() + after.len(), committed.iter().map(|(_, keys)| keys).sum());
    assert_eq!(frozen.buffer.first_lsn(), before.into_iter().min());
    assert_eq!(partition.active.first_lsn(), after.into_iter().min());
}

#[test]
fn a_freeze_cuts_between_two_records_whatever_is_being_committed() {
    explore(1_500, || {
        let simulation = Environment::scheduled(3);
        let engine = Betree::open(&simulation.environment, Path::new("/store"), quiet_options());
        let engine = engine.expect("a new store can be made");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    // All keys differ, since a buffer drops versions of one key that no snapshot can see any
                    // more.
                    let keys = [writer, 10 + writer, 20 + writer, 30 + writer, 40 + writer];
                    [&keys[..3], &keys[3..]].map(|keys| (commit(&engine, tree, keys), keys.len()))
                })
            })
            .collect();
        freeze(&engine.store, tree);
        let committed = writers.into_iter().flat_map(|writer| writer.join().expect("it does not panic"));
        let committed: Vec<_> = committed.collect();
        let view = engine.store.trees.live(tree).expect("the tree is there").view_owned();
        check_cut(&view, &committed);
        assert_eq!(engine.store.buffers.bytes(), view.buffered_bytes(), "every byte is counted once");
    });
}

#[test]
fn a_reader_finds_every_entry_while_a_flush_takes_its_buffer_down() {
    explore(3_000, || {
        let simulation = Environment::scheduled(3);
        let engine = Betree::open(&simulation.environment, Path::new("/store"), quiet_options());
        let engine = engine.expect("a new store can be made");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
        commit(&engine, tree, &[1, 2]);
        let reader = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let reader = engine.begin(Begin::READ).expect("a reader begins");
                for at in 0..20 {
                    let found = reader.get(tree, &[1 + at % 2], BlockingMode::MayBlock).expect("it is read");
                    assert_eq!(found.as_deref(), Some(b"value".as_slice()), "read {at}");
                }
            })
        };
        let store = &engine.store;
        let tree = store.trees.live(tree).expect("the tree is there");
        let merging = tree.lock_flush();
        store
            .scheduler
            .flusher
            .flush_partition(&tree, &merging, &tree.view_owned(), 0)
            .expect("the disk is sound");
        drop(merging);
        assert!(tree.view().partitions[0].frozen.is_none(), "it is down");
        reader.join().expect("it does not panic");
    });
}
