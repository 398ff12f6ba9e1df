//! Generations: the lifetime of their units, and failing checkpoints.

use std::sync::Arc;

use pando_environment::Operation;
use pando_environment::simulated::{Fault, FaultRule};
use pando_storage::{ErrorKind, StorageError};

use super::toy::Toy;
use super::*;
use crate::base::{BlockKind, FEATURE_PATCHES, Pointer, extents_of};

fn block(store: &BlockStore, seed: u64) -> Pointer {
    store.write_block(TREE, BlockKind::Page, Compression::None, &content(seed, 9_000)).unwrap()
}

fn change(attached: &[Pointer], detached: &[Pointer]) -> SpaceChange {
    let mut change = SpaceChange::new();
    change.attach(extents_of(attached));
    change.detach(extents_of(detached));
    change
}

/// Whether units of the extent can be handed out.
fn is_free(store: &BlockStore, pointer: &Pointer) -> bool {
    let extent = pointer.extent();
    store.allocator().lock().free_overlap(&(extent.start()..extent.end())).is_some()
}

#[test]
fn the_content_of_a_checkpoint_is_there_after_reopening_and_the_rest_is_free() {
    let simulation = simulation(1);
    let store = create(&simulation);
    let kept = block(&store, 1);
    let lost = block(&store, 2);
    let generation = checkpoint(&store, change(&[kept], &[])).unwrap().generation;
    assert_eq!(store.audit(&[kept.extent()]).unwrap().young_units, lost.extent().units());
    drop(store);
    let (store, superblock) = open(&simulation);
    assert_eq!(superblock.generation(), generation);
    assert_eq!(store.read_block(&kept).unwrap(), content(1, 9_000));
    assert_eq!(store.audit(&[kept.extent()]).unwrap().young_units, 0);
    assert!(is_free(&store, &lost));
    assert!(store.audit(&[]).is_err());
    assert!(store.audit(&[kept.extent(), lost.extent()]).is_err());
}

#[test]
fn a_copy_of_a_pinned_generation_has_the_features_that_came_after_the_pin() {
    let simulation = simulation(3);
    let store = Arc::new(create(&simulation));
    let pin = PinnedGeneration::newest(&store);
    assert!(!store.features().has(FEATURE_PATCHES), "the device has no superblock with it yet");
    assert_eq!(pin.superblock_of_copy().features.incompatible & FEATURE_PATCHES, 0);
    checkpoint(&store, SpaceChange::new()).unwrap();
    assert!(store.features().has(FEATURE_PATCHES));
    assert_eq!(pin.superblock().features.incompatible & FEATURE_PATCHES, 0);
    assert_eq!(pin.superblock_of_copy().features.incompatible & FEATURE_PATCHES, FEATURE_PATCHES);
}

#[test]
fn extents_of_a_durable_generation_are_reused_when_both_slots_have_moved_on() {
    let simulation = simulation(2);
    let store = create(&simulation);
    let old = block(&store, 1);
    checkpoint(&store, change(&[old], &[])).unwrap();
    store.free(old.extent(), old.birth());
    assert!(!is_free(&store, &old), "the newest generation reaches it");
    checkpoint(&store, change(&[], &[old])).unwrap();
    assert!(!is_free(&store, &old), "the older slot reaches it");
    checkpoint(&store, SpaceChange::new()).unwrap();
    assert!(is_free(&store, &old));
}

#[test]
fn extents_that_the_newest_generation_removed_are_kept_across_a_reopening_too() {
    let simulation = simulation(3);
    let store = create(&simulation);
    let old = block(&store, 1);
    checkpoint(&store, change(&[old], &[])).unwrap();
    store.free(old.extent(), old.birth());
    checkpoint(&store, change(&[], &[old])).unwrap();
    drop(store);
    let (store, _superblock) = open(&simulation);
    assert!(!is_free(&store, &old), "the older slot reaches it");
    checkpoint(&store, SpaceChange::new()).unwrap();
    assert!(is_free(&store, &old));
}

#[test]
fn extents_born_and_freed_within_one_generation_are_reused_at_once() {
    let simulation = simulation(4);
    let store = create(&simulation);
    let short_lived = block(&store, 1);
    store.free(short_lived.extent(), short_lived.birth());
    assert!(is_free(&store, &short_lived));
    let over_a_checkpoint = block(&store, 2);
    checkpoint(&store, change(&[], &[])).unwrap();
    store.free(over_a_checkpoint.extent(), over_a_checkpoint.birth());
    assert!(!is_free(&store, &over_a_checkpoint));
}

#[test]
fn a_change_that_cannot_be_true_never_reaches_the_disk() {
    for wrong in 0..3 {
        let simulation = simulation(6);
        let store = create(&simulation);
        let kept = block(&store, 1);
        checkpoint(&store, change(&[kept], &[])).unwrap();
        let other = block(&store, 2);
        let impossible = match wrong {
            0 => change(&[kept], &[]),
            1 => change(&[], &[other]),
            _ => {
                store.abandon(other.extent());
                change(&[other], &[])
            }
        };
        let failed = checkpoint(&store, impossible).unwrap_err().to_string();
        assert!(failed.contains("attached") || failed.contains("detached"), "{failed}");
        assert!(store.write_block(TREE, BlockKind::Page, Compression::None, &[1]).is_err());
        drop(store);
        let (store, _superblock) = open(&simulation);
        store.audit(&[kept.extent()]).unwrap();
    }
}

