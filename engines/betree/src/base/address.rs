//! Numbers of the data file: block addresses in grains, extents of units, generations, and the id of a store.
//!
//! ```text
//!  file    |        unit 0 (4,096 bytes)          |  unit 1  | ...  allocation is in units
//!  grains  | 0 | 1 | 2 | ...                | 127 | 128 ...      addresses are in grains of 32 bytes
//! ```

use std::fmt;

use crate::base::Pointer;

/// The unit in which blocks are addressed and packed, in bytes. It is smaller than a device sector on
/// purpose. With a grain of 512 bytes the pages of a store were 4 % longer. A page that begins inside a
/// sector costs one more sector to read, which costs a device nothing.
pub(crate) const GRAIN_BYTES: u64 = 32;

/// The unit in which the data file's space is allocated, in bytes.
pub(crate) const UNIT_BYTES: u64 = 4_096;

/// The longest block, raw or stored, in bytes: room for a value of 17 MB with its header, and to spare.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The number of a data file of the store. Format version 1 has one file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct FileId(u16);

impl FileId {
    /// `data.0000`.
    pub(crate) const FIRST: FileId = FileId(0);

    pub(crate) const fn new(number: u16) -> FileId {
        FileId(number)
    }

    pub(crate) const fn get(self) -> u16 {
        self.0
    }

    /// The file's name in the store's folder.
    pub(crate) fn name(self) -> String {
        format!("data.{:04}", self.0)
    }
}

/// Where a block begins in its file, in grains of 32 bytes; below 2^48.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockAddress(u64);

impl BlockAddress {
    /// The first number that is not an address.
    const LIMIT: u64 = 1 << 48;

    /// The address of this grain, unless it is beyond 2^48.
    pub(crate) const fn checked(grain: u64) -> Option<BlockAddress> {
        if grain < BlockAddress::LIMIT { Some(BlockAddress(grain)) } else { None }
    }

    /// The address of this grain.
    ///
    /// # Panics
    /// At 2^48 grains, 8 PiB.
    pub(crate) const fn new(grain: u64) -> BlockAddress {
        BlockAddress::checked(grain).expect("no file has 2^48 grains")
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// Where the block begins, in bytes.
    pub(crate) const fn byte_offset(self) -> u64 {
        self.0 * GRAIN_BYTES
    }
}

impl fmt::Debug for BlockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grain-{}", self.0)
    }
}

/// A count of checkpoints, and the state that one of them makes durable. The first superblock has generation
/// 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Generation(u64);

impl Generation {
    pub(crate) const fn new(number: u64) -> Generation {
        Generation(number)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    #[must_use]
    pub(crate) fn next(self) -> Generation {
        Generation(self.0.checked_add(1).expect("a store does not live for 2^64 checkpoints"))
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation-{}", self.0)
    }
}

/// The random id of a store. The superblock and every log segment carry it, so that files of two stores are
/// never mixed up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StoreId([u8; 16]);

impl StoreId {
    pub(crate) const fn new(bytes: [u8; 16]) -> StoreId {
        StoreId(bytes)
    }

    pub(crate) const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store-{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A run of units of 4 KiB in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    file: FileId,
    start: u64,
    units: u64,
}

impl Extent {
    /// The extent of `units` units from the unit `start` on.
    ///
    /// # Panics
    /// If it is empty or does not end within the file's addresses.
    pub(crate) fn new(file: FileId, start: u64, units: u64) -> Extent {
        assert!(units > 0, "an extent is never empty");
        let end = start.checked_add(units).and_then(|end| end.checked_mul(UNIT_BYTES / GRAIN_BYTES));
        assert!(
            end.is_some_and(|end| end <= BlockAddress::LIMIT),
            "extent {start}+{units} ends beyond every file"
        );
        Extent { file, start, units }
    }

    pub(crate) const fn file(self) -> FileId {
        self.file
    }

    /// Its first unit.
    pub(crate) const fn start(self) -> u64 {
        self.start
    }

    /// The unit after its last.
    pub(crate) const fn end(self) -> u64 {
        self.start + self.units
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}+{}", self.file.name(), self.start, self.units)
    }
}

/// The units that these blocks cover, as few extents in file order. Blocks of different owners never share a
/// unit, because each [`place`](crate::space::ExtentWriter::place) begins a new one. So the result is what
/// their owner owns.
pub(crate) fn extents_of<'a>(pointers: impl IntoIterator<Item = &'a Pointer>) -> Vec<Extent> {
    let mut extents: Vec<Extent> = pointers.into_iter().map(Pointer::extent).collect();
    extents.sort_unstable();
    extents.dedup_by(|next, kept| {
        let joins = next.file == kept.file && next.start <= kept.end();
        if joins {
            kept.units = kept.end().max(next.end()) - kept.start;
        }
        joins
    });
    extents
}
