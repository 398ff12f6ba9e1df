//! Pages: entries are found again, and bytes that are no page are refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use pando_environment::{Random, SeededRandom};
use pando_storage::{CommitTimestamp, Merge, SnapshotTimestamp};

use super::super::content::{Content, LargeReference};
use super::super::page_builder::PageBuilder;
use super::{FLAG_EVEN, Found, Page};
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, Pointer, PointerFields};

type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), Content<Bytes>>;

fn large(number: u64) -> LargeReference<Bytes> {
    let piece = |raw_length| {
        let pointer = Pointer::new(PointerFields {
            file: FileId::FIRST,
            kind: BlockKind::LargeValue,
            codec: Codec::None,
            address: BlockAddress::new(128 * number),
            disk_length: 4_000,
            raw_length,
            birth: Generation::new(3),
            checksum: number,
        });
        pointer.unwrap()
    };
    LargeReference::of_pieces(&[piece(1 << 20), piece(5)][(number % 2) as usize..])
}

fn build(model: &Model) -> Page {
    let mut builder = PageBuilder::new();
    for ((key, timestamp), value) in model {
        builder.push(key, CommitTimestamp::new(timestamp.0), value.as_ref());
    }
    Page::decode(Bytes::from(builder.finish())).unwrap()
}

fn expected(model: &Model, key: &[u8], snapshot: u64) -> Found {
    let from = (key.to_vec(), std::cmp::Reverse(snapshot));
    let mut visible =
        model.range(from..).take_while(|((have, _), _)| have == key).map(|(_, content)| content);
    let first = visible.next();
    match first.cloned() {
        Some(Content::Value(value)) => Found::Value(value),
        Some(Content::Large(reference)) => Found::Large(reference),
        Some(Content::Deleted) => Found::Deleted,
        Some(Content::Merge(_)) => {
            let is_merge = |content: &Content<Bytes>| matches!(content, Content::Merge(_));
            let mut merges: Vec<_> = first.into_iter().cloned().collect();
            for content in visible {
                if merges.last().is_some_and(is_merge) {
                    merges.push(content.clone());
                }
            }
            Found::Merged(merges)
        }
        None => Found::Absent,
    }
}

fn random_model(random: &SeededRandom, entries: usize) -> Model {
    let mut model = Model::new();
    let prefix = vec![b'p'; random.next_u64() as usize % 6];
    for _ in 0..entries {
        let mut key = prefix.clone();
        // Few letters, with zero bytes among them, and lengths around that of a head: padding could confuse
        // these.
        for _ in 0..random.next_u64() % 8 {
            key.push([0, 1, b'a', 0xFF][random.next_u64() as usize % 4]);
        }
        let timestamp = random.next_u64() % 4;
        let value = match random.next_u64() % 6 {
            0 => Content::Large(large(random.next_u64() % 100)),
            1 | 2 if timestamp > 0 => Content::Deleted,
            3 | 4 if timestamp > 0 => Content::Merge(Merge::Add(random.next_u64() as i64).to_bytes().into()),
            _ => Content::Value(vec![b'v'; random.next_u64() as usize % 9].into()),
        };
        model.insert((key, std::cmp::Reverse(timestamp * 100)), value);
    }
    model
}

/// Entries of the same length, as those of an index of numbers.
fn even_model(random: &SeededRandom, entries: usize) -> Model {
    let (key_len, value_len) = (1 + random.next_u64() as usize % 9, random.next_u64() as usize % 5);
    let newest = [1, 1, 4, 1_000_000][random.next_u64() as usize % 4];
    let entry = |_| {
        let key = (0..key_len).map(|_| [0, 1, b'a', 0xFF][random.next_u64() as usize % 4]).collect();
        let timestamp = if newest > 1 { 1 + random.next_u64() % newest } else { 0 };
        let value = vec![random.next_u64() as u8; value_len];
        ((key, std::cmp::Reverse(timestamp * 100)), Content::Value(value.into()))
    };
    (0..entries).map(entry).collect()
}

