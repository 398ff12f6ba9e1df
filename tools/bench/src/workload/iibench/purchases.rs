//! The documents: a purchase each. Fields in their order: `_id` (an ObjectId, ascending), `dateandtime`
//! (int64, milliseconds since 1970), `cashregisterid`, `customerid`, `productid` (int32), `price` (double),
//! then texts `cf1` to `cfM`.
//!
//! Draws are in the original's order: customer, price, cash register, product, then an offset for each text.
//! The original's price is almost the customer over again (its width is 5, its range 1,005), so that two of
//! the three indexes have nearly the same order; [`Price::Independent`] draws it alone.
//!
//! A text is a piece of random letters and a piece of `a`s, cut at random out of buffers that are made once.

use pando_document::{DocumentWriter, ObjectId};
use pando_measuring::random::{Generator, Random, split_mix};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const CUSTOMERS: u32 = 100_000;
const PRODUCTS: u32 = 10_000;
const CASH_REGISTERS: u32 = 1000;
/// The price's own width, in cents.
const PRICE_WIDTH: f64 = 500.0;
/// The length of the buffer that texts are cut out of.
const BUFFER_BYTES: u32 = 4 * 1024 * 1024;
/// The bytes of a document without texts.
const PLAIN_BYTES: u32 = 109;

/// How the price is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// Around the customer's number, as the original does.
    NearCustomer,
    /// Over the same range, whoever the customer is.
    Independent,
}

/// How the primary key is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrimaryKey {
    /// Each higher than the last: inserts go to the right edge.
    Ascending,
    /// Anywhere.
    Random,
}

/// The shape of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shape {
    /// How many texts a document has.
    pub texts: u32,
    /// The characters of each.
    pub text_bytes: u32,
    /// How many of a hundred of these are `a`.
    pub compressible_percent: u32,
    /// How the price is drawn.
    pub price: Price,
    /// How the primary key is made.
    pub primary_key: PrimaryKey,
}

impl Shape {
    /// Without texts, as the post ran it.
    #[cfg(test)]
    pub const PLAIN: Shape = Shape {
        texts: 0,
        text_bytes: 1000,
        compressible_percent: 90,
        price: Price::NearCustomer,
        primary_key: PrimaryKey::Ascending,
    };

    /// The characters of a text, by kind: random ones, and `a`s. Each part is rounded down, as the original
    /// does.
    fn text_parts(&self) -> (u32, u32) {
        let percent = u64::from(self.compressible_percent);
        let part =
            |percent: u64| u32::try_from(u64::from(self.text_bytes) * percent / 100).unwrap_or(u32::MAX);
        (part(100 - percent), part(percent))
    }

    /// The bytes of a document.
    pub fn document_bytes(&self) -> u32 {
        let (random, same) = self.text_parts();
        let names: u32 = (1..=self.texts).map(|number| number.to_string().len() as u32 + 2).sum();
        // Of each text: type, name and its end, length, characters and their end.
        PLAIN_BYTES + names + self.texts * (1 + 1 + 4 + random + same + 1)
    }
}

/// The purchases of one client.
#[derive(Debug)]
pub struct Purchases {
    shape: Shape,
    random: Random,
    process: [u8; 5],
    next_id: Arc<AtomicU32>,
    letters: Vec<u8>,
    text: String,
}

impl Purchases {
    /// Of this client, counted from 0.
    pub fn new(shape: Shape, generator: Generator, seed: u64, client: u32) -> Purchases {
        let bits = split_mix(seed ^ split_mix(u64::from(client))).to_be_bytes();
        let mut letters = Vec::new();
        if shape.texts > 0 {
            let mut random = Random::for_client(Generator::Xoshiro, seed, u64::from(client) | 1 << 40);
            letters = (0..BUFFER_BYTES + shape.text_bytes)
                .map(|_| b'a' + u8::try_from(random.below(26)).unwrap_or(0))
                .collect();
        }
        Purchases {
            shape,
            random: Random::for_client(generator, seed, u64::from(client)),
            process: [bits[0], bits[1], bits[2], bits[3], bits[4]],
            next_id: Arc::default(),
            letters,
            text: String::new(),
        }
    }

