//! Detection of disk faults: each is named, and no wrong bytes are returned.

use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Access, OpenMode, Operation};
use pando_storage::{ErrorKind, StorageError};

use super::toy::Toy;
use super::*;
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, Pointer, PointerFields, UNIT_BYTES};

fn problem(error: SpaceError) -> BlockProblem {
    match error {
        SpaceError::Corrupt { problem, .. } => problem,
        other => panic!("corruption is expected, not {other}"),
    }
}

/// Writes an old block, frees its place, and writes a new one there with a fault on the way. The old block is
/// of the same length, so that only the checksum in the pointer tells the two apart.
fn rewritten_under(fault: Fault) -> (BlockStore, Pointer, Simulation) {
    let simulation = simulation(1);
    let store = create(&simulation);
    let old = store.write_block(TREE, BlockKind::Page, Compression::None, &content(1, 3_000)).unwrap();
    store.free(old.extent(), old.birth());
    simulation.disk.inject(FaultRule::new(Operation::Write, fault).on("data.0000"));
    let new = store.write_block(TREE, BlockKind::Page, Compression::None, &content(2, 3_000)).unwrap();
    assert_eq!(new.address(), old.address());
    (store, new, simulation)
}

#[test]
fn a_lost_write_is_detected_and_the_old_block_named() {
    let (store, pointer, _simulation) = rewritten_under(Fault::LostWrite);
    let error = store.read_block(&pointer).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("data.0000") && text.contains("a Page of tree-7 stands there"), "{text}");
    assert!(matches!(problem(error), BlockProblem::Checksum { .. }));
}

#[test]
fn a_misdirected_write_is_detected_where_it_should_be_and_where_it_went() {
    let simulation = simulation(2);
    let store = create(&simulation);
    let victim = store.write_block(TREE, BlockKind::Page, Compression::None, &content(1, 3_000)).unwrap();
    simulation
        .disk
        .inject(FaultRule::new(Operation::Write, Fault::MisdirectedWrite { sectors: -8 }).on("data.0000"));
    let strayed = store.write_block(TREE, BlockKind::Page, Compression::None, &content(2, 3_000)).unwrap();
    assert_eq!(strayed.address().byte_offset(), victim.address().byte_offset() + 4_096);
    assert!(store.read_block(&strayed).unwrap_err().to_string().contains("no block stands there"));
    let named = format!("for grain-{}", strayed.address().get());
    assert!(store.read_block(&victim).unwrap_err().to_string().contains(&named));
}

#[test]
fn every_flipped_bit_of_a_block_is_detected() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1)] {
        let simulation = simulation(3);
        let store = create(&simulation);
        let pointer = store.write_block(TREE, BlockKind::Page, compression, &content(1, 700)).unwrap();
        let start = pointer.address().byte_offset() as usize;
        for bit in 0..pointer.disk_length() as usize * 8 {
            simulation.disk.flip_bit(&data_path(), start * 8 + bit);
            assert!(matches!(
                problem(store.read_block(&pointer).unwrap_err()),
                BlockProblem::Checksum { .. }
            ));
            assert!(neighbours(&store, &[pointer]).is_err());
            simulation.disk.flip_bit(&data_path(), start * 8 + bit);
        }
        assert_eq!(store.read_block(&pointer).unwrap(), content(1, 700));
    }
}

