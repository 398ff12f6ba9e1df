//! The column of a bucket: the values of one field of all of its measurements.
//!
//! ```text
//! u8 kind (| 0x80 if values are missing)
//! [a bit for each measurement, set where it has a value]
//! kind 1, whole numbers and dates   u8 BSON type, then varints
//! kind 2, doubles of few decimals   u8 decimals, then varints of the doubles times 10^decimals
//! kind 3, doubles                   8 planes of the bytes of each, combined by XOR with the one before
//! kind 4, ObjectIds                 12 planes, likewise
//! kind 5, all other values          a BSON array
//! kind 6, few different values      u8 how many, a BSON array of them, and places of as few bits as do
//! kind 7, ObjectIds of one process  its 5 bytes, varints of the seconds, varints of the counters
//! ```
//! Varints begin with a byte: how many times differences to the value before were taken (0, 1 or 2),
//! whichever gives the fewest bytes. A varint is a zigzag. In their place may stand [`packed_numbers`], where
//! those are clearly fewer bytes; their first byte tells. Planes bring equal bytes together, which the
//! compression of pages then takes away.

use std::collections::BTreeMap;

use pando_document::{ArrayWriter, ObjectId, RawArray, RawDocument, RawValue};

use super::packed_numbers::{self, PACKED};
use crate::QueryError;

const INTEGERS: u8 = 1;
const SCALED: u8 = 2;
const DOUBLES: u8 = 3;
const IDS: u8 = 4;
const OTHERS: u8 = 5;
const CHOICES: u8 = 6;
const PROCESS_IDS: u8 = 7;
/// Set in the kind where values are missing.
const GAPS: u8 = 0x80;

const TYPE_DATE: u8 = 0x09;
const TYPE_INT32: u8 = 0x10;
const TYPE_INT64: u8 = 0x12;

/// The most different values of a column of few.
const CHOICES_MAX: usize = 64;

/// How many times differences are taken at most.
const ORDER_MAX: u8 = 2;

/// The most decimals of doubles that are kept as whole numbers.
const DECIMALS_MAX: u8 = 4;
/// Whole numbers up to here are exact as doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The values of one field. Measurements without it take no memory.
pub(super) struct Column<'v> {
    values: Vec<RawValue<'v>>,
    /// The measurement of each value, ascending; `None` where each measurement has one.
    places: Option<Vec<u32>>,
}

impl<'v> Column<'v> {
    /// A column to which values come one by one.
    pub fn growing() -> Column<'v> {
        Column { values: Vec::new(), places: Some(Vec::new()) }
    }

    /// The column of values by their measurements.
    pub fn of(values: BTreeMap<u32, RawValue<'v>>) -> Column<'v> {
        Column { places: Some(values.keys().copied().collect()), values: values.into_values().collect() }
    }

    /// Appends the value of a measurement behind those that have one, to a column that grows. The first of
    /// several values of one stays.
    pub fn push(&mut self, place: u32, value: RawValue<'v>) {
        let Some(places) = &mut self.places else { return };
        if places.last() != Some(&place) {
            places.push(place);
            self.values.push(value);
        }
    }

    /// The values there are.
    pub fn values(&self) -> &[RawValue<'v>] {
        &self.values
    }

    /// The value of a measurement.
    pub fn get(&self, place: usize) -> Option<RawValue<'v>> {
        let at = match &self.places {
            None => place,
            Some(places) => places.binary_search(&u32::try_from(place).ok()?).ok()?,
        };
        self.values.get(at).copied()
    }

    /// The bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let places = self.places.as_ref().map_or(0, |places| size_of_val(places.as_slice()));
        size_of::<Column<'_>>() + size_of_val(self.values.as_slice()) + places
    }
}

/// Encodes a column of so many measurements.
pub(super) fn encode(column: &Column<'_>, count: usize) -> Vec<u8> {
    let present = column.values();
    let gaps = if present.len() < count { GAPS } else { 0 };
    let mut out = vec![gaps];
    if gaps != 0 {
        let mut bits = vec![0_u8; count.div_ceil(8)];
        for place in column.places.iter().flatten() {
            bits[*place as usize / 8] |= 1 << (place % 8);
        }
        out.extend_from_slice(&bits);
    }
    let kind = encode_integers(present, &mut out)
        .or_else(|| encode_doubles(present, &mut out))
        .or_else(|| encode_ids(present, &mut out))
        .or_else(|| encode_choices(present, &mut out))
        .unwrap_or_else(|| encode_others(present, &mut out));
    out[0] |= kind;
    out
}

