//! Expressions with long arrays, long strings, many arguments and many branches.

use pando_document::{Document, Value, doc};
use pando_query::expression::{Expression, ParseScope};

use super::{Held, Operation, number, numbers, single, wide};

pub fn operations() -> Vec<Operation> {
    let mut operations = sets_and_searches();
    operations.extend(loops());
    operations.extend(documents());
    operations.extend(texts());
    operations.extend(arguments());
    operations
}

fn sets_and_searches() -> Vec<Operation> {
    vec![
        of_arrays("$setUnion", doc! { "$setUnion": ["$a", "$b"] }),
        of_arrays("$setIntersection", doc! { "$setIntersection": ["$a", "$b"] }),
        of_arrays("$setDifference", doc! { "$setDifference": ["$a", "$b"] }),
        of_arrays("$setEquals", doc! { "$setEquals": ["$a", "$a"] }),
        of_arrays("$setIsSubset", doc! { "$setIsSubset": ["$b", "$a"] }),
        of_arrays("$sortArray", doc! { "$sortArray": { "input": "$a", "sortBy": -1 } }),
        of_arrays("$concatArrays", doc! { "$concatArrays": ["$a", "$b", "$a"] }),
        of_arrays("$reverseArray", doc! { "$reverseArray": "$a" }),
        of_arrays("$zip", doc! { "$zip": { "inputs": ["$a", "$b"], "useLongestLength": true } }),
        of_arrays("$maxN", doc! { "$maxN": { "n": 5000, "input": "$a" } }),
    ]
}

/// Operators in a loop over an array that they look into.
fn loops() -> Vec<Operation> {
    let mapped = |name, inner: Document| of_arrays(name, doc! { "$map": { "input": "$a", "in": inner } });
    vec![
        mapped("$in in a $map", doc! { "$in": ["$$this", "$b"] }),
        of_arrays(
            "$in in a $filter",
            doc! { "$filter": { "input": "$a", "cond": { "$in": ["$$this", "$b"] } } },
        ),
        mapped("$indexOfArray in a $map", doc! { "$indexOfArray": ["$a", "$$this"] }),
        mapped("$arrayElemAt in a $map", doc! { "$arrayElemAt": ["$b", "$$this"] }),
        mapped("$slice in a $map", doc! { "$slice": ["$b", "$$this", 1] }),
        mapped("$size and $last in a $map", doc! { "$add": [{ "$size": "$b" }, { "$last": "$b" }] }),
        of_arrays("$arrayElemAt of a variable", {
            let inner = doc! { "$map": { "input": "$a", "in": { "$arrayElemAt": ["$$copy", "$$this"] } } };
            doc! { "$let": { "vars": { "copy": { "$setUnion": ["$a", "$b"] } }, "in": inner } }
        }),
        of_arrays("$in of a variable", {
            let inner = doc! { "$filter": { "input": "$a", "cond": { "$in": ["$$this", "$$copy"] } } };
            doc! { "$let": { "vars": { "copy": { "$setUnion": ["$b"] } }, "in": inner } }
        }),
        evaluated("$in of constants in a $filter", |n| {
            let condition = doc! { "$in": ["$$this", numbers(n / 2, n)] };
            (arrays(n), doc! { "$filter": { "input": "$a", "cond": condition } })
        }),
        of_arrays("$reduce", {
            let sum = doc! { "$add": ["$$value", "$$this"] };
            doc! { "$reduce": { "input": "$a", "initialValue": 0, "in": sum } }
        }),
        evaluated("$getField of each field in an array", |n| {
            let fields: Value = (0..n).map(|at| doc! { "$getField": (format!("f{at}")) }).collect();
            (wide(n, number), doc! { "$concatArrays": [fields] })
        }),
    ]
}

fn documents() -> Vec<Operation> {
    vec![
        evaluated("$mergeObjects", |n| {
            (doc! { "a": wide(n, number), "b": wide(n, number) }, doc! { "$mergeObjects": ["$a", "$b"] })
        }),
        evaluated("$mergeObjects of many", |n| {
            let parts: Value = (0..n).map(|at| single(format!("f{at}"), "$$ROOT.x")).collect();
            (doc! { "x": 1 }, single("$mergeObjects", parts))
        }),
        evaluated("$arrayToObject", |n| {
            let pairs: Value = (0..n).map(|at| doc! { "k": (format!("f{at}")), "v": 1 }).collect();
            (single("a", pairs), doc! { "$arrayToObject": "$a" })
        }),
        evaluated("$objectToArray", |n| (doc! { "a": wide(n, number) }, doc! { "$objectToArray": "$a" })),
        evaluated("$setField", |n| {
            let arguments = doc! { "field": "f7", "input": "$a", "value": 1 };
            (doc! { "a": wide(n, number) }, doc! { "$setField": arguments })
        }),
        evaluated("an object of each field", |n| (wide(n, number), wide(n, |at| format!("$f{at}")))),
    ]
}

