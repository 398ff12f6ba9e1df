//! The content of one version of a key: a value, a reference to a large value, a delete, or merges (operands
//! of merge operators).
//!
//! # Terms
//! - *Large value*: a value outside the page, in blocks of its own, its *pieces*, of at most [`PIECE_BYTES`]
//!   each.
//! - *Reference*: the pointers of the pieces, in order. It takes the place of the value in the page. The
//!   entry that has the reference (in a leaf or in a slice) owns the blocks.
//! - *Reach* of a subtree, a slice or a page: the unit after the last unit of any of its large values; 0
//!   without any.
//!
//! # Layout of a reference
//! For each piece its pointer (40 B), in the order of the value; 1 to [`PIECES_MAX`] of them. The value is as
//! long as its pieces together.
//!
//! ```text
//!  page   [ .. key | pointer 1 | pointer 2 | pointer 3 .. ]      a value of 2.5 MiB
//!                     |           |           |
//!  blocks          [ 1 MiB ]   [ 1 MiB ]   [ 0.5 MiB ]
//! ```

use bytes::Bytes;
use pando_storage::{Merges, VALUE_BYTES_MAX};

use crate::base::FormatError;
use crate::base::{BlockKind, Pointer};

const BLOCK: &str = "reference to a large value";

/// The most bytes of a piece before compression.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// The number of pieces of the longest value.
const PIECES_MAX: usize = VALUE_BYTES_MAX.div_ceil(PIECE_BYTES);

/// The content of a version. `B` are bytes, owned or borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<B> {
    Deleted,
    Value(B),
    /// Encoded [`Merges`], checked. Never in a leaf, because there is no older value below it.
    Merge(B),
    Large(LargeReference<B>),
}

impl<B: AsRef<[u8]>> Content<B> {
    /// The bytes that stand in the page: the value, the reference or the merges.
    pub(crate) fn in_page(&self) -> &[u8] {
        match self {
            Content::Deleted => &[],
            Content::Value(value) => value.as_ref(),
            Content::Merge(merges) => merges.as_ref(),
            Content::Large(reference) => reference.0.as_ref(),
        }
    }

    /// Bytes of the value, in the page or not, or of the merges.
    pub(crate) fn value_bytes(&self) -> u64 {
        match self {
            Content::Deleted => 0,
            Content::Value(bytes) | Content::Merge(bytes) => bytes.as_ref().len() as u64,
            Content::Large(reference) => reference.length(),
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self, Content::Deleted)
    }

    pub(crate) fn as_ref(&self) -> Content<&[u8]> {
        match self {
            Content::Deleted => Content::Deleted,
            Content::Value(value) => Content::Value(value.as_ref()),
            Content::Merge(merges) => Content::Merge(merges.as_ref()),
            Content::Large(reference) => Content::Large(reference.as_ref()),
        }
    }
}

impl Content<&[u8]> {
    /// A copy in memory of its own.
    pub(crate) fn to_owned(self) -> Content<Bytes> {
        match self {
            Content::Deleted => Content::Deleted,
            Content::Value(value) => Content::Value(Bytes::copy_from_slice(value)),
            Content::Merge(merges) => Content::Merge(Bytes::copy_from_slice(merges)),
            Content::Large(reference) => Content::Large(reference.to_owned()),
        }
    }
}

/// The merges of a content. They were checked when it was decoded, or come from a commit.
pub(crate) fn merges_of(bytes: &[u8]) -> Merges<'_> {
    Merges::decode(bytes).expect("merges are checked when they are decoded")
}

/// The pointers of a large value's pieces, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LargeReference<B>(B);