fn encode_integers(values: &[RawValue<'_>], out: &mut Vec<u8>) -> Option<u8> {
    let number = |value: &RawValue<'_>| match value {
        RawValue::DateTime(number) => Some((TYPE_DATE, *number)),
        RawValue::Int32(number) => Some((TYPE_INT32, i64::from(*number))),
        RawValue::Int64(number) => Some((TYPE_INT64, *number)),
        _ => None,
    };
    let numbers = values.iter().map(number).collect::<Option<Vec<_>>>()?;
    let first = numbers.first()?.0;
    if numbers.iter().any(|(of_type, _)| *of_type != first) {
        return None;
    }
    out.push(first);
    push_varints(numbers.iter().map(|(_, number)| *number), out);
    Some(INTEGERS)
}

fn encode_doubles(values: &[RawValue<'_>], out: &mut Vec<u8>) -> Option<u8> {
    let number = |value: &RawValue<'_>| match value {
        RawValue::Double(number) => Some(*number),
        _ => None,
    };
    let numbers = values.iter().map(number).collect::<Option<Vec<f64>>>().filter(|all| !all.is_empty())?;
    for decimals in 0..=DECIMALS_MAX {
        if let Some(scaled) =
            numbers.iter().map(|number| scaled(*number, decimals)).collect::<Option<Vec<_>>>()
        {
            out.push(decimals);
            push_varints(scaled.into_iter(), out);
            return Some(SCALED);
        }
    }
    push_planes::<8>(numbers.iter().map(|number| number.to_bits().to_le_bytes()), out);
    Some(DOUBLES)
}

/// The whole number that stands for a double, if it does so exactly.
fn scaled(number: f64, decimals: u8) -> Option<i64> {
    let whole = (number * power_of_ten(decimals)).round();
    let is_exact = whole.abs() < EXACT_MAX && unscaled(whole as i64, decimals).to_bits() == number.to_bits();
    is_exact.then_some(whole as i64)
}

fn unscaled(whole: i64, decimals: u8) -> f64 {
    whole as f64 / power_of_ten(decimals)
}

fn power_of_ten(decimals: u8) -> f64 {
    10_f64.powi(i32::from(decimals))
}

fn encode_ids(values: &[RawValue<'_>], out: &mut Vec<u8>) -> Option<u8> {
    let id = |value: &RawValue<'_>| match value {
        RawValue::ObjectId(id) => Some(*id.bytes()),
        _ => None,
    };
    let ids = values.iter().map(id).collect::<Option<Vec<[u8; 12]>>>().filter(|ids| !ids.is_empty())?;
    let process = &ids[0][4..9];
    if ids.iter().all(|id| &id[4..9] == process) {
        out.extend_from_slice(process);
        let seconds = |id: &[u8; 12]| i64::from(u32::from_be_bytes([id[0], id[1], id[2], id[3]]));
        let counter = |id: &[u8; 12]| i64::from(u32::from_be_bytes([0, id[9], id[10], id[11]]));
        push_varints(ids.iter().map(seconds), out);
        push_varints(ids.iter().map(counter), out);
        return Some(PROCESS_IDS);
    }
    push_planes::<12>(ids.into_iter(), out);
    Some(IDS)
}

/// The bits of a place among so many values.
fn place_bits(choices: usize) -> usize {
    choices.next_power_of_two().trailing_zeros() as usize
}

