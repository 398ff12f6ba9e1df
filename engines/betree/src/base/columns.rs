//! Columnar storage of the rows inside a block: bytes at the same offset of every row are stored side by
//! side.
//!
//! Compression then sees similar bytes next to each other. Writing takes half of the work, and so does
//! reading.
//!
//! # Layout
//! A payload with columns (codec 3) begins with four varints, then comes a Zstandard frame of the block:
//!
//! | varint | meaning |
//! |---|---|
//! | 1 | byte of the block at which the rows begin |
//! | 2 | number of rows |
//! | 3 | bytes of a row in the first *table* |
//! | 4 | 2 × bytes of a row in the second table, which follows the first; plus 1 if its rows are offsets |
//!
//! Inside the frame the bytes of each table are stored by columns. Each offset is replaced by its difference
//! from the offset before it.
//!
//! Example with one table of three rows of two bytes:
//!
//! ```text
//!  rows     a1 b1  a2 b2  a3 b3
//!  columns  a1 a2 a3  b1 b2 b3
//! ```
//!
//! The meaning of the rows is the business of the writer. A reader gets the block back unchanged.

use std::cell::RefCell;

/// Bytes that the four varints take at most.
pub(crate) const HEADER_BYTES_MAX: usize = 4 * VARINT_BYTES_MAX;

/// Bytes of a varint that holds a number of 32 bits.
const VARINT_BYTES_MAX: usize = 5;

/// Tables are transposed in squares of this many bytes a side.
const SIDE: usize = 16;

/// The place of the rows within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    /// Where the first table begins.
    pub(crate) start: usize,
    /// Rows of each table.
    pub(crate) rows: usize,
    /// Bytes of a row in the first table.
    pub(crate) first: usize,
    /// The type of the rows of the second table.
    pub(crate) second: Rows,
}

/// The type of the rows of the second table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Opaque rows of this many bytes each.
    Bytes(usize),
    /// Ascending numbers of 2 bytes, little-endian.
    Offsets16,
    /// Ascending numbers of 4 bytes, little-endian.
    Offsets32,
}

impl Rows {
    /// Bytes of a row.
    const fn width(self) -> usize {
        match self {
            Rows::Bytes(width) => width,
            Rows::Offsets16 => 2,
            Rows::Offsets32 => 4,
        }
    }

    fn encode(self) -> usize {
        2 * self.width() + usize::from(!matches!(self, Rows::Bytes(_)))
    }

    fn decode(number: usize) -> Option<Rows> {
        match (number / 2, number % 2) {
            (width, 0) => Some(Rows::Bytes(width)),
            (2, _) => Some(Rows::Offsets16),
            (4, _) => Some(Rows::Offsets32),
            _ => None,
        }
    }

    /// Replaces each offset by its difference from the one before.
    fn subtract(self, table: &mut [u8]) {
        match self {
            Rows::Bytes(_) => {}
            Rows::Offsets16 => for_each_number::<2>(table, |before, offset| {
                let (now, before) = (u16::from_le_bytes(*offset), u16::from_le_bytes(before));
                *offset = now.wrapping_sub(before).to_le_bytes();
                now.to_le_bytes()
            }),
            Rows::Offsets32 => for_each_number::<4>(table, |before, offset| {
                let (now, before) = (u32::from_le_bytes(*offset), u32::from_le_bytes(before));
                *offset = now.wrapping_sub(before).to_le_bytes();
                now.to_le_bytes()
            }),
        }
    }

    /// Undoes [`subtract`](Rows::subtract).
    fn add(self, table: &mut [u8]) {
        match self {
            Rows::Bytes(_) => {}
            Rows::Offsets16 => for_each_number::<2>(table, |before, more| {
                *more = u16::from_le_bytes(before).wrapping_add(u16::from_le_bytes(*more)).to_le_bytes();
                *more
            }),
            Rows::Offsets32 => for_each_number::<4>(table, |before, more| {
                *more = u32::from_le_bytes(before).wrapping_add(u32::from_le_bytes(*more)).to_le_bytes();
                *more
            }),
        }
    }
}

