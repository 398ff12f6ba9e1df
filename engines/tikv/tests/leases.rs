//! A server that cannot renew its lease neither reads nor commits, since another one may have the store.

mod cluster;

use std::time::Duration;

use pando_environment::Environment;
use pando_storage::{Begin, BlockingMode, Durability, Engine, ErrorKind, TreeOptions};
use pando_tikv::TikvEngine;

const BLOCK: BlockingMode = BlockingMode::MayBlock;

#[test]
fn a_server_whose_lease_is_old_neither_begins_nor_reads_nor_commits_until_it_has_renewed_it() {
    for servers in ["one", "several"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = cluster::options(&cluster::keyspace_of(folder.path()), servers);
        // Its threads run when they are told to.
        let simulation = Environment::simulated(1);
        let engine =
            TikvEngine::open(&simulation.environment, folder.path(), options).expect("the store opens");
        let tree = engine.create_tree("t", &TreeOptions::default()).expect("it is made");
        let mut writer = engine.begin(Begin::WRITE).expect("it begins");
        writer.put(tree, b"k", b"v").expect("it is put");
        writer.commit(Durability::Logged).expect("it commits");
        let reader = engine.begin(Begin::READ).expect("it begins");
        let mut writer = engine.begin(Begin::WRITE).expect("it begins");
        writer.put(tree, b"k", b"w").expect("it is put");
        simulation.clock.advance(Duration::from_secs(12));
        assert!(reader.get(tree, b"k", BLOCK).expect("the lease is young enough").is_some());
        simulation.clock.advance(Duration::from_secs(1));
        let refused = [
            engine.begin(Begin::READ).err(),
            reader.get(tree, b"k", BLOCK).err(),
            writer.commit(Durability::Logged).err(),
        ];
        for refused in refused {
            assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::Unavailable), "{servers}");
        }
        simulation.tasks.run_until_idle();
        let found = reader.get(tree, b"k", BLOCK).expect("the lease is renewed");
        assert_eq!(found.as_deref(), Some(&b"v"[..]), "{servers}");
        reader.rollback();
        engine.close().expect("it closes");
    }
}