impl<B: AsRef<[u8]>> LargeReference<B> {
    /// Checks that these bytes are a reference.
    pub(crate) fn decode(bytes: B) -> Result<LargeReference<B>, FormatError> {
        let (pieces, rest) = bytes.as_ref().as_chunks::<{ Pointer::ENCODED_BYTES }>();
        if pieces.is_empty() || !rest.is_empty() {
            return Err(FormatError::Truncated { block: BLOCK, field: "pointer" });
        }
        let limit = PIECES_MAX as u64;
        if pieces.len() > PIECES_MAX {
            let found = pieces.len() as u64;
            return Err(FormatError::OutOfRange { block: BLOCK, field: "piece count", found, limit });
        }
        let mut length = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let pointer =
                Pointer::decode(piece).map_err(|reason| FormatError::Pointer { block: BLOCK, at, reason })?;
            if pointer.kind() != BlockKind::LargeValue {
                let found = u64::from(pointer.kind().number());
                return Err(FormatError::Unknown { block: BLOCK, field: "block kind", found });
            }
            length += pointer.raw_length() as usize;
            let limit = PIECE_BYTES.min(VALUE_BYTES_MAX - (length - pointer.raw_length() as usize));
            if pointer.raw_length() as usize > limit {
                let (found, limit) = (u64::from(pointer.raw_length()), limit as u64);
                return Err(FormatError::OutOfRange { block: BLOCK, field: "length", found, limit });
            }
        }
        Ok(LargeReference(bytes))
    }

    /// Bytes that were checked when their page was decoded.
    pub(super) fn checked(bytes: B) -> LargeReference<B> {
        LargeReference(bytes)
    }

    /// The pieces, in the order of the value.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Pointer> + Clone + '_ {
        let (pieces, _) = self.0.as_ref().as_chunks::<{ Pointer::ENCODED_BYTES }>();
        pieces.iter().map(|piece| Pointer::decode(piece).expect("a reference was checked when it was made"))
    }

    /// Bytes of the value.
    pub(crate) fn length(&self) -> u64 {
        self.pieces().map(|piece| u64::from(piece.raw_length())).sum()
    }

    /// The unit after the last unit of its pieces.
    pub(crate) fn reach(&self) -> u64 {
        self.pieces().map(|piece| piece.extent().end()).max().unwrap_or(0)
    }

    pub(crate) fn as_ref(&self) -> LargeReference<&[u8]> {
        LargeReference(self.0.as_ref())
    }

    /// A copy in memory of its own.
    pub(crate) fn to_owned(&self) -> LargeReference<Bytes> {
        LargeReference(Bytes::copy_from_slice(self.0.as_ref()))
    }
}

impl LargeReference<Bytes> {
    /// The reference to these pieces.
    pub(crate) fn of_pieces(pieces: &[Pointer]) -> LargeReference<Bytes> {
        let bytes: Vec<u8> = pieces.iter().flat_map(Pointer::encode).collect();
        LargeReference::decode(Bytes::from(bytes)).expect("a value that was written has such pieces")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pando_environment::{Random, SeededRandom};

    use super::*;
    use crate::base::{BlockAddress, Codec, FileId, Generation, PointerFields};

    fn piece(kind: BlockKind, raw_length: usize, unit: u64) -> Pointer {
        let pointer = Pointer::new(PointerFields {
            file: FileId::FIRST,
            kind,
            codec: Codec::Zstd,
            address: BlockAddress::new(unit * 128),
            disk_length: 5_000,
            raw_length: raw_length as u32,
            birth: Generation::new(5),
            checksum: 7,
        });
        pointer.unwrap()
    }

    /// A reference to a value of this length that is stored nowhere.
    pub(crate) fn large(bytes: usize) -> LargeReference<Bytes> {
        LargeReference::of_pieces(&[piece(BlockKind::LargeValue, bytes, 800)])
    }

    fn decode(pieces: &[Pointer]) -> Result<LargeReference<Vec<u8>>, FormatError> {
        LargeReference::decode(pieces.iter().flat_map(Pointer::encode).collect())
    }

    #[test]
    fn a_reference_knows_its_pieces_its_length_and_its_reach() {
        let pieces = [piece(BlockKind::LargeValue, PIECE_BYTES, 100), piece(BlockKind::LargeValue, 9, 20)];
        let reference = LargeReference::of_pieces(&pieces);
        assert_eq!(reference.pieces().collect::<Vec<_>>(), pieces);
        assert_eq!(reference.length(), PIECE_BYTES as u64 + 9);
        assert_eq!(reference.reach(), 102, "two units from unit 100 on");
        assert_eq!(Content::Large(reference.clone()).value_bytes(), reference.length());
        assert_eq!(Content::Large(reference).in_page().len(), 80);
    }

    #[test]
    fn references_that_no_value_can_have_are_refused() {
        assert!(decode(&[]).is_err());
        assert!(decode(&[piece(BlockKind::Page, 9, 16)]).is_err());
        assert!(decode(&[piece(BlockKind::LargeValue, PIECE_BYTES + 1, 16)]).is_err());
        let longest = vec![piece(BlockKind::LargeValue, PIECE_BYTES, 16); PIECES_MAX];
        assert!(decode(&longest).is_ok());
        assert!(decode(&[longest, vec![piece(BlockKind::LargeValue, 1, 16)]].concat()).is_err());
        assert!(LargeReference::decode(&[0; 41][..]).is_err());
    }

    #[test]
    fn changed_bytes_never_panic() {
        let random = SeededRandom::new(5);
        let bytes = LargeReference::of_pieces(&[piece(BlockKind::LargeValue, 70_000, 100); 3]).in_memory();
        for _ in 0..5_000 {
            let mut changed = bytes.clone();
            let at = random.below(changed.len() as u64) as usize;
            changed[at] = random.next_u64() as u8;
            changed.truncate(1 + random.below(changed.len() as u64) as usize);
            if let Ok(reference) = LargeReference::decode(changed) {
                assert!(reference.length() <= VALUE_BYTES_MAX as u64 && reference.reach() > 0);
            }
        }
    }

    impl LargeReference<Bytes> {
        fn in_memory(&self) -> Vec<u8> {
            self.0.to_vec()
        }
    }
}