#[test]
fn the_map_stays_exact_through_many_deltas_and_snapshots() {
    let simulation = simulation(7);
    let mut toy = Toy::create(&simulation).unwrap();
    let random = SeededRandom::new(7);
    for round in 0..120 {
        for _ in 0..random.below(6) {
            toy.step(&random).unwrap();
        }
        toy.checkpoint().unwrap();
        toy.audit().unwrap();
        if round % 7 == 0 {
            let image = toy.image();
            drop(toy);
            let (reopened, _superblock) = Toy::open(&simulation).unwrap();
            assert_eq!(reopened.image(), image);
            toy = reopened;
        }
    }
    toy.read_all().unwrap();
    let statistics = toy.store().statistics();
    assert!(statistics.file_bytes < 2 << 20, "reused space keeps the file small: {statistics:?}");
}

#[test]
fn a_map_of_thousands_of_extents_is_written_in_several_blocks_and_read_back() {
    let simulation = simulation(8);
    let options = SpaceOptions { growth_bytes_min: 64 << 20, growth_bytes_max: 1 << 30, ..small_options() };
    let store = BlockStore::create(&simulation.environment, Path::new(FOLDER), options).unwrap();
    let mut writer = store.extent_writer(TREE);
    for _ in 0..6_000 {
        writer.next_unit();
        writer.append(BlockKind::InnerNode, Compression::None, b"x").unwrap();
    }
    let pointers = writer.place().unwrap().finish().unwrap();
    let (kept, freed): (Vec<_>, Vec<_>) = pointers.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let extents =
        |part: &[(usize, &Pointer)]| part.iter().map(|(_, pointer)| pointer.extent()).collect::<Vec<_>>();
    let mut change = SpaceChange::new();
    change.attach(extents(&kept));
    checkpoint(&store, change).unwrap();
    store.audit(&extents(&kept)).unwrap();
    extents(&freed).into_iter().for_each(|extent| store.abandon(extent));
    for _ in 0..20 {
        checkpoint(&store, SpaceChange::new()).unwrap();
    }
    drop(store);
    let (store, _superblock) = open(&simulation);
    assert_eq!(store.audit(&extents(&kept)).unwrap().young_units, 0);
}

#[test]
fn a_failing_sync_poisons_the_store_and_the_next_open_finds_a_whole_generation() {
    for failing in 0..2 {
        let simulation = simulation(9);
        let store = create(&simulation);
        let kept = block(&store, 1);
        checkpoint(&store, change(&[kept], &[])).unwrap();
        let rule = FaultRule::new(Operation::Sync, Fault::InputOutputError).on("data.0000");
        simulation.disk.inject(rule.after(failing));
        let newer = block(&store, 2);
        let failed = checkpoint(&store, change(&[newer], &[])).unwrap_err();
        assert!(matches!(failed, SpaceError::Poisoned { .. }));
        let later = store.write_block(TREE, BlockKind::Page, Compression::None, &[1]).unwrap_err();
        assert_eq!(StorageError::from(later).kind(), ErrorKind::Closed);
        assert!(checkpoint(&store, SpaceChange::new()).is_err());
        assert_eq!(store.read_block(&kept).unwrap(), content(1, 9_000));
        simulation.disk.crash(failing);
        drop(store);
        let (store, _superblock) = open(&simulation);
        assert_eq!(store.read_block(&kept).unwrap(), content(1, 9_000));
        store.audit(&[kept.extent()]).unwrap();
    }
}

#[test]
fn on_a_full_disk_writes_fail_clearly_reads_go_on_and_checkpoints_still_free_space() {
    let simulation = simulation(10);
    let mut toy = Toy::create(&simulation).unwrap();
    let random = SeededRandom::new(10);
    for _ in 0..20 {
        toy.step(&random).unwrap();
    }
    toy.checkpoint().unwrap();
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes()));
    let mut refused = 0;
    for round in 0..200 {
        let before = toy.image();
        match toy.step(&random) {
            Ok(()) => {}
            Err(SpaceError::NoSpace { .. }) => {
                refused += 1;
                assert_eq!(toy.image(), before);
            }
            Err(other) => panic!("{other}"),
        }
        toy.read_all().unwrap();
        if round % 5 == 4 {
            toy.checkpoint().expect("the reserve suffices for a checkpoint");
            toy.audit().unwrap();
        }
    }
    assert!(refused > 0, "the disk was not full");
    simulation.disk.set_capacity(None);
    toy.step(&random).unwrap();
    toy.checkpoint().unwrap();
    let image = toy.image();
    drop(toy);
    assert_eq!(Toy::open(&simulation).unwrap().0.image(), image);
}

#[test]
fn a_checkpoint_without_room_changes_nothing_and_succeeds_later() {
    let simulation = simulation(11);
    let options = SpaceOptions { reserve_bytes: 0, growth_bytes_min: 4_096, ..small_options() };
    let store = BlockStore::create(&simulation.environment, Path::new(FOLDER), options).unwrap();
    let kept = block(&store, 1);
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes()));
    while store.write_block(TREE, BlockKind::Page, Compression::None, &[1]).is_ok() {}
    let failed = checkpoint(&store, change(&[kept], &[])).unwrap_err();
    assert!(matches!(failed, SpaceError::NoSpace { .. }), "{failed}");
    let free = store.statistics().free_bytes;
    assert!(checkpoint(&store, change(&[kept], &[])).is_err());
    assert_eq!(store.statistics().free_bytes, free, "a failed checkpoint keeps no room");
    simulation.disk.set_capacity(None);
    checkpoint(&store, change(&[kept], &[])).unwrap();
    store.audit(&[kept.extent()]).unwrap();
}

#[test]
#[should_panic(expected = "while another is under way")]
fn two_checkpoints_at_once_are_a_mistake_that_shows() {
    let simulation = simulation(12);
    let store = create(&simulation);
    let _first = store.begin_checkpoint();
    let _second = store.begin_checkpoint();
}
