//! Tests of a spilling set against one that stays in memory: the same answers after any writes, savepoints
//! and rollbacks.

use std::path::Path;

use pando_environment::{Environment, SeededRandom};

use super::*;

const FOLDER: &str = "/store/spill";

fn space(environment: &Environment, budget: usize) -> Arc<SpillSpace> {
    SpillSpace::open(environment, Path::new(FOLDER), budget).expect("the folder can be made")
}

fn scanned(writes: &SpillingWrites, range: &KeyRange, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let limits = BatchLimits { entries_max: 7, bytes_max: 1 << 20 };
    let (mut rest, mut batch, mut all) = (range.clone(), Batch::new(), Vec::new());
    loop {
        // An engine with three entries of its own.
        let mut base = |range: &KeyRange, batch: &mut Batch| {
            batch.clear();
            let mut have = [b"ba".as_slice(), b"k3", b"z"];
            if direction == Direction::Backward {
                have.reverse();
            }
            have.iter().filter(|key| range.contains(key)).for_each(|key| batch.push(key, b"below"));
            Ok(ScanEnd::Done)
        };
        let tree = TreeId::new(2);
        let blocking = BlockingMode::MayBlock;
        let end = writes
            .scan_over(tree, &rest, direction, limits, blocking, &mut batch, &mut base)
            .expect("scans succeed");
        all.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        match batch.last() {
            Some((key, _)) if end == ScanEnd::More => rest.advance_past(key, direction),
            _ => return all,
        }
    }
}

fn merged(writes: &SpillingWrites) -> Vec<(TreeId, Vec<u8>, String)> {
    let (mut merged, mut all) = (writes.merged().expect("layers can be read"), Vec::new());
    while let Some(write) = merged.next().expect("layers can be read") {
        all.push((write.tree, write.key.to_vec(), text(write.change)));
    }
    all
}

fn text(change: Change<'_>) -> String {
    format!("{change:?}")
}

fn assert_same(spilling: &SpillingWrites, plain: &SpillingWrites, random: &SeededRandom) {
    assert_eq!(merged(spilling), merged(plain));
    for _ in 0..20 {
        let key = format!("k{}", random.below(60));
        let latest = |set: &SpillingWrites| {
            set.latest(TreeId::new(2), key.as_bytes(), BlockingMode::MayBlock, text)
                .expect("layers can be read")
        };
        assert_eq!(latest(spilling), latest(plain), "{key}");
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let bound = |kind: u64| {
            let key = format!("k{}", random.below(60)).into_bytes();
            match kind {
                0 => std::ops::Bound::Included(key),
                1 => std::ops::Bound::Excluded(key),
                _ => std::ops::Bound::Unbounded,
            }
        };
        let range = KeyRange { lower: bound(random.below(3)), upper: bound(random.below(3)) };
        assert_eq!(scanned(spilling, &range, direction), scanned(plain, &range, direction), "{range:?}");
    }
}

