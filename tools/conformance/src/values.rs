//! Single keys and values: the bytes that can be stored, and that come back.

use pando_storage::{
    BlockingMode, CachedReads, ErrorKind, IteratorEntries, KEY_BYTES_MAX, KeyRange, LoadDurability,
    SortedEntries, StorageError, Transaction, VALUE_BYTES_MAX,
};

use crate::subject::{Subject, commit, entries, entry, kind, value};

/// Put, overwrite, delete, put again.
pub fn a_key_holds_its_last_value_until_it_is_deleted(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    assert_eq!(engine.value(tree, "k"), None);
    engine.put(tree, "k", "1");
    engine.put(tree, "k", "a longer second value");
    assert_eq!(engine.value(tree, "k"), Some(b"a longer second value".to_vec()));
    engine.delete(tree, "k");
    assert_eq!(engine.value(tree, "k"), None);
    engine.delete(tree, "k");
    engine.put(tree, "k", "3");
    assert_eq!(engine.entries(tree), vec![entry("k", "3")]);
}

/// Empty is a key, and empty is a value that differs from no value.
pub fn empty_keys_and_empty_values_are_entries(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "", "");
    engine.put(tree, "k", "");
    assert_eq!(engine.value(tree, ""), Some(vec![]));
    assert_eq!(engine.entries(tree), vec![entry("", ""), entry("k", "")]);
    engine.delete(tree, "");
    assert_eq!(engine.value(tree, ""), None);
    assert_eq!(engine.entries(tree), vec![entry("k", "")]);
}

/// Every byte may stand at every place of a key, and the order is that of unsigned bytes.
pub fn keys_are_any_bytes_and_ordered_as_unsigned_bytes(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut keys: Vec<Vec<u8>> =
        (0..=255_u8).flat_map(|byte| [vec![byte], vec![byte, 0], vec![byte, 0xFF]]).collect();
    let mut writer = engine.writer();
    for key in keys.iter().rev() {
        writer.put(tree, key, key).expect("the put succeeds");
    }
    commit(writer);
    keys.sort();
    let found: Vec<Vec<u8>> = engine.entries(tree).into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, keys);
}

/// The longest key is taken and ordered; one byte more is refused, and the transaction lives on.
pub fn the_longest_key_is_taken_and_one_byte_more_is_refused(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let too_long = vec![b'k'; KEY_BYTES_MAX + 1];
    let mut other = longest.clone();
    other[KEY_BYTES_MAX - 1] = b'l';
    let mut writer = engine.writer();
    writer.put(tree, &other, b"2").expect("the put succeeds");
    writer.put(tree, &longest, b"1").expect("the put succeeds");
    assert_eq!(kind(writer.put(tree, &too_long, b"3")), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(writer.put_blind(tree, &too_long, b"3")), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(writer.delete(tree, &too_long)), Some(ErrorKind::InvalidInput));
    commit(writer);
    assert_eq!(engine.entries(tree), vec![(longest.clone(), b"1".to_vec()), (other, b"2".to_vec())]);
    let sought = engine.reader().get(tree, &too_long, BlockingMode::MayBlock);
    assert!(matches!(sought, Ok(None)) || kind(sought) == Some(ErrorKind::InvalidInput));
    let beyond = KeyRange { lower: std::ops::Bound::Excluded(too_long), ..KeyRange::all() };
    let found =
        crate::subject::entries_in(&*engine.reader(), tree, &beyond, pando_storage::Direction::Forward);
    assert_eq!(found.len(), 1, "a bound may be longer than any key");
}

/// Hundreds of the longest keys, which differ only at their ends.
pub fn many_of_the_longest_keys_keep_their_order(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let key = |number: u32| [vec![b'x'; KEY_BYTES_MAX - 4], number.to_be_bytes().to_vec()].concat();
    let mut writer = engine.writer();
    for number in (0..400).rev() {
        writer.put(tree, &key(number), &number.to_be_bytes()).expect("the put succeeds");
    }
    commit(writer);
    let found = engine.entries(tree);
    assert_eq!(found.len(), 400);
    for (number, (have, value)) in (0..400).zip(&found) {
        assert!(*have == key(number) && *value == number.to_be_bytes(), "entry {number} is out of its place");
    }
}

