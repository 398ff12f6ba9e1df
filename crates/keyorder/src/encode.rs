//! Values to key bytes.

use pando_document::{
    Decimal128, DecimalParts, Document, ElementType, RawBinary, RawDocument, RawValue, Value, ValueRef,
};

use crate::magnitude::{Rest, Shortest, Size, group_bits, size_of_f64};
use crate::number_bits::{NumberType, Zero, push_rest_zeros};
use crate::{Direction, TypeBits, lead_byte};

/// Appends the part of one value to `out`, and the information that these bytes lose to `type_bits`. Raw
/// documents must have been validated: where one is not sound, its part ends at the fault.
///
/// No allocation but that of the two buffers, and of a few numbers' worth for decimals that are no doubles.
#[inline]
pub fn encode<'a>(
    value: impl Into<ValueRef<'a>>,
    direction: Direction,
    out: &mut Vec<u8>,
    type_bits: &mut TypeBits,
) {
    encode_by(&OwnBytes, value, direction, out, type_bits);
}

/// The bytes that stand for strings and symbols where strings compare by other rules than by their bytes. The
/// order of the bytes under `memcmp` is that of the strings, and they are equal where the strings are.
pub trait TextKeys {
    /// Appends the bytes of a text.
    fn append(&self, text: &str, out: &mut Vec<u8>);

    /// Whether the bytes of a text are its own.
    fn are_own_bytes(&self) -> bool {
        false
    }
}

/// The bytes of a text itself.
struct OwnBytes;

impl TextKeys for OwnBytes {
    fn append(&self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn are_own_bytes(&self) -> bool {
        true
    }
}

/// As [`encode`], with these keys in the place of strings and symbols. Such a part cannot be decoded where it
/// has strings; its length can be told.
#[inline]
pub fn encode_by<'a>(
    texts: &impl TextKeys,
    value: impl Into<ValueRef<'a>>,
    direction: Direction,
    out: &mut Vec<u8>,
    type_bits: &mut TypeBits,
) {
    let start = out.len();
    let mut encoder = Encoder { out, bits: type_bits, texts };
    encoder.part(value.into());
    if direction == Direction::Descending {
        invert(&mut out[start..]);
    }
}

fn invert(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

struct Encoder<'o, T> {
    out: &'o mut Vec<u8>,
    bits: &'o mut TypeBits,
    texts: &'o T,
}

