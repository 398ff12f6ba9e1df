//! Messages by themselves; with slices they are tested where flushes are.

use std::sync::Arc;

use pando_environment::Environment;
use pando_storage::SnapshotTimestamp;

use super::super::buffer::{BufferedVersion, OwnedChange, PruneBounds};
use super::*;
use crate::range_deletes::DeletedRanges;
use crate::space::{BlockStore, SpaceOptions};
use crate::tree::flush_read_ahead::{NextBlocks, SlicePages};
use crate::tree::tree_blocks::PageCache;

fn retained() -> Retained {
    Retained::new(vec![SnapshotTimestamp::new(5)], SnapshotTimestamp::new(100))
}

fn messages(entries: &[(&[u8], u64)]) -> Messages {
    let mut buffer = Buffer::default();
    for (key, timestamp) in entries {
        let change = OwnedChange::Put(Bytes::from_static(b"v"));
        let version = BufferedVersion { timestamp: CommitTimestamp::new(*timestamp), change };
        let bounds = PruneBounds { oldest: SnapshotTimestamp::ZERO, ranges: &DeletedRanges::default() };
        buffer.push(key, version, bounds);
    }
    Messages::of_buffer(&buffer, &retained())
}

fn keys(span: Span<'_>) -> Vec<(&[u8], u64)> {
    span.iter().map(|(key, version)| (key, version.timestamp.get())).collect()
}

#[test]
fn messages_of_a_buffer_lack_versions_that_no_snapshot_needs() {
    let messages = messages(&[(b"b", 3), (b"a", 4), (b"b", 7), (b"b", 9)]);
    assert_eq!(keys(messages.span()), [(&b"a"[..], 4), (b"b", 9), (b"b", 3)]);
}

#[test]
fn spans_are_cut_between_keys_and_keys_taken_off_with_all_their_versions() {
    let messages = messages(&[(b"a", 4), (b"b", 9), (b"b", 3), (b"c", 6)]);
    let (before, after) = messages.span().split_at(Some(b"b"));
    assert_eq!((before.len(), after.len()), (1, 3));
    assert_eq!((after.first_key(), after.last_key()), (Some(&b"b"[..]), Some(&b"c"[..])));
    let mut rest = after;
    assert!(rest.take_key(Limit::Before(b"b")).is_none());
    assert!(rest.take_key(Limit::Exactly(b"bb")).is_none());
    let (key, versions) = rest.take_key(Limit::Exactly(b"b")).unwrap();
    assert_eq!((key, keys(versions)), (&b"b"[..], vec![(&b"b"[..], 9), (b"b", 3)]));
    assert_eq!(keys(rest), [(&b"c"[..], 6)]);
    assert_eq!(after.split_at(None).1.len(), 0);
}

#[test]
fn the_empty_key_is_a_key_of_its_own() {
    let messages = messages(&[(b"", 4), (b"b", 9)]);
    let mut rest = messages.span();
    let (key, versions) = rest.take_key(Limit::Everything).unwrap();
    assert_eq!((key, versions.len(), rest.len()), (&b""[..], 1, 1));
}

fn blocks() -> Blocks {
    let simulation = Environment::simulated(1);
    let folder = std::path::Path::new("/store");
    let store = BlockStore::create(&simulation.environment, folder, SpaceOptions::default()).unwrap();
    Blocks::new(Arc::new(store), PageCache::new(1 << 20, 256))
}

/// The messages as a slice.
fn slice(blocks: &Blocks, messages: &Messages) -> Arc<Slice> {
    let settings = crate::options::tree_settings::TreeSettings::default();
    let mut writer = crate::tree::run_writer::RunWriter::new(blocks, pando_storage::TreeId::new(1), settings);
    writer.add(messages.span()).unwrap();
    Arc::new(writer.finish().unwrap().remove(0))
}

#[test]
fn newer_sources_come_first_and_slices_in_the_wrong_order_are_refused() {
    let blocks = blocks();
    let older = slice(&blocks, &messages(&[(b"a", 20), (b"b", 20)]));
    let newer = slice(&blocks, &messages(&[(b"b", 30), (b"c", 30)]));
    let above = messages(&[(b"a", 40), (b"d", 40)]);
    let retained = Retained::new(vec![SnapshotTimestamp::new(25)], SnapshotTimestamp::new(100));
    let mut dropped = Dropped::new();
    let slices = [Arc::clone(&newer), Arc::clone(&older)];
    let merged =
        Messages::merge(above.span(), &slices, &blocks, &mut SlicePages::default(), &retained, &mut dropped);
    let expected = [(&b"a"[..], 40), (b"a", 20), (b"b", 30), (b"b", 20), (b"c", 30), (b"d", 40)];
    assert_eq!(keys(merged.unwrap().span()), expected);
    let wrong = Messages::merge(
        above.span(),
        &[older, newer],
        &blocks,
        &mut SlicePages::default(),
        &retained,
        &mut dropped,
    );
    assert!(matches!(wrong, Err(BetreeError::VersionOrder)));
}

#[test]
fn pages_that_were_read_ahead_are_merged_and_none_is_left() {
    let blocks = blocks();
    let written = [
        slice(&blocks, &messages(&[(b"b", 30), (b"c", 30)])),
        slice(&blocks, &messages(&[(b"a", 20), (b"b", 20)])),
    ];
    for page in written.iter().flat_map(|slice| slice.index().unwrap().pages.pages()) {
        blocks.forget(&page.pointer);
    }
    // As they are after an opening.
    let slices = written.map(|slice| Arc::new(Slice::on_disk(*slice.stored())));
    let ahead = NextBlocks { slices: slices.iter().map(Arc::as_ref).collect(), ..NextBlocks::default() };
    blocks.read_next_blocks(&ahead).unwrap();
    assert!(slices.iter().all(|slice| slice.index().is_some()));
    let mut pages = SlicePages::default();
    blocks.read_slices(&ahead.slices, &mut pages).unwrap();
    assert!(!pages.is_empty());
    let reads = blocks.store().statistics().reads;
    let (retained, mut dropped) = (retained(), Dropped::new());
    let merged =
        Messages::merge(Span::empty(), &slices, &blocks, &mut pages, &retained, &mut dropped).unwrap();
    assert_eq!(keys(merged.span()), [(&b"a"[..], 20), (b"b", 30), (b"c", 30)]);
    assert!(pages.is_empty());
    assert_eq!(blocks.store().statistics().reads, reads, "nothing is read twice");
    Messages::merge(Span::empty(), &slices, &blocks, &mut pages, &retained, &mut dropped).unwrap();
    assert!(blocks.store().statistics().reads > reads, "merges keep no pages");
}
