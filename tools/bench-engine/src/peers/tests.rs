//! Every peer of the build keeps what it is given: across batches, a drain, and a restart.

use crate::batch::{Batch, Into};
use crate::data::{DOCUMENTS, INDEXES, Purchases, TREES, Tree, primary_key};
use crate::peer::{Peer, PeerKind, PeerSettings};

const DOCUMENTS_LOADED: u64 = 500;
const SETTINGS: PeerSettings =
    PeerSettings { layout: Vec::new(), cache_bytes: 8 << 20, trees: TREES, log_bytes: 0 };

fn open(kind: PeerKind, folder: &std::path::Path) -> Box<dyn Peer> {
    kind.open(folder, SETTINGS).expect("the folder is free")
}

fn load(peer: &dyn Peer, purchases: &Purchases) {
    let mut batch = Batch::default();
    for number in 0..DOCUMENTS_LOADED {
        batch.push_purchase(purchases, number, Into::AllTrees);
        if number % 100 == 99 {
            peer.write(&batch).expect("writes succeed");
            batch.clear();
        }
    }
}

fn count(peer: &dyn Peer, tree: Tree) -> usize {
    let mut last = Vec::new();
    let mut ordered = true;
    let reader = peer.reader().expect("reads succeed");
    let rows = reader
        .scan(tree, b"", usize::MAX, &mut |key, _| {
            ordered &= last.as_slice() < key;
            last = key.to_vec();
        })
        .expect("scans succeed");
    assert!(ordered, "keys ascend");
    rows
}

#[test]
fn every_peer_gives_back_what_it_was_given() {
    for kind in PeerKind::built() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let purchases = Purchases::new(3);
        let peer = open(kind, folder.path());
        load(&*peer, &purchases);
        peer.sync().expect("syncs succeed");
        peer.drain().expect("drains succeed");
        drop(peer);
        let peer = open(kind, folder.path());
        for tree in [DOCUMENTS].into_iter().chain(INDEXES) {
            assert_eq!(count(&*peer, tree) as u64, DOCUMENTS_LOADED, "{kind:?} {tree:?}");
        }
        let reader = peer.reader().expect("reads succeed");
        for number in 0..DOCUMENTS_LOADED {
            let mut right = false;
            let see = &mut |value: &[u8]| right = purchases.check(number, 0..=0, value);
            assert!(reader.get(DOCUMENTS, &primary_key(number), see).expect("reads succeed"), "{kind:?}");
            assert!(right, "{kind:?}, {number}");
        }
        let missing = reader.get(DOCUMENTS, &primary_key(DOCUMENTS_LOADED), &mut |_| ());
        assert!(!missing.expect("reads succeed"), "{kind:?}");
    }
}
