//! The entries of a sorter that are in memory.
//!
//! Bytes lie in chunks, which never move. A slot of 24 bytes stands for an entry, with the first eight bytes
//! of its key: most comparisons read no other memory. The slots of a piece are sorted when it is full.

use crate::query_memory::{Reservation, STEP_BYTES};

/// Entries of a piece: a sort of them takes some 5 ms, with long equal prefixes some 20 ms.
const PIECE_SLOTS: usize = 32 << 10;
/// Slots of a first piece.
const FIRST_SLOTS: usize = 64;
/// Bytes of a chunk at most, unless an entry is longer.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Bytes of a chunk at least.
const CHUNK_BYTES_MIN: usize = 512;

/// The place of an entry.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// The first eight bytes of the key, as a number that compares as they do.
    pub prefix: u64,
    chunk: u32,
    start: u32,
    key_bytes: u32,
    value_bytes: u32,
}

/// See the module's head.
#[derive(Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// All but the last are sorted.
    pieces: Vec<Vec<Slot>>,
    is_last_sorted: bool,
    /// Capacity of chunks and pieces.
    bytes: usize,
}

/// The first eight bytes of a key.
pub(super) fn prefix_of(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(padded)
        }
    }
}

impl Arena {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_piece_full(&self) -> bool {
        !self.is_last_sorted && self.pieces.last().is_some_and(|piece| piece.len() == PIECE_SLOTS)
    }

    /// Sorts the last piece.
    pub fn end_piece(&mut self) {
        if self.is_last_sorted {
            return;
        }
        self.is_last_sorted = true;
        let chunks = &self.chunks;
        let Some(piece) = self.pieces.last_mut() else { return };
        // The place decides between equal keys: it is the order of arrival.
        piece.sort_unstable_by(|one, other| {
            one.prefix
                .cmp(&other.prefix)
                .then_with(|| key_in(chunks, one).cmp(key_in(chunks, other)))
                .then_with(|| (one.chunk, one.start).cmp(&(other.chunk, other.start)))
                .then_with(|| one.key_bytes.cmp(&other.key_bytes))
        });
    }

    /// Sees to room for an entry of so many bytes. False: the reservation cannot grow.
    pub fn make_room(&mut self, bytes: usize, reservation: &mut Reservation) -> bool {
        if !self.has_slot() {
            let (slots, grown) = self.slots_wanted();
            if !reservation.grow_to(self.bytes + grown * size_of::<Slot>()) {
                return false;
            }
            self.add_slots(slots, grown);
        }
        if self.has_bytes(bytes) {
            return true;
        }
        let mut chunk = bytes.max(STEP_BYTES.max(self.bytes / 8).min(CHUNK_BYTES_MAX));
        while !reservation.grow_to(self.bytes + chunk) {
            if chunk <= bytes.max(CHUNK_BYTES_MIN) {
                return false;
            }
            chunk = (chunk / 2).max(bytes);
        }
        self.add_chunk(chunk);
        true
    }

    /// The same for an entry that has to be held in any case.
    pub fn make_room_anyway(&mut self, bytes: usize, reservation: &mut Reservation) {
        if self.make_room(bytes, reservation) {
            return;
        }
        if !self.has_slot() {
            let (slots, grown) = self.slots_wanted();
            self.add_slots(slots, grown);
        }
        if !self.has_bytes(bytes) {
            self.add_chunk(bytes.max(CHUNK_BYTES_MIN));
        }
        reservation.hold(self.bytes.max(reservation.bytes()));
    }

    fn has_slot(&self) -> bool {
        !self.is_last_sorted && self.pieces.last().is_some_and(|piece| piece.len() < piece.capacity())
    }

    fn has_bytes(&self, bytes: usize) -> bool {
        self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes)
    }

    /// The capacity that the last piece, or a new one, should have, and by how much that is more.
    fn slots_wanted(&self) -> (usize, usize) {
        match self.pieces.last().filter(|_| !self.is_last_sorted) {
            Some(piece) => {
                let wanted = (2 * piece.capacity()).min(PIECE_SLOTS).max(piece.len() + 1);
                (wanted, wanted - piece.capacity())
            }
            // A later piece begins larger, because the one before it was filled.
            None if self.pieces.is_empty() => (FIRST_SLOTS, FIRST_SLOTS),
            None => (PIECE_SLOTS / 8, PIECE_SLOTS / 8),
        }
    }

    fn add_slots(&mut self, wanted: usize, grown: usize) {
        if self.is_last_sorted || self.pieces.is_empty() {
            self.pieces.push(Vec::with_capacity(wanted));
            self.is_last_sorted = false;
        } else if let Some(piece) = self.pieces.last_mut() {
            piece.reserve_exact(wanted - piece.len());
        }
        self.bytes += grown * size_of::<Slot>();
    }

    fn add_chunk(&mut self, bytes: usize) {
        self.chunks.push(Vec::with_capacity(bytes));
        self.bytes += bytes;
    }

    /// Adds an entry, for which there is room.
    pub fn push(&mut self, key: &[u8], value: &[&[u8]]) {
        let length = |bytes: usize| u32::try_from(bytes).expect("entries are below 4 GiB");
        let at = length(self.chunks.len()) - 1;
        let (Some(chunk), Some(piece)) = (self.chunks.last_mut(), self.pieces.last_mut()) else {
            unreachable!("room was made");
        };
        let start = length(chunk.len());
        let slot = Slot {
            prefix: prefix_of(key),
            chunk: at,
            start,
            key_bytes: length(key.len()),
            value_bytes: length(value.iter().map(|part| part.len()).sum()),
        };
        chunk.extend_from_slice(key);
        value.iter().for_each(|part| chunk.extend_from_slice(part));
        piece.push(slot);
    }

    /// Takes in the entries of another arena, which come behind all that there are.
    pub fn absorb(&mut self, mut later: Arena) {
        self.end_piece();
        later.end_piece();
        let before = u32::try_from(self.chunks.len()).expect("chunks are below 4 billion");
        later.pieces.iter_mut().flatten().for_each(|slot| slot.chunk += before);
        self.chunks.append(&mut later.chunks);
        self.pieces.append(&mut later.pieces);
        self.bytes += later.bytes;
    }

    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// An entry of a piece, by its rank.
    pub fn slot(&self, piece: usize, rank: usize) -> Option<&Slot> {
        self.pieces[piece].get(rank)
    }

    pub fn key(&self, slot: &Slot) -> &[u8] {
        key_in(&self.chunks, slot)
    }

    pub fn value(&self, slot: &Slot) -> &[u8] {
        let start = slot.start as usize + slot.key_bytes as usize;
        &self.chunks[slot.chunk as usize][start..start + slot.value_bytes as usize]
    }
}

fn key_in<'c>(chunks: &'c [Vec<u8>], slot: &Slot) -> &'c [u8] {
    &chunks[slot.chunk as usize][slot.start as usize..][..slot.key_bytes as usize]
}
