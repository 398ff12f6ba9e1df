//! Tests of merges: their effect, that they are associative, and that hostile bytes are refused.

use std::borrow::Cow;

use pando_document::patch::{PatchChange, PatchOperator, encode};
use pando_document::{RawValue, doc};

use super::{MERGE_OPERAND_BYTES_MAX, Merge, Merges, PENDING_PATCHES_MAX};

/// The value that a merge other than a patch leaves behind.
fn apply(merge: Merge<'_>, value: Option<&[u8]>) -> Vec<u8> {
    merge.apply(value).expect("it leaves a value behind").into_owned()
}

fn patch(operator: PatchOperator, operand: RawValue<'_>) -> Vec<u8> {
    encode(vec![PatchChange { operator, path: "n", operand }]).expect("it is a patch")
}

#[test]
fn add_counts_modulo_2_to_the_64th_and_leaves_alone_what_is_no_counter() {
    assert_eq!(apply(Merge::Add(-3), None), (-3_i64).to_le_bytes());
    assert_eq!(apply(Merge::Add(2), Some(&40_i64.to_le_bytes())), 42_i64.to_le_bytes());
    assert_eq!(apply(Merge::Add(1), Some(&i64::MAX.to_le_bytes())), i64::MIN.to_le_bytes());
    assert_eq!(apply(Merge::Add(1), Some(&u64::MAX.to_le_bytes())), 0_u64.to_le_bytes());
    for value in [&b""[..], b"seven b", b"nine byte"] {
        assert_eq!(apply(Merge::Add(1), Some(value)), value);
    }
}

#[test]
fn max_and_min_compare_bytes() {
    assert_eq!(apply(Merge::Max(b"b"), Some(b"ab")), b"b");
    assert_eq!(apply(Merge::Max(b"b"), Some(b"ba")), b"ba");
    assert_eq!(apply(Merge::Min(b"b"), Some(b"ba")), b"b");
    assert_eq!(apply(Merge::Min(b"b"), None), b"b");
    assert_eq!(apply(Merge::Max(b""), None), b"");
}

/// All sequences of three of these on all of these values: one after the other, and joined in both ways.
#[test]
fn merges_that_are_joined_first_do_what_they_do_one_by_one() {
    let (add, set) =
        (patch(PatchOperator::Add, RawValue::Int32(7)), patch(PatchOperator::Set, RawValue::String("text")));
    let document = doc! { "_id": 1, "n": 1 }.to_raw();
    let merges = [
        Merge::Add(1),
        Merge::Add(i64::MAX),
        Merge::Patch(&add),
        Merge::Patch(&set),
        Merge::Max(b"m"),
        Merge::Max(b"8 bytes!"),
        Merge::Min(b"c"),
        Merge::Min(b""),
    ];
    let counter = &b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"[..];
    let values = [None, Some(&b""[..]), Some(b"x"), Some(counter), Some(document.as_bytes())];
    let both =
        |older: &[u8], newer: &[u8]| Merges::decode(newer).unwrap().after(Merges::decode(older).unwrap());
    for at in 0..merges.len().pow(3) {
        let count = merges.len();
        let (a, b, c) = (merges[at % count], merges[at / count % count], merges[at / count / count]);
        let [x, y, z] = [a, b, c].map(Merge::to_bytes);
        let (left, right) = (both(&both(&x, &y), &z), both(&x, &both(&y, &z)));
        assert_eq!(left, right, "{a:?} {b:?} {c:?}");
        for value in values {
            let one_by_one = [a, b, c].iter().fold(value.map(<[u8]>::to_vec), |value, merge| {
                merge.apply(value.as_deref()).map(Cow::into_owned)
            });
            assert_eq!(
                Merges::decode(&left).unwrap().apply(value).map(Cow::into_owned),
                one_by_one,
                "{a:?} {b:?} {c:?} on {value:?}"
            );
        }
    }
}

