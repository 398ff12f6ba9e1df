//! Filters of many values and many clauses, on documents of many fields and elements.

use pando_document::{Document, Regex, Value, doc};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::{Operation, number, numbers, single, wide};

pub fn operations() -> Vec<Operation> {
    vec![
        matched("$all", |n| (array(n), single("a", single("$all", numbers(0, n))))),
        matched("$all, nothing of it there", |n| (array(n), doc! { "a": { "$all": numbers(n, n) } })),
        matched("$in, nothing of it there", |n| (array(n), doc! { "a": { "$in": numbers(n, n) } })),
        matched("$nin", |n| (array(n), doc! { "a": { "$nin": numbers(n, n) } })),
        matched("$and of equalities of an array", |n| {
            (array(n), clauses("$and", n, |at| single("a", number(at))))
        }),
        matched("$and of $gt of an array", |n| {
            (array(n), clauses("$and", n, |at| single("a", single("$gt", number(at.saturating_sub(1))))))
        }),
        matched("$and of $lte of an array, backwards", |n| {
            let elements: Value = (0..n).rev().map(number).collect();
            (single("a", elements), clauses("$and", n, |at| single("a", single("$lte", number(at)))))
        }),
        matched("$and of $ne of an array", |n| {
            (array(n), clauses("$and", n, |at| single("a", single("$ne", number(n + at)))))
        }),
        matched("$and of short $in of an array", |n| {
            (array(n), clauses("$and", n, |at| single("a", single("$in", numbers(at, 2)))))
        }),
        matched("$or of equalities of an array", |n| {
            (array(n), clauses("$or", n, |at| single("a", number(n + at))))
        }),
        matched("$or of patterns", |n| {
            let pattern = |at| Value::Regex(Regex { pattern: format!("^x{at}$"), options: String::new() });
            // Compiling them is what takes the time: they are fewer.
            (single("a", "text"), clauses("$or", n / 100, |at| single("a", pattern(at))))
        }),
        matched("$nor of equalities of an array", |n| {
            (array(n), clauses("$nor", n, |at| single("a", number(n + at))))
        }),
        matched("$and of $type and $exists of an array", |n| {
            let test = |at: usize| {
                if at.is_multiple_of(2) { single("$type", "int") } else { single("$exists", true) }
            };
            (array(n), clauses("$and", n, move |at| single("a", test(at))))
        }),
        matched("a test of each field", |n| (wide(n, number), wide(n, number))),
        matched("$or of each field", |n| {
            (wide(n, number), clauses("$or", n, |at| single(format!("f{at}"), number(at + 1))))
        }),
        matched("a test of each nested field", |n| {
            let mut filter = Document::new();
            for at in 0..n {
                filter.push(format!("d.f{at}"), number(at));
            }
            (single("d", wide(n, number)), filter)
        }),
        matched("$elemMatch of each field", |n| {
            let elements = Value::Array(vec![wide(n, number).into()]);
            (single("a", elements), single("a", single("$elemMatch", wide(n, number))))
        }),
        matched("$expr of each field", |n| {
            let equal = |at: usize| {
                let sides: Vec<Value> = vec![format!("$f{at}").into(), number(at)];
                Value::from(single("$eq", Value::Array(sides)))
            };
            let all: Value = (0..n).map(equal).collect();
            (wide(n, number), single("$expr", single("$and", all)))
        }),
    ]
}

fn array(n: usize) -> Document {
    single("a", numbers(0, n))
}

fn clauses<V: Into<Value>>(operator: &str, count: usize, clause: impl Fn(usize) -> V) -> Document {
    single(operator, (0..count).map(|at| clause(at).into()).collect::<Value>())
}

fn matched(name: &'static str, operands: impl Fn(usize) -> (Document, Document) + 'static) -> Operation {
    Operation::new(name, move |n| {
        let (document, filter) = operands(n);
        let (document, filter) = (document.to_raw(), filter.to_raw());
        move || {
            let filter = Filter::parse(&filter, &ParseScope::at(0)).unwrap();
            filter.matches(&document).unwrap();
            filter.matches_with_position(&document).unwrap();
        }
    })
}
