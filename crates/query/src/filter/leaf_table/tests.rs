//! The table answers as a walk does.

use pando_collation::TextOrder;
use pando_document::{Decimal128, Value, doc};

use super::*;
use crate::expression::ParseScope;
use crate::filter::{Filter, Node};
use crate::path::{Leaves, Path};

/// Values of all kinds that tests tell apart, NaN, null and the ends of the order among them.
fn values() -> Vec<Value> {
    let decimal = |text: &str| Value::Decimal128(text.parse::<Decimal128>().expect("a decimal"));
    vec![
        Value::Int32(3),
        Value::Double(3.0),
        Value::Int64(7),
        Value::Double(f64::NAN),
        decimal("NaN"),
        decimal("2.5"),
        Value::Null,
        Value::Undefined,
        Value::String("a".into()),
        Value::String("b".into()),
        Value::Document(doc! { "x": 1 }),
        Value::Array(vec![Value::Int32(3)]),
        Value::Boolean(true),
        Value::MinKey,
        Value::MaxKey,
    ]
}

#[test]
fn every_test_finds_the_leaf_that_a_walk_finds_first() {
    let values = values();
    // Each pair of values in front of the others, so that different ones come first.
    for first in 0..values.len() {
        let mut elements: Vec<Value> = values[first..].iter().chain(&values[..first]).cloned().collect();
        elements.truncate(9);
        let document = doc! { "a": elements }.to_raw();
        let path = Path::new("a");
        let mut leaves = Vec::new();
        path.any(&document, Leaves::Unwound, &mut |leaf| {
            leaves.push(leaf);
            Ok(false)
        })
        .expect("a sound document");
        let table = LeafTable::of(&leaves, &TextOrder::SIMPLE);
        for test in tests(&values) {
            let by_walk =
                leaves.iter().position(|leaf| test.holds(leaf.value, &mut None).expect("no pattern"));
            let by_table = table.first_that_meets(&test);
            assert_eq!(by_table.map(|place| place.order), by_walk, "{test:?} on {document:?}");
        }
    }
}

fn tests(values: &[Value]) -> Vec<Test> {
    let mut filters = vec![
        doc! { "a": { "$exists": true } },
        doc! { "a": { "$type": "number" } },
        doc! { "a": { "$type": ["string", "null", "undefined"] } },
        doc! { "a": { "$in": Value::Array(values[..3].to_vec()) } },
        doc! { "a": { "$in": [Value::String("z".into()), Value::Null] } },
    ];
    for value in values.iter().filter(|value| !matches!(value, Value::Undefined)) {
        for operator in ["$eq", "$gt", "$gte", "$lt", "$lte"] {
            let mut condition = pando_document::Document::new();
            condition.push(operator, value.clone());
            filters.push(doc! { "a": condition });
        }
    }
    let test_of = |filter: &pando_document::Document| {
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).expect("a sound filter");
        match filter.root() {
            Node::Field(field) => field.test.clone(),
            other => panic!("{other:?} is no field test"),
        }
    };
    filters.iter().map(test_of).collect()
}
