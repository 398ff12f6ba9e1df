//! MongoDB's order over values of all types.

use std::cmp::Ordering;

use pando_document::{
    Binary, DbPointer, Decimal128, DecimalParts, JavaScriptWithScope, ObjectId, Regex, Timestamp, Value,
    compare, compare_values, doc,
};

fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Value {
    Value::Decimal128(Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent }))
}

fn array(values: impl IntoIterator<Item = i32>) -> Value {
    values.into_iter().collect()
}

fn binary(subtype: u8, bytes: &[u8]) -> Value {
    Value::Binary(Binary { subtype, bytes: bytes.to_vec() })
}

fn regex(pattern: &str, options: &str) -> Value {
    Value::Regex(Regex { pattern: pattern.to_owned(), options: options.to_owned() })
}

fn pointer(namespace: &str, byte: u8) -> Value {
    Value::DbPointer(DbPointer { namespace: namespace.to_owned(), id: ObjectId::from_bytes([byte; 12]) })
}

fn scoped(code: &str, x: i32) -> Value {
    Value::JavaScriptWithScope(JavaScriptWithScope { code: code.to_owned(), scope: doc! { "x": x } })
}

/// Groups of equal values, least first.
fn ladder() -> Vec<Vec<Value>> {
    let two_53 = 1i64 << 53;
    let text = |text: &str| vec![Value::from(text), Value::Symbol(text.to_owned())];
    vec![
        vec![Value::MinKey],
        vec![Value::Undefined],
        vec![Value::Null],
        vec![Value::from(f64::NAN), Value::from(-f64::NAN), Value::Decimal128(Decimal128::NAN)],
        vec![Value::from(f64::NEG_INFINITY), Value::Decimal128(Decimal128::NEGATIVE_INFINITY)],
        vec![decimal(true, 1, 6111)],
        vec![Value::from(f64::MIN)],
        vec![Value::from(i64::MIN), Value::from(i64::MIN as f64), decimal(true, 1 << 63, 0)],
        vec![Value::from(i64::MIN + 1)],
        vec![Value::from(-2), Value::from(-2.0), decimal(true, 200, -2)],
        vec![Value::from(-1.5), decimal(true, 15, -1)],
        vec![Value::from(-1)],
        vec![Value::from(-5e-324)],
        vec![decimal(true, 1, -6176)],
        vec![0.into(), 0i64.into(), 0.0.into(), (-0.0).into(), decimal(false, 0, 0), decimal(true, 0, 6111)],
        vec![decimal(false, 1, -6176)],
        vec![Value::from(5e-324)],
        vec![decimal(false, 1, -1)],
        vec![Value::from(0.1)],
        vec![Value::from(1), Value::from(1i64), Value::from(1.0), decimal(false, 10, -1)],
        vec![Value::from(1.5)],
        vec![Value::from(two_53 as f64), Value::from(two_53), decimal(false, two_53 as u128, 0)],
        vec![Value::from(two_53 + 1), decimal(false, two_53 as u128 + 1, 0)],
        vec![decimal(false, (two_53 as u128 + 1) * 10 + 5, -1)],
        vec![Value::from((two_53 + 2) as f64), Value::from(two_53 + 2)],
        vec![Value::from(i64::MAX), decimal(false, i64::MAX as u128, 0)],
        vec![Value::from(i64::MAX as f64), decimal(false, 1 << 63, 0)],
        vec![Value::from(1e22), decimal(false, 1, 22)],
        vec![decimal(false, 1, 23)],
        vec![Value::from(1.0000000000000001e23)],
        vec![Value::from(f64::MAX)],
        vec![decimal(false, 1, 6111)],
        vec![Value::from(f64::INFINITY), Value::Decimal128(Decimal128::INFINITY)],
        text(""),
        text("\0"),
        text("a"),
        text("a\0"),
        text("a\u{1}"),
        text("é"),
        vec![Value::Document(doc! {})],
        vec![doc! { "b": 1, "a": 0 }.into(), doc! { "b": 1.0, "a": 0i64 }.into()],
        vec![doc! { "b": 1, "a": 1 }.into()],
        vec![doc! { "a": "x" }.into()],
        vec![doc! { "a": "x", "b": null }.into()],
        vec![array([])],
        vec![array([1])],
        vec![array([1, 2])],
        vec![array([2])],
        vec![binary(9, b"")],
        vec![binary(0, b"b")],
        vec![binary(1, b"a")],
        vec![binary(0, b"aa")],
        vec![ObjectId::from_bytes([1; 12]).into()],
        vec![ObjectId::from_bytes([200; 12]).into()],
        vec![false.into()],
        vec![true.into()],
        vec![Value::DateTime(-1)],
        vec![Value::DateTime(1)],
        vec![Timestamp { time: 1, increment: u32::MAX }.into()],
        vec![Timestamp { time: u32::MAX, increment: 0 }.into()],
        vec![regex("a", "")],
        vec![regex("a", "i")],
        vec![regex("ab", "")],
        vec![pointer("b", 1)],
        vec![pointer("b", 2)],
        vec![pointer("aa", 0)],
        vec![Value::JavaScript("a".to_owned())],
        vec![Value::JavaScript("b".to_owned())],
        vec![scoped("a", 1)],
        vec![scoped("a", 2)],
        vec![scoped("b", 0)],
        vec![Value::MaxKey],
    ]
}

#[test]
fn values_of_all_types_stand_in_the_documented_order() {
    let ladder: Vec<(usize, Value)> = ladder()
        .into_iter()
        .enumerate()
        .flat_map(|(step, group)| group.into_iter().map(move |value| (step, value)))
        .collect();
    for (a_step, a) in &ladder {
        for (b_step, b) in &ladder {
            let expected = a_step.cmp(b_step);
            assert_eq!(compare(a, b), expected, "owned {a:?} and {b:?}");
            let (a_raw, b_raw) = (doc! { "": a }.to_raw(), doc! { "": b }.to_raw());
            let (a_raw, b_raw) = (a_raw.get("").unwrap().unwrap(), b_raw.get("").unwrap().unwrap());
            assert_eq!(compare_values(a_raw, b_raw), expected, "raw {a:?} and {b:?}");
            assert_eq!(compare(a, b_raw), expected, "owned {a:?} and raw {b:?}");
        }
    }
}

#[test]
fn equality_of_rust_is_identity_while_the_order_has_one_value() {
    assert_ne!(Value::from(1), Value::from(1.0));
    assert_eq!(compare(&Value::from(1), &Value::from(1.0)), Ordering::Equal);
}
