//! The list of range deletes, compared with a plain list of all ranges.

use std::ops::Bound;

use bytes::Bytes;
use pando_environment::SeededRandom;

use crate::range_deletes::list::*;

fn span(start: &str, end: Option<&str>) -> KeySpan {
    KeySpan {
        start: Bytes::copy_from_slice(start.as_bytes()),
        end: end.map(|end| Bytes::copy_from_slice(end.as_bytes())),
    }
}

fn time(time: u64) -> CommitTimestamp {
    CommitTimestamp::new(time)
}

fn added(list: &DeletedRanges, start: &str, end: Option<&str>, at: u64) -> DeletedRanges {
    list.with_all([span(start, end)].iter(), time(at), Lsn::new(at))
}

/// The fragments as text: `a-c 5 3`.
fn shown(list: &DeletedRanges) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let show = |fragment: &RangeFragment| {
        let times: Vec<String> = fragment.times.iter().map(|time| time.get().to_string()).collect();
        let end = fragment.span.end.as_ref().map_or("…".to_owned(), text);
        format!("{}-{end} {}", text(&fragment.span.start), times.join(" "))
    };
    list.fragments().iter().map(show).collect()
}

#[test]
fn range_deletes_that_overlap_divide_each_other() {
    let list = added(&DeletedRanges::default(), "c", Some("g"), 3);
    assert_eq!(shown(&list), ["c-g 3"]);
    assert_eq!(shown(&added(&list, "e", Some("k"), 5)), ["c-e 3", "e-g 5 3", "g-k 5"]);
    assert_eq!(shown(&added(&list, "a", Some("d"), 5)), ["a-c 5", "c-d 5 3", "d-g 3"]);
    assert_eq!(shown(&added(&list, "d", Some("e"), 5)), ["c-d 3", "d-e 5 3", "e-g 3"]);
    assert_eq!(shown(&added(&list, "", None, 5)), ["-c 5", "c-g 5 3", "g-… 5"]);
    assert_eq!(shown(&added(&list, "c", Some("g"), 5)), ["c-g 5 3"]);
    assert_eq!(shown(&added(&list, "g", Some("h"), 5)), ["c-g 3", "g-h 5"]);
    assert_eq!(shown(&added(&list, "a", Some("c"), 5)), ["a-c 5", "c-g 3"]);
    let apart = added(&added(&list, "m", Some("p"), 5), "a", None, 7);
    assert_eq!(shown(&apart), ["a-c 7", "c-g 7 3", "g-m 7", "m-p 7 5", "p-… 7"]);
}

#[test]
fn range_deletes_shrink_and_vanish_as_they_are_applied() {
    let list = added(&added(&DeletedRanges::default(), "c", Some("g"), 3), "e", None, 5);
    assert_eq!(shown(&list), ["c-e 3", "e-g 5 3", "g-… 5"]);
    let list = list.without(&span("c", Some("f")), time(3));
    assert_eq!(shown(&list), ["e-f 5", "f-g 5 3", "g-… 5"]);
    let list = list.without(&span("f", Some("g")), time(4));
    assert_eq!(shown(&list), ["e-… 5"], "neighbours with the same times are one");
    let list = list.without(&span("", Some("x")), time(9));
    assert_eq!(shown(&list), ["x-… 5"]);
    let list = list.without(&KeySpan::all(), time(9));
    assert_eq!((list.is_empty(), list.seen()), (true, Lsn::new(5)), "what was seen stays known");
}

#[test]
fn the_floor_is_that_of_the_newest_one_that_the_snapshot_sees() {
    let list = added(&added(&DeletedRanges::default(), "c", Some("g"), 3), "e", None, 5);
    let floor = |key: &str, snapshot| list.floor(key.as_bytes(), SnapshotTimestamp::new(snapshot)).get();
    assert_eq!([floor("b", 9), floor("c", 9), floor("c", 2), floor("f", 9)], [0, 3, 0, 5]);
    assert_eq!([floor("f", 4), floor("f", 2), floor("z", 9), floor("g", 4)], [3, 0, 5, 0]);
}

