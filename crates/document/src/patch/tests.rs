//! Patches: what each operator does to each document, what cannot be encoded, and hostile bytes.

use super::*;
use crate::{DOCUMENT_BYTES_MAX, Document, RawDocumentBuf, doc};

fn patch(changes: &[(PatchOperator, &str, RawValue<'_>)]) -> Result<Vec<u8>, Unencodable> {
    encode(
        changes
            .iter()
            .map(|(operator, path, operand)| PatchChange { operator: *operator, path, operand: *operand })
            .collect(),
    )
}

fn applied(patch: &[u8], document: &Document) -> Option<Document> {
    let bytes = Patch::decode(patch).expect("it was encoded").apply(document.to_raw().as_bytes())?;
    let raw = RawDocumentBuf::from_vec(bytes).expect("it is a document");
    Some(raw.iter().fold(Document::new(), |mut all, field| {
        let (name, value) = field.expect("it is sound");
        all.push(name, value.to_owned());
        all
    }))
}

#[test]
fn operators_change_their_fields_and_new_ones_come_last_in_the_order_of_names() {
    use PatchOperator as P;
    let bytes = patch(&[
        (P::Set, "z", RawValue::Int32(1)),
        (P::Set, "a.y", RawValue::Null),
        (P::Add, "n", RawValue::Int32(2)),
        (P::Unset, "gone", RawValue::Int32(7)),
        (P::Push, "list", RawValue::Int32(3)),
        (P::Set, "10x", RawValue::Int32(10)),
        (P::Set, "9x", RawValue::Int32(9)),
    ]);
    let document = doc! { "_id": 1, "list": [1, 2], "n": 40, "gone": 1, "a": { "x": 1 } };
    let expected =
        doc! { "_id": 1, "list": [1, 2, 3], "n": 42, "a": { "x": 1, "y": null }, "9x": 9, "10x": 10, "z": 1 };
    assert_eq!(applied(&bytes.unwrap(), &document), Some(expected));
}

#[test]
fn a_document_stays_where_an_operator_fails_and_so_does_one_that_would_grow_too_large() {
    use PatchOperator as P;
    let set = (P::Set, "b", RawValue::Int32(1));
    for (failing, document) in [
        ((P::Add, "a", RawValue::Int32(1)), doc! { "a": "text" }),
        ((P::Add, "a", RawValue::Int64(1)), doc! { "a": (i64::MAX) }),
        ((P::Push, "a", RawValue::Int32(1)), doc! { "a": 1 }),
        ((P::Set, "a.x", RawValue::Int32(1)), doc! { "a": 1 }),
        ((P::Set, "a.x", RawValue::Int32(1)), doc! { "a": [1] }),
        (set, doc! { "text": ("x".repeat(DOCUMENT_BYTES_MAX - 20)) }),
    ] {
        let bytes = if failing.1 == "b" { patch(&[set]) } else { patch(&[failing, set]) };
        assert_eq!(applied(&bytes.unwrap(), &document), None, "{failing:?}");
    }
    assert_eq!(Patch::decode(&patch(&[set]).unwrap()).unwrap().apply(b"no document"), None);
}

#[test]
fn paths_and_operands_that_are_none_of_a_patch_are_refused() {
    use PatchOperator as P;
    let one = RawValue::Int32(1);
    for path in ["", "_id", "_id.a", "a.", "a.0", "0", "a.$", "a.$[]", "a.$[x].b", "$a"] {
        assert_eq!(patch(&[(P::Set, path, one)]), Err(Unencodable::Unfit), "{path}");
    }
    assert_eq!(patch(&[]), Err(Unencodable::Unfit));
    assert_eq!(patch(&[(P::Set, "a", one), (P::Set, "a.b", one)]), Err(Unencodable::Unfit));
    assert_eq!(patch(&[(P::Set, "a", one), (P::Add, "a", one)]), Err(Unencodable::Unfit));
    assert_eq!(patch(&[(P::Add, "a", RawValue::Null)]), Err(Unencodable::Unfit));
    let bits = doc! { "and": 1.5 }.to_raw();
    assert_eq!(patch(&[(P::Bits, "a", RawValue::Document(&bits))]), Err(Unencodable::Unfit));
    let long = "x".repeat(PATCH_BYTES_MAX);
    assert!(matches!(patch(&[(P::Set, "a", RawValue::String(&long))]), Err(Unencodable::TooLong { .. })));
}

#[test]
fn bytes_of_strangers_are_refused_or_applied_and_never_panic() {
    let good = patch(&[
        (PatchOperator::Set, "a.b", RawValue::Int32(1)),
        (PatchOperator::Add, "c", RawValue::Double(1.5)),
        (PatchOperator::Push, "d", RawValue::String("text")),
    ])
    .unwrap();
    let document = doc! { "a": { "b": 1 }, "c": 1, "d": ["x"] }.to_raw();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut chance = |end: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as usize % end
    };
    for _ in 0..50_000 {
        let (mut bytes, mut value) = (good.clone(), document.as_bytes().to_vec());
        for _ in 0..=chance(3) {
            let at = chance(bytes.len());
            bytes[at] = chance(256) as u8;
            if chance(2) == 0 {
                let at = chance(value.len());
                value[at] = chance(256) as u8;
            }
        }
        if let Some(patch) = Patch::decode(&bytes) {
            let _stays_or_changes = patch.apply(&value);
        }
    }
}
