//! Specifications of collations, and strings under them: parsing never panics, the completed form is a
//! specification of the same collation, and key bytes are in the order of the comparison.

use arbitrary::Arbitrary;
use pando_collation::TextOrder;
use pando_document::{Document, RawValue, Value, doc};
use pando_keyorder::{Direction, TypeBits};

use crate::requests::Stored;

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// A document of a stranger, decisions about options, and two strings.
#[derive(Debug, Arbitrary)]
pub struct Input {
    stranger: Stored,
    decisions: [u8; 8],
    a: String,
    b: String,
}

const LOCALES: [&str; 10] = [
    "en",
    "simple",
    "fr_CA",
    "de@collation=phonebook",
    "ja",
    "th",
    "zh_Hant",
    "vi",
    "xx",
    "en@collation=search",
];

/// See the module.
pub fn run(Input { stranger, decisions, a, b }: Input) {
    let _ = TextOrder::parse(&stranger, "collation");
    let Ok(order) = TextOrder::parse(&specification(decisions).to_raw(), "collation") else { return };
    if let Some(completed) = order.document() {
        assert!(TextOrder::parse(completed, "collation").is_ok_and(|again| again == order), "{completed:?}");
    }
    let key = |text: &str| {
        let mut key = Vec::new();
        order.encode(RawValue::String(text), Direction::Ascending, &mut key, &mut TypeBits::new());
        assert_eq!(pando_keyorder::parts_length(&key, &[Direction::Ascending]), Ok(key.len()));
        assert!(order.decode(&key, &[], &[Direction::Ascending]).is_ok());
        key
    };
    let compared = order.compare(RawValue::String(&a), RawValue::String(&b));
    assert_eq!(key(&a).cmp(&key(&b)), compared, "{:?}: {a:?} {b:?}", order.document());
}

fn specification(decisions: [u8; 8]) -> Document {
    let [locale, strength, case_level, case_first, numeric, alternate, variable, backwards] = decisions;
    let mut specification = doc! { "locale": (LOCALES[usize::from(locale) % LOCALES.len()]) };
    let mut push = |name: &str, decision: u8, values: &[Value]| {
        if let Some(value) = values.get(usize::from(decision) % (values.len() + 1)) {
            specification.push(name, value.clone());
        }
    };
    let switch = [Value::Boolean(true), Value::Boolean(false)];
    push("strength", strength, &(0..=6).map(Value::Int32).collect::<Vec<_>>());
    push("caseLevel", case_level, &switch);
    push("caseFirst", case_first, &["upper", "lower", "off", "none"].map(Value::from));
    push("numericOrdering", numeric, &switch);
    push("alternate", alternate, &["shifted", "non-ignorable"].map(Value::from));
    push("maxVariable", variable, &["space", "punct"].map(Value::from));
    push("backwards", backwards, &switch);
    specification
}
