//! The queries beside the inserts: one client, three ranges in turn, so many in an interval.
//!
//! A query is due at fixed times from the moment when enough documents are in, whatever the last one took;
//! its latency counts from then. (The original counts its gap from the last query's beginning, so that slow
//! queries never pile up.)
//!
//! None of the three has an order, as in the original, so that which documents come back hangs on the plan
//! that the server chooses; with [`QueryPlan::guided`] each names its index and its order.

use super::Sent;
use super::purchases::{Draw, Price};
use crate::client::{Kind, Note, Performed, Session, Task, Turn, Verdict};
use crate::error::BenchError;
use crate::target::Target;
use crate::workload::now_ms;
use crate::workload::spread::Spread;
use pando_document::{Document, doc};
use pando_measuring::random::{Generator, Random};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long it sleeps at most before it looks whether the inserts are over.
const NAP: Duration = Duration::from_millis(20);

/// Which queries there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct QueryPlan {
    /// Queries in an interval; 0 for none.
    pub per_interval: u32,
    /// The interval in seconds.
    pub interval_s: u32,
    /// Documents that a query asks for.
    pub limit: u32,
    /// Documents that must be in before the first one.
    pub begin_after: u64,
    /// Whether each names its index and its order.
    pub guided: bool,
}

impl QueryPlan {
    /// No queries.
    pub const NONE: QueryPlan =
        QueryPlan { per_interval: 0, interval_s: 15, limit: 10, begin_after: 1_000_000, guided: false };

    pub(crate) fn summary(&self) -> String {
        match self.per_interval {
            0 => "no queries".to_owned(),
            count => format!("{count} queries in {} s of {} documents", self.interval_s, self.limit),
        }
    }

    fn gap(&self) -> Duration {
        Duration::from_secs(self.interval_s.into()) / self.per_interval.max(1)
    }
}

/// How a query is asked.
pub trait Asker: Send {
    /// Asks the query of this number (0 to 2) about what was drawn and a moment; gives how much was found. An
    /// error other than [`BenchError::Refused`] means that the connection is lost.
    fn ask(&mut self, which: u32, draw: Draw, moment: i64) -> Result<u64, BenchError>;
}

pub(crate) struct MongoAsker {
    session: Session,
    spread: Spread,
    plan: QueryPlan,
    asked: u64,
}

impl MongoAsker {
    pub(crate) fn new(target: &Target, spread: Spread, plan: QueryPlan) -> Result<MongoAsker, BenchError> {
        let session = Session::open(target.address())?;
        Ok(MongoAsker { session, spread, plan, asked: 0 })
    }
}

impl Asker for MongoAsker {
    fn ask(&mut self, which: u32, draw: Draw, moment: i64) -> Result<u64, BenchError> {
        // All three queries of one collection, then those of the next.
        let (database, collection) = self.spread.place(self.spread.of(self.asked / 3));
        self.asked += 1;
        let reply = self.session.command(&database, query(&collection, which, draw, moment, self.plan))?;
        let batch = reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
        Ok(batch.and_then(|batch| batch.as_array()).map_or(0, <[_]>::len) as u64)
    }
}

/// The client that asks.
pub struct Questioner {
    asker: Box<dyn Asker>,
    plan: QueryPlan,
    random: Random,
    sent: Arc<Sent>,
    began_ms: i64,
    /// When the next query is due; nothing until enough documents are in.
    due: Option<Instant>,
    asked: u32,
    found: u64,
}

impl Questioner {
    /// A client that asks while others insert.
    pub fn new(
        asker: Box<dyn Asker>,
        plan: QueryPlan,
        generator: Generator,
        seed: u64,
        sent: Arc<Sent>,
    ) -> Questioner {
        Questioner {
            asker,
            plan,
            random: Random::for_client(generator, seed, u64::from(u32::MAX)),
            sent,
            began_ms: now_ms(),
            due: None,
            asked: 0,
            found: 0,
        }
    }

    fn inserts_are_over(&self) -> bool {
        self.sent.inserting.load(Ordering::Relaxed) == 0
    }

    /// The next query: its number, its draw, and a moment since the run began.
    fn next_query(&mut self) -> (u32, Draw, i64) {
        let draw = Draw::next(&mut self.random, Price::NearCustomer);
        let elapsed = (now_ms() - self.began_ms) as f64;
        let moment = self.began_ms + (elapsed * self.random.unit()) as i64;
        let which = self.asked % 3;
        self.asked += 1;
        (which, draw, moment)
    }
}

