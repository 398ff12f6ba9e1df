//! The cost of many small trees: to open their store, in memory, and at a checkpoint.
//!
//! `cargo run --release -p pando-betree --example many_trees -- FOLDER [TREES] [KEYS]`
//!
//! Makes a store of TREES trees of KEYS keys each, closes it, and opens it in another process. The output has
//! the times of the open and of checkpoints. It also has the memory after the open, after a read of every
//! tree and after a write to every tree. The folder must not exist yet; it is removed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use pando_betree::{Betree, Options};
use pando_environment::Environment;
use pando_storage::{Begin, BlockingMode, Durability, Engine, StorageError, TreeOptions};

/// Trees that one commit writes to.
const TREES_A_COMMIT: usize = 50;

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let mut number = |usual: u64| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (trees, keys) = (number(10_000), number(100));
    if std::env::var_os("OPEN_ONLY").is_some() {
        return open_and_use(&folder);
    }
    let engine = open(&folder)?;
    let began = Instant::now();
    for tree in 0..trees {
        engine.create_tree(&format!("tree {tree}"), &TreeOptions::default())?;
    }
    println!("{trees} trees created in {:.2} s", began.elapsed().as_secs_f64());
    write_to_all(&engine, 0..keys)?;
    checkpoint(&engine, "checkpoint of all trees")?;
    println!("on disk: {:.1} MB", engine.bytes_on_disk(None)? as f64 / 1e6);
    let began = Instant::now();
    engine.close()?;
    println!("closed in {:.2} s", began.elapsed().as_secs_f64());
    drop(engine);
    let program = std::env::current_exe().expect("the program has a path");
    let status = Command::new(program).arg(&folder).env("OPEN_ONLY", "1").status();
    assert!(status.expect("the program starts").success(), "the store is used without an error");
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    Ok(())
}

fn open(folder: &Path) -> Result<Arc<Betree>, StorageError> {
    Betree::open(&Environment::real(), folder, Options::default())
}

fn open_and_use(folder: &Path) -> Result<(), StorageError> {
    let before = memory_mb();
    let began = Instant::now();
    let engine = open(folder)?;
    println!(
        "opened in {:.3} s, {:.1} MB of memory more than before",
        began.elapsed().as_secs_f64(),
        memory_mb() - before
    );
    let reader = engine.begin(Begin::READ)?;
    let began = Instant::now();
    for tree in engine.list_trees()? {
        let found = reader.get(tree.id, &1_u64.to_be_bytes(), BlockingMode::MayBlock)?;
        assert!(found.is_some(), "every tree has the key 1");
    }
    drop(reader);
    println!("a read of each: {:.2} s, {:.1} MB", began.elapsed().as_secs_f64(), memory_mb() - before);
    write_to_all(&engine, 7..8)?;
    println!("after a write to each: {:.1} MB", memory_mb() - before);
    checkpoint(&engine, "checkpoint after a write to each")?;
    checkpoint(&engine, "checkpoint after none")?;
    println!("at the end: {:.1} MB", memory_mb() - before);
    engine.close()
}

fn write_to_all(engine: &Betree, keys: std::ops::Range<u64>) -> Result<(), StorageError> {
    let began = Instant::now();
    let trees = engine.list_trees()?;
    for trees in trees.chunks(TREES_A_COMMIT) {
        let mut writer = engine.begin(Begin::WRITE)?;
        for tree in trees {
            for key in keys.clone() {
                writer.put_blind(tree.id, &key.to_be_bytes(), &[7; 50])?;
            }
        }
        writer.commit(Durability::Logged)?;
    }
    let count = trees.len() as u64 * (keys.end - keys.start);
    println!("{count} writes in {:.2} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn checkpoint(engine: &Betree, name: &str) -> Result<(), StorageError> {
    let began = Instant::now();
    engine.checkpoint()?;
    println!("{name}: {:.2} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// The resident set of this process.
fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}
