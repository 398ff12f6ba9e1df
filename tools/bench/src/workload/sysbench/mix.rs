//! The statements of a transaction, and their keys.
//!
//! The order is fixed; one collection serves a whole transaction. Draws come in the original's order: the
//! collection, then for each statement its key, then what it writes (`k`, `c`, `pad`). So the same seed and
//! client give the same statements on every target.

use super::documents::DataSet;
use crate::client::Kind;
use pando_measuring::random::{Generator, Random, mask};

/// How many statements of each kind a transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mix {
    /// Queries by `_id`.
    pub points: u32,
    /// Ranges of `_id`.
    pub simple_ranges: u32,
    /// Sums of `k` over a range.
    pub sum_ranges: u32,
    /// Ranges sorted by `c`.
    pub order_ranges: u32,
    /// Different values of `c` in a range.
    pub distinct_ranges: u32,
    /// Updates of `k`, which an index has.
    pub index_updates: u32,
    /// Updates of `c`, which none has.
    pub non_index_updates: u32,
    /// A delete, and an insert of the same `_id`.
    pub delete_inserts: u32,
    /// Documents in a range.
    pub range_size: u32,
}

impl Mix {
    /// The original's defaults: 18 statements.
    #[cfg(test)]
    pub const DEFAULT: Mix = Mix {
        points: 10,
        simple_ranges: 1,
        sum_ranges: 1,
        order_ranges: 1,
        distinct_ranges: 1,
        index_updates: 1,
        non_index_updates: 1,
        delete_inserts: 1,
        range_size: 100,
    };

    /// Statements in a transaction.
    pub fn statements(&self) -> u32 {
        let ranges = self.simple_ranges + self.sum_ranges + self.order_ranges + self.distinct_ranges;
        self.points + ranges + self.index_updates + self.non_index_updates + 2 * self.delete_inserts
    }
}

/// The names of the kinds of statements, in the order of [`Statement::kind`].
pub const KINDS: [&str; 9] = [
    "point",
    "simple range",
    "sum range",
    "order range",
    "distinct range",
    "index update",
    "non-index update",
    "delete",
    "insert",
];

/// A statement. Ids count from 1; a range begins at `from`; `k`, `c` and `pad` are fields of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the document, and are named so")]
pub enum Statement {
    /// Field `c` of one document.
    Point { id: i32 },
    /// Field `c` of a range.
    SimpleRange { from: i32 },
    /// The sum of `k` over a range.
    SumRange { from: i32 },
    /// Field `c` of a range, sorted.
    OrderRange { from: i32 },
    /// The different `c` of a range.
    DistinctRange { from: i32 },
    /// `k` plus 1.
    IndexUpdate { id: i32 },
    /// A new `c`.
    NonIndexUpdate { id: i32, c: String },
    /// Removes one document.
    Delete { id: i32 },
    /// The same `_id` again.
    Insert { id: i32, k: i32, c: String, pad: String },
}

impl Statement {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        Kind::new(match self {
            Statement::Point { .. } => 0,
            Statement::SimpleRange { .. } => 1,
            Statement::SumRange { .. } => 2,
            Statement::OrderRange { .. } => 3,
            Statement::DistinctRange { .. } => 4,
            Statement::IndexUpdate { .. } => 5,
            Statement::NonIndexUpdate { .. } => 6,
            Statement::Delete { .. } => 7,
            Statement::Insert { .. } => 8,
        })
    }
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its collection, counted from 1.
    pub collection: u32,
    /// Its statements, in order.
    pub statements: Vec<Statement>,
}

/// The transactions of one client.
#[derive(Clone, Debug)]
pub struct Transactions {
    mix: Mix,
    collections: u32,
    documents: u32,
    random: Random,
}

impl Transactions {
    /// By this stream of draws.
    pub fn new(mix: Mix, data: &DataSet, generator: Generator, seed: u64, stream: u64) -> Transactions {
        let random = Random::for_client(generator, seed, stream);
        Transactions { mix, collections: data.collections, documents: data.documents, random }
    }

