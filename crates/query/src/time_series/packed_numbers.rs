//! Whole numbers in few bits: their differences from a prediction, as Golomb-Rice codes (R. F. Rice, 1979).
//! The codes come near the entropy where small differences are frequent, as those of sensors are.
//!
//! ```text
//! u8       PACKED | prediction (0 none, 1 the number before, 2 the line of the two before, 3 a line)
//! varints  the numbers that the prediction begins with: none, 1, 2, or the first number and the step
//! u8       bits of a remainder (| 0x80 if a varint follows: the least difference, which is taken off)
//! bits     for each difference: the quotient as ones, a zero, the remainder, least bit first.
//!          24 ones stand in front of 64 bits that are the difference
//! ```
//! Differences are zigzags, or those from the least one. Each column takes the form with the fewest bits.

use super::column::{Reader, damaged, push_varint};
use crate::QueryError;

/// Set in the byte of the prediction; varints begin with a number below.
pub(super) const PACKED: u8 = 0x10;
/// The prediction by a line from the first number to the last one.
const LINE: u8 = 3;
/// The quotient that stands for 64 bits.
const QUOTIENT_MAX: u32 = 24;
/// The most bits of a remainder: a window of 64 bits has them behind any bit of a byte.
const REMAINDER_MAX: u32 = 48;
/// Set where differences are those from the least one.
const FROM_LEAST: u8 = 0x80;
/// Fewer numbers are not packed.
const COUNT_MIN: usize = 8;

/// Numbers as a prediction leaves them.
struct Predicted {
    prediction: u8,
    first: Vec<i64>,
    rest: Vec<i64>,
}

/// The codes of the differences.
#[derive(Clone, Copy)]
struct Coding {
    /// `None`: zigzags.
    least: Option<i64>,
    remainder_bits: u32,
    bits: u64,
}

/// The numbers in few bits; `None` where they are too few.
pub(super) fn pack(numbers: &[i64]) -> Option<Vec<u8>> {
    if numbers.len() < COUNT_MIN {
        return None;
    }
    let forms = (0..=LINE).map(|prediction| predicted(numbers, prediction)).flat_map(|predicted| {
        let least = predicted.rest.iter().copied().min();
        let codings = [None, least].map(|least| Coding::best(&predicted.rest, least));
        codings.into_iter().min_by_key(|coding| coding.bits).map(|coding| (predicted, coding))
    });
    let (predicted, coding) =
        forms.min_by_key(|(predicted, coding)| coding.bits + 64 * u64::from(predicted.prediction == LINE))?;
    let mut out = vec![PACKED | predicted.prediction];
    predicted.first.iter().for_each(|number| push_varint(*number, &mut out));
    let remainder = coding.remainder_bits as u8;
    match coding.least {
        None => out.push(remainder),
        Some(least) => {
            out.push(remainder | FROM_LEAST);
            push_varint(least, &mut out);
        }
    }
    let mut bits = BitWriter { out, pending: 0, used: 0 };
    predicted.rest.iter().for_each(|change| bits.push_code(coding.number_of(*change), coding.remainder_bits));
    Some(bits.finish())
}

fn predicted(numbers: &[i64], prediction: u8) -> Predicted {
    let (first, rest) = match prediction {
        0 => (Vec::new(), numbers.to_vec()),
        1 => (numbers[..1].to_vec(), changes(numbers)),
        2 => {
            let once = changes(numbers);
            (vec![numbers[0], once[0]], changes(&once))
        }
        _ => {
            let steps = i64::try_from(numbers.len() - 1).unwrap_or(i64::MAX);
            let step = numbers[numbers.len() - 1].wrapping_sub(numbers[0]) / steps;
            let mut expected = numbers[0];
            let rest = numbers[1..].iter().map(|number| {
                expected = expected.wrapping_add(step);
                number.wrapping_sub(expected)
            });
            (vec![numbers[0], step], rest.collect())
        }
    };
    Predicted { prediction, first, rest }
}

fn changes(numbers: &[i64]) -> Vec<i64> {
    numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect()
}

