//! Comparison and key bytes agree, for all options and scripts.

use pando_document::{Document, Value, doc};
use proptest::prelude::*;

use super::*;

fn order(specification: &Document) -> TextOrder {
    TextOrder::parse(&specification.to_raw(), "collation").unwrap()
}

fn specifications() -> Vec<Document> {
    let mut all = Vec::new();
    for locale in
        ["en", "de@collation=phonebook", "sv", "fr_CA", "ja", "zh", "tr", "th", "da", "ar", "ko", "vi"]
    {
        for strength in 1..=5 {
            for (option, value) in [
                ("numericOrdering", Value::Boolean(true)),
                ("alternate", Value::from("shifted")),
                ("caseLevel", Value::Boolean(true)),
                ("caseFirst", Value::from("upper")),
                ("caseFirst", Value::from("lower")),
                ("backwards", Value::Boolean(true)),
                ("normalization", Value::Boolean(true)),
            ] {
                let mut specification = doc! { "locale": locale, "strength": strength };
                specification.push(option, value);
                if TextOrder::parse(&specification.to_raw(), "collation").is_ok() {
                    all.push(specification);
                }
            }
        }
    }
    all
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-cA-C ._'-]{0,4}",
        "[0-9]{1,4}",
        "[aáàâäAÁÄeéêëoôöøœßSssæÆnñ]{0,4}",
        "[\u{300}-\u{304}\u{323}a]{0,3}",
        "[あアｱか가각ㄱ中文字яжЖαβΑىبกเแ]{0,3}",
        "[\u{0}\u{1}\u{2}\u{ad}\u{200b}\u{fffe}\u{ffff}]{0,2}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn key(order: &TextOrder, value: &Value, direction: Direction) -> Vec<u8> {
    let mut key = Vec::new();
    order.encode(value, direction, &mut key, &mut TypeBits::new());
    key
}

fn compared(order: &TextOrder, a: &Value, b: &Value) -> Ordering {
    let (a, b) = (doc! { "v": (a.clone()) }.to_raw(), doc! { "v": (b.clone()) }.to_raw());
    order.compare(a.get("v").unwrap().unwrap(), b.get("v").unwrap().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn key_bytes_are_in_the_order_of_the_comparison(a in text(), b in text(), at in any::<prop::sample::Index>()) {
        let all = specifications();
        let specification = at.get(&all);
        let order = order(specification);
        let wanted = order.compare(RawValue::String(&a), RawValue::String(&b));
        let keys = |direction| {
            let (a, b) = (Value::from(a.as_str()), Value::from(b.as_str()));
            key(&order, &a, direction).cmp(&key(&order, &b, direction))
        };
        prop_assert_eq!(keys(Direction::Ascending), wanted, "{:?}", specification);
        prop_assert_eq!(keys(Direction::Descending), wanted.reverse(), "{:?}", specification);
        let nested = |text: &str| Value::from(doc! { "x": [(Value::from(text)), 1] });
        prop_assert_eq!(compared(&order, &nested(&a), &nested(&b)), wanted);
        let bytes = key(&order, &nested(&a), Direction::Ascending);
        prop_assert_eq!(pando_keyorder::parts_length(&bytes, &[Direction::Ascending]), Ok(bytes.len()));
    }
}

#[test]
fn strings_within_values_compare_by_the_rules_and_names_by_their_bytes() {
    let order = order(&doc! { "locale": "en", "strength": 2 });
    let equal = |a: Value, b: Value| compared(&order, &a, &b).is_eq();
    assert!(equal(Value::from("A"), Value::from("a")));
    assert!(equal(Value::Symbol("A".to_owned()), Value::from("a")));
    assert!(equal(Value::from(doc! { "x": ["A"] }), Value::from(doc! { "x": ["a"] })));
    assert!(!equal(Value::from(doc! { "X": 1 }), Value::from(doc! { "x": 1 })));
    assert!(!equal(Value::JavaScript("A".to_owned()), Value::JavaScript("a".to_owned())));
    assert!(order.agrees_on(&TextOrder::SIMPLE, RawValue::Int32(1)));
    assert!(!order.agrees_on(&TextOrder::SIMPLE, RawValue::String("1")));
}

#[test]
fn stored_keys_of_other_rules_are_refused_with_a_way_out() {
    let of = |version: &str| {
        let stored = doc! { "collation": { "locale": "en", "version": version } }.to_raw();
        TextOrder::of_stored(&stored)
    };
    assert!(of(crate::VERSION).is_ok_and(|order| !order.is_simple()));
    let refused = of("icu4x-2.3").unwrap_err();
    assert!(refused.contains("icu4x-2.3") && refused.contains("restore"), "{refused}");
    // Where a client names it, MongoDB's version is taken for ours; where keys are stored, it is not.
    assert!(of("57.1").is_err());
    assert_eq!(TextOrder::of_stored(&doc! {}.to_raw()), Ok(TextOrder::SIMPLE));
}