#[test]
fn every_version_of_every_key_is_found_at_every_snapshot() {
    for seed in 0..300 {
        let random = SeededRandom::new(seed);
        let entries = 1 + seed as usize % 60;
        let is_even = seed % 3 == 0;
        let model = if is_even { even_model(&random, 3 * entries) } else { random_model(&random, entries) };
        let page = build(&model);
        assert_eq!(page.len(), model.len(), "seed {seed}");
        page.check_order().unwrap();
        assert!(!is_even || page.raw()[1] == FLAG_EVEN, "seed {seed}");
        let mut keys: Vec<Vec<u8>> = model.keys().map(|(key, _)| key.clone()).collect();
        let near: Vec<Vec<u8>> = keys
            .iter()
            .flat_map(|key| [[key.as_slice(), &[0]].concat(), key[..key.len() / 2].to_vec()])
            .collect();
        keys.extend(near);
        keys.extend([b"o".to_vec(), b"q".to_vec(), vec![]]);
        for key in &keys {
            for snapshot in [0, 50, 100, 150, 250, 1000] {
                let found = page.clone().find(key, SnapshotTimestamp::new(snapshot), CommitTimestamp::ZERO);
                assert_eq!(
                    found,
                    expected(&model, key, snapshot),
                    "seed {seed}, key {key:?}, snapshot {snapshot}"
                );
            }
            let before = model.keys().filter(|(have, _)| have < key).count();
            let up_to = model.keys().filter(|(have, _)| have <= key).count();
            assert_eq!(
                (page.lower_bound(key), page.upper_bound(key)),
                (before, up_to),
                "seed {seed}, key {key:?}"
            );
        }
    }
}

#[test]
fn entries_come_out_as_they_went_in() {
    let random = SeededRandom::new(7);
    let model = random_model(&random, 80);
    let page = build(&model);
    let mut key = Vec::new();
    for (at, ((expected, timestamp), value)) in model.iter().enumerate() {
        page.key_into(at, &mut key);
        let entry = page.entry(at);
        assert_eq!(
            (&key, entry.timestamp().get(), entry.is_delete()),
            (expected, timestamp.0, value.is_deleted())
        );
        assert_eq!(page.content(&entry), value.as_ref());
        assert_eq!(page.shared_content(&entry), *value);
    }
}

#[test]
fn a_page_over_64_kilobytes_has_wide_slots() {
    let mut builder = PageBuilder::new();
    let value = vec![7; 40_000];
    for key in [b"a", b"b", b"c"] {
        builder.push(key, CommitTimestamp::ZERO, Content::Value(&value));
    }
    let page = Page::decode(Bytes::from(builder.finish())).unwrap();
    assert_eq!(
        page.find(b"c", SnapshotTimestamp::ZERO, CommitTimestamp::ZERO),
        Found::Value(Bytes::from(value))
    );
    assert!(builder.is_empty());
}

#[test]
fn the_builder_knows_the_size_within_four_bytes_an_entry() {
    let mut builder = PageBuilder::new();
    for number in 0..200_u32 {
        let key = format!("common prefix {number:05}");
        let said = builder.bytes_with(key.as_bytes(), 20);
        builder.push(key.as_bytes(), CommitTimestamp::ZERO, Content::Value(&[1; 20]));
        let mut copy = PageBuilder::new();
        for earlier in 0..=number {
            copy.push(
                format!("common prefix {earlier:05}").as_bytes(),
                CommitTimestamp::ZERO,
                Content::Value(&[1; 20]),
            );
        }
        let real = copy.finish().len();
        assert!(
            said <= real && real - said <= 4 * (number as usize + 2),
            "{number}: {said} said, {real} real"
        );
    }
}

#[test]
fn an_entry_that_all_see_costs_nothing_for_its_time() {
    let page = |timestamp| {
        let mut builder = PageBuilder::new();
        builder.push(b"key", CommitTimestamp::new(timestamp), Content::Value(b"value"));
        builder.finish().len()
    };
    assert_eq!(page(1_000_000) - page(0), 1);
}

