//! Sparse bytes: only written pages take memory. Stores reserve files in steps of 64 MB, and tests open many
//! stores.
//!
//! Invariant: bytes beyond the length are zero, so that growing shows zeros.

use std::collections::HashMap;

/// Memory is taken in pieces of this many bytes.
const PIECE_BYTES: usize = 4_096;

#[derive(Clone, Default)]
pub(super) struct SparseBytes {
    pieces: HashMap<usize, Box<[u8; PIECE_BYTES]>>,
    length: usize,
}

impl SparseBytes {
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Fills the buffer; bytes that were never written are zero.
    pub(super) fn read(&self, buffer: &mut [u8], offset: usize) {
        for_pieces(offset, buffer.len(), |piece, within, part| match self.pieces.get(&piece) {
            Some(bytes) => buffer[part].copy_from_slice(&bytes[within]),
            None => buffer[part].fill(0),
        });
    }

    /// Overwrites bytes within the length.
    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        assert!(offset + bytes.len() <= self.length, "a write beyond the length");
        for_pieces(offset, bytes.len(), |piece, within, part| {
            let bytes = &bytes[part];
            // Zeros over nothing stay nothing.
            if self.pieces.contains_key(&piece) || bytes.iter().any(|byte| *byte != 0) {
                let piece = self.pieces.entry(piece).or_insert_with(|| Box::new([0; PIECE_BYTES]));
                piece[within].copy_from_slice(bytes);
            }
        });
    }

    /// Cuts, or extends by zeros.
    pub(super) fn set_length(&mut self, length: usize) {
        if length < self.length {
            self.pieces.retain(|piece, _| piece * PIECE_BYTES < length);
            if let Some(last) = self.pieces.get_mut(&(length / PIECE_BYTES)) {
                last[length % PIECE_BYTES..].fill(0);
            }
        }
        self.length = length;
    }
}

/// Calls with each piece that a range touches: its number, the range within it, and the range of the caller's
/// buffer.
fn for_pieces(
    offset: usize,
    length: usize,
    mut each: impl FnMut(usize, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let mut done = 0;
    while done < length {
        let at = offset + done;
        let within = at % PIECE_BYTES;
        let count = (PIECE_BYTES - within).min(length - done);
        each(at / PIECE_BYTES, within..within + count, done..done + count);
        done += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededRandom;

    #[test]
    fn random_writes_and_lengths_agree_with_plain_bytes() {
        let random = SeededRandom::new(4);
        let (mut sparse, mut plain) = (SparseBytes::default(), Vec::new());
        for _ in 0..2_000 {
            if random.below(5) == 0 {
                let length = random.below(30_000) as usize;
                sparse.set_length(length);
                plain.resize(length, 0);
            } else if !plain.is_empty() {
                let start = random.below(plain.len() as u64) as usize;
                let count = (random.below(9_000) as usize).min(plain.len() - start);
                let bytes = vec![random.below(3) as u8; count];
                sparse.write(&bytes, start);
                plain[start..start + count].copy_from_slice(&bytes);
            }
            let mut read = vec![9; plain.len()];
            sparse.read(&mut read, 0);
            assert_eq!(read, plain);
        }
    }
}
