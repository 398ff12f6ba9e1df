//! The sorter gives what a plain stable sort gives, whatever the memory; faults are told and leave nothing.

use std::path::Path;
use std::sync::Arc;

use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Environment, Operation, Random, SeededRandom, Simulation};

use super::*;
use crate::error::ErrorKind;
use crate::query_memory::QueryMemory;
use crate::scratch::ScratchSpace;

struct Store {
    simulation: Simulation,
    scratch: Arc<ScratchSpace>,
    memory: QueryMemory,
}

fn store(limit: usize) -> Store {
    let simulation = Environment::simulated(1);
    let scratch = ScratchSpace::open(&simulation.environment, Path::new("/store/scratch")).expect("it opens");
    let memory = QueryMemory::with_scratch(limit, &scratch);
    Store { simulation, scratch, memory }
}

impl Store {
    fn is_clean(&self) -> bool {
        let scratch = self.scratch.figures();
        self.memory.figures().held_bytes == 0 && scratch.files == 0 && scratch.file_bytes == 0
    }
}

type Entry = (Vec<u8>, Vec<u8>);

/// Entries with many equal keys, keys that share long prefixes, and now and then a long value.
fn entries(random: &SeededRandom, count: usize) -> Vec<Entry> {
    let below = |bound: u64| random.next_u64() % bound;
    let kinds = below(count as u64 + 1) + 1;
    (0..count)
        .map(|number| {
            let kind = below(kinds);
            let mut key = match kind % 3 {
                0 => Vec::new(),
                1 => b"one".to_vec(),
                _ => b"a prefix that many have".to_vec(),
            };
            key.extend_from_slice(&kind.to_be_bytes()[(kind % 8) as usize..]);
            let mut value = number.to_le_bytes().to_vec();
            value.resize(8 + if below(50) == 0 { below(5_000) } else { below(60) } as usize, 3);
            (key, value)
        })
        .collect()
}

fn no_check() -> Result<(), StorageError> {
    Ok(())
}

fn sorted(sorter: &mut Sorter, entries: &[Entry]) -> Result<Vec<Entry>, StorageError> {
    for (key, value) in entries {
        sorter.push(key, value, &mut no_check)?;
    }
    sorter.finish(&mut no_check)?;
    let mut sorted = Vec::new();
    while let Some((key, value)) = sorter.next(&mut no_check)? {
        sorted.push((key.to_vec(), value.to_vec()));
    }
    Ok(sorted)
}

#[test]
fn any_entries_with_any_memory_come_as_a_stable_sort_gives_them() {
    for seed in 0..60 {
        let random = SeededRandom::new(seed);
        let limit = 4_000 << (random.next_u64() % 10);
        let store = store(limit);
        let entries = entries(&random, (random.next_u64() % 6_000) as usize);
        let mut sorter = Sorter::new(&store.memory.account());
        let found = sorted(&mut sorter, &entries).expect("there is room");
        let mut expected = entries.clone();
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert!(found == expected, "seed {seed}, {limit} bytes, {} entries: {sorter:?}", entries.len());
        assert!(store.is_clean(), "all goes with the last entry");
        assert!(sorter.next(&mut no_check).expect("it is at its end").is_none());
    }
}

#[test]
fn absorbed_sorters_give_what_one_gives_of_all_entries_in_their_order() {
    for seed in 0..60 {
        let random = SeededRandom::new(seed);
        let store = store(8_000 << (random.next_u64() % 10));
        let account = store.memory.account();
        let entries = entries(&random, (random.next_u64() % 5_000) as usize);
        let mut expected = entries.clone();
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        let parts = 1 + (random.next_u64() % 4) as usize;
        // The last part comes one by one, behind what was absorbed.
        let mut parts = entries.chunks(entries.len() / parts + 1);
        let last = parts.next_back().unwrap_or_default();
        let mut sorters: Vec<Sorter> = parts
            .map(|part| {
                let mut sorter = Sorter::new(&account);
                for (key, value) in part {
                    sorter.push(key, value, &mut no_check).expect("there is room");
                }
                sorter.sort_last();
                sorter
            })
            .collect();
        let mut whole = Sorter::new(&account);
        for later in &mut sorters {
            whole.absorb(later, &mut no_check).expect("there is room");
        }
        assert!(!whole.has_spilled() || store.memory.figures().spills > 0);
        drop(sorters);
        assert!(whole.arena.memory_bytes() <= whole.reservation.bytes());
        let found = sorted(&mut whole, last).expect("there is room");
        assert!(found == expected, "seed {seed}, {} entries: {whole:?}", entries.len());
        drop(account);
        assert!(store.is_clean());
    }
}

