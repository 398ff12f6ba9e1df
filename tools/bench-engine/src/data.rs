//! The data: purchases, as iibench has them, each told by its number, so that whatever is read can be
//! checked.
//!
//! A document has 308 bytes of BSON: `_id`, `dateandtime`, `cashregisterid`, `customerid`, `productid`,
//! `price`, and a text of 100 random letters and 89 equal ones. Its trees:
//!
//! | tree | key | bytes | value |
//! |---|---|---|---|
//! | [`DOCUMENTS`] | primary key, ascending | 13 | the document |
//! | 1 | price, customer, primary key | 27 | |
//! | 2 | cash register, price, customer, primary key | 32 | |
//! | 3 | price, date, customer, primary key | 36 | |
//!
//! Keys are order-preserving bytes: of each field a byte for its type, then the number, most significant byte
//! first.

use pando_document::{DocumentWriter, ObjectId};

use crate::random::scattered;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree(u32);

impl Tree {
    pub const fn new(place: u32) -> Tree {
        Tree(place)
    }

    /// Its place, from 0.
    pub const fn place(self) -> u32 {
        self.0
    }

    /// Its name, for peers that name their trees.
    pub fn name(self) -> String {
        format!("tree{:06}", self.0)
    }
}

/// The documents, by primary key.
pub const DOCUMENTS: Tree = Tree::new(0);
/// The indexes.
pub const INDEXES: [Tree; 3] = [Tree::new(1), Tree::new(2), Tree::new(3)];
/// How many trees there are.
pub const TREES: u32 = 4;
/// Bytes of a document.
pub const DOCUMENT_BYTES: u64 = 308;
/// Bytes of keys and values of a document and its three index entries.
pub const RAW_BYTES: u64 = PRIMARY_KEY_BYTES as u64 + DOCUMENT_BYTES + 27 + 32 + 36;
/// Bytes of a primary key.
pub const PRIMARY_KEY_BYTES: usize = 13;

const CUSTOMERS: u64 = 100_000;
const CASH_REGISTERS: u64 = 1_000;
const PRODUCTS: u64 = 10_000;
/// Width of the price around the customer's number, in cents, as in the original.
const PRICE_WIDTH: f64 = 500.0;
const RANDOM_LETTERS: usize = 100;
const EQUAL_LETTERS: usize = 89;
/// 26^13 is the greatest power of 26 in 64 bits.
const LETTERS_A_DRAW: usize = 13;
/// Where the clock of the data begins: November 2023.
const FIRST_SECOND: u32 = 1_700_000_000;
/// Documents with the same second in their primary key.
const DOCUMENTS_A_SECOND: u64 = 100_000;
const PROCESS: [u8; 5] = [0x70, 0x61, 0x6E, 0x64, 0x6F];
const NUMBER_TAG: u8 = 0x2B;
const ID_TAG: u8 = 0x64;

/// All purchases of a seed.
#[derive(Clone, Copy, Debug)]
pub struct Purchases {
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Purchase {
    customer: u32,
    cash_register: u32,
    product: u32,
    price: f64,
    milliseconds: i64,
}

impl Purchases {
    pub fn new(seed: u64) -> Purchases {
        Purchases { seed: scattered(seed) }
    }

    /// Of a number of 13 random bits and more: the same for the same field and document.
    fn draw(&self, number: u64, field: u64) -> u64 {
        scattered(self.seed ^ (number << 5) ^ field)
    }

    fn below(&self, number: u64, field: u64, bound: u64) -> u32 {
        let product = u128::from(self.draw(number, field)) * u128::from(bound);
        u32::try_from(product >> 64).expect("bounds have at most 32 bits")
    }

    fn purchase(&self, number: u64) -> Purchase {
        let customer = self.below(number, 0, CUSTOMERS);
        let width = (self.draw(number, 1) >> 11) as f64 / (1_u64 << 53) as f64;
        Purchase {
            customer,
            cash_register: self.below(number, 2, CASH_REGISTERS),
            product: self.below(number, 3, PRODUCTS),
            price: (width * PRICE_WIDTH + f64::from(customer)) / 100.0,
            milliseconds: i64::from(FIRST_SECOND) * 1_000 + number as i64,
        }
    }

    /// Appends the document of a number. Version 0 is what is loaded; an update sets the product to its
    /// version.
    pub fn write_document(&self, number: u64, version: u32, out: &mut Vec<u8>) {
        let purchase = self.purchase(number);
        let as_int32 = |value: u32| i32::try_from(value).expect("all numbers of the data are small");
        let product = if version == 0 { purchase.product } else { version };
        let mut writer = DocumentWriter::begin(out);
        writer.append_object_id("_id", object_id(number));
        writer.append_i64("dateandtime", purchase.milliseconds);
        writer.append_i32("cashregisterid", as_int32(purchase.cash_register));
        writer.append_i32("customerid", as_int32(purchase.customer));
        writer.append_i32("productid", as_int32(product));
        writer.append_f64("price", purchase.price);
        let mut text = [b'a'; RANDOM_LETTERS + EQUAL_LETTERS];
        for (part, letters) in text[..RANDOM_LETTERS].chunks_mut(LETTERS_A_DRAW).enumerate() {
            let mut bits = self.draw(number, 8 + part as u64);
            for letter in letters {
                *letter = b'a' + (bits % 26) as u8;
                bits /= 26;
            }
        }
        writer.append_str("cf1", std::str::from_utf8(&text).expect("letters are ASCII"));
        writer.finish();
    }