/// The longest value is taken whole; one byte more is refused.
pub fn the_longest_value_is_taken_and_one_byte_more_is_refused(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let longest: Vec<u8> = (0..VALUE_BYTES_MAX).map(|at| (at / 251) as u8).collect();
    let mut writer = engine.writer();
    let too_long = vec![0; VALUE_BYTES_MAX + 1];
    assert_eq!(kind(writer.put(tree, b"k", &too_long)), Some(ErrorKind::InvalidInput));
    writer.put(tree, b"k", &longest).expect("the put succeeds");
    assert!(
        value(&*writer, tree, "k").as_ref() == Some(&longest),
        "the writer reads another value than it wrote"
    );
    commit(writer);
    engine.put(tree, "l", "after");
    assert!(engine.value(tree, "k").as_ref() == Some(&longest), "another value comes back");
    let found = engine.entries(tree);
    assert!(found.len() == 2 && found[0].1 == longest, "the scan gives another value");
}

/// Values of every size between inline and huge.
pub fn values_of_all_sizes_come_back_whole(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let sizes = [1_usize, 100, 2_000, 4_095, 4_096, 4_097, 16_384, 65_536, 100_000, 1_048_577];
    let content = |size: usize| (0..size).map(|at| (at * 7 + size) as u8).collect::<Vec<u8>>();
    for size in sizes {
        engine.put(tree, format!("{size:08}"), content(size));
    }
    engine.checkpoint().expect("the checkpoint succeeds");
    for (size, (_, found)) in sizes.into_iter().zip(engine.entries(tree)) {
        assert!(found == content(size), "the value of {size} bytes came back changed");
    }
    for size in sizes {
        engine.put(tree, format!("{size:08}"), "small");
    }
    assert!(engine.entries(tree).iter().all(|(_, value)| value == b"small"));
}

/// A get sees own writes and own deletions over committed entries, and answers for absent keys.
pub fn gets_see_own_writes_over_committed_ones(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for key in ["a", "c", "e"] {
        engine.put(tree, key, key);
    }
    let mut writer = engine.writer();
    writer.put(tree, b"b", b"own").expect("the put succeeds");
    writer.delete(tree, b"c").expect("the delete succeeds");
    let keys: [&[u8]; 6] = [b"e", b"b", b"a", b"c", b"nowhere", b"e"];
    let found = keys.map(|key| writer.get(tree, key, BlockingMode::MayBlock).expect("the get succeeds"));
    let found: Vec<Option<&[u8]>> = found.iter().map(Option::as_deref).collect();
    assert_eq!(found, vec![Some(&b"e"[..]), Some(b"own"), Some(b"a"), None, None, Some(b"e")]);
}

/// A read that must not block is answered from the cache or with `WouldBlock`, as the engine declares; with
/// `MayBlock` always.
pub fn a_read_that_must_not_block_is_answered_or_would_block(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "k", "v");
    let reader = engine.reader();
    // Read with `MayBlock` first, so that the values are in the cache.
    assert_eq!(value(&*reader, tree, "k"), Some(b"v".to_vec()));
    let hasty = reader.get(tree, b"k", BlockingMode::CachedOnly);
    match engine.capabilities().cached_reads {
        CachedReads::Told => assert_eq!(hasty.expect("the entry is cached").as_deref(), Some(&b"v"[..])),
        CachedReads::NotTold => assert_eq!(kind(hasty), Some(ErrorKind::WouldBlock)),
    }
    assert_eq!(
        value(&*reader, tree, "k"),
        Some(b"v".to_vec()),
        "WouldBlock leaves the transaction as it was"
    );
}

/// A range is removed, own writes in it too, and no key beside it.
pub fn delete_range_removes_the_range_and_nothing_beside_it(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut loader = engine.writer();
    for number in 0..3_000 {
        loader.put(tree, format!("{number:05}").as_bytes(), b"v").expect("the put succeeds");
    }
    commit(loader);
    let mut writer = engine.writer();
    writer.put(tree, b"01000x", b"own").expect("the put succeeds");
    let range = KeyRange {
        lower: std::ops::Bound::Excluded(b"00009".to_vec()),
        upper: std::ops::Bound::Included(b"02989".to_vec()),
    };
    writer.delete_range(tree, &range, BlockingMode::MayBlock).expect("delete_range succeeds");
    assert_eq!(entries(&*writer, tree).len(), 20);
    assert_eq!(engine.entries(tree).len(), 3_000, "nobody sees it before the commit");
    commit(writer);
    let left: Vec<_> = engine.entries(tree).into_iter().map(|(key, _)| String::from_utf8(key)).collect();
    assert_eq!(left.len(), 20);
    assert_eq!(left[9].as_deref(), Ok("00009"));
    assert_eq!(left[10].as_deref(), Ok("02990"));
}

