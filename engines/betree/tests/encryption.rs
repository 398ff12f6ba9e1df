//! Encrypted stores: no user data in any file, every change of a byte noticed, keys refused by name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_betree::{Betree, Options, restore, restore_encrypted, verify, verify_keeping};
use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};
use pando_environment::{Access, Environment, File, OpenMode, Simulation};
use pando_storage::{
    BackupRequest, Begin, BlockingMode, Durability, Engine, ErrorKind, StorageError, TreeOptions,
};

const FOLDER: &str = "/store";
/// Stands in keys, values and names of trees. LZ4 keeps such a text whole where it first stands.
const MARKER: &[u8] = b"Vermilion-Quartz";

fn encryption(byte: u8, cipher: Cipher) -> Encryption {
    let key = SecretKey::from_bytes(&[byte; 32]).expect("a key has 32 bytes");
    Encryption { cipher, source: Arc::new(HeldKey::new(key)) }
}

fn options(encryption: Option<Encryption>) -> Options {
    let entries = [
        ("pageSize", "512B"),
        ("leafSize", "2KB"),
        ("fanout", "4"),
        ("compression", "none"),
        ("runCompression", "none"),
        ("logCompression", "none"),
        ("largeValueSize", "2KB"),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes) = (1 << 20, 4 << 10);
    options.growth_bytes = 64 << 10;
    // Large transactions spill.
    options.transaction_memory_bytes = 2_000;
    options.encryption = encryption;
    options
}

fn open(environment: &Environment, key: Option<Encryption>) -> Result<Arc<Betree>, StorageError> {
    Betree::open(environment, Path::new(FOLDER), options(key))
}

/// Fills a store: pages, runs, large values, a dropped tree, a log.
fn fill(engine: &Betree) {
    let name = |number: u32| format!("{} {number}", String::from_utf8_lossy(MARKER));
    let tree = engine.create_tree(&name(1), &TreeOptions::default()).expect("trees are made");
    let dropped = engine.create_tree(&name(2), &TreeOptions::default()).expect("trees are made");
    for round in 0..6u32 {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        for number in 0..60u32 {
            let key = [&(number * 7 + round).to_be_bytes(), MARKER].concat();
            let value = MARKER.repeat(if number % 20 == 0 { 300 } else { 3 });
            writer.put(tree, &key, &value).expect("writers write");
        }
        writer.put(dropped, MARKER, MARKER).expect("writers write");
        writer.commit(Durability::Synced).expect("commits succeed");
        if round == 3 {
            engine.checkpoint().expect("checkpoints are made");
        }
    }
    engine.drop_tree(dropped).expect("trees are dropped");
}