    /// Appends the key of a document in one of [`INDEXES`].
    pub fn write_index_key(&self, index: Tree, number: u64, out: &mut Vec<u8>) {
        let purchase = self.purchase(number);
        match index.place() {
            1 => push_price(purchase.price, out),
            2 => {
                push_u32(purchase.cash_register, out);
                push_price(purchase.price, out);
            }
            3 => {
                push_price(purchase.price, out);
                out.push(NUMBER_TAG);
                out.extend_from_slice(&purchase.milliseconds.to_be_bytes());
            }
            place => panic!("there is no index {place}"),
        }
        push_u32(purchase.customer, out);
        out.extend_from_slice(&primary_key(number));
    }

    /// Whether these bytes are the document of a number, in any version that is not below `version_min`.
    /// Looks at `_id`, length and product; every 16th number at all bytes.
    pub fn check(&self, number: u64, versions: std::ops::RangeInclusive<u32>, document: &[u8]) -> bool {
        let id_matches = document.get(9..21) == Some(&object_id(number).bytes()[..]);
        if document.len() as u64 != DOCUMENT_BYTES || !id_matches {
            return false;
        }
        if *versions.end() > 0 {
            let mut expected = Vec::with_capacity(DOCUMENT_BYTES as usize);
            return versions.into_iter().any(|version| {
                expected.clear();
                self.write_document(number, version, &mut expected);
                expected == document
            });
        }
        if !number.is_multiple_of(16) {
            return true;
        }
        let mut expected = Vec::with_capacity(DOCUMENT_BYTES as usize);
        self.write_document(number, 0, &mut expected);
        expected == document
    }
}

/// The primary key of a document: ascending with its number.
pub fn primary_key(number: u64) -> [u8; PRIMARY_KEY_BYTES] {
    let mut key = [ID_TAG; PRIMARY_KEY_BYTES];
    key[1..].copy_from_slice(&object_id(number).bytes()[..]);
    key
}

/// The number whose primary key these bytes end with; nothing if there is none.
pub fn number_at_end(key: &[u8]) -> Option<u64> {
    let id: [u8; PRIMARY_KEY_BYTES] = *key.last_chunk()?;
    let second = u32::from_be_bytes([id[1], id[2], id[3], id[4]]).checked_sub(FIRST_SECOND)?;
    let counter = u32::from_be_bytes([0, id[10], id[11], id[12]]);
    let number = u64::from(second) * DOCUMENTS_A_SECOND + u64::from(counter);
    (primary_key(number) == id).then_some(number)
}

fn object_id(number: u64) -> ObjectId {
    let seconds = FIRST_SECOND + u32::try_from(number / DOCUMENTS_A_SECOND).expect("there are not so many");
    ObjectId::from_parts(seconds, PROCESS, (number % DOCUMENTS_A_SECOND) as u32)
}

fn push_u32(value: u32, out: &mut Vec<u8>) {
    out.push(NUMBER_TAG);
    out.extend_from_slice(&value.to_be_bytes());
}

/// Bits of doubles that are not negative are ordered as they are.
fn push_price(price: f64, out: &mut Vec<u8>) {
    out.push(NUMBER_TAG);
    out.extend_from_slice(&price.to_bits().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(number: u64, version: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        Purchases::new(7).write_document(number, version, &mut bytes);
        bytes
    }

    #[test]
    fn a_document_has_the_stated_size_and_follows_from_its_number() {
        assert_eq!(document(5, 0).len() as u64, DOCUMENT_BYTES);
        assert_eq!(document(5, 0), document(5, 0));
        assert_ne!(document(5, 0), document(6, 0));
    }

    #[test]
    fn keys_have_the_stated_sizes() {
        let key = |index| {
            let mut key = Vec::new();
            Purchases::new(7).write_index_key(index, 123_456, &mut key);
            key.len()
        };
        assert_eq!(INDEXES.map(key), [27, 32, 36]);
        assert_eq!(RAW_BYTES, 13 + 308 + 27 + 32 + 36);
    }

    #[test]
    fn primary_keys_ascend_across_a_second() {
        let numbers = DOCUMENTS_A_SECOND - 3..DOCUMENTS_A_SECOND + 3;
        let keys: Vec<_> = numbers.clone().map(primary_key).collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().map(|key| number_at_end(key)).eq(numbers.map(Some)));
        assert_eq!(number_at_end(b"no key at all"), None);
    }

    #[test]
    fn a_check_tells_another_document_and_another_version() {
        let purchases = Purchases::new(7);
        assert!(purchases.check(16, 0..=0, &document(16, 0)));
        assert!(!purchases.check(16, 0..=0, &document(17, 0)));
        assert!(!purchases.check(16, 0..=0, &document(16, 3)));
        assert!(purchases.check(16, 3..=3, &document(16, 3)));
        assert!(!purchases.check(16, 4..=5, &document(16, 3)));
        assert!(purchases.check(16, 2..=5, &document(16, 3)));
        assert!(!purchases.check(16, 0..=0, b"short"));
    }

    #[test]
    fn index_keys_are_in_the_order_of_their_fields() {
        let purchases = Purchases::new(7);
        let mut prices: Vec<(f64, u64)> = (0..200).map(|n| (purchases.purchase(n).price, n)).collect();
        prices.sort_by(|a, b| a.0.total_cmp(&b.0));
        let key = |n| {
            let mut key = Vec::new();
            purchases.write_index_key(INDEXES[0], n, &mut key);
            key
        };
        assert!(prices.iter().map(|(_, n)| key(*n)).collect::<Vec<_>>().is_sorted());
    }
}