#[test]
fn a_stale_read_and_a_short_write_are_detected_and_an_error_of_the_device_is_not_corruption() {
    let (store, pointer, simulation) = rewritten_under(Fault::BitFlip { bit: 500 });
    assert!(matches!(problem(store.read_block(&pointer).unwrap_err()), BlockProblem::Checksum { .. }));
    let good = store.write_block(TREE, BlockKind::Page, Compression::None, &content(5, 3_000)).unwrap();
    simulation.disk.inject(FaultRule::new(Operation::Read, Fault::StaleRead));
    assert!(matches!(problem(store.read_block(&good).unwrap_err()), BlockProblem::Checksum { .. }));
    simulation.disk.inject(FaultRule::new(Operation::Read, Fault::InputOutputError));
    let error = StorageError::from(store.read_block(&good).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(store.read_block(&good).unwrap(), content(5, 3_000));
    simulation.disk.inject(FaultRule::new(Operation::Write, Fault::ShortWrite));
    assert!(store.write_block(TREE, BlockKind::Page, Compression::None, &content(6, 3_000)).is_err());
    assert_eq!(store.read_block(&good).unwrap(), content(5, 3_000));
}

#[test]
fn a_pointer_that_contradicts_its_block_or_leads_outside_is_refused() {
    let simulation = simulation(4);
    let store = create(&simulation);
    let pointer = store.write_block(TREE, BlockKind::Page, Compression::None, &content(1, 3_000)).unwrap();
    let with = |change: &dyn Fn(&mut PointerFields)| {
        let mut fields = PointerFields {
            file: pointer.file(),
            kind: pointer.kind(),
            codec: pointer.codec(),
            address: pointer.address(),
            disk_length: pointer.disk_length(),
            raw_length: pointer.raw_length(),
            birth: pointer.birth(),
            checksum: pointer.checksum(),
        };
        change(&mut fields);
        problem(store.read_block(&Pointer::new(fields).unwrap()).unwrap_err())
    };
    assert_eq!(with(&|fields| fields.kind = BlockKind::Filter), BlockProblem::Header { field: "kind" });
    assert_eq!(with(&|fields| fields.codec = Codec::Lz4), BlockProblem::Header { field: "codec" });
    assert_eq!(with(&|fields| fields.birth = Generation::new(99)), BlockProblem::Header { field: "birth" });
    assert_eq!(with(&|fields| fields.raw_length += 1), BlockProblem::Header { field: "raw length" });
    let outside = with(&|fields| fields.address = BlockAddress::new(1 << 40));
    assert!(matches!(outside, BlockProblem::Range { .. }));
    assert!(matches!(with(&|fields| fields.file = FileId::new(1)), BlockProblem::Range { .. }));
}

#[test]
fn one_damaged_copy_of_a_superblock_is_of_no_consequence() {
    for (slot, copy) in [(0, 0), (0, 65_536), (4_096, 0), (4_096, 65_536)] {
        let simulation = simulation(5);
        let store = create(&simulation);
        let generation = checkpoint(&store, SpaceChange::new()).unwrap().generation;
        drop(store);
        simulation.disk.corrupt(&data_path(), |bytes| bytes[slot + copy + 50] ^= 1);
        assert_eq!(open(&simulation).1.generation(), generation);
    }
}

#[test]
fn a_lost_slot_leads_to_the_generation_before_and_two_lost_slots_to_a_clear_error() {
    let simulation = simulation(6);
    let store = create(&simulation);
    checkpoint(&store, SpaceChange::new()).unwrap();
    drop(store);
    let destroy = |offset: usize| {
        simulation.disk.corrupt(&data_path(), |bytes| {
            bytes[offset + 100] ^= 1;
            bytes[offset + 65_536 + 100] ^= 1;
        });
    };
    destroy(4_096);
    let (store, superblock) = open(&simulation);
    assert_eq!(superblock.generation(), Generation::new(1));
    drop(store);
    destroy(0);
    let error = BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).err().unwrap();
    assert!(matches!(error, SpaceError::Superblock { .. }), "{error}");
    assert_eq!(StorageError::from(error).kind(), ErrorKind::Corrupt);
}

