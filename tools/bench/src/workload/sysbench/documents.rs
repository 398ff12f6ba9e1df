//! The sysbench documents: `_id` int32 from 1, `k` int32 uniform in 1..=N, `c` 119 characters, `pad` 59
//! characters; 217 bytes of BSON. They stand in collections `sbtest1` to `sbtestC` of one database, N in
//! each, with an index on `k`.
//!
//! The documents of a collection hang on the seed and the collection's number only; draws are in the order k,
//! c, pad.

use pando_document::DocumentWriter;
use pando_measuring::random::{Generator, Random, mask};

/// The bytes of one document.
pub const DOCUMENT_BYTES: usize = 217;

/// Which documents there are.
#[derive(Clone, Debug, serde::Serialize)]
pub struct DataSet {
    /// The database, or what the names of several databases begin with.
    pub database: String,
    /// The number of databases that the collections are spread over.
    pub databases: u32,
    /// The number of collections.
    pub collections: u32,
    /// Documents per collection.
    pub documents: u32,
}

impl DataSet {
    /// Database and name of a collection, counted from 1. Of several databases, the first holds the first
    /// collection, the second the second, and so on around.
    pub fn place(&self, number: u32) -> (String, String) {
        let database = match self.databases {
            1 => self.database.clone(),
            databases => format!("{}{}", self.database, (number - 1) % databases + 1),
        };
        (database, format!("sbtest{number}"))
    }

    /// The places of all collections.
    pub fn all(&self) -> impl Iterator<Item = (String, String)> + '_ {
        (1..=self.collections).map(|number| self.place(number))
    }
}

/// The documents of one collection, in order of `_id`.
#[derive(Debug)]
pub struct Documents {
    random: Random,
    count: u32,
    next_id: u32,
    text: String,
}

impl Documents {
    /// The documents of a collection, counted from 1, of so many documents.
    pub fn new(generator: Generator, seed: u64, collection: u32, count: u32) -> Documents {
        let random = Random::for_collection(generator, seed, u64::from(collection));
        Documents { random, count, next_id: 1, text: String::new() }
    }

    /// How many are left.
    pub fn left(&self) -> u32 {
        self.count + 1 - self.next_id
    }

    /// The next document's values.
    pub fn next_row(&mut self) -> Row<'_> {
        assert!(self.left() > 0, "the collection is complete");
        let as_int32 = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let (id, k) = (as_int32(self.next_id), as_int32(self.random.below(self.count) + 1));
        self.text.clear();
        mask::append(&mut self.text, mask::C, &mut self.random);
        mask::append(&mut self.text, mask::PAD, &mut self.random);
        self.next_id += 1;
        let (c, pad) = self.text.split_at(mask::C.len());
        Row { id, k, c, pad }
    }

    pub(crate) fn append_next(&mut self, out: &mut Vec<u8>) {
        let row = self.next_row();
        let mut writer = DocumentWriter::begin(out);
        writer.append_i32("_id", row.id);
        writer.append_i32("k", row.k);
        writer.append_str("c", row.c);
        writer.append_str("pad", row.pad);
        writer.finish();
    }
}

/// The values of one document.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// `_id`.
    pub id: i32,
    /// `k`.
    pub k: i32,
    /// `c`.
    pub c: &'a str,
    /// `pad`.
    pub pad: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::RawDocument;

    fn first(generator: Generator) -> Vec<u8> {
        let mut out = Vec::new();
        Documents::new(generator, 0, 1, 1000).append_next(&mut out);
        out
    }

    #[test]
    fn the_first_document_with_java_numbers_is_the_originals() {
        let bytes = first(Generator::Java);
        let document = RawDocument::from_bytes(&bytes).expect("a document");
        let text = |name: &str| {
            let value = document.get(name).expect("sound").expect("there");
            value.as_str().expect("a string").to_owned()
        };
        let number = |name: &str| document.get(name).expect("sound").expect("there").as_i64_exact();
        assert_eq!((number("_id"), number("k")), (Some(1), Some(986)));
        assert_eq!(
            text("c"),
            "87344468893-73242269620-94983725406-35905450777-20807236565-89440163868-45896582721-17821859959-\
             07640351160-42454483377"
        );
        assert_eq!(text("pad"), "01376750983-06661949810-55641668812-30952342371-57477967936");
    }

    #[test]
    fn collections_go_around_the_databases() {
        let data = |databases| DataSet { database: "sb".into(), databases, collections: 3, documents: 1 };
        let places: Vec<String> =
            data(2).all().map(|(database, name)| format!("{database}.{name}")).collect();
        assert_eq!(places, ["sb1.sbtest1", "sb2.sbtest2", "sb1.sbtest3"]);
        assert_eq!(data(1).place(2), ("sb".into(), "sbtest2".into()));
    }

    #[test]
    fn every_document_has_the_originals_size() {
        assert_eq!(first(Generator::Xoshiro).len(), DOCUMENT_BYTES);
    }

    #[test]
    fn a_collection_is_the_same_each_time_and_differs_from_its_neighbour() {
        let all = |collection| {
            let mut documents = Documents::new(Generator::Xoshiro, 9, collection, 3);
            let mut out = Vec::new();
            while documents.left() > 0 {
                documents.append_next(&mut out);
            }
            out
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        assert_eq!(all(1).len(), 3 * DOCUMENT_BYTES);
    }
}