fn encode_choices(values: &[RawValue<'_>], out: &mut Vec<u8>) -> Option<u8> {
    let (mut choices, mut places) = (Vec::<RawValue<'_>>::new(), Vec::with_capacity(values.len()));
    for value in values {
        let place = choices.iter().position(|choice| is_same(*choice, *value)).unwrap_or(choices.len());
        if place == choices.len() {
            choices.push(*value);
        }
        if choices.len() > CHOICES_MAX || choices.len() * 2 > values.len().max(2) {
            return None;
        }
        places.push(place);
    }
    out.push(u8::try_from(choices.len()).ok()?);
    let mut array = ArrayWriter::begin(out);
    choices.iter().for_each(|choice| array.push(*choice));
    array.finish();
    let bits = place_bits(choices.len());
    let mut packed = vec![0_u8; (places.len() * bits).div_ceil(8)];
    for (at, place) in places.iter().enumerate() {
        for bit in (0..bits).filter(|bit| place >> bit & 1 == 1) {
            packed[(at * bits + bit) / 8] |= 1 << ((at * bits + bit) % 8);
        }
    }
    out.extend_from_slice(&packed);
    Some(CHOICES)
}

/// Whether two values have the same type and bytes. Values of other types than these count as different.
fn is_same(one: RawValue<'_>, other: RawValue<'_>) -> bool {
    match (one, other) {
        (RawValue::String(one), RawValue::String(other)) => one == other,
        (RawValue::Boolean(one), RawValue::Boolean(other)) => one == other,
        (RawValue::Null, RawValue::Null) => true,
        (RawValue::Document(one), RawValue::Document(other)) => one.as_bytes() == other.as_bytes(),
        _ => false,
    }
}

fn encode_others(values: &[RawValue<'_>], out: &mut Vec<u8>) -> u8 {
    let mut array = ArrayWriter::begin(out);
    values.iter().for_each(|value| array.push(*value));
    array.finish();
    OTHERS
}

/// Appends the order of differences that gives the fewest bytes, and the varints.
fn push_varints(numbers: impl Iterator<Item = i64>, out: &mut Vec<u8>) {
    let numbers: Vec<i64> = numbers.collect();
    let orders = (0..=ORDER_MAX).map(|order| {
        let mut bytes = vec![order];
        let mut before = [0_i64; ORDER_MAX as usize];
        for number in &numbers {
            let mut change = *number;
            for last in before.iter_mut().take(usize::from(order)) {
                let now = change;
                change = change.wrapping_sub(*last);
                *last = now;
            }
            push_varint(change, &mut bytes);
        }
        bytes
    });
    let varints = orders.min_by_key(Vec::len).unwrap_or_default();
    // The compression of pages makes more of varints than of packed bits.
    match packed_numbers::pack(&numbers).filter(|packed| packed.len() * 4 < varints.len() * 3) {
        Some(packed) => out.extend(packed),
        None => out.extend(varints),
    }
}

/// Appends one number as a varint.
pub(super) fn push_varint(number: i64, out: &mut Vec<u8>) {
    let mut zigzag = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

fn push_planes<const WIDTH: usize>(values: impl Iterator<Item = [u8; WIDTH]>, out: &mut Vec<u8>) {
    let mut before = [0; WIDTH];
    let mut changes = Vec::new();
    for value in values {
        changes.push(std::array::from_fn::<u8, WIDTH, _>(|at| value[at] ^ before[at]));
        before = value;
    }
    for at in 0..WIDTH {
        out.extend(changes.iter().map(|change| change[at]));
    }
}

/// The values of a column of so many measurements.
///
/// # Errors
/// The bytes are none of a column.
pub(super) fn decode(bytes: &[u8], count: usize) -> Result<Column<'_>, QueryError> {
    let mut reader = Reader::new(bytes);
    let kind = reader.byte()?;
    let places: Option<Vec<u32>> = match kind & GAPS {
        0 => None,
        _ => {
            let bits = reader.take(count.div_ceil(8))?;
            let has = |place: &u32| bits[*place as usize / 8] & 1 << (place % 8) != 0;
            Some((0..u32::try_from(count).map_err(|_| damaged())?).filter(has).collect())
        }
    };
    let present = places.as_ref().map_or(count, Vec::len);
    let values: Vec<RawValue<'_>> = match kind & !GAPS {
        INTEGERS => {
            let of_type = reader.byte()?;
            reader
                .varints(present)?
                .into_iter()
                .map(|number| integer(of_type, number))
                .collect::<Result<_, _>>()?
        }
        SCALED => {
            let decimals =
                Some(reader.byte()?).filter(|decimals| *decimals <= DECIMALS_MAX).ok_or_else(damaged)?;
            let numbers = reader.varints(present)?.into_iter();
            numbers.map(|number| RawValue::Double(unscaled(number, decimals))).collect()
        }
        DOUBLES => {
            let planes = reader.planes::<8>(present)?.into_iter();
            planes.map(|bytes| RawValue::Double(f64::from_bits(u64::from_le_bytes(bytes)))).collect()
        }
        IDS => {
            let planes = reader.planes::<12>(present)?.into_iter();
            planes.map(|bytes| RawValue::ObjectId(ObjectId::from_bytes(bytes))).collect()
        }
        PROCESS_IDS => reader.process_ids(present)?,
        CHOICES => reader.choices(present)?,
        OTHERS => {
            let array = RawArray::from_document(RawDocument::from_bytes(reader.bytes)?);
            array.iter().take(present + 1).collect::<Result<Vec<_>, _>>()?
        }
        _ => return Err(damaged()),
    };
    if values.len() != present {
        return Err(damaged());
    }
    Ok(Column { values, places })
}

fn integer(of_type: u8, number: i64) -> Result<RawValue<'static>, QueryError> {
    match of_type {
        TYPE_DATE => Ok(RawValue::DateTime(number)),
        TYPE_INT32 => i32::try_from(number).map(RawValue::Int32).map_err(|_| damaged()),
        TYPE_INT64 => Ok(RawValue::Int64(number)),
        _ => Err(damaged()),
    }
}

pub(super) fn damaged() -> QueryError {
    QueryError::bad_value("a bucket of a time series is damaged, or was not written by this server")
}

pub(super) struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes }
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'b [u8] {
        self.bytes
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Passes over bytes.
    pub fn skip(&mut self, count: usize) -> Result<(), QueryError> {
        self.take(count).map(|_| ())
    }

    pub fn byte(&mut self) -> Result<u8, QueryError> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], QueryError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(damaged)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn varints(&mut self, count: usize) -> Result<Vec<i64>, QueryError> {
        let order = self.byte()?;
        if order & PACKED != 0 {
            return packed_numbers::unpack(self, order & !PACKED, count);
        }
        if order > ORDER_MAX {
            return Err(damaged());
        }
        // Each takes a byte at least.
        if count > self.bytes.len() {
            return Err(damaged());
        }
        let mut numbers = Vec::with_capacity(count);
        let mut before = [0_i64; ORDER_MAX as usize];
        for _ in 0..count {
            let mut number = self.varint()?;
            for last in before.iter_mut().take(usize::from(order)).rev() {
                number = last.wrapping_add(number);
                *last = number;
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    pub fn varint(&mut self) -> Result<i64, QueryError> {
        let (mut zigzag, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            if shift > 63 {
                return Err(damaged());
            }
            zigzag |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
            }
        }
    }

    fn process_ids(&mut self, count: usize) -> Result<Vec<RawValue<'static>>, QueryError> {
        let process = self.take(5)?;
        let (seconds, counters) = (self.varints(count)?, self.varints(count)?);
        let id = |(second, counter): (&i64, &i64)| {
            let (Ok(second), Ok(counter @ ..=0xFF_FFFF)) = (u32::try_from(*second), u32::try_from(*counter))
            else {
                return Err(damaged());
            };
            let mut bytes = [0; 12];
            bytes[..4].copy_from_slice(&second.to_be_bytes());
            bytes[4..9].copy_from_slice(process);
            bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
            Ok(RawValue::ObjectId(ObjectId::from_bytes(bytes)))
        };
        seconds.iter().zip(&counters).map(id).collect()
    }

    fn choices(&mut self, count: usize) -> Result<Vec<RawValue<'b>>, QueryError> {
        let expected = usize::from(self.byte()?);
        let head: [u8; 4] = self.bytes.get(..4).and_then(|head| head.try_into().ok()).ok_or_else(damaged)?;
        let length = usize::try_from(i32::from_le_bytes(head)).map_err(|_| damaged())?;
        let array = RawArray::from_document(RawDocument::from_bytes(self.take(length)?)?);
        let choices = array.iter().take(expected + 1).collect::<Result<Vec<_>, _>>()?;
        if choices.len() != expected {
            return Err(damaged());
        }
        let bits = place_bits(expected);
        let packed = self.take(count.checked_mul(bits).ok_or_else(damaged)?.div_ceil(8))?;
        let place = |at: usize| {
            (0..bits).fold(0, |place, bit| {
                let from = at * bits + bit;
                place | usize::from(packed[from / 8] >> (from % 8) & 1) << bit
            })
        };
        (0..count).map(|at| choices.get(place(at)).copied().ok_or_else(damaged)).collect()
    }

    fn planes<const WIDTH: usize>(&mut self, count: usize) -> Result<Vec<[u8; WIDTH]>, QueryError> {
        let planes = self.take(count.checked_mul(WIDTH).ok_or_else(damaged)?)?;
        let mut before = [0; WIDTH];
        let value = |row: usize| {
            before = std::array::from_fn(|at| before[at] ^ planes[at * count + row]);
            before
        };
        Ok((0..count).map(value).collect())
    }
}
