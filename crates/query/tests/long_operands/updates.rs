//! Updates with many values, many fields and many paths.

use pando_document::{Document, ObjectId, RawArray, RawDocumentBuf, Timestamp, Value, doc};
use pando_query::expression::ParseScope;
use pando_query::update::{ApplyKind, EmptyTimestamps, Update, UpdateContext};

use super::{Held, Operation, number, numbers, single, wide};

pub fn operations() -> Vec<Operation> {
    let mut operations = of_arrays();
    operations.extend(of_fields());
    operations.extend(of_whole_documents());
    operations
}

fn of_arrays() -> Vec<Operation> {
    vec![
        applied("$addToSet, half of $each known", |n| {
            let update = doc! { "$addToSet": { "a": { "$each": numbers(n / 2, n) } } };
            (doc! { "_id": 1, "a": numbers(0, n) }, update)
        }),
        applied("$addToSet into nothing", |n| {
            (doc! { "_id": 1 }, doc! { "$addToSet": { "a": { "$each": numbers(0, n) } } })
        }),
        applied("$pullAll", |n| {
            (doc! { "_id": 1, "a": numbers(0, n) }, doc! { "$pullAll": { "a": numbers(n / 2, n) } })
        }),
        applied("$pull with $in", |n| {
            (doc! { "_id": 1, "a": numbers(0, n) }, doc! { "$pull": { "a": { "$in": numbers(n / 2, n) } } })
        }),
        applied("$push with $each and $sort", |n| {
            let push = doc! { "$each": numbers(n / 2, n), "$sort": -1, "$position": 0 };
            (doc! { "_id": 1, "a": numbers(0, n) }, doc! { "$push": { "a": push } })
        }),
    ]
}

fn of_fields() -> Vec<Operation> {
    vec![
        applied("$inc of each field", |n| (wide(n, number), doc! { "$inc": wide(n, |_| number(1)) })),
        applied("$set of new fields", |n| (doc! { "_id": 1 }, doc! { "$set": wide(n, number) })),
        applied("$unset of each field", |n| (wide(n, number), doc! { "$unset": wide(n, |_| number(1)) })),
        applied("$rename of each field", |n| {
            (wide(n, number), doc! { "$rename": wide(n, |at| Value::String(format!("g{at}"))) })
        }),
        applied("$rename of each nested field", |n| {
            let mut renames = Document::new();
            for at in 0..n {
                renames.push(format!("d.f{at}"), format!("d.g{at}"));
            }
            (single("d", wide(n, number)), single("$rename", renames))
        }),
        applied("$inc that fails at the last field", |n| {
            let mut document = wide(n, number);
            document.push("z", "text");
            let mut increments = wide(n, |_| number(1));
            increments.push("z", 1);
            (document, single("$inc", increments))
        }),
        applied("$set of each element by index", |n| {
            let mut fields = Document::new();
            for at in 0..n {
                fields.push(format!("a.{at}"), number(at + 1));
            }
            (doc! { "_id": 1, "a": numbers(0, n) }, single("$set", fields))
        }),
        Operation::new("arrayFilters of as many arrays", |n| {
            let (mut document, mut fields, mut filters) = (Document::new(), Document::new(), Vec::new());
            for at in 0..n {
                document.push(format!("f{at}"), numbers(0, 2));
                fields.push(format!("f{at}.$[x{at}]"), 5);
                filters.push(single(format!("x{at}"), 1));
            }
            let (document, update) = (document.to_raw(), Held::new(single("$set", fields)));
            let filters = Held::new(filters.into_iter().collect::<Value>());
            move || apply(&document, &update, filters.value().as_array())
        }),
    ]
}

fn of_whole_documents() -> Vec<Operation> {
    vec![
        applied("a pipeline of $set", |n| {
            (wide(n, number), doc! { "": [{ "$set": wide(n, |at| format!("$f{}", n - 1 - at)) }] })
        }),
        applied("a pipeline of $unset", |n| {
            let names: Value = (0..n).map(|at| format!("f{at}")).collect();
            (wide(n, number), doc! { "": [{ "$unset": names }] })
        }),
        applied("a replacement", |n| (doc! { "_id": 1 }, wide(n, number))),
        upserted("an upsert with as many equalities", |n| wide(n, number)),
        upserted("an upsert with as many nested equalities", |n| {
            let mut filter = Document::new();
            for at in 0..n {
                filter.push(format!("d.f{at}"), number(at));
            }
            filter
        }),
        upserted("an upsert with two equalities of a path", |n| {
            let mut filter = wide(n, number);
            filter.push("$and", Value::Array(vec![single(format!("f{}", n - 1), 1).into()]));
            filter
        }),
    ]
}

/// An update of a document. One that has no operators at its top is a pipeline, in the field "".
fn applied(name: &'static str, operands: impl Fn(usize) -> (Document, Document) + 'static) -> Operation {
    Operation::new(name, move |n| {
        let (document, update) = operands(n);
        let document = document.to_raw();
        let update = match update.get("") {
            Some(pipeline) => Held::new(pipeline.clone()),
            None => Held::new(update),
        };
        move || apply(&document, &update, None)
    })
}

/// Errors are answers, too.
fn apply(document: &RawDocumentBuf, update: &Held, filters: Option<&RawArray>) {
    let update = Update::parse(update.value(), filters, &ParseScope::at(0)).unwrap();
    let _ = update.apply(document, &context(ApplyKind::Update));
}

fn upserted(name: &'static str, filter: impl Fn(usize) -> Document + 'static) -> Operation {
    Operation::new(name, move |n| {
        let (filter, update) = (filter(n).to_raw(), Held::new(doc! { "$set": { "new": 1 } }));
        move || {
            let update = Update::parse(update.value(), None, &ParseScope::at(0)).unwrap();
            let _ = update.insert(&filter, &context(ApplyKind::Insert), ObjectId::from_parts(1, [0; 5], 1));
        }
    })
}

fn context(kind: ApplyKind) -> UpdateContext {
    let (timestamp, empty_timestamps) = (Timestamp { time: 1, increment: 1 }, EmptyTimestamps::Filled);
    UpdateContext { matched_index: None, now_millis: 0, timestamp, kind, empty_timestamps }
}
