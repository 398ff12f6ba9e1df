//! Schedules of threads that load the index of one slice at the same time.

use pando_environment::sync::{explore, thread};
use pando_storage::CommitTimestamp;

use super::*;
use crate::base::{BlockAddress, BlockKind, Codec, FileId, Generation, PointerFields};
use crate::format::directory::{Directory, PageEntry};
use crate::format::filter::{Filter, KeyHash};

fn pointer(kind: BlockKind) -> Pointer {
    let fields = PointerFields {
        file: FileId::FIRST,
        kind,
        codec: Codec::None,
        address: BlockAddress::new(256),
        disk_length: 1000,
        raw_length: 900,
        birth: Generation::new(5),
        checksum: 7,
    };
    Pointer::new(fields).expect("the fields are good ones")
}

fn index() -> SliceIndex {
    let page = PageEntry {
        pointer: pointer(BlockKind::RunPage),
        entries: 3,
        newest: CommitTimestamp::new(9),
        large_bytes: 0,
    };
    let pages = Directory::new([b"".as_slice()].into_iter(), vec![page], 99);
    SliceIndex { pages, filter: Filter::new(&[KeyHash::of(b"key")], 10) }
}

#[test]
fn an_index_is_counted_once_while_it_is_there_and_not_at_all_afterwards() {
    explore(4_000, || {
        let memory = MemoryAccount::default();
        let stored = StoredSlice {
            index: pointer(BlockKind::RunIndex),
            entries: 3,
            content_bytes: 99,
            in_page_bytes: 99,
            reach: 0,
            oldest: CommitTimestamp::new(1),
            newest: CommitTimestamp::new(9),
        };
        let slices = [Arc::new(Slice::on_disk(stored.clone())), Arc::new(Slice::on_disk(stored))];
        let loaders: Vec<_> = (0..3)
            .map(|at| {
                let (slice, memory) = (Arc::clone(&slices[at % 2]), memory.clone());
                thread::spawn(move || {
                    slice.fill(index(), &memory);
                    assert!(slice.index().is_some() && memory.bytes() > 0);
                })
            })
            .collect();
        loaders.into_iter().for_each(|loader| loader.join().expect("it does not panic"));
        assert_eq!(memory.bytes(), 2 * (size_of::<Slice>() + index().heap_bytes()));
        drop(slices);
        assert_eq!(memory.bytes(), 0);
    });
}
