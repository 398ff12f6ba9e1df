//! Projections of many fields.

use pando_document::{Document, Value, doc};
use pando_query::expression::ParseScope;
use pando_query::projection::Projection;

use super::{Operation, number, numbers, single, wide};

/// How a projection is parsed.
#[derive(Clone, Copy)]
enum Of {
    Find,
    Stage,
    AddFields,
}

pub fn operations() -> Vec<Operation> {
    vec![
        projected("an inclusion", Of::Find, |n| (wide(n, number), wide(n, |_| number(1)))),
        projected("an exclusion", Of::Find, |n| (wide(n, number), wide(n, |_| number(0)))),
        projected("an inclusion of nested fields", Of::Find, |n| {
            (single("d", wide(n, number)), single("d", wide(n, |_| number(1))))
        }),
        projected("$slice of each field", Of::Find, |n| {
            (wide(n, |_| numbers(0, 3)), wide(n, |_| doc! { "$slice": 1 }))
        }),
        projected("$elemMatch of each field", Of::Find, |n| {
            (wide(n, |_| numbers(0, 3)), wide(n, |_| doc! { "$elemMatch": { "$gt": 1 } }))
        }),
        projected("$project of computed fields", Of::Stage, |n| {
            (wide(n, number), wide(n, |at| format!("$f{}", n - 1 - at)))
        }),
        projected("$project of computed nested fields", Of::Stage, |n| {
            (single("d", wide(n, number)), wide(n, |at| format!("$d.f{}", n - 1 - at)))
        }),
        projected("$addFields of new fields", Of::AddFields, |n| (wide(n, number), names("g", n))),
        projected("$addFields of known fields", Of::AddFields, |n| (wide(n, number), names("f", n))),
    ]
}

fn names(prefix: &str, count: usize) -> Document {
    let mut document = Document::new();
    for at in 0..count {
        document.push(format!("{prefix}{at}"), Value::String(format!("$f{at}")));
    }
    document
}

fn projected(
    name: &'static str,
    of: Of,
    operands: impl Fn(usize) -> (Document, Document) + 'static,
) -> Operation {
    Operation::new(name, move |n| {
        let (document, specification) = operands(n);
        let (document, specification) = (document.to_raw(), specification.to_raw());
        move || {
            let scope = ParseScope::at(0);
            let projection = match of {
                Of::Find => Projection::parse(&specification, &scope),
                Of::Stage => Projection::parse_stage(&specification, &scope),
                Of::AddFields => Projection::add_fields(&specification, &scope),
            };
            projection.unwrap().project(&document).unwrap();
        }
    })
}