/// Calls `change` for each number of a table, with its result for the number before (0 for the first).
fn for_each_number<const WIDTH: usize>(
    table: &mut [u8],
    change: impl Fn([u8; WIDTH], &mut [u8; WIDTH]) -> [u8; WIDTH],
) {
    let (numbers, _rest) = table.as_chunks_mut::<WIDTH>();
    numbers.iter_mut().fold([0; WIDTH], change);
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Columns {
    /// Writes the header at the start of `target` and returns its length.
    ///
    /// # Panics
    /// If a number has more than 32 bits, or there is no room.
    pub(crate) fn encode(&self, target: &mut [u8]) -> usize {
        let mut end = 0;
        for number in [self.start, self.rows, self.first, self.second.encode()] {
            let mut rest = u32::try_from(number).expect("no block has 4 GiB");
            while rest >= 0x80 {
                target[end] = rest as u8 | 0x80;
                rest >>= 7;
                end += 1;
            }
            target[end] = rest as u8;
            end += 1;
        }
        end
    }

    /// The columns of a payload whose block has `raw_length` bytes, and the frame that follows; `None` if the
    /// tables do not lie within the block.
    pub(crate) fn decode(stored: &[u8], raw_length: usize) -> Option<(Columns, &[u8])> {
        let mut rest = stored;
        let mut number = || {
            let mut value = 0_u64;
            for shift in (0..VARINT_BYTES_MAX).map(|at| 7 * at) {
                let (byte, behind) = rest.split_first()?;
                rest = behind;
                value |= u64::from(byte & 0x7F) << shift;
                if *byte < 0x80 {
                    return usize::try_from(u32::try_from(value).ok()?).ok();
                }
            }
            None
        };
        let (start, rows, first) = (number()?, number()?, number()?);
        let columns = Columns { start, rows, first, second: Rows::decode(number()?)? };
        let row = columns.first.checked_add(columns.second.width())?;
        let end = columns.rows.checked_mul(row)?.checked_add(columns.start)?;
        (end <= raw_length).then_some((columns, rest))
    }

    /// Turns the tables from rows into columns.
    pub(crate) fn fold(&self, block: &mut [u8]) {
        self.second.subtract(self.second_of(block));
        self.turn(block, |rows, width| (rows, width));
    }

    /// Undoes [`fold`](Columns::fold).
    pub(crate) fn unfold(&self, block: &mut [u8]) {
        self.turn(block, |rows, width| (width, rows));
        self.second.add(self.second_of(block));
    }

    /// The second table.
    fn second_of<'b>(&self, block: &'b mut [u8]) -> &'b mut [u8] {
        let start = self.start + self.rows * self.first;
        &mut block[start..start + self.rows * self.second.width()]
    }

    /// Transposes both tables. `lines` turns (rows, width) into the present number of lines and their length.
    fn turn(&self, block: &mut [u8], lines: fn(usize, usize) -> (usize, usize)) {
        let bytes = self.rows * (self.first + self.second.width());
        let tables = &mut block[self.start..self.start + bytes];
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            scratch.extend_from_slice(tables);
            let (first, second) = scratch.split_at(self.rows * self.first);
            let (first_target, second_target) = tables.split_at_mut(first.len());
            for (source, target, width) in
                [(first, first_target, self.first), (second, second_target, self.second.width())]
            {
                let (lines, length) = lines(self.rows, width);
                transpose(source, lines, length, target);
            }
        });
    }
}

/// Writes lines of equal length as columns: byte `at` of line `line` becomes byte `line` of line `at`.
fn transpose(source: &[u8], lines: usize, length: usize, target: &mut [u8]) {
    if lines < SIDE || length < SIDE {
        // The shorter side is the inner loop, so that few lines are read in turn, or few are written.
        if lines < length {
            for (at, column) in target.chunks_exact_mut(lines.max(1)).enumerate() {
                for (line, byte) in column.iter_mut().enumerate() {
                    *byte = source[line * length + at];
                }
            }
        } else {
            for (line, bytes) in source.chunks_exact(length.max(1)).enumerate() {
                for (at, byte) in bytes.iter().enumerate() {
                    target[at * lines + line] = *byte;
                }
            }
        }
        return;
    }
    // Where a side is no multiple of the square's, its last square overlaps the one before it.
    for line in squares(lines) {
        for at in squares(length) {
            let mut square = [[0; SIDE]; SIDE];
            for (row, from) in square.iter_mut().zip((line..).map(|line| line * length + at)) {
                row.copy_from_slice(&source[from..from + SIDE]);
            }
            let square = turned(square);
            for (row, to) in square.iter().zip((at..).map(|at| at * lines + line)) {
                target[to..to + SIDE].copy_from_slice(row);
            }
        }
    }
}

/// Where the squares of a side of this length begin.
fn squares(length: usize) -> impl Iterator<Item = usize> {
    (0..length.div_ceil(SIDE)).map(move |square| (square * SIDE).min(length - SIDE))
}

type Square = [[u8; SIDE]; SIDE];

/// A transposed square. Four rounds interleave each row with the row half a square below it. Compilers turn
/// this into the processor's shuffle instructions.
fn turned(mut square: Square) -> Square {
    for _round in 0..SIDE.ilog2() {
        let mut next = [[0; SIDE]; SIDE];
        for row in 0..SIDE / 2 {
            (next[2 * row], next[2 * row + 1]) = interleaved(square[row], square[row + SIDE / 2]);
        }
        square = next;
    }
    square
}

