//! The rewriting of a store under a new data key: afterwards none of its blocks, log records and backups
//! needs an older one. Crashes and restarts on the way lose nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, DataKeys, Options, restore_encrypted, rotate_keys, verify_keeping};
use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};
use pando_environment::{Access, Environment, OpenMode, Simulation};
use pando_storage::{BackupRequest, Begin, BlockingMode, Durability, Engine, TreeId, TreeOptions};

const FOLDER: &str = "/store";

fn encryption() -> Encryption {
    let key = SecretKey::from_bytes(&[7; 32]).expect("a key has 32 bytes");
    Encryption { cipher: Cipher::Aes256Gcm, source: Arc::new(HeldKey::new(key)) }
}

fn options(rate: &str) -> Options {
    let entries = [
        ("pageSize", "512B"),
        ("leafSize", "2KB"),
        ("fanout", "4"),
        ("largeValueSize", "2KB"),
        ("keyRewriteRate", rate),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes) = (1 << 20, 4 << 10);
    options.growth_bytes = 64 << 10;
    options.encryption = Some(encryption());
    options
}

fn open(simulation: &Simulation, rate: &str) -> Arc<Betree> {
    Betree::open(&simulation.environment, Path::new(FOLDER), options(rate)).expect("the store opens")
}

fn value(number: u32) -> Vec<u8> {
    let length = if number.is_multiple_of(50) { 5_000 } else { 40 };
    number.to_be_bytes().into_iter().cycle().take(length).collect()
}

fn write(engine: &Betree, tree: TreeId, numbers: impl Iterator<Item = u32>) {
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    for number in numbers {
        writer.put(tree, &number.to_be_bytes(), &value(number)).expect("writers write");
    }
    writer.commit(Durability::Synced).expect("commits succeed");
}

fn check(engine: &Betree, count: u32) {
    let tree = engine.list_trees().expect("trees are listed")[0].id;
    let reader = engine.begin(Begin::READ).expect("readers begin");
    for number in 0..count {
        let found = reader.get(tree, &number.to_be_bytes(), BlockingMode::MayBlock).expect("all is readable");
        assert_eq!(found.as_deref(), Some(&*value(number)), "{number}");
    }
}

fn figure(engine: &Betree, name: &str) -> u64 {
    engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
}

fn data_keys(engine: &Betree) -> u64 {
    figure(engine, "encryption.data_keys")
}

/// Lets time pass until one data key is left.
fn settle(simulation: &Simulation, engine: &Betree) {
    for _ in 0..20_000 {
        if data_keys(engine) == 1 {
            return;
        }
        simulation.clock.advance(Duration::from_millis(100));
        simulation.tasks.run_until_idle();
    }
    panic!("the older keys are not forgotten: {:?}", engine.statistics());
}

/// A store with 3,000 entries in leaves, runs, large values and the log, in two trees.
fn filled(simulation: &Simulation) -> Arc<Betree> {
    let engine = open(simulation, "16MB");
    let tree = engine.create_tree("first", &TreeOptions::default()).expect("trees are made");
    let second = engine.create_tree("second", &TreeOptions::default()).expect("trees are made");
    for part in 0..10 {
        write(&engine, tree, (0..3_000).filter(|number| number % 10 == part));
        write(&engine, second, 0..50);
        simulation.tasks.run_until_idle();
    }
    engine
}

fn rotate(simulation: &Simulation) -> usize {
    let keys = rotate_keys(&simulation.environment, Path::new(FOLDER), &encryption(), None, DataKeys::Added);
    keys.expect("a data key is added")
}

/// A check of the store reads every block and record. It finds those whose key is gone.
fn verify(simulation: &Simulation, folder: &Path) {
    let report = verify_keeping(&simulation.environment, folder, Some(&encryption()), "");
    let report = report.expect("the store can be verified");
    assert!(report.is_sound(), "{:?}", report.damage);
}

#[test]
fn a_rewritten_store_needs_no_older_key() {
    let simulation = Environment::simulated(21);
    filled(&simulation).close().expect("stores close");
    assert_eq!(rotate(&simulation), 2);
    assert_eq!(rotate(&simulation), 3);
    let engine = open(&simulation, "1MB");
    assert_eq!(data_keys(&engine), 3);
    write(&engine, engine.list_trees().unwrap()[0].id, 3_000..3_200);
    settle(&simulation, &engine);
    assert!(figure(&engine, "encryption.rewritten_bytes") > 100_000);
    assert_eq!(figure(&engine, "encryption.rewrite_phase"), 0);
    check(&engine, 3_200);
    let environment = &simulation.environment;
    let request = BackupRequest { environment, folder: Path::new("/copy"), since: None, operation: None };
    engine.backup(&request).expect("backups are made");
    engine.close().expect("stores close");
    drop(engine);
    // A check reads every block that the superblock reaches, and the log.
    verify(&simulation, Path::new(FOLDER));
    restore_encrypted(environment, &[PathBuf::from("/copy")], Path::new("/restored"), Some(&encryption()))
        .expect("the backup is restored");
    verify(&simulation, Path::new("/restored"));
    let restored = Betree::open(environment, Path::new("/restored"), options("1MB")).expect("it opens");
    check(&restored, 3_200);
    assert_eq!(data_keys(&restored), 1);
    let engine = open(&simulation, "1MB");
    assert_eq!(data_keys(&engine), 1);
    check(&engine, 3_200);
}