/// The bytes of docs/data-file.md: a change here is a change of the format.
#[test]
fn golden_a_page_of_three_versions_of_two_keys() {
    let mut builder = PageBuilder::new();
    builder.push(b"app", CommitTimestamp::new(300), Content::Value(b"new"));
    builder.push(b"app", CommitTimestamp::new(290), Content::Deleted);
    builder.push(b"apple", CommitTimestamp::ZERO, Content::Value(b"old"));
    let expected = [
        &[1_u8, 0][..],               // version, flags
        &[3, 0],                      // prefix length
        &[3, 0, 0, 0],                // entries
        &[0x22, 1, 0, 0, 0, 0, 0, 0], // base time 290
        &[57, 0, 0, 0],               // length
        &[0, 0, 0, 0],                // entries have different lengths
        b"app",                       // prefix
        &[0, 0, 0, 0, 0, 0, 0, 0],    // heads of two empty suffixes
        b"le\0\0",                    // head of "le"
        &[45, 0, 50, 0, 52, 0],       // slots
        &[1, 10],                     // put with time, empty suffix; 300 − 290
        b"new",
        &[2, 0],                // delete with time, empty suffix; 290 − 290
        &[8, b'o', b'l', b'd'], // put, suffix of 2 bytes, all in the head
    ]
    .concat();
    let mut expected = expected;
    expected[16] = expected.len() as u8;
    assert_eq!(builder.finish(), expected);
}

/// The same where all entries have one length.
#[test]
fn golden_an_even_page_of_two_keys() {
    let mut builder = PageBuilder::new();
    builder.push(b"apple 1", CommitTimestamp::new(500), Content::Value(b"x"));
    builder.push(b"apple 2", CommitTimestamp::new(300), Content::Value(b"y"));
    let expected = [
        &[1_u8, 2][..],               // version, flags: even
        &[6, 0],                      // prefix length
        &[2, 0, 0, 0],                // entries
        &[0x2C, 1, 0, 0, 0, 0, 0, 0], // base time 300
        &[46, 0, 0, 0],               // length
        &[4, 0, 0, 0],                // bytes of each entry
        b"apple ",                    // prefix
        b"1\0\0\x002\0\0\0",          // heads
        &[5, 0xC8, 0x01, b'x'],       // put with time, suffix of 1 byte; 500 − 300
        &[5, 0x80, 0x00, b'y'],       // 300 − 300, in as many bytes
    ]
    .concat();
    let page = builder.finish();
    assert_eq!(page, expected);
    for (at, byte) in [(1, 0), (1, 3), (20, 0), (20, 2), (20, 8), (4, 1)] {
        let mut changed = page.clone();
        changed[at] = byte;
        assert!(Page::decode(Bytes::from(changed)).is_err(), "byte {at} is {byte}");
    }
}

/// The same for references.
#[test]
fn golden_a_page_of_two_large_values() {
    let mut builder = PageBuilder::new();
    builder.push(b"app", CommitTimestamp::new(300), Content::Large(large(2).as_ref()));
    builder.push(b"bee", CommitTimestamp::ZERO, Content::Large(large(5).as_ref()));
    assert_eq!((builder.large_bytes(), builder.reach()), ((1 << 20) + 10, 6));
    let (first, second) = (large(2), large(5));
    let (first, second) = (Content::Large(first), Content::Large(second));
    let expected = [
        &[1_u8, 0][..],               // version, flags
        &[0, 0],                      // prefix length
        &[2, 0, 0, 0],                // entries
        &[0x2C, 1, 0, 0, 0, 0, 0, 0], // base time 300
        &[161, 0, 0, 0],              // length
        &[0, 0, 0, 0],                // entries have different lengths
        b"app\0bee\0",                // heads
        &[36, 0, 119, 0],             // slots
        &[15, 3, 0],                  // other, suffix of 3 bytes; large value with a time; 300 − 300
        first.in_page(),              // two pieces
        &[15, 2],                     // other, suffix of 3 bytes; large value
        second.in_page(),             // one
    ]
    .concat();
    assert_eq!(builder.finish(), expected);
}