impl<T: TextKeys> Encoder<'_, T> {
    /// Lead byte and payload.
    #[inline]
    fn part(&mut self, value: ValueRef<'_>) {
        let kind = value.element_type();
        if !kind.is_number() && kind != ElementType::Boolean {
            self.out.push(lead_byte::bracket(kind));
        }
        self.payload(value);
    }

    /// A field of a document.
    fn field(&mut self, name: &str, value: ValueRef<'_>) {
        self.out.push(lead_byte::bracket(value.element_type()));
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(lead_byte::END);
        self.payload(value);
    }

    /// The bytes after the lead byte; of numbers and booleans the lead byte, too.
    fn payload(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Raw(value) => self.raw_payload(value),
            ValueRef::Document(document) => self.owned_fields(document),
            ValueRef::Array(values) => self.owned_values(values),
            ValueRef::JavaScriptWithScope { code, scope } => {
                self.text(code);
                self.owned_fields(scope);
            }
        }
    }

    #[inline]
    fn raw_payload(&mut self, value: RawValue<'_>) {
        match value {
            RawValue::Int32(number) => self.integer(i64::from(number), NumberType::Int32),
            RawValue::Int64(number) => self.integer(number, NumberType::Int64),
            RawValue::Double(number) => self.double(number),
            RawValue::Decimal128(number) => self.decimal(number),
            RawValue::String(text) => {
                self.bits.push_zero();
                self.compared_text(text);
            }
            RawValue::Symbol(text) => {
                self.bits.push(1, 1);
                self.compared_text(text);
            }
            RawValue::Document(document) => self.raw_fields(document),
            RawValue::Array(array) => {
                for value in array.iter().map_while(Result::ok) {
                    self.part(ValueRef::Raw(value));
                }
                self.out.push(lead_byte::END);
            }
            RawValue::Binary(RawBinary { subtype, bytes }) => {
                self.length(bytes.len());
                self.out.push(subtype);
                self.out.extend_from_slice(bytes);
            }
            RawValue::ObjectId(id) => self.out.extend_from_slice(id.bytes()),
            RawValue::Boolean(false) => self.out.push(lead_byte::FALSE),
            RawValue::Boolean(true) => self.out.push(lead_byte::TRUE),
            RawValue::DateTime(milliseconds) => {
                let unsigned = milliseconds.cast_unsigned() ^ 1 << 63;
                self.out.extend_from_slice(&unsigned.to_be_bytes());
            }
            RawValue::Timestamp(timestamp) => self.out.extend_from_slice(&timestamp.to_u64().to_be_bytes()),
            RawValue::Regex(regex) => {
                self.text(regex.pattern);
                self.text(regex.options);
            }
            RawValue::DbPointer(pointer) => {
                self.length(pointer.namespace.len());
                self.out.extend_from_slice(pointer.namespace.as_bytes());
                self.out.extend_from_slice(pointer.id.bytes());
            }
            RawValue::JavaScript(code) => self.text(code),
            RawValue::JavaScriptWithScope(code) => {
                self.text(code.code);
                self.raw_fields(code.scope);
            }
            RawValue::MinKey | RawValue::Undefined | RawValue::Null | RawValue::MaxKey => {}
        }
    }

    fn raw_fields(&mut self, document: &RawDocument) {
        for (name, value) in document.iter().map_while(Result::ok) {
            self.field(name, ValueRef::Raw(value));
        }
        self.out.push(lead_byte::END);
    }

    fn owned_fields(&mut self, document: &Document) {
        for (name, value) in document.iter() {
            self.field(name, ValueRef::from(value));
        }
        self.out.push(lead_byte::END);
    }

    fn owned_values(&mut self, values: &[Value]) {
        for value in values {
            self.part(ValueRef::from(value));
        }
        self.out.push(lead_byte::END);
    }

    /// A string or a symbol.
    #[inline]
    fn compared_text(&mut self, text: &str) {
        if self.texts.are_own_bytes() {
            return self.text(text);
        }
        let mut key = Vec::with_capacity(2 * text.len() + 8);
        self.texts.append(text, &mut key);
        self.escaped(&key);
        self.out.push(lead_byte::END);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        if bytes.iter().all(|byte| *byte > lead_byte::ESCAPE) {
            self.out.extend_from_slice(bytes);
        } else {
            self.escaped(bytes);
        }
        self.out.push(lead_byte::END);
    }

    #[cold]
    fn escaped(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match *byte {
                byte @ (lead_byte::END | lead_byte::ESCAPE) => {
                    self.out.extend_from_slice(&[lead_byte::ESCAPE, byte + 1]);
                }
                byte => self.out.push(byte),
            }
        }
    }

    fn length(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(short) if short < lead_byte::LONG => self.out.push(short),
            _ => {
                let long = u32::try_from(length).expect("a value stays below 2 GiB");
                self.out.push(lead_byte::LONG);
                self.out.extend_from_slice(&long.to_be_bytes());
            }
        }
    }

    #[inline]
    fn integer(&mut self, number: i64, kind: NumberType) {
        if number == 0 {
            self.out.push(lead_byte::ZERO);
            let zero = if kind == NumberType::Int32 { Zero::Int32 } else { Zero::Int64 };
            return zero.push(self.bits);
        }
        kind.push(commonest_of_integer(number), self.bits);
        let magnitude = number.unsigned_abs();
        // Only the least Int64 is no `Whole`; 2^63 is a double.
        let size = match magnitude {
            crate::magnitude::WHOLE_END => size_of_f64(magnitude as f64),
            whole => Size::Whole { whole, fraction: 0 },
        };
        self.magnitude(number < 0, size, &Rest::NONE);
    }

    fn double(&mut self, number: f64) {
        if number == 0.0 {
            self.out.push(lead_byte::ZERO);
            return Zero::Double { negative: number.is_sign_negative() }.push(self.bits);
        }
        if number.is_nan() || number.is_infinite() {
            self.bits.push_zero();
            return self.out.push(not_finite(number.is_nan(), number < 0.0));
        }
        NumberType::Double.push(commonest_of_double(number), self.bits);
        self.magnitude(number < 0.0, size_of_f64(number.abs()), &Rest::NONE);
    }

    fn decimal(&mut self, number: Decimal128) {
        let (negative, coefficient, exponent) = match number.parts() {
            DecimalParts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
            DecimalParts::Infinity { negative } => {
                self.bits.push(1, 1);
                return self.out.push(not_finite(false, negative));
            }
            DecimalParts::NaN => {
                self.bits.push(1, 1);
                return self.out.push(lead_byte::NAN);
            }
        };
        if coefficient == 0 {
            self.out.push(lead_byte::ZERO);
            return Zero::Decimal { negative, exponent }.push(self.bits);
        }
        let shortest = Shortest::of(coefficient, exponent);
        let (size, rest) = shortest.magnitude();
        if rest.is_none() {
            let kind = NumberType::Decimal { zeros: shortest.zeros };
            kind.push(commonest_of_size(negative, size), self.bits);
        } else {
            push_rest_zeros(shortest.zeros, self.bits);
        }
        self.magnitude(negative, size, &rest);
    }

    #[inline]
    fn magnitude(&mut self, negative: bool, size: Size, rest: &Rest) {
        let start = self.out.len();
        self.out.push(0);
        let distance = match size {
            Size::Small(bits) => {
                self.doubled(bits, rest);
                lead_byte::SMALL
            }
            Size::Large(bits) => {
                self.doubled(bits, rest);
                lead_byte::LARGE
            }
            Size::Whole { whole, fraction } => lead_byte::WHOLE + self.whole(whole, fraction, rest),
        };
        self.out[start] = if negative { lead_byte::ZERO - distance } else { lead_byte::ZERO + distance };
        if negative {
            invert(&mut self.out[start + 1..]);
        }
    }

    fn doubled(&mut self, bits: u64, rest: &Rest) {
        let bits = bits << 1 | u64::from(!rest.is_none());
        self.out.extend_from_slice(&bits.to_be_bytes());
        if !rest.is_none() {
            let places = u16::try_from(rest.places + PLACES_BIAS).expect("a decimal has at most 6145 places");
            self.out.extend_from_slice(&places.to_be_bytes());
            self.digit_pairs(rest);
        }
    }

    /// Gives the bytes that *whole* took.
    #[inline]
    fn whole(&mut self, whole: u64, fraction: u64, rest: &Rest) -> u8 {
        let follows = fraction != 0 || !rest.is_none();
        let word = whole << 1 | u64::from(follows);
        let bytes = 8 - word.leading_zeros() as usize / 8;
        self.out.extend_from_slice(&word.to_be_bytes()[8 - bytes..]);
        if follows {
            self.fraction(fraction, group_bits(whole), rest);
        }
        bytes as u8
    }

    fn fraction(&mut self, mut fraction: u64, mut bits_left: u32, rest: &Rest) {
        while bits_left > 0 && (fraction != 0 || !rest.is_none()) {
            let group = (fraction >> 57) as u8;
            fraction <<= 7;
            bits_left -= 7;
            let follows = fraction != 0 || !rest.is_none();
            self.out.push(group << 1 | u8::from(follows));
        }
        if !rest.is_none() {
            self.digit_pairs(rest);
        }
    }

    fn digit_pairs(&mut self, rest: &Rest) {
        let mut pairs = rest.digits().chunks(2).peekable();
        while let Some(pair) = pairs.next() {
            let value = pair[0] * 10 + pair.get(1).copied().unwrap_or(0);
            self.out.push(value << 1 | u8::from(pairs.peek().is_some()));
        }
    }
}