    /// The next purchase, but for its texts.
    pub fn next_purchase(&mut self) -> Purchase {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let draw = Draw::next(&mut self.random, self.shape.price);
        let milliseconds = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        Purchase { id: self.id(now.as_secs()), milliseconds, draw }
    }

    /// Its next text.
    pub fn next_text(&mut self) -> &str {
        let (random_bytes, same_bytes) = self.shape.text_parts();
        let from = self.random.below(BUFFER_BYTES) as usize;
        let letters = &self.letters[from..from + random_bytes as usize];
        self.text.clear();
        self.text.push_str(std::str::from_utf8(letters).expect("letters are ASCII"));
        self.text.extend(std::iter::repeat_n('a', same_bytes as usize));
        &self.text
    }

    pub(crate) fn append_next(&mut self, out: &mut Vec<u8>) {
        let Purchase { id, milliseconds, draw } = self.next_purchase();
        let as_int32 = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let mut writer = DocumentWriter::begin(out);
        writer.append_object_id("_id", id);
        writer.append_i64("dateandtime", milliseconds);
        writer.append_i32("cashregisterid", as_int32(draw.cash_register));
        writer.append_i32("customerid", as_int32(draw.customer));
        writer.append_i32("productid", as_int32(draw.product));
        writer.append_f64("price", draw.price);
        for number in 1..=self.shape.texts {
            writer.append_str(&format!("cf{number}"), self.next_text());
        }
        writer.finish();
    }

    fn id(&mut self, seconds: u64) -> ObjectId {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed) & 0x00FF_FFFF;
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        match self.shape.primary_key {
            PrimaryKey::Ascending => ObjectId::from_parts(seconds, self.process, number),
            PrimaryKey::Random => {
                // From a stream of its own: the draws of the fields stay the original's. Mixing is a
                // bijection, so that no two numbers of a client give the same 8 bytes.
                let client = u64::from_be_bytes([
                    0,
                    0,
                    0,
                    self.process[0],
                    self.process[1],
                    self.process[2],
                    self.process[3],
                    self.process[4],
                ]);
                let bits =
                    split_mix(client.wrapping_mul(1 << 24).wrapping_add(u64::from(number))).to_be_bytes();
                let first = u32::from_be_bytes([bits[0], bits[1], bits[2], bits[3]]);
                ObjectId::from_parts(first, [bits[4], bits[5], bits[6], bits[7], self.process[4]], number)
            }
        }
    }
}

/// One purchase, but for its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Purchase {
    /// Its primary key.
    pub id: ObjectId,
    /// When it was made, since 1970.
    pub milliseconds: i64,
    /// Its numbers.
    pub draw: Draw,
}

/// The numbers of one purchase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// `customerid`.
    pub customer: u32,
    /// `price`.
    pub price: f64,
    /// `cashregisterid`.
    pub cash_register: u32,
    /// `productid`.
    pub product: u32,
}

