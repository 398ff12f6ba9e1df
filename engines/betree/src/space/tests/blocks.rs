//! Writing and reading of blocks, and the extents that they take.

use super::*;
use crate::base::{BLOCK_BYTES_MAX, BlockKind, Extent, Pointer, UNIT_BYTES, extents_of};

const COMPRESSIONS: [Compression; 4] =
    [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(5)];

#[test]
fn blocks_are_read_back_whatever_the_codec_the_length_and_the_alignment() {
    for alignment in [Some(512), Some(4_096), None] {
        let simulation = simulation(1);
        simulation.disk.set_direct_alignment(alignment);
        let store = create(&simulation);
        for (at, length) in [0, 1, 471, 472, 473, 5_000, 16_384, 300_000].into_iter().enumerate() {
            for compression in COMPRESSIONS {
                let raw = content(at as u64, length);
                let pointer = store.write_block(TREE, BlockKind::Page, compression, &raw).unwrap();
                assert_eq!(store.read_block(&pointer).unwrap(), raw);
                assert!(pointer.address().byte_offset().is_multiple_of(UNIT_BYTES));
            }
        }
    }
}

#[test]
fn a_leaf_goes_to_the_device_in_one_write_packed_by_grains() {
    let simulation = simulation(2);
    let store = create(&simulation);
    // The first allocation lets the file grow; the second one only writes.
    store.write_block(TREE, BlockKind::Page, Compression::None, &[1]).unwrap();
    let (writes, calls) = (store.statistics().writes, simulation.disk.calls());
    let pages: Vec<Vec<u8>> = (0..8).map(|at| content(at, 5_000)).collect();
    let mut writer = store.extent_writer(TREE);
    let indexes: Vec<_> =
        pages.iter().map(|raw| writer.append(BlockKind::Page, Compression::Zstd(1), raw).unwrap()).collect();
    let packed = writer.stored_bytes();
    let placed = writer.place_with_directory(4_000).unwrap();
    let raw: Vec<u8> = indexes.iter().flat_map(|index| placed.pointer(*index).encode()).collect();
    let (directory, pointers) =
        placed.finish_with_directory(BlockKind::LeafDirectory, Compression::None, &raw).unwrap();
    assert_eq!((store.statistics().writes - writes, simulation.disk.calls() - calls), (1, 1));
    let grains: u64 = pointers.iter().map(Pointer::grain_bytes).sum();
    assert_eq!(packed, grains);
    let extents = extents_of(pointers.iter().chain([&directory]));
    assert_eq!(extents.len(), 1);
    assert_eq!(extents[0].units(), (grains + directory.grain_bytes()).div_ceil(UNIT_BYTES));

    let reads = store.statistics().reads;
    let read = neighbours(&store, &pointers).unwrap();
    assert_eq!(read, pages);
    assert_eq!(store.statistics().reads - reads, 2, "one call each way of reading them");
    assert_eq!(store.read_block(&directory).unwrap(), raw);
}

#[test]
fn neighbours_in_any_order_come_in_the_order_that_was_asked() {
    let simulation = simulation(3);
    let store = create(&simulation);
    let mut pointers: Vec<Pointer> = (0..6)
        .map(|at| store.write_block(TREE, BlockKind::Page, Compression::None, &content(at, 20_000)).unwrap())
        .collect();
    pointers.swap(1, 4);
    pointers.push(pointers[0]);
    let expected: Vec<_> = pointers.iter().map(|pointer| store.read_block(pointer).unwrap()).collect();
    assert_eq!(neighbours(&store, &pointers).unwrap(), expected);
    assert!(neighbours(&store, &[]).unwrap().is_empty());
}

#[test]
fn of_blocks_that_are_read_at_once_one_that_is_damaged_is_told() {
    let simulation = simulation(8);
    let store = create(&simulation);
    let pointers: Vec<Pointer> = (0..5)
        .map(|at| store.write_block(TREE, BlockKind::Page, Compression::None, &content(at, 20_000)).unwrap())
        .collect();
    let damaged = pointers[2].address().byte_offset() as usize + 10_000;
    simulation.disk.corrupt(&std::path::Path::new(FOLDER).join("data.0000"), |bytes| bytes[damaged] ^= 1);
    let apart = [pointers[4], pointers[2], pointers[0]];
    let mut places = Vec::new();
    let error = store.read_scattered(&apart, |place, _, _| places.push(place)).unwrap_err();
    assert!(matches!(error, SpaceError::Corrupt { .. }), "{error}");
    assert_eq!(places, [0], "what came before it is right, and the rest is in vain");
}