/// Added to the places of a rest, so that they are not negative.
pub(crate) const PLACES_BIAS: i32 = 6200;

fn not_finite(nan: bool, negative: bool) -> u8 {
    match (nan, negative) {
        (true, _) => lead_byte::NAN,
        (false, true) => lead_byte::ZERO - lead_byte::INFINITE,
        (false, false) => lead_byte::ZERO + lead_byte::INFINITE,
    }
}

/// The commonest type of an integer.
#[inline]
pub(crate) fn commonest_of_integer(number: i64) -> NumberType {
    if i32::try_from(number).is_ok() { NumberType::Int32 } else { NumberType::Int64 }
}

/// The commonest type of a double's value.
fn commonest_of_double(number: f64) -> NumberType {
    RawValue::Double(number).as_i64_exact().map_or(NumberType::Double, commonest_of_integer)
}

/// The commonest type of a number without rest.
pub(crate) fn commonest_of_size(negative: bool, size: Size) -> NumberType {
    let sign = if negative { -1 } else { 1 };
    match size {
        Size::Whole { whole, fraction: 0 } => match i64::try_from(whole) {
            Ok(whole) => commonest_of_integer(sign * whole),
            Err(_) => NumberType::Double,
        },
        Size::Whole { .. } | Size::Small(_) => NumberType::Double,
        Size::Large(bits) => commonest_of_double(f64::from_bits(bits) * sign as f64),
    }
}
