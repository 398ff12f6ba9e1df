//! A mutator: it makes new inputs of known ones, from a seed. It does not look at coverage, as a fuzzer does.
//!
//! It is a hundred lines of our own. Property-testing libraries make inputs without a corpus, or need a
//! fuzzer's instrumentation to use one.

use pando_environment::{Random, SeededRandom};

/// Inputs do not grow beyond this many bytes.
const BYTES_MAX: usize = 4_096;

/// Numbers at which lengths and types end.
const NUMBERS: [u64; 12] =
    [0, 1, 4, 5, 0x7F, 0x80, 0xFF, 0xFFFF, i32::MAX as u64, u32::MAX as u64, i64::MAX as u64, u64::MAX];

/// Makes inputs.
pub struct Mutator<'c> {
    random: SeededRandom,
    corpus: &'c [Vec<u8>],
}

impl<'c> Mutator<'c> {
    /// Mutations of these inputs; equal seeds make equal ones.
    ///
    /// # Panics
    /// Without an input.
    pub fn new(corpus: &'c [Vec<u8>], seed: u64) -> Mutator<'c> {
        assert!(!corpus.is_empty(), "there is nothing to mutate");
        Mutator { random: SeededRandom::new(seed), corpus }
    }

    /// The next one: an input after one to four changes.
    pub fn next_input(&self) -> Vec<u8> {
        let mut bytes = self.any().clone();
        for _ in 0..=self.random.below(4) {
            self.change(&mut bytes);
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }

    fn any(&self) -> &'c Vec<u8> {
        &self.corpus[self.below(self.corpus.len())]
    }

    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// A range of so long an input, short as a rule.
    fn range(&self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let longest = (length - start).min(if self.below(4) == 0 { BYTES_MAX } else { 16 });
        start..start + self.below(longest + 1)
    }

    fn change(&self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes.len());
        match self.below(8) {
            0 | 1 if !bytes.is_empty() => bytes[range.start.saturating_sub(1)] ^= 1 << self.below(8),
            2 if !bytes.is_empty() => bytes[range.start.saturating_sub(1)] = self.random.next_u64() as u8,
            3 => {
                let number = NUMBERS[self.below(NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][self.below(4)].min(bytes.len() - range.start);
                bytes[range.start..range.start + width].copy_from_slice(&number[..width]);
            }
            4 => drop(bytes.drain(range)),
            5 => {
                let piece = bytes[range.clone()].to_vec();
                bytes.splice(range.end..range.end, piece);
            }
            6 => {
                let other = self.any();
                let piece = other[self.range(other.len())].to_vec();
                bytes.splice(range, piece);
            }
            _ => {
                let fresh: Vec<u8> = (0..=self.below(8)).map(|_| self.random.next_u64() as u8).collect();
                bytes.splice(range.start..range.start, fresh);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_make_equal_inputs_and_nearly_all_differ_from_the_known_ones() {
        let corpus = [b"hello, world".to_vec(), Vec::new(), vec![7; 5_000]];
        let (first, second) = (Mutator::new(&corpus, 1), Mutator::new(&corpus, 1));
        let mut new = 0;
        for _ in 0..1_000 {
            let input = first.next_input();
            assert_eq!(input, second.next_input());
            assert!(input.len() <= BYTES_MAX);
            new += u32::from(!corpus.contains(&input));
        }
        assert!(new > 900, "{new}");
    }
}
