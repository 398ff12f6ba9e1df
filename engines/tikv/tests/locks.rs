//! A transaction that has locked some keys and not its first one, because its server has died in the midst of
//! it, keeps nobody away from these keys for long.

mod cluster;

use std::time::{Duration, Instant};

use pando_environment::Environment;
use pando_storage::{Begin, BlockingMode, Durability, Engine, ErrorKind, StorageError, TreeId, TreeOptions};
use pando_tikv::TikvEngine;
use tikv_client::{CheckLevel, TransactionClient, TransactionOptions};

const BLOCK: BlockingMode = BlockingMode::MayBlock;
/// More than the client sends in one request: the keys before and behind it lie in two.
const BETWEEN_BYTES: usize = 20 << 10;

fn get(engine: &TikvEngine, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
    let reader = engine.begin(Begin::READ)?;
    let found = reader.get(tree, key, BLOCK);
    reader.rollback();
    Ok(found?.map(|value| value.to_vec()))
}

fn put(engine: &TikvEngine, tree: TreeId, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    writer.put(tree, key, value)?;
    writer.commit(Durability::Logged).map(drop)
}

/// Locks the last of three keys for a transaction whose first one never is, as a dead server leaves it: the
/// first one conflicts with a later commit.
fn leave_a_lock(drivers: String, [first, between, last]: [Vec<u8>; 3]) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = TransactionClient::new(vec![drivers]).await.expect("the cluster is there");
        let begin =
            || client.begin_with_options(TransactionOptions::new_optimistic().drop_check(CheckLevel::None));
        let mut dead = begin().await.expect("it begins");
        let mut later = begin().await.expect("it begins");
        later.put(first.clone(), b"later".to_vec()).await.expect("it is put");
        later.commit().await.expect("it commits");
        dead.put(first, b"dead".to_vec()).await.expect("it is put");
        dead.put(between, vec![b'x'; BETWEEN_BYTES]).await.expect("it is put");
        let behind = last.clone()..[last.as_slice(), b"\0"].concat();
        dead.put(last, b"dead".to_vec()).await.expect("it is put");
        dead.commit().await.expect_err("the later one was first");
        // The requests for the other keys may end after the failure.
        let (start, begun) = (client.current_timestamp().await.expect("a timestamp"), Instant::now());
        while client.scan_locks(&start, behind.clone(), 1).await.expect("locks are listed").is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(30), "there is no lock");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn a_lock_without_its_first_key_goes_when_its_time_is_over_and_reads_before_find_no_conflict() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keyspace = cluster::keyspace_of(folder.path());
    let options = cluster::options(&keyspace, "one").with_entries(&[("patience".into(), "1s".into())]);
    let options = options.expect("the options are fine");
    let drivers = options.placement_drivers[0].clone();
    let engine = TikvEngine::open(&Environment::real(), folder.path(), options).expect("the store opens");
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("it is made");
    put(&engine, tree, b"k3", b"old").expect("it is written");
    let key = |key: &[u8]| [b"pando/", keyspace.as_bytes(), b"\0t", &tree.get().to_be_bytes(), key].concat();
    leave_a_lock(drivers, [key(b"k1"), key(b"k2"), key(b"k3")]);
    // Reads begin at the newest timestamp that the engine has seen, which is behind the lock's now.
    put(&engine, tree, b"k4", b"later").expect("it is written");
    let begun = Instant::now();
    let found = loop {
        match get(&engine, tree, b"k3") {
            Ok(found) => break found,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the lock stays");
    };
    assert_eq!(found.as_deref(), Some(&b"old"[..]), "the transaction has not committed");
    put(&engine, tree, b"k3", b"new").expect("nothing is in its way");
    assert_eq!(get(&engine, tree, b"k3").expect("it is read").as_deref(), Some(&b"new"[..]));
}