impl Coding {
    /// The coding with the fewest bits: the best remainder has about as many as the mean number.
    fn best(changes: &[i64], least: Option<i64>) -> Coding {
        let coding = Coding { least, remainder_bits: 0, bits: 0 };
        let sum: u128 = changes.iter().map(|change| u128::from(coding.number_of(*change))).sum();
        let mean = sum / changes.len().max(1) as u128;
        let about = u128::BITS - mean.leading_zeros();
        let remainders = about.saturating_sub(2)..=(about + 1).min(REMAINDER_MAX);
        let sized = remainders.map(|remainder_bits| {
            let bits = changes.iter().map(|change| code_bits(coding.number_of(*change), remainder_bits));
            Coding { least, remainder_bits, bits: bits.sum() }
        });
        sized.min_by_key(|coding| coding.bits).unwrap_or(Coding { bits: u64::MAX / 2, ..coding })
    }

    fn number_of(&self, change: i64) -> u64 {
        match self.least {
            None => ((change << 1) ^ (change >> 63)).cast_unsigned(),
            Some(least) => change.wrapping_sub(least).cast_unsigned(),
        }
    }

    fn change_of(&self, number: u64) -> i64 {
        match self.least {
            None => (number >> 1).cast_signed() ^ -(number & 1).cast_signed(),
            Some(least) => number.cast_signed().wrapping_add(least),
        }
    }
}

fn code_bits(number: u64, remainder_bits: u32) -> u64 {
    match number >> remainder_bits {
        quotient if quotient < u64::from(QUOTIENT_MAX) => quotient + 1 + u64::from(remainder_bits),
        _ => u64::from(QUOTIENT_MAX + u64::BITS),
    }
}

struct BitWriter {
    out: Vec<u8>,
    pending: u64,
    used: u32,
}

impl BitWriter {
    fn push_code(&mut self, number: u64, remainder_bits: u32) {
        match u32::try_from(number >> remainder_bits) {
            Ok(quotient) if quotient < QUOTIENT_MAX => {
                self.push((1 << quotient) - 1, quotient + 1);
                self.push(number & ((1 << remainder_bits) - 1), remainder_bits);
            }
            _ => {
                self.push((1 << QUOTIENT_MAX) - 1, QUOTIENT_MAX);
                self.push(number & u64::from(u32::MAX), 32);
                self.push(number >> 32, 32);
            }
        }
    }

    /// Appends at most 48 bits.
    fn push(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.used;
        self.used += count;
        while self.used >= 8 {
            self.out.push(self.pending as u8);
            self.pending >>= 8;
            self.used -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.used > 0 {
            self.out.push(self.pending as u8);
        }
        self.out
    }
}

/// Reads numbers whose prediction was read before.
pub(super) fn unpack(reader: &mut Reader<'_>, prediction: u8, count: usize) -> Result<Vec<i64>, QueryError> {
    let firsts = match prediction {
        0..=2 => usize::from(prediction),
        LINE => 2,
        _ => return Err(damaged()),
    };
    let mut first = [0_i64; 2];
    for number in first.iter_mut().take(firsts) {
        *number = reader.varint()?;
    }
    let head = reader.byte()?;
    let remainder_bits = u32::from(head & !FROM_LEAST);
    if remainder_bits > REMAINDER_MAX {
        return Err(damaged());
    }
    let least = if head & FROM_LEAST == 0 { None } else { Some(reader.varint()?) };
    let coding = Coding { least, remainder_bits, bits: 0 };
    let known = if prediction == LINE { 1 } else { firsts };
    // Each takes a bit at least.
    if count < known || count > reader.left().saturating_mul(8).saturating_add(known) {
        return Err(damaged());
    }
    let mut numbers = Vec::with_capacity(count);
    let mut bits = BitReader { bytes: reader.rest(), at: 0 };
    let [mut last, mut step] = first;
    match prediction {
        0 => {}
        2 => {
            numbers.push(last);
            last = last.wrapping_add(step);
            numbers.push(last);
        }
        _ => numbers.push(last),
    }
    for _ in known..count {
        let change = coding.change_of(bits.code(remainder_bits)?);
        let number = match prediction {
            0 => change,
            1 => last.wrapping_add(change),
            2 => {
                step = step.wrapping_add(change);
                last.wrapping_add(step)
            }
            _ => {
                last = last.wrapping_add(step);
                last.wrapping_add(change)
            }
        };
        if prediction != LINE {
            last = number;
        }
        numbers.push(number);
    }
    reader.skip(bits.at.div_ceil(8))?;
    Ok(numbers)
}

struct BitReader<'b> {
    bytes: &'b [u8],
    /// In bits.
    at: usize,
}

