//! Blocks of an encrypted store that were moved, swapped or put back, with headers and checksums to match.

use std::sync::Arc;

use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};
use pando_environment::AlignedBuffer;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::base::{BLOCK_HEADER_BYTES, FileId, PointerFields};

fn fields_of(pointer: &Pointer, bytes: &[u8]) -> PointerFields {
    PointerFields {
        file: FileId::FIRST,
        kind: pointer.kind(),
        codec: pointer.codec(),
        address: pointer.address(),
        disk_length: pointer.disk_length(),
        raw_length: pointer.raw_length(),
        birth: pointer.birth(),
        checksum: xxh3_64(bytes),
    }
}

fn write_at(store: &BlockStore, bytes: &[u8], offset: u64) {
    let mut aligned = AlignedBuffer::zeroed(bytes.len());
    aligned.copy_from_slice(bytes);
    store.write(&aligned, offset).unwrap();
}

#[test]
fn a_block_opens_in_its_place_alone() {
    let simulation = Environment::simulated(77);
    let key = SecretKey::from_bytes(&[3; 32]).unwrap();
    let encryption = Encryption { cipher: Cipher::ChaCha20Poly1305, source: Arc::new(HeldKey::new(key)) };
    let options = SpaceOptions { encryption: Some(encryption), ..small_options() };
    let store = BlockStore::create(&simulation.environment, Path::new(FOLDER), options).unwrap();
    let write = |seed| {
        let writer = store.extent_writer(TREE);
        super::super::block_store::write_one(writer, BlockKind::Page, Compression::None, &content(seed, 700))
            .unwrap()
    };
    let (one, other) = (write(1), write(2));
    assert_eq!(store.read_block(&one).unwrap(), content(1, 700));
    let read = |pointer: &Pointer| {
        let mut bytes = AlignedBuffer::zeroed(4_096);
        store.read(&mut bytes, pointer.address().byte_offset()).unwrap();
        bytes.to_vec()
    };
    let (bytes, length) = (read(&one), one.disk_length() as usize);
    assert!(!bytes.windows(16).any(|part| content(1, 700).windows(16).any(|plain| plain == part)));
    // The block of one place in the other, with the header that belongs there.
    let mut moved = bytes.clone();
    moved[..BLOCK_HEADER_BYTES].copy_from_slice(&read(&other)[..BLOCK_HEADER_BYTES]);
    write_at(&store, &moved, other.address().byte_offset());
    let pointer = Pointer::new(fields_of(&other, &moved[..length])).unwrap();
    let refused = |pointer: &Pointer| match store.read_block(pointer) {
        Err(SpaceError::Corrupt { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&pointer), BlockProblem::Seal);
    // Every changed byte, with a pointer whose checksum fits it.
    for at in 0..length {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        write_at(&store, &changed, one.address().byte_offset());
        let pointer = Pointer::new(fields_of(&one, &changed[..length])).unwrap();
        let problem = refused(&pointer);
        assert!(
            matches!(problem, BlockProblem::Seal | BlockProblem::Header { .. }),
            "byte {at}: {problem:?}"
        );
    }
    write_at(&store, &bytes, one.address().byte_offset());
    assert_eq!(store.read_block(&one).unwrap(), content(1, 700));
}