#[test]
fn memory_stays_within_the_reservation_over_many_runs_and_passes() {
    let store = store(256 << 10);
    let account = store.memory.account();
    let mut sorter = Sorter::new(&account);
    let random = SeededRandom::new(9);
    let mut runs_max = 0;
    for number in 0..200_000u32 {
        let key = random.next_u64().to_be_bytes();
        sorter.push(&key, &number.to_le_bytes(), &mut no_check).expect("there is room");
        runs_max = runs_max.max(sorter.runs.len());
        assert!(sorter.arena.memory_bytes() <= sorter.reservation.bytes());
    }
    assert!(runs_max > 50, "{runs_max} runs");
    assert!(store.memory.figures().peak_bytes <= 160 << 10, "{:?}", store.memory);
    sorter.finish(&mut no_check).expect("there is room");
    assert!(sorter.runs.len() < runs_max, "runs were merged");
    assert!(store.memory.figures().peak_bytes <= 200 << 10, "{:?}", store.memory);
    let (mut count, mut last) = (0, Vec::new());
    while let Some((key, _)) = sorter.next(&mut no_check).expect("the runs are there") {
        assert!(*last <= *key);
        last = key.to_vec();
        count += 1;
    }
    assert_eq!(count, 200_000);
    assert!(store.memory.figures().spilled_bytes > 200_000 * 12, "more than once");
    assert!(store.is_clean());
}

#[test]
fn without_lack_of_memory_no_file_is_made() {
    let store = store(64 << 20);
    let mut sorter = Sorter::new(&store.memory.account());
    let entries = entries(&SeededRandom::new(3), 100_000);
    assert_eq!(sorted(&mut sorter, &entries).expect("it fits").len(), 100_000);
    assert_eq!((store.scratch.figures().written_bytes, store.memory.figures().spills), (0, 0));
}

#[test]
fn the_check_ends_a_sort_at_any_step_and_nothing_is_left() {
    let entries = entries(&SeededRandom::new(4), 20_000);
    let mut checks = 0;
    for limit in (0..).step_by(37) {
        let store = store(64 << 10);
        let mut sorter = Sorter::new(&store.memory.account());
        checks = 0;
        let mut check = || {
            checks += 1;
            match checks > limit {
                true => Err(StorageError::new(ErrorKind::Busy, "ended")),
                false => Ok(()),
            }
        };
        let pushed = entries.iter().try_for_each(|(key, value)| sorter.push(key, value, &mut check));
        let finished = pushed.and_then(|()| sorter.finish(&mut check));
        let outcome = finished.and_then(|()| {
            while sorter.next(&mut check)?.is_some() {}
            Ok(())
        });
        drop(sorter);
        assert!(store.is_clean());
        if outcome.is_ok() {
            break;
        }
    }
    assert!(checks > 500, "{checks} checks");
}

#[test]
fn a_device_that_fails_is_told_and_nothing_is_left() {
    let entries = entries(&SeededRandom::new(5), 5_000);
    let cases = [
        (Operation::Open, Fault::NoSpace, ErrorKind::Io),
        (Operation::Write, Fault::NoSpace, ErrorKind::Io),
        (Operation::Write, Fault::InputOutputError, ErrorKind::Io),
        (Operation::Write, Fault::ShortWrite, ErrorKind::Io),
        (Operation::Write, Fault::BitFlip { bit: 4_321 }, ErrorKind::Corrupt),
        (Operation::Write, Fault::LostWrite, ErrorKind::Corrupt),
        (Operation::Read, Fault::InputOutputError, ErrorKind::Io),
    ];
    for (operation, fault, kind) in cases {
        for skip in [0, 1, 3, 7, 11] {
            let store = store(64 << 10);
            store.simulation.disk.inject(FaultRule::new(operation, fault).after(skip));
            let mut sorter = Sorter::new(&store.memory.account());
            match sorted(&mut sorter, &entries) {
                // Few files are opened.
                Ok(found) => {
                    assert!(operation == Operation::Open && skip > 0 && found.len() == entries.len())
                }
                // A lost write at the end of a file is a read past that end.
                Err(error) => {
                    assert!(error.kind() == kind || fault == Fault::LostWrite, "{fault:?}: {error}")
                }
            }
            drop(sorter);
            assert!(store.is_clean());
        }
    }
}

#[test]
fn sixty_four_at_once_share_a_small_budget() {
    let store = store(2 << 20);
    let random = SeededRandom::new(6);
    let inputs: Vec<Vec<Entry>> = (0..64).map(|_| entries(&random, 3_000)).collect();
    let mut sorters: Vec<Sorter> = inputs.iter().map(|_| Sorter::new(&store.memory.account())).collect();
    for at in 0..3_000 {
        for (sorter, input) in sorters.iter_mut().zip(&inputs) {
            sorter.push(&input[at].0, &input[at].1, &mut no_check).expect("there is room");
        }
    }
    let least = 64 * (128 << 10);
    assert!(store.memory.figures().peak_bytes <= (2 << 20) + least, "{:?}", store.memory);
    for (sorter, input) in sorters.iter_mut().zip(&inputs) {
        sorter.finish(&mut no_check).expect("there is room");
        let mut found = Vec::new();
        while let Some((key, value)) = sorter.next(&mut no_check).expect("they are there") {
            found.push((key.to_vec(), value.to_vec()));
        }
        let mut expected = input.clone();
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert!(found == expected);
    }
    assert!(store.is_clean());
}