fn files(environment: &Environment, folder: &Path) -> Vec<PathBuf> {
    let in_folder = |folder: PathBuf| {
        let names = environment.files().list(&folder).unwrap_or_default();
        names.into_iter().map(move |name| folder.join(name))
    };
    let folders = ["", "wal", "spill", "scratch"];
    let is_file = |path: &PathBuf| path.extension().is_some() || !folders.contains(&name_of(path));
    folders.into_iter().flat_map(|name| in_folder(folder.join(name))).filter(is_file).collect()
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn handle(environment: &Environment, path: &Path) -> Arc<dyn File> {
    environment.files().open(path, OpenMode::Existing, Access::Buffered).expect("the file opens")
}

fn content(environment: &Environment, path: &Path) -> Vec<u8> {
    let file = handle(environment, path);
    let mut bytes = vec![0; file.length().expect("a length") as usize];
    file.read_exact_at(&mut bytes, 0).expect("the file is read");
    bytes
}

fn with_marker(environment: &Environment, folder: &str) -> BTreeSet<PathBuf> {
    let has = |path: &PathBuf| content(environment, path).windows(MARKER.len()).any(|part| part == MARKER);
    files(environment, Path::new(folder)).into_iter().filter(has).collect()
}

/// The values of the first tree, or the first error.
fn read_all(engine: &Betree) -> Result<usize, StorageError> {
    let tree = engine.list_trees()?.first().map(|tree| tree.id).expect("there is a tree");
    let reader = engine.begin(Begin::READ)?;
    let mut found = 0;
    for key in 0..430u32 {
        let key = [&key.to_be_bytes(), MARKER].concat();
        if let Some(value) = reader.get(tree, &key, BlockingMode::MayBlock)? {
            assert!(value.starts_with(MARKER), "a changed byte was returned as data");
            found += 1;
        }
    }
    Ok(found)
}

fn filled(seed: u64, key: Option<Encryption>) -> Simulation {
    let simulation = Environment::simulated(seed);
    let engine = open(&simulation.environment, key).expect("a new store opens");
    fill(&engine);
    engine.close().expect("stores close");
    simulation
}

#[test]
fn no_file_of_a_store_or_backup_has_user_data() {
    for cipher in [None, Some(Cipher::Aes256Gcm), Some(Cipher::ChaCha20Poly1305)] {
        let key = cipher.map(|cipher| encryption(1, cipher));
        let simulation = Environment::simulated(5);
        let environment = &simulation.environment;
        let engine = open(environment, key.clone()).expect("a new store opens");
        fill(&engine);
        let tree = engine.list_trees().expect("trees are listed")[0].id;
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        for number in 0..400u32 {
            writer.put(tree, &[&number.to_be_bytes(), MARKER].concat(), MARKER).expect("writers write");
        }
        let while_open = with_marker(environment, FOLDER);
        writer.commit(Durability::Synced).expect("commits succeed");
        let request = BackupRequest { environment, folder: Path::new("/copy"), since: None, operation: None };
        engine.backup(&request).expect("backups are made");
        engine.close().expect("stores close");
        drop(engine);
        let found: BTreeSet<_> = with_marker(environment, FOLDER).into_iter().chain(while_open).collect();
        let copied = with_marker(environment, "/copy");
        if cipher.is_none() {
            // The same search finds the marker in every kind of file of a plain store.
            for kind in ["data.0000", ".wal", ".layer"] {
                assert!(found.iter().any(|path| name_of(path).ends_with(kind)), "{kind}: {found:?}");
            }
            assert!(!copied.is_empty());
        } else {
            assert!(found.is_empty() && copied.is_empty(), "{found:?}, {copied:?}");
        }
        let report = verify_keeping(environment, Path::new(FOLDER), key.as_ref(), "");
        assert!(report.expect("the store can be verified").is_sound());
    }
}

#[test]
fn keys_that_do_not_fit_are_refused_with_the_cure() {
    let refused = |simulation: &Simulation, key: Option<Encryption>, words: &[&str]| {
        let error = open(&simulation.environment, key.clone()).err().expect("the store is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
        let verified = verify_keeping(&simulation.environment, Path::new(FOLDER), key.as_ref(), "");
        assert_eq!(verified.err().map(|error| error.kind()), Some(ErrorKind::InvalidInput));
    };
    let (right, wrong) = (encryption(1, Cipher::Aes256Gcm), encryption(2, Cipher::Aes256Gcm));
    let simulation = filled(6, Some(right.clone()));
    refused(&simulation, Some(wrong), &["/store/keys", "master key"]);
    refused(&simulation, None, &["/store", "--encryption-key-file"]);
    assert!(verify(&simulation.environment, Path::new(FOLDER)).is_err());
    refused(&filled(7, None), Some(right.clone()), &["not encrypted", "pando copy"]);
    // A store keeps its cipher, whatever the options name.
    let engine = open(&simulation.environment, Some(encryption(1, Cipher::ChaCha20Poly1305)));
    assert!(read_all(&engine.expect("the key is right")).expect("all is readable") > 300);
    simulation.environment.files().remove(Path::new("/store/keys")).expect("the file is there");
    let error = open(&simulation.environment, Some(right)).err().expect("the keys are gone");
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("/store/keys"), "{error}");
}

#[test]
fn keys_that_stayed_behind_are_never_written_over() {
    let simulation = filled(12, Some(encryption(1, Cipher::Aes256Gcm)));
    let environment = &simulation.environment;
    let keys = content(environment, Path::new("/store/keys"));
    let moved = content(environment, Path::new("/store/data.0000"));
    environment.files().remove(Path::new("/store/data.0000")).expect("the file is there");
    for key in [Some(encryption(1, Cipher::Aes256Gcm)), Some(encryption(2, Cipher::Aes256Gcm)), None] {
        let error = open(environment, key).err().expect("the keys of another store are there");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("/store/keys"), "{error}");
    }
    assert_eq!(content(environment, Path::new("/store/keys")), keys);
    let put_back =
        environment.files().open(Path::new("/store/data.0000"), OpenMode::CreateOrOpen, Access::Buffered);
    put_back.and_then(|file| file.write_all_at(&moved, 0)).expect("the data file is put back");
    let engine = open(environment, Some(encryption(1, Cipher::Aes256Gcm))).expect("all is there again");
    assert!(read_all(&engine).expect("all is readable") > 300);
}