impl Draw {
    pub(crate) fn next(random: &mut Random, price: Price) -> Draw {
        let customer = random.below(CUSTOMERS);
        let width = random.unit();
        let price = match price {
            Price::NearCustomer => (width * PRICE_WIDTH + f64::from(customer)) / 100.0,
            Price::Independent => width * (PRICE_WIDTH + f64::from(CUSTOMERS)) / 100.0,
        };
        Draw { customer, price, cash_register: random.below(CASH_REGISTERS), product: random.below(PRODUCTS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::{Document, RawDocument};

    fn first(shape: Shape, generator: Generator) -> (usize, Document) {
        let mut out = Vec::new();
        Purchases::new(shape, generator, 0, 0).append_next(&mut out);
        let document = RawDocument::from_bytes(&out).expect("a document");
        (out.len(), Document::from_raw(document).expect("sound"))
    }

    #[test]
    fn documents_have_the_sizes_and_fields_of_the_specification() {
        let (bytes, document) = first(Shape::PLAIN, Generator::Xoshiro);
        assert_eq!((bytes, Shape::PLAIN.document_bytes()), (109, 109));
        let names: Vec<&str> = document.names().collect();
        assert_eq!(names, ["_id", "dateandtime", "cashregisterid", "customerid", "productid", "price"]);
        let one_text = Shape { texts: 1, ..Shape::PLAIN };
        let (bytes, document) = first(one_text, Generator::Xoshiro);
        assert_eq!((bytes, one_text.document_bytes()), (1119, 1119));
        let text = document.get("cf1").and_then(|text| text.as_str()).expect("a text").to_owned();
        assert_eq!(text.len(), 1000);
        assert!(text.ends_with(&"a".repeat(900)), "nine tenths compress");
        let many = Shape { texts: 12, text_bytes: 50, ..Shape::PLAIN };
        assert_eq!(first(many, Generator::Xoshiro).0, many.document_bytes() as usize);
    }

    #[test]
    fn with_java_numbers_the_draws_are_the_originals() {
        // Java itself says of `new Random(0)`: nextInt(100000), nextDouble(), nextInt(1000), nextInt(10000)
        // are these.
        let (_, document) = first(Shape::PLAIN, Generator::Java);
        let number = |name: &str| document.get(name).and_then(|value| value.as_i64_exact());
        assert_eq!((number("customerid"), number("cashregisterid")), (Some(41_360), Some(447)));
        assert_eq!(number("productid"), Some(3515));
        let price = (0.831_440_988_787_061_2 * 500.0 + 41_360.0) / 100.0;
        assert!(
            matches!(document.get("price"), Some(pando_document::Value::Double(found)) if *found == price)
        );
    }

    #[test]
    fn the_originals_price_follows_the_customer_and_the_other_does_not() {
        let correlation = |price| {
            let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
            let draws: Vec<Draw> = (0..5000).map(|_| Draw::next(&mut random, price)).collect();
            let mean = |of: &dyn Fn(&Draw) -> f64| draws.iter().map(of).sum::<f64>() / 5000.0;
            let (customer, price) = (mean(&|d| f64::from(d.customer)), mean(&|d| d.price));
            let covariance = mean(&|d| (f64::from(d.customer) - customer) * (d.price - price));
            let deviation = |of: &dyn Fn(&Draw) -> f64| mean(of).sqrt();
            covariance
                / deviation(&|d| (f64::from(d.customer) - customer).powi(2))
                / deviation(&|d| (d.price - price).powi(2))
        };
        assert!(correlation(Price::NearCustomer) > 0.999);
        assert!(correlation(Price::Independent).abs() < 0.06);
    }

    #[test]
    fn prices_stay_in_the_range_of_the_specification() {
        let mut random = Random::for_client(Generator::Xoshiro, 1, 1);
        for price in [Price::NearCustomer, Price::Independent] {
            assert!((0..5000).all(|_| (0.0..1005.0).contains(&Draw::next(&mut random, price).price)));
        }
    }

    #[test]
    fn keys_of_one_client_ascend_or_are_anywhere_and_none_comes_twice() {
        let ids = |primary_key| {
            let mut purchases =
                Purchases::new(Shape { primary_key, ..Shape::PLAIN }, Generator::Xoshiro, 0, 3);
            (0..2000).map(|_| purchases.id(1_700_000_000).to_hex()).collect::<Vec<String>>()
        };
        assert!(ids(PrimaryKey::Ascending).is_sorted());
        let mut random = ids(PrimaryKey::Random);
        assert!(!random.is_sorted());
        random.sort();
        random.dedup();
        assert_eq!(random.len(), 2000);
    }
}