fn texts() -> Vec<Operation> {
    let of_text = |name, text: fn(usize) -> String, expression: fn(usize) -> Document| {
        evaluated(name, move |n| (single("t", text(n)), expression(n)))
    };
    let letters = |n: usize| "a".repeat(n);
    vec![
        of_text("$split", |n| "a,".repeat(n), |_| doc! { "$split": ["$t", ","] }),
        of_text("$replaceAll", letters, |_| {
            doc! { "$replaceAll": { "input": "$t", "find": "a", "replacement": "bc" } }
        }),
        of_text("$indexOfBytes of a long text", letters, |n| {
            doc! { "$indexOfBytes": ["$t", (format!("{}b", "a".repeat(n / 2)))] }
        }),
        of_text("$indexOfCP of a long text", letters, |n| {
            doc! { "$indexOfCP": ["$t", (format!("{}b", "a".repeat(n / 2)))] }
        }),
        of_text(
            "$trim of many characters",
            |n| "é".repeat(n),
            |n| {
                let alphabet = u32::try_from(n).unwrap();
                let chars: String =
                    (0x100..0x100 + alphabet).filter_map(char::from_u32).chain(['é']).collect();
                doc! { "$trim": { "input": "$t", "chars": chars } }
            },
        ),
        of_text(
            "$regexFindAll",
            |n| "ab".repeat(n),
            |_| {
                doc! { "$regexFindAll": { "input": "$t", "regex": "(a)b" } }
            },
        ),
        of_text("$toUpper and $substrCP", letters, |n| {
            doc! { "$toUpper": { "$substrCP": ["$t", (number(n / 3)), (number(n / 3))] } }
        }),
        of_text(
            "$toDecimal of many digits",
            |n| "1".repeat(n),
            |_| {
                doc! { "$convert": { "input": "$t", "to": "decimal", "onError": 0 } }
            },
        ),
        of_text(
            "$toDouble of many digits",
            |n| "1".repeat(n),
            |_| {
                doc! { "$convert": { "input": "$t", "to": "double", "onError": 0 } }
            },
        ),
    ]
}

fn arguments() -> Vec<Operation> {
    let paths = |n: usize| -> Value { (0..n).map(|at| format!("$f{at}")).collect() };
    vec![
        evaluated("$add of each field", move |n| (wide(n, number), single("$add", paths(n)))),
        evaluated("$concatArrays of each field", move |n| {
            (wide(n, |_| numbers(0, 1)), single("$concatArrays", paths(n)))
        }),
        evaluated("$setUnion of each field", move |n| {
            (wide(n, |_| numbers(0, 1)), single("$setUnion", paths(n)))
        }),
        evaluated("$setIntersection of each field", move |n| {
            (wide(n, |_| numbers(0, 1)), single("$setIntersection", paths(n)))
        }),
        evaluated("$ifNull of each field", move |n| (single("x", 1), single("$ifNull", paths(n)))),
        evaluated("$or of each field", move |n| (wide(n, |_| false), single("$or", paths(n)))),
        evaluated("$switch with many branches", |n| {
            let branch =
                |at: usize| doc! { "case": { "$eq": ["$x", (number(at + 1))] }, "then": (number(at)) };
            let branches: Value = (0..n).map(branch).collect();
            (single("x", 0), doc! { "$switch": { "branches": branches, "default": "none" } })
        }),
        evaluated("$let with many variables", |n| {
            let mut variables = Document::new();
            for at in 0..n {
                variables.push(format!("v{at}"), format!("$f{at}"));
            }
            let used: Value = (0..n).map(|at| format!("$$v{at}")).collect();
            (wide(n, number), doc! { "$let": { "vars": variables, "in": { "$add": used } } })
        }),
        evaluated("loops within a scope of many variables", |n| {
            let mut variables = Document::new();
            for at in 0..n {
                variables.push(format!("v{at}"), number(at));
            }
            let map = |at: usize| doc! { "$map": { "input": "$a", "in": (format!("$$v{at}")) } };
            let loops: Value = (0..n).map(map).collect();
            (doc! { "a": [1] }, doc! { "$let": { "vars": variables, "in": loops } })
        }),
    ]
}

fn arrays(n: usize) -> Document {
    doc! { "a": numbers(0, n), "b": numbers(n / 2, n) }
}

/// An expression of the arrays `a` and `b`, which have half of their elements in common.
fn of_arrays(name: &'static str, expression: Document) -> Operation {
    evaluated(name, move |n| (arrays(n), expression.clone()))
}

fn evaluated(name: &'static str, operands: impl Fn(usize) -> (Document, Document) + 'static) -> Operation {
    Operation::new(name, move |n| {
        let (document, expression) = operands(n);
        let (document, expression) = (document.to_raw(), Held::new(expression));
        move || {
            let expression =
                Expression::parse(expression.value(), &ParseScope::at(0)).unwrap().folded().unwrap();
            expression.evaluate(&document).unwrap();
        }
    })
}