#[inline]
fn interleaved(even: [u8; SIDE], odd: [u8; SIDE]) -> ([u8; SIDE], [u8; SIDE]) {
    let (mut low, mut high) = ([0; SIDE], [0; SIDE]);
    for at in 0..SIDE / 2 {
        (low[2 * at], low[2 * at + 1]) = (even[at], odd[at]);
        (high[2 * at], high[2 * at + 1]) = (even[at + SIDE / 2], odd[at + SIDE / 2]);
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use crate::base::columns::*;

    #[test]
    fn a_table_of_any_size_is_turned_and_turned_back() {
        let random = SeededRandom::new(0x636F_6C73);
        for round in 0..500 {
            let below = |limit| random.below(limit) as usize;
            let most = if round % 2 == 0 { 20 } else { 100 };
            let second = Rows::Bytes(below(most));
            let columns = Columns { start: below(30), rows: below(most), first: below(8), second };
            let mut block =
                vec![0; columns.start + columns.rows * (columns.first + columns.second.width()) + below(9)];
            random.fill(&mut block);
            let mut folded = block.clone();
            columns.fold(&mut folded);
            let byte_of = |block: &[u8], table: usize, row: usize, at: usize, by_columns: bool| {
                let width = [columns.first, columns.second.width()][table];
                let start = columns.start + table * columns.rows * columns.first;
                block[start + if by_columns { at * columns.rows + row } else { row * width + at }]
            };
            for table in 0..2 {
                for row in 0..columns.rows {
                    for at in 0..[columns.first, columns.second.width()][table] {
                        let (before, after) =
                            (byte_of(&block, table, row, at, false), byte_of(&folded, table, row, at, true));
                        assert_eq!(before, after, "{columns:?}, table {table}, row {row}, byte {at}");
                    }
                }
            }
            columns.unfold(&mut folded);
            assert_eq!(folded, block, "{columns:?}");
        }
    }

    #[test]
    fn columns_are_read_as_they_were_written_and_only_within_their_block() {
        let columns = Columns { start: 70_000, rows: 300, first: 4, second: Rows::Bytes(22) };
        let mut stored = [0xAA; HEADER_BYTES_MAX + 1];
        let length = columns.encode(&mut stored);
        assert_eq!(stored[..length], [0xF0, 0xA2, 0x04, 0xAC, 0x02, 0x04, 0x2C]);
        let end = 70_000 + 300 * 26;
        assert_eq!(Columns::decode(&stored, end), Some((columns, &stored[length..])));
        assert_eq!(Columns::decode(&stored, end - 1), None);
        assert_eq!(Columns::decode(&stored[..length - 1], end), None, "cut off");
        assert_eq!(Columns::decode(&[0xFF; 20], usize::MAX), None, "a number of more than 32 bits");
        let mut largest = [0; HEADER_BYTES_MAX];
        let (most, second) = (u32::MAX as usize, Rows::Bytes(u32::MAX as usize / 2));
        Columns { start: most, rows: most, first: most, second }.encode(&mut largest);
        assert_eq!(Columns::decode(&largest, usize::MAX >> 1), None);
    }

    #[test]
    fn of_offsets_the_differences_are_kept() {
        for (second, width) in [(Rows::Offsets16, 2), (Rows::Offsets32, 4)] {
            let offsets = [700_u32, 722, 744, 800, 1_100];
            let bytes = |numbers: &[u32]| -> Vec<u8> {
                numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect()
            };
            let columns = Columns { start: 1, rows: 5, first: 1, second };
            let mut block = [b"sheads".to_vec(), bytes(&offsets)].concat();
            let before = block.clone();
            columns.fold(&mut block);
            let turned: Vec<u8> = (0..width)
                .flat_map(|at| [700_u32, 22, 22, 56, 300].map(|number| number.to_le_bytes()[at]))
                .collect();
            assert_eq!(block, [b"sheads".to_vec(), turned].concat());
            columns.unfold(&mut block);
            assert_eq!(block, before);
            let mut stored = [0; HEADER_BYTES_MAX];
            let length = columns.encode(&mut stored);
            assert_eq!(Columns::decode(&stored[..length], block.len()), Some((columns, &[][..])));
        }
        assert_eq!(Columns::decode(&[0, 1, 1, 2 * 3 + 1], 100), None, "offsets of 3 bytes");
        let mut any = [0xFF; 8];
        Columns { start: 0, rows: 4, first: 0, second: Rows::Offsets16 }.unfold(&mut any);
    }
}