#[test]
fn a_thousand_increments_take_no_more_room_than_one() {
    let one = Merge::Add(1).to_bytes();
    let mut all = one.clone();
    for _ in 1..1_000 {
        all = Merges::decode(&one).unwrap().after(Merges::decode(&all).unwrap());
    }
    assert_eq!(all, Merge::Add(1_000).to_bytes());
}

/// The bytes of docs/data-file.md.
#[test]
fn golden_the_encoding_of_three_merges() {
    let add = Merge::Add(-2).to_bytes();
    let max = Merge::Max(b"mx").to_bytes();
    let all = Merges::decode(&max).unwrap().after(Merges::decode(&add).unwrap());
    let all = Merges::decode(&Merge::Min(b"").to_bytes()).unwrap().after(Merges::decode(&all).unwrap());
    assert_eq!(all, b"\x01\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02\x02\0\0\0mx\x03\0\0\0\0");
}

#[test]
fn only_sums_pass_over_values_and_only_over_those_that_are_no_counters() {
    let pass_over = |bytes: &[u8], length| Merges::decode(bytes).unwrap().pass_over(length);
    let (add, max) = (Merge::Add(1).to_bytes(), Merge::Max(b"").to_bytes());
    assert!(pass_over(&add, 9) && pass_over(&[&*add, &add].concat(), 0));
    assert!(!pass_over(&add, 8) && !pass_over(&max, 9) && !pass_over(&[&*add, &max].concat(), 9));
}

#[test]
fn bytes_that_are_no_merges_are_refused() {
    for bytes in [&b""[..], b"\x01", b"\x01 7 byte", b"\x02\x05\0\0\0four", b"\x00", b"\x04\0\0\0\0"] {
        assert_eq!(Merges::decode(bytes), None, "{bytes:?}");
    }
    assert!(Merge::Max(&[0; MERGE_OPERAND_BYTES_MAX]).check().is_ok());
    assert!(Merge::Min(&[0; MERGE_OPERAND_BYTES_MAX + 1]).check().is_err());
}

#[test]
fn only_one_addition_is_an_addition() {
    let addition = Merge::addition_bytes(-7);
    assert_eq!(addition.to_vec(), Merge::Add(-7).to_bytes());
    let of = |bytes: &[u8]| Merges::decode(bytes).expect("they are merges").as_addition();
    assert_eq!(of(&addition), Some(-7));
    assert_eq!(of(&Merge::Max(&[0; 4]).to_bytes()), None, "as many bytes");
    assert_eq!(of(&[addition, addition].concat()), None);
    assert_eq!(of(&Merge::Max(b"").to_bytes()), None);
}

#[test]
fn a_patch_leaves_an_absent_key_and_other_bytes_alone() {
    let add = patch(PatchOperator::Add, RawValue::Int32(7));
    assert_eq!(Merge::Patch(&add).apply(None), None);
    assert_eq!(Merge::Patch(&add).apply(Some(b"x")).as_deref(), Some(&b"x"[..]));
    assert!(Merge::Patch(b"x").check().is_err() && Merge::Patch(&add).check().is_ok());
    assert!(Merges::decode(&Merge::Patch(b"x").to_bytes()).is_none(), "hostile bytes are refused");
    let bytes = Merge::Patch(&add).to_bytes();
    let merges = Merges::decode(&bytes).unwrap();
    assert_eq!((merges.patches(), merges.pass_over(8), merges.pass_over(9)), (1, false, false));
}

#[test]
fn one_encoding_holds_as_many_patches_as_may_wait() {
    let longest = patch(PatchOperator::Set, RawValue::String(&"x".repeat(1_880)));
    assert!(longest.len() <= MERGE_OPERAND_BYTES_MAX && longest.len() > MERGE_OPERAND_BYTES_MAX - 10);
    let bytes = Merge::Patch(&longest).to_bytes();
    assert!((bytes.len() + 10) * PENDING_PATCHES_MAX <= super::MERGES_BYTES_MAX);
}
