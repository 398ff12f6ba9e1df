//! The intersection of two indexes finds the same documents as one index or none does.

use pando_catalog::IndexDescription;
use pando_document::{Document, RawDocumentBuf, Value, doc};
use pando_environment::SeededRandom;
use pando_keyorder::Direction;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::plan::{
    Access, Estimates, FindSpecification, Hint, Intervals, Plan, ProjectionNeeds, choose, plan,
};
use pando_query::sort::Sort;

use crate::store::{Store, id_of, index};

/// Estimates by which every intersection is a gain, or none is.
struct Told {
    entries: u64,
    documents: u64,
}

impl Estimates for Told {
    fn entries(&self, _: &IndexDescription, _: &[Intervals]) -> Option<u64> {
        Some(self.entries)
    }

    fn documents(&self) -> Option<u64> {
        Some(self.documents)
    }
}

const RARE: Told = Told { entries: 1_000, documents: 100_000 };
const FREQUENT: Told = Told { entries: 1_000, documents: 1_500 };

fn indexes() -> Vec<Document> {
    vec![
        index(doc! { "a": 1 }, &[]),
        index(doc! { "b": -1 }, &[]),
        index(doc! { "t": 1 }, &[]),
        index(doc! { "c": 1, "d": 1 }, &[]),
        index(doc! { "s": 1 }, &["sparse"]),
    ]
}

fn document(chance: &SeededRandom, id: i32) -> RawDocumentBuf {
    let mut document = doc! { "_id": id };
    for name in ["a", "b", "c", "d", "s"] {
        match chance.below(8) {
            0 => {}
            1 => document.push(name, Value::Null),
            _ => document.push(name, Value::Int32(chance.below(3) as i32)),
        }
    }
    document.push(
        "t",
        Value::Array((0..chance.below(4)).map(|_| Value::Int32(chance.below(4) as i32)).collect()),
    );
    document.to_raw()
}

fn filter(chance: &SeededRandom) -> Document {
    let mut filter = Document::new();
    for name in ["a", "b", "t", "c", "d", "s"] {
        if chance.below(2) == 0 {
            filter.push(name, Value::Int32(chance.below(3) as i32));
        }
    }
    if chance.below(4) == 0 {
        filter.push("_id", doc! { "$gt": 20 });
    }
    filter
}

fn is_intersection(plan: &Plan) -> bool {
    matches!(plan.access, Access::Intersection(_))
}

#[test]
fn random_equalities_find_the_same_by_intersections() {
    let mut intersections = 0;
    for seed in 1..=30 {
        let chance = SeededRandom::new(seed);
        let documents: Vec<RawDocumentBuf> =
            (0..chance.below(400) as i32).map(|id| document(&chance, id)).collect();
        let stores = Store::of_all_layouts(&doc! { "none": 1, "_id": 1 }, &documents, &indexes());
        for _ in 0..40 {
            let text = filter(&chance);
            let filter = Filter::parse(&text.to_raw(), &ParseScope::default()).unwrap();
            let sort = Sort::parse(&doc! { "d": 1, "_id": -1 }.to_raw()).unwrap();
            let sort = if chance.below(2) == 0 { &sort } else { &Sort::Unordered };
            let find = FindSpecification { sort, ..FindSpecification::matching(&filter) };
            let natural = Hint::Natural(Direction::Ascending);
            for store in &stores {
                let scan =
                    plan(&FindSpecification { hint: Some(&natural), ..find }, &store.indexes()).unwrap();
                let mut wanted = store.run(scan);
                let chosen = choose(&find, &store.indexes(), &RARE).unwrap().plan;
                intersections += u32::from(is_intersection(&chosen));
                let access = format!("{:?}", chosen.access);
                let mut found = store.run(chosen);
                if matches!(sort, Sort::Unordered) {
                    wanted.sort_unstable();
                    found.sort_unstable();
                }
                assert_eq!(found, wanted, "seed {seed}: {text:?} by {access}");
                let number =
                    FindSpecification { needs: ProjectionNeeds::Nothing, sort: &Sort::Unordered, ..find };
                let counted = choose(&number, &store.indexes(), &RARE).unwrap().plan;
                assert_eq!(store.documents(counted).0.len(), wanted.len(), "seed {seed}: {text:?}");
            }
        }
    }
    assert!(intersections > 500, "{intersections} intersections");
}

#[test]
fn an_intersection_fetches_what_is_in_both_and_jumps_over_what_is_not() {
    // Half of the documents have `a`, side by side, and every 500th has `b`.
    let documents: Vec<RawDocumentBuf> = (0..20_000)
        .map(|id: i32| {
            doc! { "_id": id, "a": (i32::from(id < 10_000)), "b": (i32::from(id % 500 == 0)) }.to_raw()
        })
        .collect();
    let store = Store::new(&documents, &indexes());
    let filter = Filter::parse(&doc! { "a": 1, "b": 1 }.to_raw(), &ParseScope::default()).unwrap();
    let find = FindSpecification::matching(&filter);
    let chosen = choose(&find, &store.indexes(), &RARE).unwrap();
    assert!(is_intersection(&chosen.plan) && chosen.rejected.len() == 2, "{chosen:?}");
    let (found, counters) = store.documents(chosen.plan);
    let wanted: Vec<i64> = (0..20).map(|at| at * 500).collect();
    assert_eq!(found.iter().map(|document| id_of(document)).collect::<Vec<_>>(), wanted);
    assert_eq!(counters.documents_examined, 20);
    assert!(counters.keys_examined < 20 * 25, "{} keys", counters.keys_examined);
    // Fetches cost nothing where nothing is looked at.
    let number = FindSpecification { needs: ProjectionNeeds::Nothing, ..find };
    let (counted, counters) = store.documents(choose(&number, &store.indexes(), &RARE).unwrap().plan);
    assert_eq!((counted.len(), counters.documents_examined), (20, 0));
}

#[test]
fn an_intersection_is_taken_only_if_estimates_promise_far_less_work() {
    let store = Store::new(&[], &indexes());
    let chosen = |filter: Document, told: &Told| {
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        choose(&FindSpecification::matching(&filter), &store.indexes(), told).unwrap().plan
    };
    assert!(is_intersection(&chosen(doc! { "a": 1, "b": 1 }, &RARE)));
    assert!(!is_intersection(&chosen(doc! { "a": 1, "b": 1 }, &FREQUENT)), "most of one are in the other");
    assert!(
        !is_intersection(&chosen(doc! { "a": 1, "b": { "$gt": 1 } }, &RARE)),
        "a range is in no order of keys"
    );
    assert!(
        !is_intersection(&chosen(doc! { "a": 1, "c": 1 }, &RARE)),
        "nor are entries with several values behind"
    );
    assert!(is_intersection(&chosen(doc! { "a": 1, "c": 1, "d": 2 }, &RARE)));
    let filter = Filter::parse(&doc! { "a": 1, "b": 1 }.to_raw(), &ParseScope::default()).unwrap();
    let assumed = plan(&FindSpecification::matching(&filter), &store.indexes()).unwrap();
    assert!(!is_intersection(&assumed), "assumed shares promise nothing");
}