#[test]
fn a_creation_that_is_cut_at_any_call_begins_anew() {
    let mut interrupted = 0;
    // Some crashes of each call: each loses other names and bytes.
    for turn in 10..2_000 {
        let call = turn / 10;
        let simulation = Environment::simulated(turn);
        simulation.disk.crash_at_call(call);
        let opened = open(&simulation.environment, Some(encryption(1, Cipher::Aes256Gcm)));
        let is_whole = opened.is_ok();
        drop(opened);
        simulation.disk.crash(turn);
        simulation.tasks.forget_all();
        let files = simulation.environment.files();
        let has = |name: &str| files.exists(&Path::new(FOLDER).join(name)).expect("the folder is read");
        assert!(!has("keys") || has("data.0000.new") || has("data.0000"), "call {call}, turn {turn}");
        interrupted += u32::from(has("keys") && !has("data.0000"));
        let engine = open(&simulation.environment, Some(encryption(1, Cipher::Aes256Gcm)));
        engine.expect("a creation begins anew").close().expect("stores close");
        if is_whole {
            assert!(interrupted > 0, "no crash came between the keys and the data file");
            return;
        }
    }
    panic!("no creation was whole");
}

#[test]
fn a_backup_is_restored_with_its_key_alone() {
    let (right, wrong) = (encryption(1, Cipher::Aes256Gcm), encryption(2, Cipher::Aes256Gcm));
    let simulation = filled(8, Some(right.clone()));
    let environment = &simulation.environment;
    let engine = open(environment, Some(right.clone())).expect("the store opens");
    let before = read_all(&engine).expect("all is readable");
    let request = BackupRequest { environment, folder: Path::new("/copy"), since: None, operation: None };
    engine.backup(&request).expect("backups are made");
    let (from, to) = ([PathBuf::from("/copy")], Path::new("/restored"));
    assert_eq!(restore(environment, &from, to).err().map(|e| e.kind()), Some(ErrorKind::InvalidInput));
    let refused = restore_encrypted(environment, &from, to, Some(&wrong));
    assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::InvalidInput));
    restore_encrypted(environment, &from, to, Some(&right)).expect("the key is right");
    let restored = Betree::open(environment, to, options(Some(right))).expect("the store opens");
    assert_eq!(read_all(&restored).expect("all is readable"), before);
}

/// Flips bytes of a file, one at a time, and checks the store each time. How many flips were refused, and
/// the places that the store has not met.
fn flip(simulation: &Simulation, path: &Path, places: impl Iterator<Item = usize>) -> (usize, Vec<usize>) {
    let (environment, key) = (&simulation.environment, encryption(1, Cipher::Aes256Gcm));
    let bytes = content(environment, path);
    let file = handle(environment, path);
    let (mut refused, mut unmet) = (0, Vec::new());
    for at in places.take_while(|at| *at < bytes.len()) {
        file.write_all_at(&[bytes[at] ^ 0x40], at as u64).expect("written");
        match verify_keeping(environment, Path::new(FOLDER), Some(&key), "") {
            Ok(report) if report.is_sound() => unmet.push(at),
            _ => refused += 1,
        }
        file.write_all_at(&[bytes[at]], at as u64).expect("written");
    }
    let report = verify_keeping(environment, Path::new(FOLDER), Some(&key), "").expect("all is as it was");
    assert!(report.is_sound(), "{:?}", report.damage);
    (refused, unmet)
}

