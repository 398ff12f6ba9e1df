//! Tests of implications: found ones, refused ones, and a search for wrong ones.

use pando_document::{Document, RawDocumentBuf, Value, doc};

use super::*;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::plan::predicates::conjunction;

fn filter(document: &Document) -> Filter {
    Filter::parse(&document.to_raw(), &ParseScope::at(0)).unwrap()
}

fn implies(query: &Document, wanted: &Document) -> bool {
    of_conjunction(conjunction(&filter(query)), filter(wanted).root())
}

fn list(documents: Vec<Document>) -> Value {
    Value::Array(documents.into_iter().map(Value::Document).collect())
}

fn values(numbers: &[i32]) -> Value {
    Value::Array(numbers.iter().map(|number| Value::Int32(*number)).collect())
}

#[test]
fn a_query_implies_the_filters_that_hold_for_all_of_its_documents() {
    let above = doc! { "x": { "$gt": 5 } };
    for query in [
        doc! { "a": 1, "x": { "$gt": 5 } },
        doc! { "x": { "$gt": 6 } },
        doc! { "x": { "$gte": 5.5 } },
        doc! { "x": 7 },
        doc! { "x": { "$in": (values(&[6, 7])) } },
        doc! { "$or": (list(vec![doc! { "x": 6 }, doc! { "x": { "$gt": 9 }, "a": 1 }])) },
        doc! { "a": 2, "$and": (list(vec![doc! { "b": 1 }, doc! { "x": 6 }])) },
        doc! { "$alwaysFalse": 1 },
    ] {
        assert!(implies(&query, &above), "{query:?}");
    }
    for query in [
        doc! {},
        doc! { "a": 1 },
        doc! { "x": { "$gte": 5 } },
        doc! { "x": { "$gt": "y" } },
        doc! { "x": { "$lt": 9 } },
        doc! { "x": { "$gt": (f64::NAN) } },
        doc! { "x": { "$in": (values(&[4, 7])) } },
        doc! { "$or": (list(vec![doc! { "x": 6 }, doc! { "a": 1 }])) },
        doc! { "$nor": (list(vec![doc! { "x": 6 }])) },
        doc! { "x": { "$not": { "$lte": 5 } } },
        doc! { "x.y": { "$gt": 5 } },
        doc! { "x": { "$gt": (Value::MinKey) } },
    ] {
        assert!(!implies(&query, &above), "{query:?}");
    }
}

#[test]
fn conjunctions_and_disjunctions_of_an_index_are_implied_part_by_part() {
    let both = doc! { "x": 1, "y": { "$gt": 2 } };
    assert!(implies(&doc! { "x": 1, "y": 3 }, &both) && !implies(&doc! { "x": 1 }, &both));
    let either = doc! { "$or": (list(vec![doc! { "x": 1 }, doc! { "y": 1, "z": 1 }])) };
    assert!(implies(&doc! { "x": 1 }, &either) && implies(&doc! { "y": 1, "z": 1, "a": 1 }, &either));
    assert!(!implies(&doc! { "y": 1 }, &either));
    let other = doc! { "$or": (list(vec![doc! { "y": 1, "z": 1 }, doc! { "x": 1 }])) };
    assert!(implies(&other, &either));
    assert!(implies(&doc! { "a": 1 }, &doc! {}));
}

#[test]
fn a_test_that_no_missing_field_passes_implies_that_there_is_one() {
    let exists = doc! { "x": { "$exists": true } };
    for test in
        [doc! { "$gt": 1 }, doc! { "$type": "int" }, doc! { "$ne": (Value::Null) }, doc! { "$size": 2 }]
    {
        assert!(implies(&doc! { "x": (Value::Document(test.clone())) }, &exists), "{test:?}");
    }
    for test in [doc! { "$ne": 1 }, doc! { "$gte": (Value::Null) }, doc! { "$lt": (Value::MaxKey) }] {
        assert!(!implies(&doc! { "x": (Value::Document(test.clone())) }, &exists), "{test:?}");
    }
    let below = doc! { "x.y": { "$exists": true } };
    assert!(!implies(&doc! { "x.y": { "$ne": (Value::Null) } }, &below));
}

/// Every implication that is found holds for all documents of a set.
#[test]
fn no_implication_is_wrong() {
    let leaves = [
        Value::Int32(1),
        Value::Double(2.0),
        Value::Int64(5),
        Value::Double(f64::NAN),
        Value::from("b"),
        Value::Null,
        Value::Boolean(true),
        Value::MinKey,
        Value::MaxKey,
        Value::Undefined,
        Value::Array(vec![]),
        values(&[1, 5]),
        Value::Array(vec![values(&[1])]),
        Value::Array(vec![Value::Null]),
        Value::Document(doc! { "y": 1 }),
        list(vec![doc! { "y": 1 }, doc! { "z": 2 }]),
    ];
    let mut documents: Vec<RawDocumentBuf> = vec![doc! {}.to_raw()];
    documents.extend(leaves.iter().map(|leaf| doc! { "x": (leaf.clone()) }.to_raw()));
    let mut filters = vec![doc! { "$exists": true }, doc! { "$type": "int" }, doc! { "$type": "number" }];
    for leaf in leaves.iter().filter(|leaf| !matches!(leaf, Value::Undefined)) {
        for operator in ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"] {
            let mut test = Document::new();
            test.push(operator, leaf.clone());
            filters.push(test);
        }
        for other in leaves.iter().filter(|leaf| !matches!(leaf, Value::Undefined)) {
            filters.push(doc! { "$in": (Value::Array(vec![leaf.clone(), other.clone()])) });
        }
    }
    let mut found = 0;
    for path in ["x", "x.y"] {
        let parsed: Vec<Filter> = filters
            .iter()
            .map(|test| {
                let mut document = Document::new();
                document.push(path, test.clone());
                filter(&document)
            })
            .collect();
        let matching: Vec<Vec<bool>> = parsed
            .iter()
            .map(|filter| documents.iter().map(|document| filter.matches(document).unwrap()).collect())
            .collect();
        for (query, matched) in parsed.iter().zip(&matching) {
            for (wanted, has) in parsed.iter().zip(&matching) {
                if of_conjunction(conjunction(query), wanted.root()) {
                    found += 1;
                    assert!(
                        matched.iter().zip(has).all(|(matched, has)| !matched || *has),
                        "{:?} does not imply {:?}",
                        query.to_document(),
                        wanted.to_document()
                    );
                }
            }
        }
    }
    assert!(found > 1_000, "{found}");
}
