//! Random documents, filters and sorts, and the orders of strings that they are asked in.

use pando_collation::TextOrder;
use pando_document::{Document, RawDocumentBuf, Value, doc};
use pando_environment::SeededRandom;

fn value(chance: &SeededRandom) -> Value {
    match chance.below(12) {
        0 => Value::Null,
        1 => Value::Double(chance.below(8) as f64 / 2.0),
        2 => Value::from(["", "a", "b", "ab", "A", "B", "á"][chance.below(7) as usize]),
        3 => Value::Array(vec![]),
        4 => Value::Array((0..1 + chance.below(3)).map(|_| Value::Int32(chance.below(6) as i32)).collect()),
        5 => Value::Boolean(chance.below(2) == 0),
        6 => Value::from("x".repeat(1 + chance.below(2500) as usize)),
        _ => Value::Int32(chance.below(6) as i32),
    }
}

/// Without case.
pub fn folded() -> TextOrder {
    text_order(doc! { "locale": "en", "strength": 2 })
}

pub fn text_order(specification: Document) -> TextOrder {
    TextOrder::parse(&specification.to_raw(), "collation").unwrap()
}

pub fn collated(mut index: Document, order: &TextOrder) -> Document {
    let collation = order.document().unwrap();
    index.insert("name", format!("{} {collation:?}", index.get("name").and_then(Value::as_str).unwrap()));
    index.push("collation", Document::from_raw(collation).unwrap());
    index
}

/// A field with arrays now and then; two fields of one index must not both have them.
fn scalar(chance: &SeededRandom) -> Value {
    loop {
        let value = value(chance);
        if !matches!(value, Value::Array(_)) {
            return value;
        }
    }
}

pub fn random_document(chance: &SeededRandom, id: i32) -> RawDocumentBuf {
    let mut document = doc! { "_id": id };
    if chance.below(8) != 0 {
        document.push("a", value(chance));
    }
    if chance.below(8) != 0 {
        document.push("b", scalar(chance));
    }
    document.push("c", scalar(chance));
    if chance.below(3) != 0 {
        let element = |chance: &SeededRandom| {
            let mut element = doc! { "u": (Value::Int32(chance.below(5) as i32)) };
            if chance.below(4) != 0 {
                element.push("v", scalar(chance));
            }
            Value::Document(element)
        };
        let inner = match chance.below(4) {
            0 => element(chance),
            _ => Value::Array((0..chance.below(4)).map(|_| element(chance)).collect()),
        };
        document.push("t", inner);
    }
    document.to_raw()
}

fn condition(chance: &SeededRandom) -> Value {
    let operator = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne", "$in", "$nin", "$exists", "$not", "$regex"];
    match operator[chance.below(operator.len() as u64) as usize] {
        name @ ("$in" | "$nin") => {
            let values = (0..chance.below(4)).map(|_| value(chance)).collect::<Vec<_>>();
            Value::Document(doc! { name: values })
        }
        "$exists" => Value::Document(doc! { "$exists": (Value::Boolean(chance.below(2) == 0)) }),
        "$not" => Value::Document(doc! { "$not": { "$gte": (value(chance)) } }),
        "$regex" => Value::Document(doc! { "$regex": "^x{0,2}a" }),
        name => {
            let mut document = doc! { name: (value(chance)) };
            if chance.below(4) == 0 {
                document.insert("$lte", value(chance));
            }
            Value::Document(document)
        }
    }
}

/// A comparison of an expression, which looks at whole values in the order of all types.
fn compared(chance: &SeededRandom) -> Value {
    let name = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"][chance.below(6) as usize];
    let path = ["$a", "$b", "$c", "$t.u", "$t.v", "$_id", "$d"][chance.below(7) as usize];
    let literal = match chance.below(12) {
        0 => Value::Document(doc! { "u": (Value::Int32(chance.below(5) as i32)) }),
        1 => [Value::MinKey, Value::MaxKey, Value::Undefined][chance.below(3) as usize].clone(),
        _ => value(chance),
    };
    let mut sides = vec![Value::from(path), Value::Document(doc! { "$literal": (literal) })];
    if chance.below(2) == 0 {
        sides.reverse();
    }
    Value::Document(doc! { name: sides })
}

fn expression(chance: &SeededRandom) -> Value {
    match chance.below(3) {
        0 => Value::Document(doc! { "$and": [(compared(chance)), (compared(chance))] }),
        _ => compared(chance),
    }
}

pub fn random_filter(chance: &SeededRandom, depth: u32) -> Document {
    let mut filter = Document::new();
    for _ in 0..chance.below(4) {
        match chance.below(11) {
            3 | 4 => {
                filter.insert("$expr", expression(chance));
            }
            0 if depth < 2 => {
                let branches =
                    (0..1 + chance.below(3)).map(|_| Value::Document(random_filter(chance, depth + 1)));
                let name = ["$or", "$and", "$nor"][chance.below(3) as usize];
                filter.insert(name, Value::Array(branches.collect()));
            }
            1 => {
                let inner = doc! { "u": (condition(chance)), "v": (condition(chance)) };
                filter.insert("t", Value::Document(doc! { "$elemMatch": inner }));
            }
            2 => {
                let element = Value::Document(doc! { "$gte": (scalar(chance)), "$lt": (scalar(chance)) });
                filter.insert("a", Value::Document(doc! { "$elemMatch": element }));
            }
            _ => {
                let path = ["a", "b", "c", "t.u", "t.v", "_id"][chance.below(6) as usize];
                filter.insert(path, condition(chance));
            }
        }
    }
    filter
}

/// Lists of values and branches, whose scans an ordered merge may put into one order.
pub fn merging_filter(chance: &SeededRandom) -> Document {
    let path = |chance: &SeededRandom| ["a", "b", "c"][chance.below(3) as usize];
    let list = |chance: &SeededRandom| {
        let values = (0..1 + chance.below(4)).map(|_| scalar(chance)).collect::<Vec<_>>();
        Value::Document(doc! { "$in": values })
    };
    let mut filter = match chance.below(2) {
        0 => doc! { (path(chance)): (list(chance)) },
        _ => {
            let branch = |_| {
                let mut branch = doc! { (path(chance)): (list(chance)) };
                if chance.below(3) == 0 {
                    branch.insert(path(chance), condition(chance));
                }
                Value::Document(branch)
            };
            doc! { "$or": (Value::Array((0..2 + chance.below(2)).map(branch).collect())) }
        }
    };
    match chance.below(6) {
        0 | 1 => _ = filter.insert(path(chance), condition(chance)),
        2 => _ = filter.insert("$expr", expression(chance)),
        _ => {}
    }
    filter
}

pub fn random_sort(chance: &SeededRandom) -> Document {
    let mut sort = Document::new();
    for _ in 0..chance.below(3) {
        let path = ["a", "b", "c", "t.u", "t.v"][chance.below(5) as usize];
        // Two different arrays in one sort are refused.
        let clashes = |other: &str| {
            path.starts_with('a') && other.starts_with('t') || path.starts_with('t') && other.starts_with('a')
        };
        if !sort.names().any(clashes) {
            sort.insert(path, Value::Int32(if chance.below(2) == 0 { 1 } else { -1 }));
        }
    }
    // With `_id` at the end there is one right order.
    sort.push("_id", Value::Int32(1));
    sort
}