#[test]
fn a_range_becomes_a_span_of_the_same_keys() {
    let (a, b) = (|| b"a".to_vec(), || b"b".to_vec());
    let of = |lower, upper| KeySpan::of(&KeyRange { lower, upper });
    assert_eq!(of(Bound::Included(a()), Bound::Excluded(b())), Some(span("a", Some("b"))));
    assert_eq!(of(Bound::Excluded(a()), Bound::Included(b())), Some(span("a\0", Some("b\0"))));
    assert_eq!(of(Bound::Unbounded, Bound::Unbounded), Some(KeySpan::all()));
    assert_eq!(of(Bound::Included(b()), Bound::Excluded(a())), None);
    assert_eq!(of(Bound::Excluded(a()), Bound::Excluded(b"a\0".to_vec())), None, "no key lies between");
    assert_eq!(of(Bound::Unbounded, Bound::Excluded(Vec::new())), None);
}

#[test]
fn random_lists_agree_with_a_plain_one() {
    let random = SeededRandom::new(11);
    let key = || {
        let length = random.below(3);
        (0..length).map(|_| b"abc"[random.below(3) as usize]).collect::<Vec<u8>>()
    };
    for _ in 0..400 {
        let (mut list, mut plain) = (DeletedRanges::default(), Vec::<(KeySpan, u64)>::new());
        for at in 1..12 {
            let upper = if random.below(5) == 0 { Bound::Unbounded } else { Bound::Excluded(key()) };
            let Some(span) = KeySpan::of(&KeyRange { lower: Bound::Included(key()), upper }) else {
                continue;
            };
            list = list.with_all([&span].into_iter(), time(at), Lsn::new(at));
            plain.push((span, at));
        }
        let (done, up_to) = (KeySpan { start: key().into(), end: None }, random.below(12));
        list = list.without(&done, time(up_to));
        check_order(&list);
        for _ in 0..60 {
            let key = key();
            let is_there =
                |(span, at): &&(KeySpan, u64)| span.contains(&key) && !(done.contains(&key) && *at <= up_to);
            let mut expected: Vec<u64> = plain.iter().filter(is_there).map(|(_, at)| *at).collect();
            expected.reverse();
            let found: Vec<u64> = list.over(&key).iter().map(|time| time.get()).collect();
            assert_eq!(found, expected, "over {key:?} of {list:?}");
        }
        check_walks(&list, &random, &key);
    }
}

fn check_order(list: &DeletedRanges) {
    for pair in list.fragments().windows(2) {
        let end = pair[0].span.end.as_ref().expect("only the last reaches to the end");
        assert!(*end <= pair[1].span.start);
        assert!(*end < pair[1].span.start || pair[0].times != pair[1].times);
    }
    assert!(list.fragments().iter().all(|fragment| !fragment.times.is_empty()));
}

/// A walk in either direction gives the same times for each key as a look at the key alone.
fn check_walks(list: &DeletedRanges, random: &SeededRandom, key: &dyn Fn() -> Vec<u8>) {
    for direction in [Direction::Forward, Direction::Backward] {
        let bound = || match random.below(3) {
            0 => Bound::Included(key()),
            1 => Bound::Excluded(key()),
            _ => Bound::Unbounded,
        };
        let mut rest = KeyRange { lower: bound(), upper: bound() };
        let mut pieces = 0;
        while !rest.is_empty() {
            let (times, end) = list.next(&rest, direction);
            let piece = match (direction, end) {
                (_, None) => rest.clone(),
                (Direction::Forward, Some(end)) => {
                    KeyRange { lower: rest.lower.clone(), upper: Bound::Excluded(end.to_vec()) }
                }
                (Direction::Backward, Some(end)) => {
                    KeyRange { lower: Bound::Included(end.to_vec()), upper: rest.upper.clone() }
                }
            };
            for _ in 0..10 {
                let key = key();
                if piece.contains(&key) && rest.contains(&key) {
                    assert_eq!(list.over(&key), times, "{key:?} in {piece:?} {direction:?} of {list:?}");
                }
            }
            match (direction, end) {
                (_, None) => break,
                (Direction::Forward, Some(end)) => rest.lower = Bound::Included(end.to_vec()),
                (Direction::Backward, Some(end)) => rest.upper = Bound::Excluded(end.to_vec()),
            }
            pieces += 1;
            assert!(pieces < 100, "a walk ends");
        }
    }
}
