//! Estimates, sizes, statistics and the list of live transactions: rough or exact, but never absurd.

use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use pando_storage::{BlockingMode, KeyRange};

use crate::subject::{Subject, commit};

/// An empty range is estimated as (almost) empty, and a whole tree within a factor of two.
pub fn the_estimate_of_a_tree_is_near_the_truth(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    assert!(engine.tree_estimate(tree).expect("a tree has an estimate").entries <= 1);
    let mut writer = engine.writer();
    for number in 0..10_000_u32 {
        writer.put(tree, &number.to_be_bytes(), &[1; 96]).expect("the put succeeds");
    }
    commit(writer);
    let estimates = [
        engine.tree_estimate(tree).expect("a tree has an estimate"),
        engine
            .reader()
            .estimate(tree, &KeyRange::all(), BlockingMode::MayBlock)
            .expect("a range has an estimate"),
    ];
    for estimate in estimates {
        assert!(
            (5_000..=20_000).contains(&estimate.entries),
            "10,000 entries were estimated as {estimate:?}"
        );
        assert!(
            (500_000..=2_000_000).contains(&estimate.bytes),
            "1,000,000 bytes were estimated as {estimate:?}"
        );
    }
    let mut eraser = engine.writer();
    eraser.delete_range(tree, &KeyRange::all(), BlockingMode::MayBlock).expect("the range can be deleted");
    commit(eraser);
}

/// Good enough to choose an index by: a narrow range is cheaper than a wide one.
pub fn a_narrow_range_is_estimated_below_a_wide_one(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    for number in 0..20_000_u32 {
        writer.put(tree, &number.to_be_bytes(), &[1; 50]).expect("the put succeeds");
    }
    commit(writer);
    engine.checkpoint().expect("the checkpoint succeeds");
    let reader = engine.reader();
    let estimate = |from: u32, to: u32| {
        let lower = Bound::Included(from.to_be_bytes().to_vec());
        let range = KeyRange { lower, upper: Bound::Excluded(to.to_be_bytes().to_vec()) };
        reader.estimate(tree, &range, BlockingMode::MayBlock).expect("a range has an estimate").entries
    };
    let none = estimate(30_000, 40_000);
    let (one, ten, wide) = (estimate(700, 701), estimate(5_000, 5_010), estimate(0, 15_000));
    assert!(none <= 1_000 && one <= 1_000 && ten <= 1_000, "0, 1 and 10 entries: {none}, {one}, {ten}");
    assert!((3_000..=20_000).contains(&wide), "15,000 entries were estimated as {wide}");
}

/// Stored data takes room, in its tree and in the whole store.
pub fn entries_take_room(subject: &Subject) {
    let engine = subject.open();
    let (full, empty) = (engine.tree("full"), engine.tree("empty"));
    for number in 0..100_u32 {
        let noise: Vec<u8> =
            (0..5_000_u32).map(|at| (at.wrapping_mul(2_654_435_761 + number) >> 13) as u8).collect();
        engine.put(full, number.to_be_bytes(), noise);
    }
    engine.checkpoint().expect("the checkpoint succeeds");
    let room = |tree| engine.bytes_on_disk(tree).expect("the size is known");
    assert!(room(Some(full)) >= 10_000, "500,000 bytes take {}", room(Some(full)));
    assert!(room(Some(empty)) <= room(Some(full)));
    assert!(room(None) >= room(Some(full)));
    let of_both = engine.bytes_on_disk_of(&[empty, full]).expect("the sizes are known");
    assert_eq!(of_both, [room(Some(empty)), room(Some(full))]);
}

/// Live transactions are listed, oldest first, with writes and snapshot; ended ones are not.
pub fn live_transactions_are_listed_until_they_end(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    assert!(engine.live_transactions().is_empty());
    let reader = engine.reader();
    engine.put(tree, "k", "v");
    let mut writer = engine.writer();
    for key in [b"a", b"b", b"c"] {
        writer.put(tree, key, b"v").expect("the put succeeds");
    }
    let live = engine.live_transactions();
    assert_eq!(live.iter().map(|one| one.writes).collect::<Vec<_>>(), vec![0, 3]);
    assert_eq!(live[0].snapshot, reader.snapshot());
    assert_eq!(live[1].snapshot, writer.snapshot());
    assert!(live[0].age >= live[1].age);
    commit(writer);
    assert_eq!(engine.live_transactions().len(), 1);
    drop(reader);
    assert!(engine.live_transactions().is_empty());
}

/// The list is in order also while several threads begin transactions at once.
pub fn live_transactions_are_in_order_while_others_begin(subject: &Subject) {
    const BEGINS: usize = 1_000;
    let engine = subject.open();
    let beginning = AtomicUsize::new(4);
    std::thread::scope(|scope| {
        for _ in 0..beginning.load(Ordering::Relaxed) {
            scope.spawn(|| {
                for _ in 0..BEGINS {
                    drop(engine.reader());
                }
                beginning.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while beginning.load(Ordering::Relaxed) > 0 {
            let live = engine.live_transactions();
            assert!(live.is_sorted_by(|one, next| one.age >= next.age), "{live:?}");
        }
    });
}

/// An engine has a name and figures under unique names.
pub fn an_engine_has_a_name_and_statistics(subject: &Subject) {
    let engine = subject.open();
    assert!(!engine.name().is_empty());
    let tree = engine.tree("t");
    engine.put(tree, "k", "v");
    let statistics = engine.statistics();
    let names: Vec<_> = statistics.iter().map(|(name, _)| name).collect();
    assert!(!names.is_empty() && names.is_sorted_by(|a, b| a < b), "{names:?}");
}