#[test]
fn an_entry_that_is_neither_a_large_value_nor_known_is_refused() {
    let mut builder = PageBuilder::new();
    builder.push(b"app", CommitTimestamp::ZERO, Content::Large(large(5).as_ref()));
    let page = builder.finish();
    let at = page.len() - Pointer::ENCODED_BYTES - 1;
    assert_eq!(page[at], 2);
    for what in [0, 1, 4, 5, 6, 7, 255] {
        let mut changed = page.clone();
        changed[at] = what;
        assert!(Page::decode(Bytes::from(changed)).is_err(), "{what}");
    }
}

/// The same for merges.
#[test]
fn golden_a_page_of_merges() {
    let mut builder = PageBuilder::new();
    let max = Merge::Max(b"mx").to_bytes();
    builder.push(b"app", CommitTimestamp::new(300), Content::Merge(&max));
    let expected = [
        &[1_u8, 2][..],               // version, flags: even
        &[3, 0],                      // prefix length
        &[1, 0, 0, 0],                // entries
        &[0x2C, 1, 0, 0, 0, 0, 0, 0], // base time 300
        &[41, 0, 0, 0],               // length
        &[10, 0, 0, 0],               // bytes of the entry
        b"app",                       // prefix
        &[0, 0, 0, 0],                // head of an empty suffix
        &[3, 5, 0],                   // other, empty suffix; merges with a time; 300 − 300
        &[2, 2, 0, 0, 0],             // max, of 2 bytes
        b"mx",
    ]
    .concat();
    let page = builder.finish();
    assert_eq!(page, expected);
    assert!(Page::decode(Bytes::from(page.clone())).unwrap().has_merges());
    for (at, byte) in [(page.len() - 7, 9), (page.len() - 6, 3), (page.len() - 9, 4)] {
        let mut changed = page.clone();
        changed[at] = byte;
        assert!(Page::decode(Bytes::from(changed)).is_err(), "an operator, a length, or a time that is none");
    }
}

#[test]
fn random_bytes_are_refused_and_changed_pages_never_panic() {
    let random = SeededRandom::new(11);
    for _ in 0..2_000 {
        let mut bytes = vec![0; random.next_u64() as usize % 200];
        random.fill(&mut bytes);
        read_everything(bytes);
    }
    for round in 0..4_000 {
        let model = match round % 4 {
            0 => even_model(&random, 1 + round % 20),
            _ => random_model(&random, 1 + round % 20),
        };
        let mut bytes = build(&model).raw().to_vec();
        for _ in 0..1 + random.next_u64() % 4 {
            let at = random.next_u64() as usize % bytes.len();
            bytes[at] = random.next_u64() as u8;
        }
        bytes.truncate(bytes.len() - (random.next_u64() % 8 / 7) as usize);
        read_everything(bytes);
    }
}

#[test]
fn a_page_of_nothing_but_a_long_prefix_can_be_read() {
    for prefix in [0_u16, 1, 231, 232, 233, 1_000] {
        let length = 24 + u32::from(prefix);
        let mut bytes = vec![0; length as usize];
        bytes[0] = crate::base::FORMAT_VERSION;
        bytes[2..4].copy_from_slice(&prefix.to_le_bytes());
        bytes[16..20].copy_from_slice(&length.to_le_bytes());
        assert!(Page::decode(Bytes::from(bytes.clone())).is_ok());
        read_everything(bytes);
    }
}

/// Reads all of a page that the decoder accepts: no read panics.
fn read_everything(bytes: Vec<u8>) {
    let Ok(page) = Page::decode(Bytes::from(bytes)) else { return };
    let page = page.clone();
    let mut key = Vec::new();
    for at in 0..page.len() {
        page.prefetch_entries(at, at);
        page.prefetch_entries(at, usize::MAX);
        page.key_into(at, &mut key);
        let entry = page.entry(at);
        let content = page.content(&entry);
        let _lengths = (content.in_page().len(), content.value_bytes());
        let _found = page.clone().find(&key, SnapshotTimestamp::MAX, CommitTimestamp::ZERO);
        let _bounds = (page.lower_bound(&key), page.upper_bound(&key));
    }
    let _order = page.check_order();
}