    /// The next one.
    pub fn next_transaction(&mut self) -> Transaction {
        let collection = self.random.below(self.collections) + 1;
        let mix = self.mix;
        let mut statements = Vec::with_capacity(mix.statements() as usize);
        statements.extend((0..mix.points).map(|_| Statement::Point { id: self.key() }));
        statements.extend((0..mix.simple_ranges).map(|_| Statement::SimpleRange { from: self.key() }));
        statements.extend((0..mix.sum_ranges).map(|_| Statement::SumRange { from: self.key() }));
        statements.extend((0..mix.order_ranges).map(|_| Statement::OrderRange { from: self.key() }));
        statements.extend((0..mix.distinct_ranges).map(|_| Statement::DistinctRange { from: self.key() }));
        statements.extend((0..mix.index_updates).map(|_| Statement::IndexUpdate { id: self.key() }));
        for _ in 0..mix.non_index_updates {
            statements.push(Statement::NonIndexUpdate { id: self.key(), c: self.text(mask::C) });
        }
        for _ in 0..mix.delete_inserts {
            let id = self.key();
            statements.push(Statement::Delete { id });
            let (k, c, pad) = (self.key(), self.text(mask::C), self.text(mask::PAD));
            statements.push(Statement::Insert { id, k, c, pad });
        }
        Transaction { collection, statements }
    }

    /// A number from 1 to the documents of a collection.
    fn key(&mut self) -> i32 {
        i32::try_from(self.random.below(self.documents) + 1).unwrap_or(i32::MAX)
    }

    fn text(&mut self, mask: &str) -> String {
        let mut text = String::with_capacity(mask.len());
        mask::append(&mut text, mask, &mut self.random);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transactions(generator: Generator, client: u32) -> Transactions {
        let data = DataSet { database: "sbtest".into(), databases: 1, collections: 8, documents: 1000 };
        Transactions::new(Mix::DEFAULT, &data, generator, 0, u64::from(client))
    }

    #[test]
    fn a_transaction_is_eighteen_statements_in_the_originals_order() {
        let transaction = transactions(Generator::Xoshiro, 0).next_transaction();
        let kinds: Vec<usize> = transaction.statements.iter().map(|s| s.kind().index()).collect();
        assert_eq!(kinds, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Mix::DEFAULT.statements(), 18);
        let (Statement::Delete { id: deleted }, Statement::Insert { id, k, c, pad }) =
            (&transaction.statements[16], &transaction.statements[17])
        else {
            panic!("a delete and an insert")
        };
        assert_eq!((deleted, c.len(), pad.len()), (id, 119, 59));
        assert!((1..=1000).contains(k));
    }

    #[test]
    fn with_java_numbers_the_first_keys_are_the_originals() {
        // Java itself says of `new Random(0)`: nextInt(8) is 5, nextInt(1000) is 948, then 29.
        let transaction = transactions(Generator::Java, 0).next_transaction();
        assert_eq!(transaction.collection, 6);
        assert_eq!(transaction.statements[..2], [Statement::Point { id: 949 }, Statement::Point { id: 30 }]);
    }

    #[test]
    fn the_originals_clients_all_begin_with_one_collection_and_ours_do_not() {
        let first = |generator, client| transactions(generator, client).next_transaction().collection;
        assert!((0..64).all(|client| first(Generator::Java, client) == 6), "neighbouring seeds are related");
        let mut counts = [0_u32; 8];
        (0..64).for_each(|client| counts[first(Generator::Xoshiro, client) as usize - 1] += 1);
        // Chi-square at 99.9 % with 7 degrees of freedom.
        let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - 8.0).powi(2) / 8.0).sum();
        assert!(chi_square < 24.3, "{counts:?}");
    }

    #[test]
    fn the_same_seed_and_client_do_the_same_and_others_do_not() {
        let first_three = |client| {
            let mut transactions = transactions(Generator::Xoshiro, client);
            [
                transactions.next_transaction(),
                transactions.next_transaction(),
                transactions.next_transaction(),
            ]
        };
        assert_eq!(first_three(1), first_three(1));
        assert_ne!(first_three(1), first_three(2));
    }

    #[test]
    fn keys_and_collections_are_uniform() {
        let mut transactions = transactions(Generator::Xoshiro, 0);
        let (mut collections, mut tenths) = ([0_u32; 8], [0_u32; 10]);
        for _ in 0..4000 {
            let transaction = transactions.next_transaction();
            collections[transaction.collection as usize - 1] += 1;
            for statement in transaction.statements {
                if let Statement::Point { id } = statement {
                    tenths[(id - 1) as usize / 100] += 1;
                }
            }
        }
        // Chi-square at 99.9 %: 24.3 for 7 degrees of freedom, 27.9 for 9.
        let chi_square = |counts: &[u32], each: f64| -> f64 {
            counts.iter().map(|count| (f64::from(*count) - each).powi(2) / each).sum()
        };
        assert!(chi_square(&collections, 500.0) < 24.3, "{collections:?}");
        assert!(chi_square(&tenths, 4000.0) < 27.9, "{tenths:?}");
    }
}