fn query(collection: &str, which: u32, draw: Draw, moment: i64, plan: QueryPlan) -> Document {
    let Draw { customer, price, cash_register, .. } = draw;
    let customer = i32::try_from(customer).unwrap_or(i32::MAX);
    let register = i32::try_from(cash_register).unwrap_or(i32::MAX);
    let (filter, projection, hint, order) = match which {
        0 => (
            doc! { "$or": [
                { "price": price, "dateandtime": moment, "customerid": { "$gte": customer } },
                { "price": price, "dateandtime": { "$gt": moment } },
                { "price": { "$gt": price } },
            ] },
            doc! { "price": 1, "dateandtime": 1, "customerid": 1, "_id": 0 },
            "price_dateandtime_customerid",
            doc! { "price": 1, "dateandtime": 1, "customerid": 1 },
        ),
        1 => (
            doc! { "$or": [
                { "price": price, "customerid": { "$gte": customer } },
                { "price": { "$gt": price } },
            ] },
            doc! { "price": 1, "customerid": 1, "_id": 0 },
            "price_customerid",
            doc! { "price": 1, "customerid": 1 },
        ),
        _ => (
            doc! { "$or": [
                { "cashregisterid": register, "price": price, "customerid": { "$gte": customer } },
                { "cashregisterid": register, "price": { "$gt": price } },
                { "cashregisterid": { "$gt": register } },
            ] },
            doc! { "cashregisterid": 1, "price": 1, "customerid": 1, "_id": 0 },
            "cashregisterid_price_customerid",
            doc! { "cashregisterid": 1, "price": 1, "customerid": 1 },
        ),
    };
    let limit = i32::try_from(plan.limit).unwrap_or(i32::MAX);
    let mut find = doc! {
        "find": collection,
        "filter": filter,
        "projection": projection,
        "limit": limit,
        "batchSize": limit,
        "singleBatch": true,
    };
    if plan.guided {
        find.push("hint", hint);
        find.push("sort", order);
    }
    find
}

impl Task for Questioner {
    fn prepare(&mut self) -> Turn {
        loop {
            if self.inserts_are_over() {
                return Turn::Over;
            }
            let now = Instant::now();
            if self.due.is_none() && self.sent.documents.load(Ordering::Relaxed) >= self.plan.begin_after {
                self.due = Some(now);
            }
            match self.due {
                Some(due) if due <= now => return Turn::Request,
                Some(due) => std::thread::sleep(NAP.min(due - now)),
                None => std::thread::sleep(NAP),
            }
        }
    }

    fn perform(&mut self) -> Performed {
        let due = self.due.unwrap_or_else(Instant::now);
        self.due = Some(due + self.plan.gap());
        let (which, draw, moment) = self.next_query();
        // The kinds after the batches stand in the order in which the queries take turns.
        let kind = Kind::new(u8::try_from(which + 1).unwrap_or(u8::MAX));
        let found = self.asker.ask(which, draw, moment).inspect(|found| self.found += found);
        let verdict = found.map(|found| if found == 0 { Verdict::Missed } else { Verdict::Done });
        // Worth no operations: the rate counts documents that were inserted.
        Performed { operations: 0, ..Performed::of(kind, due.elapsed(), verdict) }
    }

    fn notes(&self) -> Vec<Note> {
        vec![Note { name: "documents that queries found", count: self.found }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAW: Draw = Draw { customer: 5, price: 1.5, cash_register: 7, product: 9 };

    #[test]
    fn the_three_queries_are_those_of_the_specification() {
        let plan = QueryPlan::NONE;
        let parts = |which| {
            let find = query("a", which, DRAW, 1000, plan);
            let filter = find.get("filter").and_then(|filter| filter.as_document()?.get("$or")).cloned();
            filter.and_then(|or| or.as_array().map(<[_]>::len)).expect("a disjunction")
        };
        assert_eq!([parts(0), parts(1), parts(2)], [3, 2, 3]);
        let find = query("a", 0, DRAW, 1000, plan);
        assert!(!find.contains("sort") && !find.contains("hint"));
        let expected = doc! { "price": 1, "dateandtime": 1, "customerid": 1, "_id": 0 };
        assert_eq!(find.get("projection").and_then(|projection| projection.as_document()), Some(&expected));
    }

    #[test]
    fn a_guided_query_names_its_index_and_its_order() {
        let find = query("a", 2, DRAW, 1000, QueryPlan { guided: true, ..QueryPlan::NONE });
        assert_eq!(find.get("hint").and_then(|hint| hint.as_str()), Some("cashregisterid_price_customerid"));
        assert!(find.contains("sort"));
    }

    #[test]
    fn queries_are_spread_evenly_over_their_interval() {
        let plan = QueryPlan { per_interval: 4, interval_s: 10, ..QueryPlan::NONE };
        assert_eq!(plan.gap(), Duration::from_millis(2500));
    }
}