#[test]
fn folders_without_a_store_with_another_file_or_another_version_are_refused_with_the_reason() {
    let simulation = simulation(7);
    let refused = |simulation: &Simulation| {
        BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).err().unwrap()
    };
    assert!(matches!(refused(&simulation), SpaceError::NoStore { .. }));
    drop(create(&simulation));
    let again = BlockStore::create(&simulation.environment, Path::new(FOLDER), small_options());
    assert!(matches!(again.err().unwrap(), SpaceError::StoreExists { .. }));
    let reseal = |change: &dyn Fn(&mut [u8])| {
        simulation.disk.corrupt(&data_path(), |bytes| {
            for offset in [0, 65_536] {
                let copy = &mut bytes[offset..offset + 4_096];
                change(copy);
                let checksum = xxhash_rust::xxh3::xxh3_128(&copy[..4_080]).to_le_bytes();
                copy[4_080..].copy_from_slice(&checksum);
            }
        });
    };
    reseal(&|copy| copy[8] = 4);
    let error = refused(&simulation);
    assert!(matches!(error, SpaceError::Version { found: 4, supported: 1, .. }), "{error}");
    reseal(&|copy| {
        copy[8] = 1;
        copy[32] = 8;
    });
    assert!(matches!(refused(&simulation), SpaceError::Features { bits: 8, .. }));
    simulation.disk.corrupt(&data_path(), |bytes| bytes.fill(b'#'));
    assert!(matches!(refused(&simulation), SpaceError::NotOurs { .. }));
}

#[test]
fn a_store_is_opened_once_at_a_time() {
    let simulation = simulation(8);
    let store = create(&simulation);
    let error = BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).err().unwrap();
    assert!(error.to_string().contains("in use"), "{error}");
    drop(store);
    drop(open(&simulation));
}

#[test]
fn a_data_file_that_was_cut_short_is_refused_where_blocks_are_missing_and_named() {
    let simulation = simulation(8);
    let store = create(&simulation);
    let blocks: Vec<Pointer> = (0..40)
        .map(|n| store.write_block(TREE, BlockKind::Page, Compression::None, &content(n, 3_000)).unwrap())
        .collect();
    let end = blocks.iter().map(|block| block.address().byte_offset()).max().unwrap();
    let file =
        simulation.environment.files().open(&data_path(), OpenMode::Existing, Access::Buffered).unwrap();
    file.set_length(end / 2).unwrap();
    for pointer in &blocks {
        let ends = pointer.address().byte_offset() + u64::from(pointer.disk_length());
        match store.read_block(pointer) {
            Ok(_) => assert!(ends <= end / 2),
            Err(error) => {
                assert!(ends > end / 2, "{error}");
                assert!(error.to_string().contains("data.0000"), "{error}");
            }
        }
    }
    assert!(blocks.iter().any(|pointer| store.read_block(pointer).is_err()));
    // Without its head it is no store.
    file.set_length(100).unwrap();
    drop(store);
    let error = BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).err().unwrap();
    assert_eq!(StorageError::from(error).kind(), ErrorKind::Corrupt);
}

#[test]
fn a_store_whose_file_was_cut_off_is_told_so_with_both_lengths() {
    let simulation = simulation(9);
    let (mut toy, random) = (Toy::create(&simulation).unwrap(), SeededRandom::new(9));
    (0..60).for_each(|_| toy.step(&random).unwrap());
    toy.checkpoint().unwrap();
    drop(toy);
    let file =
        simulation.environment.files().open(&data_path(), OpenMode::Existing, Access::Buffered).unwrap();
    let (last, map) = {
        let store = open(&simulation).0;
        let durable = store.durable.lock();
        (durable.used().iter().next_back().unwrap().end, durable.map_extents()[0])
    };
    // A damaged block of the map is none that was cut off, also where free units at the end are not there.
    file.set_length(last * UNIT_BYTES).unwrap();
    let place = (map.start() * UNIT_BYTES) as usize;
    simulation.disk.corrupt(&data_path(), |bytes| bytes[place + 20] ^= 1);
    let error = BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).err().unwrap();
    assert!(matches!(problem(error), BlockProblem::Checksum { .. }));
    simulation.disk.corrupt(&data_path(), |bytes| bytes[place + 20] ^= 1);
    drop(open(&simulation));
    // Only blocks that the map names are cut off, or all of it too.
    for length in [(last - 1) * UNIT_BYTES, (HEAD_UNITS + 1) * UNIT_BYTES] {
        file.set_length(length).unwrap();
        let error =
            BlockStore::open(&simulation.environment, Path::new(FOLDER), small_options()).err().unwrap();
        let said = error.to_string();
        assert!(said.contains(&format!("has {length} bytes")) && said.contains("it was cut off"), "{said}");
        assert_eq!(StorageError::from(error).kind(), ErrorKind::Corrupt);
    }
}