#[test]
fn a_flipped_byte_of_a_block_is_an_error() {
    let simulation = filled(9, Some(encryption(1, Cipher::Aes256Gcm)));
    let path = Path::new("/store/data.0000");
    let bytes = content(&simulation.environment, path);
    // A place in each of some blocks: the store has met the change, or the block is free.
    let blocks: Vec<usize> =
        (128 << 10..bytes.len()).step_by(32).filter(|at| bytes[*at..].starts_with(b"PBLK")).collect();
    let places = blocks.iter().enumerate().step_by(2).map(|(count, at)| at + count % 110);
    let (refused, unmet) = flip(&simulation, path, places);
    assert!(
        refused > 40 && refused > unmet.len(),
        "{refused} refused, {unmet:?} in free blocks of {}",
        blocks.len()
    );
}

#[test]
fn a_flipped_byte_of_the_log_is_an_error_up_to_the_last_record() {
    let simulation = Environment::simulated(10);
    let engine = open(&simulation.environment, Some(encryption(1, Cipher::Aes256Gcm))).expect("it opens");
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("trees are made");
    for number in 0..6u32 {
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        writer.put(tree, &number.to_be_bytes(), MARKER).expect("writers write");
        let receipt = writer.commit(Durability::Synced).expect("commits succeed");
        engine.wait_durable(receipt, Durability::Synced).expect("the log is synced");
    }
    drop(engine);
    simulation.disk.kill();
    simulation.tasks.forget_all();
    let segments = files(&simulation.environment, Path::new(FOLDER)).into_iter();
    let mut segments = segments.filter(|path| name_of(path).ends_with(".wal"));
    let path =
        segments.find(|path| content(&simulation.environment, path)[512..].iter().any(|byte| *byte != 0));
    let path = &path.expect("the records are in a segment");
    let bytes = content(&simulation.environment, path);
    let end = 512 + bytes[512..].iter().rposition(|byte| *byte != 0).expect("there are records");
    // A record of such a commit takes 28 bytes of header, 32 of seal and some 30 of payload.
    let (refused, unmet) = flip(&simulation, path, 512..end - 120);
    assert!(refused > 300, "{refused} refused, {unmet:?} unmet");
    // Records are padded to 8 bytes, and the padding is not read.
    let is_padding = |at: usize| bytes[at..at.next_multiple_of(8).max(at + 1)].iter().all(|byte| *byte == 0);
    assert!(unmet.iter().all(|at| is_padding(*at)) && unmet.len() < 8 * 7, "{unmet:?}");
}

#[test]
fn a_flipped_byte_of_the_keys_or_the_superblock_is_an_error() {
    let simulation = filled(11, Some(encryption(1, Cipher::Aes256Gcm)));
    let (refused, unmet) = flip(&simulation, Path::new("/store/keys"), 0..);
    assert!(refused > 100 && unmet.is_empty(), "{refused} refused, {unmet:?} unmet");
    // Each superblock has a checksum and a copy. With a new checksum the seal tells.
    let environment = &simulation.environment;
    let file = handle(environment, Path::new("/store/data.0000"));
    let bytes = content(environment, Path::new("/store/data.0000"));
    // Reserved bytes of the position in the log are not read.
    for at in (40..180).chain(184..264).step_by(3) {
        for copy in [0, 4_096, 65_536, 69_632] {
            let mut changed = bytes[copy..copy + 4_096].to_vec();
            changed[at] ^= 1;
            let checksum = xxhash_rust::xxh3::xxh3_128(&changed[..4_080]).to_le_bytes();
            changed[4_080..].copy_from_slice(&checksum);
            file.write_all_at(&changed, copy as u64).expect("written");
        }
        let key = encryption(1, Cipher::Aes256Gcm);
        assert!(verify_keeping(environment, Path::new(FOLDER), Some(&key), "").is_err(), "byte {at}");
        file.write_all_at(&bytes[..128 << 10], 0).expect("written");
    }
}