#[test]
fn a_set_that_spills_answers_as_one_that_does_not_whatever_is_written_and_rolled_back() {
    for seed in 0..60 {
        let random = SeededRandom::new(seed);
        let environment = Environment::simulated(seed).environment;
        let budget = [200, 500, 2_000, 6_000][random.below(4) as usize];
        let small = space(&environment, budget);
        let (mut spilling, mut plain) =
            (SpillingWrites::new(&small), SpillingWrites::new(&space(&environment, 1 << 30)));
        let mut savepoints = Vec::new();
        for step in 0..400_i64 {
            let tree = TreeId::new(1 + random.below(3) as u32);
            let key = format!("k{}", random.below(60));
            let value = vec![step as u8; random.below(40) as usize];
            let write = match random.below(10) {
                0..=4 => Write::put(tree, key.as_bytes(), &value, Claim::Intent),
                5..=6 => {
                    let merge = if step % 2 == 0 { Merge::Max(&value) } else { Merge::Add(step) };
                    for set in [&mut spilling, &mut plain] {
                        set.merge(tree, key.as_bytes(), merge, Claim::Blind, BlockingMode::MayBlock)
                            .expect("there is room");
                    }
                    continue;
                }
                7 => Write::delete(tree, key.as_bytes(), Claim::Blind),
                8 => {
                    let savepoint = spilling.savepoint();
                    assert_eq!(savepoint, plain.savepoint());
                    savepoints.push(savepoint);
                    continue;
                }
                _ if random.below(4) == 0 && !savepoints.is_empty() => {
                    let to = savepoints[random.below(savepoints.len() as u64) as usize];
                    spilling.rollback_to(to);
                    plain.rollback_to(to);
                    savepoints.retain(|one| *one <= to);
                    assert_eq!(spilling.len(), plain.len());
                    continue;
                }
                _ => continue,
            };
            spilling.write(write).expect("there is room");
            plain.write(write).expect("there is room");
            if step % 40 == 0 {
                assert_same(&spilling, &plain, &random);
            }
        }
        assert_same(&spilling, &plain, &random);
        assert!(budget > 2_000 || small.figures().layers > 0, "nothing was spilled");
        drop(spilling);
        assert_eq!((small.figures().memory_bytes, small.figures().spilled_bytes), (0, 0));
        assert_eq!(environment.files().list(Path::new(FOLDER)).expect("it is there"), Vec::<String>::new());
    }
}

#[test]
fn many_layers_become_few() {
    let environment = Environment::simulated(3).environment;
    let small = space(&environment, 200);
    let mut writes = SpillingWrites::new(&small);
    for number in 0..20_000_u32 {
        let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
        writes.write(Write::put(TreeId::new(2), &key, b"value", Claim::Intent)).expect("there is room");
    }
    assert!(small.figures().layers as usize > MERGED_LAYERS * MERGED_LAYERS);
    assert!(writes.layers.len() < 3 * MERGED_LAYERS, "{} layers", writes.layers.len());
    assert_eq!(merged(&writes).len(), 20_000);
}

#[test]
fn a_read_that_must_not_block_does_not_touch_the_device() {
    let environment = Environment::simulated(4).environment;
    let small = space(&environment, 400);
    let mut writes = SpillingWrites::new(&small);
    for number in 0..100_u32 {
        let key = number.to_be_bytes();
        writes.write(Write::put(TreeId::new(2), &key, &[7; 20], Claim::Intent)).expect("there is room");
    }
    let read = |key: u32, blocking| writes.latest(TreeId::new(2), &key.to_be_bytes(), blocking, text);
    assert_eq!(read(0, BlockingMode::CachedOnly).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    assert!(read(0, BlockingMode::MayBlock).expect("it can be read").is_some());
    assert!(read(0, BlockingMode::CachedOnly).expect("its page is at hand").is_some());
}

#[test]
fn transactions_share_the_budget_and_a_small_one_beside_a_large_one_spills_nothing() {
    let environment = Environment::simulated(5).environment;
    let space = space(&environment, 4 << 20);
    let mut sets: Vec<SpillingWrites> = (0..4).map(|_| SpillingWrites::new(&space)).collect();
    for number in 0..40_000_u32 {
        for (tree, set) in (1..).map(TreeId::new).zip(&mut sets[..3]) {
            set.write(Write::put(tree, &number.to_be_bytes(), &[7; 100], Claim::Intent))
                .expect("there is room");
        }
        if number < 1_000 {
            let key = number.to_be_bytes();
            sets[3].write(Write::put(TreeId::new(9), &key, &[7; 100], Claim::Intent)).expect("there is room");
        }
        assert!(space.figures().memory_bytes < 5 << 20, "{:?}", space.figures());
    }
    assert!(sets[..3].iter().all(|set| set.in_memory().is_none()));
    assert!(sets[3].in_memory().is_some());
    sets.clear();
    assert_eq!((space.figures().memory_bytes, space.figures().spilled_bytes), (0, 0));
}