#[test]
fn blocks_that_begin_units_can_be_freed_one_by_one() {
    let simulation = simulation(4);
    let store = create(&simulation);
    let mut writer = store.extent_writer(TREE);
    for at in 0..5 {
        writer.next_unit();
        writer.append(BlockKind::InnerNode, Compression::None, &content(at, 700)).unwrap();
    }
    let pointers = writer.place().unwrap().finish().unwrap();
    let extents: Vec<Extent> = pointers.iter().map(Pointer::extent).collect();
    assert_eq!(extents_of(&pointers).len(), 1);
    for (at, pointer) in pointers.iter().enumerate() {
        assert_eq!(store.read_block(pointer).unwrap(), content(at as u64, 700));
    }
    let free = store.statistics().free_bytes;
    store.free(extents[2], store.generation());
    assert_eq!(store.statistics().free_bytes - free, UNIT_BYTES);
}

#[test]
fn a_block_that_is_placed_and_not_written_gives_its_room_back() {
    let simulation = simulation(5);
    let store = create(&simulation);
    store.write_block(TREE, BlockKind::Page, Compression::None, &[1]).unwrap();
    let free = store.statistics().free_bytes;
    let mut writer = store.extent_writer(TREE);
    writer.append(BlockKind::Page, Compression::None, &content(1, 9_000)).unwrap();
    let placed = writer.place_with_directory(30_000).unwrap();
    assert!(store.statistics().free_bytes < free);
    drop(placed);
    assert_eq!(store.statistics().free_bytes, free);
    assert!(store.extent_writer(TREE).place().unwrap().finish().unwrap().is_empty());
}

#[test]
fn a_block_beyond_the_limit_is_refused() {
    let simulation = simulation(6);
    let store = create(&simulation);
    let error =
        store.write_block(TREE, BlockKind::LargeValue, Compression::None, &vec![0; BLOCK_BYTES_MAX + 1]);
    assert!(matches!(error, Err(SpaceError::TooLong { .. })));
}

#[test]
fn a_fragmented_full_disk_takes_a_leaf_in_fragments() {
    let simulation = simulation(7);
    let store = create(&simulation);
    let block = |seed| store.write_block(TREE, BlockKind::Page, Compression::None, &content(seed, 7_000));
    simulation.disk.set_capacity(Some(1 << 20));
    let mut pointers = Vec::new();
    let error = loop {
        match block(pointers.len() as u64) {
            Ok(pointer) => pointers.push(pointer),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SpaceError::NoSpace { .. }), "{error}");
    // Every second one of ten is freed: five holes of two units, and the reserve. The reserve's place is
    // filled first.
    let reserve = store.begin_checkpoint();
    let mut kept = Vec::new();
    while let Ok(pointer) = reserve.write_block(TREE, BlockKind::Page, Compression::None, &content(9, 7_000))
    {
        kept.push(pointer);
    }
    for pointer in pointers.iter().step_by(2) {
        store.abandon(pointer.extent());
    }
    let mut writer = reserve.extent_writer(TREE);
    let raws: Vec<Vec<u8>> = (0..6).map(|at| content(100 + at, 3_000)).collect();
    for raw in &raws {
        writer.append(BlockKind::Page, Compression::None, raw).unwrap();
    }
    let leaf = writer.place().unwrap().finish().unwrap();
    assert!(extents_of(&leaf).len() > 1, "{leaf:?}");
    assert_eq!(neighbours(&store, &leaf).unwrap(), raws);
    for (at, pointer) in pointers.iter().enumerate().filter(|(at, _)| at % 2 == 1) {
        assert_eq!(store.read_block(pointer).unwrap(), content(at as u64, 7_000));
    }
}