/// A load is seen at once, by whoever began before too, can be written over, and survives a restart.
pub fn an_empty_tree_is_loaded_with_sorted_entries(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let keys: Vec<String> = (0..20_000).map(|number| format!("{number:05}")).collect();
    let mut entries = IteratorEntries::new(keys.iter().map(|key| (key.as_bytes(), key.as_bytes())));
    assert_eq!(engine.load(tree, &mut entries, LoadDurability::Durable).expect("the load succeeds"), 20_000);
    let all: Vec<_> = keys.iter().map(|key| entry(key, key)).collect();
    assert!(engine.entries(tree) == all, "all is there");
    engine.put(tree, "00007", "other");
    engine.delete(tree, "00008");
    engine.put(tree, "99999", "new");
    assert_eq!(engine.value(tree, "00007"), Some(b"other".to_vec()));
    let mut wanted = all;
    wanted[7].1 = b"other".to_vec();
    wanted.remove(8);
    wanted.push(entry("99999", "new"));
    assert!(engine.entries(tree) == wanted, "writes lie above what was loaded");
    if engine.is_durable() {
        let engine = subject.crash(engine);
        let tree = engine.find_tree("t").expect("the tree is there");
        let found = engine.entries(tree);
        // The writes above were not synced.
        assert!(found == wanted || found.len() >= 20_000 - 1, "what was loaded survives a crash");
        assert_eq!(engine.value(tree, "19999"), Some(b"19999".to_vec()));
    }
}

/// A load may have no entries.
pub fn a_load_of_nothing_leaves_an_empty_tree(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut nothing = IteratorEntries::new(std::iter::empty());
    assert_eq!(engine.load(tree, &mut nothing, LoadDurability::Scratch).expect("the load succeeds"), 0);
    assert_eq!(engine.entries(tree), vec![]);
}

/// Impossible loads are refused, and the tree can still be dropped.
pub fn loads_that_cannot_be_are_refused(subject: &Subject) {
    let engine = subject.open();
    let full = engine.tree("full");
    engine.put(full, "k", "1");
    let one = [(&b"a"[..], &b"1"[..])];
    let load = |tree, entries: &[(&'static [u8], &'static [u8])]| {
        let mut entries = IteratorEntries::new(entries.iter().copied());
        kind(engine.load(tree, &mut entries, LoadDurability::Durable))
    };
    assert_eq!(load(full, &one), Some(ErrorKind::InvalidInput), "it has entries");
    assert_eq!(engine.entries(full), vec![entry("k", "1")]);
    let unsorted = engine.tree("unsorted");
    assert_eq!(load(unsorted, &[(b"b", b"1"), (b"a", b"1")]), Some(ErrorKind::InvalidInput));
    let twice = engine.tree("twice");
    assert_eq!(load(twice, &[(b"b", b"1"), (b"b", b"2")]), Some(ErrorKind::InvalidInput));
    let gone = engine.tree("gone");
    engine.drop_tree(gone).expect("the tree is dropped");
    assert_eq!(load(gone, &one), Some(ErrorKind::NotFound));
    struct Failing(usize);
    impl SortedEntries for Failing {
        fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
            self.0 += 1;
            match self.0 {
                1 => Ok(Some((b"a", b"1"))),
                _ => Err(StorageError::new(ErrorKind::Io, "the source fails")),
            }
        }
    }
    let failed = engine.tree("failed");
    let error = engine.load(failed, &mut Failing(0), LoadDurability::Durable).expect_err("it fails");
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Io, "the source fails".to_owned()));
    for tree in [unsorted, twice, failed] {
        engine.drop_tree(tree).expect("the tree is dropped");
    }
}

/// A transaction can be taken up by another thread.
pub fn any_thread_may_go_on_with_a_transaction(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut writer: Box<dyn Transaction> = engine.writer();
    writer.put(tree, b"a", b"1").expect("the put succeeds");
    let writer = std::thread::spawn(move || {
        assert_eq!(value(&*writer, tree, "a"), Some(b"1".to_vec()));
        writer.put(tree, b"b", b"2").map(|()| writer)
    });
    let writer = writer.join().expect("the thread ends").expect("the put succeeds");
    let reader = std::thread::spawn(move || commit(writer));
    reader.join().expect("the thread ends");
    assert_eq!(engine.entries(tree), vec![entry("a", "1"), entry("b", "2")]);
}