impl BitReader<'_> {
    /// The next bits, 57 of them at least; zeros behind the end.
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(word) => *word,
            None => {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                word
            }
        };
        u64::from_le_bytes(word) >> (self.at % 8)
    }

    fn advance(&mut self, count: u32) -> Result<(), QueryError> {
        self.at += count as usize;
        if self.at > self.bytes.len() * 8 { Err(damaged()) } else { Ok(()) }
    }

    fn code(&mut self, remainder_bits: u32) -> Result<u64, QueryError> {
        let quotient = self.window().trailing_ones();
        if quotient < QUOTIENT_MAX {
            self.advance(quotient + 1)?;
            let remainder = self.window() & ((1 << remainder_bits) - 1);
            self.advance(remainder_bits)?;
            return Ok(u64::from(quotient) << remainder_bits | remainder);
        }
        self.advance(QUOTIENT_MAX)?;
        let low = self.window() & u64::from(u32::MAX);
        self.advance(32)?;
        let high = self.window() & u64::from(u32::MAX);
        self.advance(32)?;
        Ok(high << 32 | low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(numbers: &[i64]) -> usize {
        let bytes = pack(numbers).expect("there are enough of them");
        let mut reader = Reader::new(&bytes);
        let prediction = reader.byte().unwrap() & !PACKED;
        assert_eq!(unpack(&mut reader, prediction, numbers.len()).unwrap(), numbers);
        assert_eq!(reader.left(), 0);
        for cut in 1..bytes.len() {
            // Cut bytes are an error or, at worst, other numbers: never a panic.
            let mut reader = Reader::new(&bytes[..cut]);
            let prediction = reader.byte().unwrap() & !PACKED;
            let _numbers = unpack(&mut reader, prediction, numbers.len());
        }
        bytes.len()
    }

    #[test]
    fn numbers_come_back_from_few_bits() {
        let mut state = 1_u64;
        let mut chance = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i64 % below as i64
        };
        // A time every ten seconds with some delay: six bits each.
        let times: Vec<i64> = (0..360).map(|at| 1_700_000_000_000 + at * 10_000 + chance(40)).collect();
        assert!(round_trip(&times) < 360 * 7 / 8 + 16);
        let mut count = 0;
        let counts: Vec<i64> = (0..360)
            .map(|_| {
                count += 1 + chance(4);
                count
            })
            .collect();
        assert!(round_trip(&counts) < 360 * 3 / 8 + 16);
        assert!(round_trip(&vec![7; 1000]) < 140);
        round_trip(&(0..50).map(|at| i64::MIN.wrapping_add(at * at)).collect::<Vec<_>>());
        round_trip(&[i64::MIN, i64::MAX, 0, -1, 1, i64::MAX, i64::MIN, 5, 6]);
        for spread in [2_u64, 300, 1 << 20, 1 << 31] {
            round_trip(&(0..100).map(|_| chance(spread) * chance(spread)).collect::<Vec<_>>());
        }
        assert!(pack(&[1, 2, 3]).is_none());
    }

    #[test]
    fn hostile_heads_are_errors() {
        for bytes in [&[4_u8][..], &[3], &[0, 49], &[0, 0x80], &[1, 5, 0xFF, 0xFF]] {
            let mut reader = Reader::new(bytes);
            let prediction = reader.byte().unwrap();
            assert!(unpack(&mut reader, prediction, 1_000_000).is_err(), "{bytes:?}");
        }
    }
}