/// The older superblock counts where the newest is lost.
#[test]
fn neither_superblock_needs_the_older_keys() {
    let simulation = Environment::simulated(22);
    filled(&simulation).close().expect("stores close");
    rotate(&simulation);
    let engine = open(&simulation, "16MB");
    settle(&simulation, &engine);
    drop(engine);
    simulation.disk.kill();
    simulation.tasks.forget_all();
    let path = Path::new("/store/data.0000");
    let file =
        simulation.environment.files().open(path, OpenMode::Existing, Access::Buffered).expect("opens");
    for slot in [0, 4_096] {
        let mut before = vec![0; 4_096];
        file.read_exact_at(&mut before, slot).expect("read");
        for copy in [slot, slot + 65_536] {
            file.write_all_at(&[0; 4_096], copy).expect("written");
        }
        verify(&simulation, Path::new(FOLDER));
        for copy in [slot, slot + 65_536] {
            file.write_all_at(&before, copy).expect("written");
        }
    }
}

#[test]
fn crashes_and_restarts_on_the_way_lose_nothing() {
    let simulation = Environment::simulated(23);
    filled(&simulation).close().expect("stores close");
    rotate(&simulation);
    let mut turns = 0;
    loop {
        let engine = open(&simulation, "256KB");
        check(&engine, 3_000);
        turns += 1;
        if turns == 12 {
            settle(&simulation, &engine);
            check(&engine, 3_000);
            break;
        }
        for _ in 0..turns * 3 {
            simulation.clock.advance(Duration::from_millis(100));
            simulation.tasks.run_until_idle();
        }
        let tree = engine.list_trees().unwrap()[0].id;
        write(&engine, tree, turns * 100..turns * 100 + 7);
        if turns % 3 == 0 {
            engine.close().expect("stores close");
            drop(engine);
        } else {
            drop(engine);
            simulation.disk.crash(u64::from(turns));
            simulation.tasks.forget_all();
        }
    }
    let engine = open(&simulation, "256KB");
    assert_eq!(data_keys(&engine), 1);
    check(&engine, 3_000);
}

#[test]
fn a_backup_keeps_the_older_keys() {
    let simulation = Environment::simulated(24);
    filled(&simulation).close().expect("stores close");
    rotate(&simulation);
    let environment = &simulation.environment;
    let engine = open(&simulation, "16MB");
    let request = BackupRequest { environment, folder: Path::new("/copy"), since: None, operation: None };
    let mut backup = engine.begin_backup(&request).expect("the backup begins");
    for _ in 0..600 {
        simulation.clock.advance(Duration::from_millis(500));
        simulation.tasks.run_until_idle();
    }
    assert_eq!(data_keys(&engine), 2, "a backup still reads old blocks");
    while backup.step().expect("the backup goes on") == pando_betree::BackupProgress::Copying {}
    drop(backup);
    settle(&simulation, &engine);
    restore_encrypted(environment, &[PathBuf::from("/copy")], Path::new("/restored"), Some(&encryption()))
        .expect("the backup has the keys that it needs");
    verify(&simulation, Path::new("/restored"));
}

#[test]
fn a_rate_bounds_the_work_and_zero_pauses_it() {
    let simulation = Environment::simulated(25);
    filled(&simulation).close().expect("stores close");
    rotate(&simulation);
    let engine = open(&simulation, "0");
    let pass_time = |seconds: u64| {
        for _ in 0..seconds * 10 {
            simulation.clock.advance(Duration::from_millis(100));
            simulation.tasks.run_until_idle();
        }
        figure(&engine, "encryption.rewritten_bytes")
    };
    assert_eq!(pass_time(30), 0);
    engine.change_settings(&[("keyRewriteRate", "16KB")]).expect("the rate changes");
    let moved = pass_time(5);
    assert!(moved > 16 << 10 && moved < 10 * (16 << 10), "{moved} bytes in 5 s");
    assert_eq!(data_keys(&engine), 2);
    assert_eq!(figure(&engine, "encryption.rewrite_phase"), 1);
    engine.change_settings(&[("keyRewriteRate", "16MB")]).expect("the rate changes");
    settle(&simulation, &engine);
}
